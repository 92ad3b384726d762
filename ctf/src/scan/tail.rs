//! Finds an event record near the end of a packet without reading the event records before it.
//!
//! The offset is guessed: many event records must seem to follow each other from it. A walk from a
//! wrong offset soon reaches a right offset, so the offset after these records is likely to be
//! right. It is never certain, so callers must verify the result.

use super::fast::{Fast, ScanPosition};
use super::steps::Content;

/// Number of bytes before the end of a packet that are searched.
pub(super) const TAIL: usize = 64 << 10;
/// Number of event records that must follow each other.
const RECORDS: u64 = 64;
/// Number of bytes at the beginning of the tail that are tried as the start of an event record.
const TRIED_BYTES: usize = 4096;
/// Minimum width of timestamps that determine the time without earlier event records.
const LEAST_BITS: u32 = 40;

impl Fast {
    /// A position at which an event record of the content seems to begin, given an earlier clock
    /// value.
    pub(super) fn guess_place(&self, content: Content<'_>, clock: u64) -> Option<ScanPosition> {
        let header = self.header();
        if header.forms.usual.time.mask.count_ones() < LEAST_BITS {
            return None;
        }
        let unit = header.pad + 1;
        let base = content.base as usize;
        let first = base.checked_next_multiple_of(unit)? - base;
        let mut counts = vec![0; self.ids()];
        (first..first + TRIED_BYTES).step_by(unit).find_map(|at| {
            let start = ScanPosition::new(at, clock);
            let (place, events, _) = self.count(content, start, &mut counts, (u64::MAX, RECORDS));
            // The first bytes that were read as timestamps may be other data, so their clock is not
            // used.
            (events == RECORDS).then(|| ScanPosition::new(place.at, clock))
        })
    }
}
