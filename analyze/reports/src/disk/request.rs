//! Requests to block devices.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Device, Rwbs};

/// A block device of one of the traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct DiskKey {
    pub(super) trace: u32,
    pub(super) device: Device,
}

impl DiskKey {
    /// Key for bounds that the second pass receives.
    pub(super) fn to_name(self) -> String {
        format!("{}/{}", self.trace, self.device.0)
    }

    pub(super) fn from_name(name: &str) -> Option<DiskKey> {
        let (trace, device) = name.split_once('/')?;
        Some(DiskKey {
            trace: trace.parse().ok()?,
            device: Device(device.parse().ok()?),
        })
    }
}

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum RequestKind {
    Read,
    Write,
    Discard,
    /// Another request with sectors, such as writing zeroes.
    Other,
    Flush,
    /// Another request without sectors.
    Command,
}

impl RequestKind {
    pub(super) const ALL: [RequestKind; 6] = [
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::Discard,
        RequestKind::Other,
        RequestKind::Flush,
        RequestKind::Command,
    ];

    pub(super) fn of(rwbs: Rwbs, place: SectorRange) -> RequestKind {
        let has = |flags| rwbs.has(flags);
        if place.sectors == 0 {
            let flushes = has(Rwbs::FLUSH) || has(Rwbs::PREFLUSH) || place.sector == NOWHERE;
            return if flushes {
                RequestKind::Flush
            } else {
                RequestKind::Command
            };
        }
        if has(Rwbs::DISCARD) || has(Rwbs::SECURE) {
            RequestKind::Discard
        } else if rwbs.is_write() {
            RequestKind::Write
        } else if rwbs.is_read() {
            RequestKind::Read
        } else {
            RequestKind::Other
        }
    }

    pub(super) fn has_data(self) -> bool {
        !matches!(self, RequestKind::Flush | RequestKind::Command)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Discard => "discard",
            RequestKind::Flush => "flush",
            RequestKind::Other => "other",
            RequestKind::Command => "command",
        }
    }
}

/// Sector of requests without data in completions; their issues have 0.
pub(super) const NOWHERE: u64 = u64::MAX;

/// A range of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SectorRange {
    pub(super) sector: u64,
    /// 0 for requests without data.
    pub(super) sectors: u64,
}

impl SectorRange {
    /// End sector: the same for a request and for the last of its parts, which completes it.
    pub(super) fn end(self) -> u64 {
        self.sector.wrapping_add(self.sectors)
    }

    /// Gives flushes the same sector at issue and completion.
    pub(super) fn of(self, kind: RequestKind) -> SectorRange {
        match kind {
            RequestKind::Flush => SectorRange {
                sector: NOWHERE,
                ..self
            },
            _ => self,
        }
    }

    pub(super) fn bytes(self) -> u64 {
        self.sectors.saturating_mul(SECTOR)
    }
}

/// A request in the driver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Issued {
    pub(super) time: i64,
    pub(super) place: SectorRange,
    pub(super) rwbs: Rwbs,
    /// The thread, if the event contains it.
    pub(super) thread: Option<i32>,
}

/// The completion of a request or of a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub(super) time: i64,
    pub(super) place: SectorRange,
}

/// A completed request. The order is by latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) latency: u64,
    pub(super) issued: i64,
    pub(super) disk: DiskKey,
    pub(super) place: SectorRange,
    pub(super) rwbs: Rwbs,
    /// The thread, if the event of the issue contains it.
    pub(super) thread: Option<i32>,
}

impl Request {
    pub(super) fn new(disk: DiskKey, issued: Issued, done: Returned) -> Request {
        Request {
            latency: issued.time.abs_diff(done.time),
            issued: issued.time,
            disk,
            place: issued.place,
            rwbs: issued.rwbs,
            thread: issued.thread,
        }
    }

    pub(super) fn kind(&self) -> RequestKind {
        RequestKind::of(self.rwbs, self.place)
    }

    /// Time of the completion.
    pub(super) fn end(&self) -> i64 {
        self.issued.saturating_add_unsigned(self.latency)
    }
}
