//! The last event of a trace, `tracebraid_end`. A trace without it was not ended by its recorder.
//!
//! Readers look for the mark only in the last packet of each stream. It is the last event of the CPU
//! with the newest event, in the packet that is written last. The key [`EXPECTED`] in the environment
//! distinguishes traces that were cut off from traces of recorders that write no mark.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::recorder::Progress;
use crate::state::Payload;

/// Key in the environment of traces that end with the mark; its value is 1.
pub(crate) const EXPECTED: &str = "tracebraid_end_mark";

/// Maximum size that the mark adds to a trace: its packet with the entry in the index.
pub(crate) const BYTES: u64 = 512;

/// Why a recording ended. The discriminants are those of the enumeration in `events.tsdl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EndReason {
    /// `tracebraid stop`, or a call by the program that uses this library.
    #[default]
    Asked = 0,
    /// The recorded command ended.
    CommandEnded = 1,
    /// A limit of time or size was reached, or all chosen processes ended.
    Limit = 2,
    /// A signal ended the recorder.
    Interrupted = 3,
    /// The disk had no room left.
    DiskFull = 4,
    /// The recording continues: this is a copy of its newest events.
    Snapshot = 5,
    /// The recording continues in the next chunk.
    Rotated = 6,
}

const ALL: [EndReason; 7] = [
    EndReason::Asked,
    EndReason::CommandEnded,
    EndReason::Limit,
    EndReason::Interrupted,
    EndReason::DiskFull,
    EndReason::Snapshot,
    EndReason::Rotated,
];

impl EndReason {
    /// Payload of the mark of a trace with the given counts.
    pub(crate) fn payload(self, written: Progress) -> Vec<u8> {
        let payload = Payload::default().bytes(&[self as u8]);
        payload.long(written.events).long(written.lost).bytes_of()
    }
}

/// The reason, set by the owner and read by the thread that writes the trace.
#[derive(Debug, Default)]
pub(crate) struct GivenReason(AtomicU8);

impl GivenReason {
    pub(crate) fn set(&self, reason: EndReason) {
        self.0.store(reason as u8, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> EndReason {
        let number = usize::from(self.0.load(Ordering::Relaxed));
        ALL.get(number).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_ctf::schema::FieldClass;

    use super::*;
    use crate::schema::schema;
    use crate::shared::kinds;

    #[test]
    fn the_numbers_are_those_of_the_schema() {
        let class = schema(&crate::calls::calls());
        let is_mark = |id: u64| id == u64::from(kinds::TRACEBRAID_END);
        let event = class.streams[0]
            .events
            .iter()
            .find(|event| is_mark(event.id));
        let Some(FieldClass::Struct(payload)) = &event.unwrap().payload else {
            panic!("the mark has fields");
        };
        let FieldClass::Int(reason) = &payload.members[0].class else {
            panic!("{:?}", payload.members[0]);
        };
        let labels = format!("{:?}", reason.mappings);
        for label in [
            "asked_to_stop",
            "command_ended",
            "limit",
            "interrupted",
            "disk_full",
            "snapshot",
            "rotated",
        ] {
            assert!(labels.contains(label), "{labels}");
        }
        let given = GivenReason::default();
        for reason in ALL {
            given.set(reason);
            assert_eq!(given.get(), reason);
            assert_eq!(reason.payload(Progress::default()).len(), 1 + 8 + 8);
        }
    }
}
