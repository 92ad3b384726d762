//! All periods that end, one by one, with where they began and ended: for analyses of what happened
//! in each.

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
    /// Its place among the definitions.
    pub period: usize,
    /// Numbers of the periods around it, from the outside, and its own: from 1 in the order of
    /// beginnings.
    pub numbers: Vec<u64>,
    /// The event record that began it.
    pub begin: Bound,
    /// The one that ended it.
    pub end: Bound,
}

/// An event record that begins or ends a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// In nanoseconds from the origin.
    pub time: i64,
    /// Index of its trace in the set.
    pub trace: u32,
    /// Its CPU, if it is known.
    pub cpu: Option<u32>,
    /// True for the entry or exit of a system call: these run in the context of their own thread.
    pub is_call: bool,
    /// What its definition captures there.
    pub captures: Vec<Datum>,
}

/// A period that has begun, whether it ends or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BegunPeriod {
    /// Index of its definition.
    pub period: usize,
    /// The event record that began it.
    pub begin: Bound,
}

/// The analysis.
#[derive(Debug)]
pub struct EndedAnalysis {
    periods: PeriodAnalysis,
    /// By place among the streams of all traces: the trace.
    traces: Vec<u32>,
    /// Event classes of system call entries and exits, as indexes of the plan.
    calls: HashSet<u32>,
}

/// What it finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// Those that ended, in the order in which they began.
    pub periods: Vec<EndedPeriod>,
    /// All begins, in the order of time.
    pub begun: Vec<BegunPeriod>,
    /// By definition: number of periods that did not end.
    pub unfinished: Vec<u64>,
    /// How many were not begun, since too many were open.
    pub refused: u64,
}

/// Event classes of system call entries and exits, as indexes of the plan.
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
    /// Of those periods in those traces, as far as their event records are in the window.
    ///
    /// # Errors
    /// When there are too many conditions, for people.
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

    /// Takes those out that have ended so far, in the order in which they did.
    pub fn take(&self, partial: &mut PeriodPartial) -> impl Iterator<Item = EndedPeriod> {
        let log = std::mem::take(&mut partial.sums.log);
        log.into_iter().map(|done| self.ended(done))
    }

    /// Takes the begins so far, in the order of time.
    pub fn take_begun(&self, partial: &mut PeriodPartial) -> impl Iterator<Item = BegunPeriod> {
        let begun = std::mem::take(&mut partial.machine.begins);
        begun.into_iter().map(|begun| self.begun(begun))
    }

    /// How many may have been open at a time: what [`EndedAnalysis::open`] looks through.
    pub fn room(&self, partial: &PeriodPartial) -> usize {
        partial.machine.room()
    }

    /// When those began that are open.
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
