//! Space for events: size limits and a full disk.

use std::cell::RefCell;

use super::Drain;
use crate::end_mark;
use crate::lane::{AROUND_PACKET, CpuQueue};

impl Drain<'_> {
    /// Whether the recording has used the reserved space because the disk is full.
    pub(crate) fn disk_is_full(&self) -> bool {
        self.reserve.is_given()
    }

    /// Bytes of events that still fit under a limit, given the current size of the files.
    pub(super) fn room(&self, limit: u64, file_bytes: u64) -> u64 {
        // Each CPU may end its packet a few times before the next check.
        let packets = 4 * self.lanes.len() as u64 * AROUND_PACKET + end_mark::BYTES;
        limit.saturating_sub(file_bytes + packets)
    }

    /// Time of the first event before `until` that does not fit. The events of all CPUs end there,
    /// so that the trace does not end earlier on one of them.
    pub(super) fn over(&self, mut room: u64, until: Option<u64>) -> Option<u64> {
        let sum = |lane: &RefCell<CpuQueue>| {
            lane.borrow()
                .sizes(until)
                .map(|(_, size)| size)
                .sum::<u64>()
        };
        if self.lanes.iter().map(sum).sum::<u64>() <= room {
            return None;
        }
        let mut waiting = Vec::new();
        for lane in self.lanes {
            waiting.extend(lane.borrow().sizes(until));
        }
        waiting.sort_unstable();
        let over = waiting
            .iter()
            .find(|&&(_, size)| match room.checked_sub(size) {
                Some(left) => {
                    room = left;
                    false
                }
                None => true,
            });
        over.map(|&(time, _)| time)
    }
}
