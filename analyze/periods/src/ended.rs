//! Every period that ended, with the event records that began and ended it, for analyses of the
//! interval.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_kernel_model::{EventModel, KernelEvent, KernelModel};
use tracebraid_language::Datum;
use tracebraid_language::periods::Periods;

use crate::open_periods::{Begun, Spot};
use crate::sums::Done;
use crate::{Asked, PeriodAnalysis, PeriodPartial};
use tracebraid_follow::Window;
use tracebraid_tables::View;

/// A period that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedPeriod {
    /// Index of its definition.
    pub period: usize,
    /// Numbers of the enclosing periods, outermost first, then its own. Numbers count from 1 in the
    /// order of the starts.
    pub numbers: Vec<u64>,
    /// The event record that began the period.
    pub begin: Bound,
    /// The event record that ended the period.
    pub end: Bound,
}

/// An event record that begins or ends a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Nanoseconds from the origin.
    pub time: i64,
    /// Index of the trace in the set.
    pub trace: u32,
    /// CPU, if known.
    pub cpu: Option<u32>,
    /// True for the entry or exit of a system call, which belong to the calling thread itself.
    pub is_call: bool,
    /// Values that the definition captures from the event record.
    pub captures: Vec<Datum>,
}

/// A period that began, whether or not it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BegunPeriod {
    /// Index of its definition.
    pub period: usize,
    /// The event record that began the period.
    pub begin: Bound,
}

/// Finds the start and the end of every period.
#[derive(Debug)]
pub struct EndedAnalysis {
    periods: PeriodAnalysis,
    /// Trace of each stream, by index among the streams of all traces.
    traces: Vec<u32>,
    /// Event classes of system call entries and exits, as indices in the plan.
    calls: HashSet<u32>,
}

/// The report of [`EndedAnalysis`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// Periods that ended, in the order of their starts.
    pub periods: Vec<EndedPeriod>,
    /// All starts, in the order of time.
    pub begun: Vec<BegunPeriod>,
    /// By definition: number of periods that did not end.
    pub unfinished: Vec<u64>,
    /// Number of periods not begun because too many were open.
    pub refused: u64,
}

/// Event classes of system call entries and exits, as indices in the plan.
fn calls(set: &TraceSet, periods: &PeriodAnalysis) -> HashSet<u32> {
    let model = KernelModel::new(set);
    let is_call =
        |event: &EventModel| matches!(event.event, KernelEvent::Entry(_) | KernelEvent::Exit(_));
    let mut calls = HashSet::new();
    for (trace, of_trace) in model.traces.iter().enumerate() {
        for (stream, of_stream) in of_trace.streams.iter().enumerate() {
            let classes = (0..of_stream.classes())
                .filter(|&class| of_stream.event(class).is_some_and(is_call));
            let places = classes.filter_map(|class| periods.plan.place(trace, stream, class));
            calls.extend(places.map(|place| place as u32));
        }
    }
    calls
}

impl EndedAnalysis {
    /// Analyses the event records within `window`.
    ///
    /// # Errors
    /// The definitions contain too many conditions.
    pub fn new(set: &TraceSet, periods: Periods, window: Window) -> Result<EndedAnalysis, String> {
        let asked = Asked {
            window,
            views: vec![View::Log],
            ..Asked::default()
        };
        let streams = |(trace, index): (&tracebraid_ctf::trace::Trace, u32)| {
            std::iter::repeat_n(index, trace.streams.len())
        };
        let mut periods = PeriodAnalysis::new(set, periods, &asked)?;
        periods.wanted.begins = true;
        Ok(EndedAnalysis {
            calls: calls(set, &periods),
            periods,
            traces: set.traces.iter().zip(0..).flat_map(streams).collect(),
        })
    }

    /// See [`PeriodAnalysis::doubts`].
    pub fn doubts(&self) -> &[String] {
        self.periods.doubts()
    }

    /// Removes and returns the periods that have ended so far, in the order of their ends.
    pub fn take(&self, partial: &mut PeriodPartial) -> impl Iterator<Item = EndedPeriod> {
        let log = std::mem::take(&mut partial.sums.log);
        log.into_iter().map(|done| self.ended(done))
    }

    /// Removes and returns the starts so far, in the order of time.
    pub fn take_begun(&self, partial: &mut PeriodPartial) -> impl Iterator<Item = BegunPeriod> {
        let begun = std::mem::take(&mut partial.machine.begins);
        begun.into_iter().map(|begun| self.begun(begun))
    }

    /// Number of slots for open periods: the cost of [`EndedAnalysis::open`].
    pub fn room(&self, partial: &PeriodPartial) -> usize {
        partial.machine.room()
    }

    /// Start times of the open periods.
    pub fn open<'p>(&self, partial: &'p PeriodPartial) -> impl Iterator<Item = i64> + use<'p> {
        partial.machine.open_begins()
    }

    fn bound(&self, time: i64, spot: Spot, captures: Vec<Datum>) -> Bound {
        Bound {
            time,
            trace: self.traces.get(spot.stream as usize).copied().unwrap_or(0),
            cpu: spot.cpu,
            is_call: self.calls.contains(&spot.class),
            captures,
        }
    }

    fn begun(&self, begun: Begun) -> BegunPeriod {
        BegunPeriod {
            period: begun.period,
            begin: self.bound(begun.time, begun.spot, begun.captures),
        }
    }

    fn ended(&self, done: Done) -> EndedPeriod {
        let [at_begin, at_end] = done.at;
        EndedPeriod {
            period: done.period,
            begin: self.bound(done.begin, at_begin, done.begin_captures),
            end: self.bound(done.end, at_end, done.end_captures),
            numbers: done.numbers,
        }
    }
}

impl Analysis for EndedAnalysis {
    type Partial = PeriodPartial;
    type Report = Ended;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.periods.groups(set)
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.periods.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> PeriodPartial {
        self.periods.begin(chunk)
    }

    fn packet(&self, partial: &mut PeriodPartial, packet: &StreamPlace<'_>) {
        self.periods.packet(partial, packet);
    }

    fn cut(&self, partial: &mut PeriodPartial, packet: &StreamPlace<'_>, time: Timestamp) {
        self.periods.cut(partial, packet, time);
    }

    #[inline]
    fn event(&self, partial: &mut PeriodPartial, record: &mut Record<'_>) {
        self.periods.event(partial, record);
    }

    fn end(&self, partial: &mut PeriodPartial, chunk: &Chunk) {
        self.periods.end(partial, chunk);
    }

    fn merge(&self, earlier: &mut PeriodPartial, later: PeriodPartial) {
        self.periods.merge(earlier, later);
    }

    fn settle(&self, partial: &mut PeriodPartial, watermark: Timestamp) {
        self.periods.settle(partial, watermark);
    }

    fn finish(&self, mut partial: PeriodPartial) -> Ended {
        self.periods.run(&mut partial, None);
        let PeriodPartial {
            mut machine,
            mut sums,
            ..
        } = partial;
        machine.finish(&mut sums);
        let begins = std::mem::take(&mut machine.begins);
        let mut log = sums.log;
        log.sort_by_key(Done::number);
        Ended {
            periods: log.into_iter().map(|done| self.ended(done)).collect(),
            begun: begins.into_iter().map(|begun| self.begun(begun)).collect(),
            unfinished: sums.periods.iter().map(|of| of.unfinished).collect(),
            refused: sums.refused,
        }
    }
}
