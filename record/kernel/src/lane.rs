//! Events of one CPU, sorted by time.
//!
//! A BPF program that is interrupted between reading the clock and reserving room in the ring
//! writes its record after those of the interrupt, though its timestamp is earlier. So events wait
//! until all earlier events must have arrived.

use std::ops::Range;

use crate::contexts::OwnContext;

/// An event that is ready to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<'l> {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) time: u64,
    /// Cumulative count of events lost on the CPU before this event.
    pub(crate) lost: u64,
    /// Id of the event class.
    pub(crate) id: u16,
    /// Context and payload: all bytes after the header.
    pub(crate) payload: &'l [u8],
}

#[derive(Clone, Debug)]
struct Waiting {
    time: u64,
    lost: u32,
    id: u16,
    /// Range of context and payload.
    payload: Range<usize>,
    origin: Origin,
}

/// Source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The recorder, whose context the event has.
    Recorder,
    Kernel,
    /// The kernel, which has not yet decided whether the event is recorded.
    Undecided,
    /// The kernel, which has decided to leave the event out.
    LeftOut,
}

/// Maximum sizes of an event's header, and of the framing of a packet with its entry in the index.
pub(crate) const AROUND_EVENT: u64 = 14;
pub(crate) const AROUND_PACKET: u64 = 256;

/// Maximum number of positions by which a late event is moved; above it the queue is sorted when it
/// is read. An interrupt causes few. Events of other threads of the recorder are later.
const MOST_STEPS: usize = 32;

/// Events of one CPU that wait.
#[derive(Debug, Default)]
pub(crate) struct CpuQueue {
    waiting: Vec<Waiting>,
    /// Some waiting events are not in the order of time.
    is_unsorted: bool,
    payloads: Vec<u8>,
    /// Cumulative count of lost events before the last released event.
    lost: u64,
    /// Latest timestamp so far.
    newest: u64,
    /// Context for events without one, with the counters of the last released event.
    own_context: OwnContext,
}

impl CpuQueue {
    /// For event records with contexts, unless `own_context` is empty.
    pub(crate) fn new(own_context: OwnContext) -> CpuQueue {
        CpuQueue {
            own_context,
            ..CpuQueue::default()
        }
    }

    /// Adds an event of the recorder, with the payload that `write` appends, unless `write` returns
    /// `None`. `lost` wraps; `None` if the source has no count. The context is the recorder's.
    pub(crate) fn add(
        &mut self,
        time: u64,
        lost: Option<u32>,
        write: impl FnOnce(&mut Vec<u8>) -> Option<u16>,
    ) {
        let start = self.payloads.len();
        self.payloads.extend_from_slice(&self.own_context.bytes);
        self.add_from(start, time, lost, Origin::Recorder, write);
    }

    /// Adds an event that has a context.
    pub(crate) fn add_with_context(
        &mut self,
        time: u64,
        lost: Option<u32>,
        context: &[u8],
        origin: Origin,
        write: impl FnOnce(&mut Vec<u8>) -> Option<u16>,
    ) {
        let start = self.payloads.len();
        self.payloads.extend_from_slice(context);
        self.add_from(start, time, lost, origin, write);
    }

    fn add_from(
        &mut self,
        start: usize,
        time: u64,
        lost: Option<u32>,
        origin: Origin,
        write: impl FnOnce(&mut Vec<u8>) -> Option<u16>,
    ) {
        let Some(id) = write(&mut self.payloads) else {
            self.payloads.truncate(start);
            return;
        };
        let is_late = time < self.newest;
        self.newest = self.newest.max(time);
        let before = self
            .waiting
            .last()
            .map_or(self.lost as u32, |waiting| waiting.lost);
        self.waiting.push(Waiting {
            time,
            lost: lost.unwrap_or(before),
            id,
            payload: start..self.payloads.len(),
            origin,
        });
        if is_late {
            self.settle_last();
        }
    }

    /// Inserts an event of the recorder among the waiting events, after those of equal time, with
    /// the count of lost events of its predecessor.
    pub(crate) fn insert(&mut self, time: u64, id: u16, payload: &[u8]) {
        self.sort();
        let at = self.waiting.partition_point(|waiting| waiting.time <= time);
        let before = at
            .checked_sub(1)
            .and_then(|before| self.waiting.get(before));
        let lost = before.map_or(self.lost as u32, |before| before.lost);
        let start = self.payloads.len();
        self.payloads.extend_from_slice(&self.own_context.bytes);
        self.payloads.extend_from_slice(payload);
        let inserted = Waiting {
            time,
            lost,
            id,
            payload: start..self.payloads.len(),
            origin: Origin::Recorder,
        };
        self.waiting.insert(at, inserted);
        self.newest = self.newest.max(time);
    }

