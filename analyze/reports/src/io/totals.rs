//! Sums of calls by thread.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Table, ThreadKey};
use tracebraid_kernel_model::{FdType, Syscall};

use crate::io::sums::{Sums, Tally, Types};

/// Sums by system call and type of descriptor.
pub(super) type Sheet = Vec<(Syscall, FdType, Sums)>;

/// Numbers of calls whose entry or exit was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Losses {
    pub(super) unfinished: u64,
    pub(super) unstarted: u64,
}

/// Sums of calls, independent of their order. Takes a few hundred bytes for each thread that makes
/// calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Totals {
    pub(super) sheets: Table<Sheet>,
    pub(super) losses: Table<Losses>,
}

impl Totals {
    /// Adds calls whose descriptors have the given types.
    pub(super) fn add(&mut self, thread: ThreadKey, call: Syscall, tally: &Tally, types: Types) {
        let (first, second) = tally.sums(call);
        self.add_sums(thread, (call, types.0), &first);
        if let Some(second) = second {
            self.add_sums(thread, (call, types.1), &second);
        }
    }

    /// Adds sums for a type of descriptor.
    pub(super) fn add_sums(
        &mut self,
        thread: ThreadKey,
        (call, kind): (Syscall, FdType),
        sums: &Sums,
    ) {
        add_to(self.sheets.get(thread), (call, kind), sums);
    }

    /// Adds other sums.
    pub(super) fn merge(&mut self, others: Totals) {
        self.sheets.merge_by(others.sheets, |sheet, other| {
            for (call, kind, sums) in other {
                add_to(sheet, (call, kind), &sums);
            }
        });
        self.losses.merge_by(others.losses, |losses, other| {
            losses.unfinished += other.unfinished;
            losses.unstarted += other.unstarted;
        });
    }
}

fn add_to(sheet: &mut Sheet, (call, kind): (Syscall, FdType), sums: &Sums) {
    let mut known = sheet.iter_mut();
    match known.find(|(other, of, _)| *other == call && *of == kind) {
        Some((_, _, sum)) => sum.add(sums),
        None => sheet.push((call, kind, *sums)),
    }
}
