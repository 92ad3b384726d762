//! Complete commands in the time of their device.

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// A complete command; times are nanoseconds of the clock of its device unless noted.
///
/// The order is that of the timeline: commands that are queued first come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) queued: u64,
    pub(crate) submit: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When the last event that it waited for was complete, as far as that is no command of the same
    /// device; 0 if it waited for none.
    pub(crate) ready: u64,
    /// Begin and end of the call that enqueued it, by the clock of the trace.
    pub(crate) entry: i64,
    pub(crate) exit: i64,
    pub(crate) queue: u64,
    pub(crate) process: u32,
    pub(crate) tid: i32,
    /// Number of the kernel's name.
    pub(crate) name: u32,
    pub(crate) kind: Kind,
}

impl Placed {
    /// Bytes of an encoded command.
    pub(crate) const SIZE: usize = 80;

    /// Puts the times of a device into their order: drivers leave out times, or round each
    /// in its own way.
    pub(crate) fn times([queued, submit, start, end]: [u64; 4]) -> [u64; 4] {
        let known = |time: u64, otherwise: u64| if time == 0 { otherwise } else { time };
        let submit = known(submit, start);
        let queued = known(queued, submit);
        let submit = submit.max(queued);
        let start = start.max(submit);
        [queued, submit, start, end.max(start)]
    }

    /// True if the device has work to do: barriers and markers have none.
    pub(crate) fn is_work(&self) -> bool {
        self.kind != Kind::Barrier && self.end > self.start
    }

    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        let times = [self.queued, self.submit, self.start, self.end, self.ready];
        for number in times {
            to.extend(number.to_le_bytes());
        }
        to.extend(self.entry.to_le_bytes());
        to.extend(self.exit.to_le_bytes());
        to.extend(self.queue.to_le_bytes());
        to.extend(self.process.to_le_bytes());
        to.extend(self.tid.to_le_bytes());
        to.extend(self.name.to_le_bytes());
        to.extend(u32::from(self.kind.number()).to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8; Placed::SIZE]) -> Placed {
        let mut rest = bytes.as_slice();
        let mut long = || match rest.split_first_chunk() {
            Some((number, after)) => {
                rest = after;
                u64::from_le_bytes(*number)
            }
            None => 0,
        };
        let [queued, submit, start, end, ready, entry, exit, queue] = [(); 8].map(|()| long());
        let [place, named] = [(); 2].map(|()| long());
        Placed {
            queued,
            submit,
            start,
            end,
            ready,
            entry: entry as i64,
            exit: exit as i64,
            queue,
            process: place as u32,
            tid: (place >> 32) as i32,
            name: named as u32,
            kind: Kind::with_number((named >> 32) as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_decoded_as_they_were_encoded() {
        let placed = Placed {
            queued: 1,
            submit: 2,
            start: u64::MAX,
            end: 4,
            ready: 5,
            entry: -6,
            exit: i64::MAX,
            queue: 8,
            process: 9,
            tid: -10,
            name: u32::MAX,
            kind: Kind::Other,
        };
        let mut bytes = Vec::new();
        placed.encode(&mut bytes);
        let bytes = bytes.as_slice().try_into().expect("the size");
        assert_eq!(Placed::decode(bytes), placed);
    }

    #[test]
    fn times_are_put_in_order() {
        assert_eq!(Placed::times([1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(Placed::times([0, 0, 3, 4]), [3, 3, 3, 4]);
        assert_eq!(Placed::times([5, 4, 3, 2]), [5, 5, 5, 5]);
    }
}
