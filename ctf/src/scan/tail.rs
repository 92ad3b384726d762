//! Finding event records near the end of a packet, of which only the first one's place is known.
//!
//! A place is guessed: one from which on many event records seem to follow each other. Wrong places
//! soon lead to right ones, so what comes behind these is likely to be a place; it is never certain.

use super::fast::{Fast, ScanPosition};
use super::steps::Content;

/// Bytes before the end in which a place is looked for.
pub(super) const TAIL: usize = 64 << 10;
/// Event records that must follow each other.
const RECORDS: u64 = 64;
/// Bytes that are tried as the first of an event record.
const TRIES: usize = 4096;
/// Timestamps of so many bits tell the time without the event records before.
const LEAST_BITS: u32 = 40;

impl Fast {
    /// A place at which an event record of the content seems to begin, given a clock value before it.
    pub(super) fn guess_place(&self, content: Content<'_>, clock: u64) -> Option<ScanPosition> {
        let header = self.header();
        if header.usual.time.mask.count_ones() < LEAST_BITS {
            return None;
        }
        let unit = header.pad + 1;
        let base = content.base as usize;
        let first = base.checked_next_multiple_of(unit)? - base;
        let mut counts = vec![0; self.ids()];
        (first..first + TRIES).step_by(unit).find_map(|at| {
            let start = ScanPosition::new(at, clock);
            let (place, events, _) = self.count(content, start, &mut counts, (u64::MAX, RECORDS));
            // The timestamps before it may be none.
            (events == RECORDS).then(|| ScanPosition::new(place.at, clock))
        })
    }
}
