//! Sums: latency by thread and class, use by thread and file.

use serde::{Deserialize, Serialize};
use tracebraid_files::{Call, Class, FileId, Side};
use tracebraid_statistics::{Bins, Distribution, Top};

/// A call whose file is known. The order is by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) duration: u64,
    pub(super) begin: i64,
    pub(super) call: tracebraid_kernel_model::Syscall,
    pub(super) class: Class,
    pub(super) result: i64,
    /// The descriptor that the call uses, or else the one it makes.
    pub(super) fd: i32,
    /// The file of that descriptor.
    pub(super) file: Option<FileId>,
    pub(super) place: u32,
}

impl Told {
    /// Time of the call's end.
    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }
}

/// A thread's calls of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ClassStats {
    pub(super) durations: Distribution,
    pub(super) errors: u64,
    pub(super) bytes: u64,
    pub(super) top: Top<Told>,
    /// Histogram, in a second pass.
    pub(super) bins: Option<Box<Bins>>,
}

impl ClassStats {
    /// Adds later calls, except the list of the longest.
    pub(super) fn merge_all(&mut self, later: &ClassStats) {
        self.merge(later);
        if let Some(bins) = &later.bins {
            self.bins.get_or_insert_default().merge(bins);
        }
    }

    /// Adds the calls of another thread, without their histogram.
    pub(super) fn merge(&mut self, other: &ClassStats) {
        self.durations.merge(&other.durations);
        self.errors += other.errors;
        self.bytes += other.bytes;
    }
}

/// Use of a file by a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Use {
    /// Durations of the calls other than opening and closing.
    pub(super) durations: Distribution,
    pub(super) read: u64,
    pub(super) written: u64,
    /// Successful or not.
    pub(super) opens: u64,
    pub(super) closes: u64,
    pub(super) errors: u64,
}

impl Use {
    #[inline(always)]
    pub(super) fn add(&mut self, call: &Call, side: Side) {
        match call.class {
            Class::Open | Class::Accept => self.opens += 1,
            Class::Close => self.closes += 1,
            Class::Read | Class::Write | Class::Copy | Class::Sync => {
                self.durations.add(call.duration)
            }
        }
        self.errors += u64::from(call.failed());
        match side {
            Side::From => self.read += call.bytes().unwrap_or(0),
            Side::To => self.written += call.bytes().unwrap_or(0),
        }
    }

    pub(super) fn merge(&mut self, other: &Use) {
        self.durations.merge(&other.durations);
        self.read += other.read;
        self.written += other.written;
        self.opens += other.opens;
        self.closes += other.closes;
        self.errors += other.errors;
    }

    /// Bytes read and written.
    pub(super) fn bytes(&self) -> u64 {
        self.read.saturating_add(self.written)
    }

    /// Number of calls other than opening and closing.
    pub(super) fn calls(&self) -> u64 {
        self.durations.summary().count()
    }
}