    /// Passes to `to`, in the order of time, the events that [`CpuQueue::release`] will release.
    /// Their counts of losses are those of the last released event.
    pub(crate) fn preview(&mut self, until: Option<u64>, mut to: impl FnMut(Event<'_>)) {
        self.sort();
        let settled = self.waiting.iter();
        let settled = settled.take_while(|waiting| until.is_none_or(|until| waiting.time < until));
        for waiting in settled.filter(|waiting| waiting.origin != Origin::LeftOut) {
            to(Event {
                time: waiting.time,
                lost: self.lost,
                id: waiting.id,
                payload: self
                    .payloads
                    .get(waiting.payload.clone())
                    .unwrap_or_default(),
            });
        }
    }

    /// Moves the last event to its position in the order of time, if that is near.
    fn settle_last(&mut self) {
        let mut at = self.waiting.len();
        let least = at.saturating_sub(MOST_STEPS);
        while let Some([.., before, last]) = self.waiting.get_mut(..at)
            && before.time > last.time
        {
            if at == least {
                self.is_unsorted = true;
                return;
            }
            std::mem::swap(before, last);
            at -= 1;
        }
    }

    /// Replaces the events before a time, or all events, whose ids are chosen. `write` makes a
    /// payload from the time, id and payload of an event, and returns the new id; if it returns
    /// `None`, the event is removed. Contexts stay.
    pub(crate) fn rewrite(
        &mut self,
        until: Option<u64>,
        is_chosen: impl Fn(u16) -> bool,
        mut write: impl FnMut(u64, u16, &[u8], &mut Vec<u8>) -> Option<u16>,
    ) {
        let mut made = Vec::new();
        self.waiting.retain_mut(|waiting| {
            if !is_chosen(waiting.id) || until.is_some_and(|until| waiting.time >= until) {
                return true;
            }
            made.clear();
            let body = self
                .payloads
                .get(waiting.payload.clone())
                .unwrap_or_default();
            let (context, payload) = body
                .split_at_checked(self.own_context.bytes.len())
                .unwrap_or_default();
            made.extend_from_slice(context);
            let Some(id) = write(waiting.time, waiting.id, payload, &mut made) else {
                return false;
            };
            waiting.id = id;
            waiting.payload = self.payloads.len()..self.payloads.len() + made.len();
            self.payloads.extend_from_slice(&made);
            true
        });
    }

    /// The latest timestamp of any event so far.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Releases, in the order of time, the events before a time, or all events.
    pub(crate) fn release<E>(
        &mut self,
        until: Option<u64>,
        mut to: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        let count = match until {
            Some(until) => self.waiting.partition_point(|waiting| waiting.time < until),
            None => self.waiting.len(),
        };
        for waiting in self.waiting.get(..count).unwrap_or_default() {
            if waiting.origin == Origin::LeftOut {
                continue;
            }
            // Increase of the count, if it increased: an event that was overtaken has an older
            // count.
            let more = waiting.lost.wrapping_sub(self.lost as u32) as i32;
            self.lost += u64::from(more.max(0).unsigned_abs());
            if let Some(body) = self.payloads.get_mut(waiting.payload.clone()) {
                match waiting.origin {
                    Origin::Recorder => self.own_context.put_counters(body),
                    _ => self.own_context.see(body),
                }
            }
            to(Event {
                time: waiting.time,
                lost: self.lost,
                id: waiting.id,
                payload: self
                    .payloads
                    .get(waiting.payload.clone())
                    .unwrap_or_default(),
            })?;
        }
        self.drop_first(count);
        Ok(())
    }

    fn sort(&mut self) {
        if std::mem::take(&mut self.is_unsorted) {
            // Mostly sorted already, which makes this sort fast.
            self.waiting.sort_by_key(|waiting| waiting.time);
        }
    }

    /// Decides about the undecided event with that timestamp; false if it has not arrived yet.
    pub(crate) fn decide(&mut self, time: u64, is_wanted: bool) -> bool {
        self.sort();
        let first = self.waiting.partition_point(|waiting| waiting.time < time);
        let same = self.waiting.get_mut(first..).unwrap_or_default().iter_mut();
        let mut same = same.take_while(|waiting| waiting.time == time);
        let found = same.find(|waiting| waiting.origin == Origin::Undecided);
        let is_there = found.is_some();
        if let Some(waiting) = found {
            waiting.origin = if is_wanted {
                Origin::Kernel
            } else {
                Origin::LeftOut
            };
        }
        is_there
    }

    /// Leaves out all undecided events from `from` on and before `until`.
    pub(crate) fn leave_out(&mut self, from: u64, until: u64) {
        let range = from..until;
        let undecided = |waiting: &&mut Waiting| {
            waiting.origin == Origin::Undecided && range.contains(&waiting.time)
        };
        let waiting = self.waiting.iter_mut().filter(undecided);
        waiting.for_each(|waiting| waiting.origin = Origin::LeftOut);
    }

    fn drop_first(&mut self, count: usize) {
        self.waiting.drain(..count);
        // Payloads are stored in the order of arrival, so few payloads of dropped events follow the
        // first payload that stays.
        let starts = self.waiting.iter().map(|waiting| waiting.payload.start);
        let first = starts.min().unwrap_or(self.payloads.len());
        self.payloads.drain(..first);
        for waiting in &mut self.waiting {
            waiting.payload = waiting.payload.start - first..waiting.payload.end - first;
        }
    }

    /// Cumulative count of lost events before the last released event.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Timestamps of the waiting events before a time, each with the maximum size of the event in
    /// the trace, framing included.
    pub(crate) fn sizes(&self, until: Option<u64>) -> impl Iterator<Item = (u64, u64)> {
        // A loss ends a packet.
        let mut lost = self.lost as u32;
        let waiting = self.waiting.iter();
        let waiting = waiting.filter(|waiting| waiting.origin != Origin::LeftOut);
        waiting.filter_map(move |waiting| {
            let gap = if std::mem::replace(&mut lost, waiting.lost) == waiting.lost {
                0
            } else {
                AROUND_PACKET
            };
            let size = waiting.payload.len() as u64 + AROUND_EVENT + gap;
            until
                .is_none_or(|until| waiting.time < until)
                .then_some((waiting.time, size))
        })
    }

    /// Cumulative count of lost events at the end, from the wrapped count at the end.
    pub(crate) fn lost_at_end(&mut self, lost: u32) -> u64 {
        let more = lost.wrapping_sub(self.lost as u32) as i32;
        self.lost += u64::from(more.max(0).unsigned_abs());
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn add(lane: &mut CpuQueue, time: u64, lost: u32) {
        lane.add(time, Some(lost), |to| {
            to.extend_from_slice(&time.to_le_bytes());
            Some(time as u16)
        });
    }

    fn released(lane: &mut CpuQueue, until: Option<u64>) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let result: Result<(), Infallible> = lane.release(until, |event| {
            assert_eq!(event.payload, event.time.to_le_bytes());
            assert_eq!(u64::from(event.id), event.time);
            found.push((event.time, event.lost));
            Ok(())
        });
        result.unwrap();
        found
    }

    #[test]
    fn what_was_overtaken_comes_first() {
        let mut lane = CpuQueue::default();
        add(&mut lane, 10, 0);
        add(&mut lane, 30, 2);
        add(&mut lane, 20, 0);
        assert_eq!(released(&mut lane, Some(20)), [(10, 0)]);
        add(&mut lane, 25, 2);
        assert_eq!(released(&mut lane, Some(26)), [(20, 0), (25, 2)]);
        assert_eq!(released(&mut lane, None), [(30, 2)]);
        assert!(lane.payloads.is_empty());
    }

    #[test]
    fn events_that_are_very_late_come_first_too() {
        let mut lane = CpuQueue::default();
        let times = (1000..1200)
            .chain([1190, 1, 1150, 1199, 1000, 0])
            .chain(1300..1310);
        times.clone().for_each(|time| add(&mut lane, time, 0));
        let mut sorted: Vec<u64> = times.collect();
        sorted.sort_unstable();
        let (before, after) = sorted.split_at(sorted.partition_point(|&time| time < 1180));
        let with_losses = |times: &[u64]| times.iter().map(|&time| (time, 0)).collect::<Vec<_>>();
        assert_eq!(released(&mut lane, Some(1180)), with_losses(before));
        assert_eq!(released(&mut lane, None), with_losses(after));
    }

    #[test]
    fn sizes_are_those_of_what_waits_and_of_its_surroundings() {
        let mut lane = CpuQueue::default();
        add(&mut lane, 10, 0);
        add(&mut lane, 20, 3);
        add(&mut lane, 30, 3);
        let around = 8 + AROUND_EVENT;
        let sizes: Vec<(u64, u64)> = lane.sizes(Some(30)).collect();
        assert_eq!(sizes, [(10, around), (20, around + AROUND_PACKET)]);
        assert_eq!(lane.sizes(None).count(), 3);
    }

    #[test]
    fn an_inserted_event_stands_at_its_time_and_moves_no_loss() {
        let mut lane = CpuQueue::default();
        for (time, lost) in [(10, 0), (20, 0), (20, 1), (30, 4)] {
            add(&mut lane, time, lost);
        }
        let mut seen = Vec::new();
        lane.preview(Some(30), |event| seen.push(event.time));
        assert_eq!(seen, [10, 20, 20]);
        lane.insert(20, 20, &20u64.to_le_bytes());
        lane.insert(5, 5, &5u64.to_le_bytes());
        let expected = [(5, 0), (10, 0), (20, 0), (20, 1), (20, 1)];
        assert_eq!(released(&mut lane, Some(30)), expected);
        lane.insert(40, 40, &40u64.to_le_bytes());
        assert_eq!(released(&mut lane, None), [(30, 4), (40, 4)]);
    }

    fn add_undecided(lane: &mut CpuQueue, time: u64) {
        lane.add_with_context(time, Some(0), &[], Origin::Undecided, |to| {
            to.extend_from_slice(&time.to_le_bytes());
            Some(time as u16)
        });
    }

    #[test]
    fn undecided_events_stay_until_it_is_decided_that_they_go() {
        let mut lane = CpuQueue::default();
        // These arrive late.
        (10..100).for_each(|time| add(&mut lane, time, 0));
        [7, 8, 9]
            .into_iter()
            .for_each(|time| add_undecided(&mut lane, time));
        assert!(lane.decide(8, false) && lane.decide(9, true));
        assert!(!lane.decide(8, true), "the event has been decided already");
        assert!(!lane.decide(50, false), "no undecided event has that time");
        assert_eq!(lane.sizes(Some(10)).count(), 2);
        assert_eq!(released(&mut lane, Some(11)), [(7, 0), (9, 0), (10, 0)]);
        [101, 102]
            .into_iter()
            .for_each(|time| add_undecided(&mut lane, time));
        lane.leave_out(102, u64::MAX);
        assert_eq!(released(&mut lane, None).last(), Some(&(101, 0)));
    }

    #[test]
    fn events_without_a_context_have_that_of_the_recorder() {
        let contexts = ["nice".parse().unwrap(), "perf:cpu:cs".parse().unwrap()];
        let layout = crate::contexts::ContextLayout::new(&contexts).unwrap();
        let mut lane = CpuQueue::new(layout.own(crate::contexts::OwnThread::default()));
        let payload = |to: &mut Vec<u8>| {
            to.push(77);
            Some(1)
        };
        lane.add(20, None, payload);
        lane.add_with_context(10, Some(0), &[5; 12], Origin::Kernel, payload);
        // A record that is rewritten later keeps its context.
        lane.rewrite(
            None,
            |id| id == 1,
            |_, _, payload, to| {
                assert_eq!(payload, [77]);
                to.push(78);
                Some(2)
            },
        );
        let mut bodies = Vec::new();
        let result: Result<(), Infallible> = lane.release(None, |event| {
            bodies.push(event.payload.to_vec());
            Ok(())
        });
        result.unwrap();
        assert_eq!(bodies[0], [&[5; 12][..], &[78]].concat());
        assert_eq!(bodies[1], [&[0; 4][..], &[5; 8], &[78]].concat());
    }

    #[test]
    fn counts_of_losses_go_on_where_they_wrap() {
        let mut lane = CpuQueue::default();
        add(&mut lane, 1, u32::MAX - 1);
        // A loss of more than 2³¹ events at once is impossible: the first event is an old one.
        assert_eq!(released(&mut lane, None), [(1, 0)]);
        let mut lane = CpuQueue::default();
        add(&mut lane, 1, 1 << 30);
        add(&mut lane, 2, 2 << 30);
        add(&mut lane, 3, 3 << 30);
        add(&mut lane, 4, 7);
        let all = 1u64 << 30;
        assert_eq!(
            released(&mut lane, None),
            [(1, all), (2, 2 * all), (3, 3 * all), (4, 4 * all + 7)]
        );
        assert_eq!(lane.lost_at_end(9), 4 * all + 9);
    }

    #[test]
    fn an_event_that_cannot_be_made_is_not_there() {
        let mut lane = CpuQueue::default();
        lane.add(5, None, |to| {
            to.push(1);
            None
        });
        assert_eq!(
            (lane.payloads.len(), released(&mut lane, None)),
            (0, Vec::new())
        );
    }
}
