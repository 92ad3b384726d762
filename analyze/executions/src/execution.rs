//! Which executions there are, and whose they are.

use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_graph::{ActorId, Graph, Occupant, Passed, Path};
use tracebraid_language::Datum;
use tracebraid_language::ast::Field;
use tracebraid_language::periods::{Capture, Periods, Reference, Source};
use tracebraid_periods::{Bound, Ended, EndedPeriod};

use crate::delimit;
use crate::turns::{Label, RecordThread, Turns};

/// An execution of a task: from one event record to another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// Its place among the definitions.
    pub kind: usize,
    /// Numbers of the executions around it, from the outside, and its own: from 1 in the order of
    /// beginnings.
    pub numbers: Vec<u64>,
    /// When it begins, in nanoseconds from the origin.
    pub begin: i64,
    /// When it ends.
    pub end: i64,
    /// The thread in which it begins, if that is known.
    pub first: Option<ActorId>,
    /// The thread in which it ends.
    pub last: Option<ActorId>,
    /// What its definition captures, of the beginning and then of the end.
    pub values: Vec<Datum>,
    /// How it may have gone from the first thread to the last one, if these are two.
    pub passed: Option<Passed>,
}

impl Execution {
    /// Its duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }

    /// Critical path of the thread in which it ends, and of the thread in which it begins up to the
    /// hand-over. None if its thread is unknown.
    pub fn path(&self, graph: &Graph) -> Option<Path> {
        if let Some(passed) = &self.passed {
            return Some(graph.passed_path(passed));
        }
        let actor = self.last.or(self.first)?;
        Some(graph.path(actor, self.begin, self.end))
    }
}

/// What thread an event record belongs to: kept with each period, behind what its definition
/// captures.
const THREAD: Field = Field::OwnTid;

/// Definitions that also keep in which threads periods begin and end: those of executions.
pub fn with_threads(mut periods: Periods) -> Periods {
    let thread = Capture {
        name: "thread".to_owned(),
        reference: Reference {
            source: Source::Event,
            field: THREAD,
        },
    };
    for period in &mut periods.list {
        period.begin_captures.push(thread.clone());
        period.end_captures.push(thread.clone());
    }
    periods
}

/// The executions that periods of definitions [`with_threads`] are.
pub fn executions(set: &TraceSet, graph: &Graph, ended: Ended) -> Vec<Execution> {
    let kernels = Kernels::of_graph(set, graph);
    let whose = Whose::new(&kernels, graph);
    let mut turns = Turns::default();
    turns.extend(ended.begun.iter().map(|begun| delimit::begins(begun, None)));
    let label = |period: &EndedPeriod| Label::of_period(period.period);
    let ends = ended
        .periods
        .iter()
        .filter_map(|ended| delimit::ends(ended, label(ended)));
    turns.extend(ends);
    turns.look_up(None, |time, thread| whose.actor(time, thread));
    let periods = ended.periods.into_iter();
    let execution = |period: EndedPeriod| {
        let label = Some(label(&period));
        whose.execution(period, label, &turns)
    };
    periods.map(execution).collect()
}

/// By trace: the kernel trace of its machine.
#[derive(Debug)]
pub(crate) struct Kernels(Vec<Option<u32>>);

/// Finds out in which thread something is that a trace tells.
pub(crate) struct Whose<'g> {
    graph: &'g Graph,
    kernels: &'g Kernels,
}

impl Kernels {
    /// Those are of kernels that tell who ran.
    pub(crate) fn of_graph(set: &TraceSet, graph: &Graph) -> Kernels {
        Kernels::new(set, |index| {
            graph
                .cpus
                .iter()
                .any(|(cpu, _)| cpu.trace as usize == index)
        })
    }

    pub(crate) fn new(set: &TraceSet, is_kernels: impl Fn(usize) -> bool) -> Kernels {
        let kernel = |(index, trace): (usize, &Trace)| {
            if is_kernels(index) {
                return u32::try_from(index).ok();
            }
            let mut traces = set.traces.iter().enumerate();
            let found =
                traces.position(|(other, of)| is_kernels(other) && machine(of) == machine(trace));
            found.and_then(|found| u32::try_from(found).ok())
        };
        Kernels(set.traces.iter().enumerate().map(kernel).collect())
    }

    /// The kernel trace of the machine that a trace is of.
    pub(crate) fn of(&self, trace: u32) -> Option<u32> {
        self.0.get(trace as usize).copied().flatten()
    }
}

impl<'g> Whose<'g> {
    pub(crate) fn new(kernels: &'g Kernels, graph: &'g Graph) -> Whose<'g> {
        Whose { graph, kernels }
    }

    /// The execution of a period; with a label if executions of its kind go from one thread to
    /// another.
    pub(crate) fn execution(
        &self,
        period: EndedPeriod,
        label: Option<Label>,
        turns: &Turns,
    ) -> Execution {
        let (begin, end) = (period.begin.time, period.end.time);
        let is_kernels = self.kernels.of(period.begin.trace) == Some(period.begin.trace);
        let begin_is_call = period.begin.is_call;
        let (first, mut values) = self.of(period.begin);
        let (last, of_end) = self.of(period.end);
        values.extend(of_end);
        let threads = first.zip(last).filter(|(first, last)| first != last);
        let passed = threads.zip(label).map(|((first, last), label)| {
            let bounds = turns.bounds([first, last], (begin, end), label);
            Passed {
                first,
                last,
                begin,
                end,
                busy_until: bounds.busy_until,
                next: bounds.next,
                was_free: bounds.was_free,
                is_sure: !is_kernels || begin_is_call,
            }
        });
        Execution {
            kind: period.period,
            numbers: period.numbers,
            begin,
            end,
            first,
            last,
            values,
            passed,
        }
    }

    /// The thread of an event record, and what was captured besides.
    fn of(&self, bound: Bound) -> (Option<ActorId>, Vec<Datum>) {
        let actor = self.actor(bound.time, &RecordThread::of(&bound));
        let mut captures = bound.captures;
        captures.pop();
        (actor, captures)
    }

    /// The thread of an event record.
    pub(crate) fn actor(&self, time: i64, thread: &RecordThread) -> Option<ActorId> {
        let RecordThread { trace, cpu, tid } = *thread;
        match tid {
            Some(tid) => self.thread(trace, Some(tid), time),
            None => self.on(trace, cpu?, time),
        }
    }

    /// The thread with that id.
    pub(crate) fn thread(&self, trace: u32, tid: Option<i64>, time: i64) -> Option<ActorId> {
        let (trace, tid) = (self.kernels.of(trace)?, i32::try_from(tid?).ok()?);
        self.graph.at(ThreadKey { trace, tid }, time)
    }

    /// Who ran on a CPU.
    fn on(&self, trace: u32, cpu: u32, time: i64) -> Option<ActorId> {
        let trace = self.kernels.of(trace)?;
        match self.graph.occupied(CpuKey { trace, cpu }, time).first()?.by {
            Occupant::Thread(actor) => Some(actor),
            Occupant::Idle | Occupant::Unknown => None,
        }
    }
}

/// What a trace says of the machine that it is of.
pub(crate) fn machine(trace: &Trace) -> Option<&str> {
    let class = &trace.layout.class;
    class.env_str("hostname").or_else(|| class.env_str("host"))
}
