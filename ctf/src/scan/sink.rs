//! Processing of scanned event records: collect hits, or count.

use std::ops::Range;

use super::fast::{Fast, ScanPosition};
use super::header::IDS;
use super::hit::{Counted, Hit};
use super::lanes::ScanLane;
use super::steps::Content;
use crate::layout::StreamLayout;

/// Processes event records; inlined into the hot loop.
pub(super) trait Sink {
    fn run_fast(&mut self, fast: &Fast, content: Content<'_>, start: ScanPosition) -> ScanPosition;
    fn general(&mut self, class: usize, chosen: bool, start: u64, clock: u64);
    fn is_full(&self) -> bool;
    /// True if a record with this clock value must not be processed yet.
    fn refuses(&mut self, clock: u64) -> bool {
        let _ = clock;
        false
    }
    fn has_hits(&self) -> bool;
    /// True if few bytes are left in the window and hits refer to them.
    fn must_stop_for_window(&self, low: bool) -> bool {
        low
    }
}

pub(super) struct HitSink<'a> {
    pub(super) hits: &'a mut [Hit],
    pub(super) count: usize,
}

impl Sink for HitSink<'_> {
    fn run_fast(&mut self, fast: &Fast, content: Content<'_>, start: ScanPosition) -> ScanPosition {
        let room = self.hits.get_mut(self.count..).unwrap_or_default();
        let base = content.base * 8;
        let (place, count) = fast.collect(content, start, room, |id, bits, clock| Hit {
            clock,
            start: base + bits,
            key: id as u32,
            general: false,
        });
        self.count += count;
        place
    }
    #[inline(always)]
    fn general(&mut self, class: usize, chosen: bool, start: u64, clock: u64) {
        if let Some(place) = self.hits.get_mut(self.count) {
            *place = Hit {
                clock,
                start,
                key: class as u32,
                general: true,
            };
        }
        self.count += usize::from(chosen);
    }
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.count >= self.hits.len()
    }
    #[inline(always)]
    fn has_hits(&self) -> bool {
        self.count > 0
    }
}

/// Counts of event records by class.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Indexed by id, up to the largest id of the stream class.
    pub(super) by_id: Vec<u64>,
    by_class: Vec<u64>,
}

impl Counts {
    /// Counts of 0 for all classes of a stream class.
    pub fn new(layout: &StreamLayout) -> Self {
        let most = layout
            .events
            .iter()
            .map(|event| event.id)
            .filter(|&id| id < IDS as u64)
            .max();
        Counts {
            by_id: vec![0; most.map_or(0, |id| id as usize + 1)],
            by_class: vec![0; layout.events.len()],
        }
    }

    /// Returns the counts by class index and resets them to 0.
    pub fn take(&mut self, layout: &StreamLayout) -> Vec<u64> {
        let mut counts = std::mem::replace(&mut self.by_class, vec![0; layout.events.len()]);
        for (count, event) in counts.iter_mut().zip(&layout.events) {
            if let Some(by_id) = self.by_id.get_mut(event.id as usize) {
                *count += std::mem::take(by_id);
            }
        }
        counts
    }
}

pub(super) struct CountSink<'a> {
    pub(super) counts: &'a mut Counts,
    pub(super) events: u64,
    pub(super) first: Option<u64>,
    /// Clock values that are counted. An end of `u64::MAX` means no limit, since a clock may reach
    /// that value.
    pub(super) within: Range<u64>,
    /// Clock value of the first event record outside the range.
    pub(super) refused: Option<u64>,
}

impl<'a> CountSink<'a> {
    pub(super) fn new(counts: &'a mut Counts, within: Range<u64>) -> Self {
        CountSink {
            counts,
            events: 0,
            first: None,
            within,
            refused: None,
        }
    }

    /// The counts, with the scan at this clock value.
    pub(super) fn counted(&self, clock: u64, ended: bool) -> Counted {
        Counted {
            events: self.events,
            first: self.first.unwrap_or(clock),
            last: clock,
            ended,
            refused: self.refused,
        }
    }

    /// Counts at most `most` records with bounds checks: for the first record, whose clock value is
    /// needed, and for the last bytes of the content.
    pub(super) fn count_checked(
        &mut self,
        fast: &Fast,
        content: Content<'_>,
        start: ScanPosition,
        most: u64,
    ) -> ScanPosition {
        // Only records that advance the clock are counted there, so it stays at or after the
        // beginning.
        let limits = (self.within.end, most);
        let (place, events, first) = fast.count(content, start, &mut self.counts.by_id, limits);
        if self.events == 0 && events > 0 {
            self.first = Some(first);
        }
        self.events += events;
        place
    }
}

impl Sink for CountSink<'_> {
    fn run_fast(&mut self, fast: &Fast, content: Content<'_>, start: ScanPosition) -> ScanPosition {
        let mut place = start;
        if self.events == 0 {
            place = self.count_checked(fast, content, place, 1);
        }
        if self.events > 0 {
            let lane = ScanLane {
                data: content.data,
                base: content.base,
                limit: self.within.end,
            };
            self.events += fast.count_lane(lane, &mut place, &mut self.counts.by_id);
        }
        self.count_checked(fast, content, place, u64::MAX)
    }
    #[inline(always)]
    fn general(&mut self, class: usize, _: bool, _: u64, clock: u64) {
        if let Some(count) = self.counts.by_class.get_mut(class) {
            *count += 1;
        }
        if self.events == 0 {
            self.first = Some(clock);
        }
        self.events += 1;
    }
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.refused.is_some()
    }
    #[inline(always)]
    fn refuses(&mut self, clock: u64) -> bool {
        let is_late = clock >= self.within.end && self.within.end < u64::MAX;
        self.refused = (is_late || clock < self.within.start).then_some(clock);
        self.refused.is_some()
    }
    #[inline(always)]
    fn has_hits(&self) -> bool {
        false
    }
}
