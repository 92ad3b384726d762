//! Which executions there are, and whose they are.

use tracebraid_critical_path::{ActorId, Graph, Occupant, Path};
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_filter::Datum;
use tracebraid_filter::ast::Field;
use tracebraid_filter::periods::{Capture, Periods, Reference, Source};
use tracebraid_kernel_fold::{CpuKey, ThreadKey};
use tracebraid_reports::periods::{Bound, Ended, EndedPeriod};

/// An execution of a task: from one event record to another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// Its place among the definitions.
    pub kind: usize,
    /// Numbers of the executions around it, from the outside, and its own: from 1 in the order of beginnings.
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
}

impl Execution {
    /// Its duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }

    /// Its critical path: of the thread in which it ends, which was handed what came before. None if nobody knows
    /// in which thread it was.
    pub fn path(&self, graph: &Graph) -> Option<Path> {
        let actor = self.last.or(self.first)?;
        Some(graph.path(actor, self.begin, self.end))
    }
}

/// What thread an event record belongs to: kept with each period, behind what its definition captures.
const THREAD: Field = Field::Tid;

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
    let periods = ended.periods.into_iter();
    periods.map(|period| whose.execution(period)).collect()
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
            graph.cpus.iter().any(|(cpu, _)| cpu.trace as usize == index)
        })
    }

    pub(crate) fn new(set: &TraceSet, is_kernels: impl Fn(usize) -> bool) -> Kernels {
        let kernel = |(index, trace): (usize, &Trace)| {
            if is_kernels(index) {
                return u32::try_from(index).ok();
            }
            let mut traces = set.traces.iter().enumerate();
            let found = traces.position(|(other, of)| is_kernels(other) && machine(of) == machine(trace));
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

    /// The execution that a period is.
    pub(crate) fn execution(&self, period: EndedPeriod) -> Execution {
        let (begin, end) = (period.begin.time, period.end.time);
        let (first, mut values) = self.of(period.begin);
        let (last, of_end) = self.of(period.end);
        values.extend(of_end);
        Execution {
            kind: period.period,
            numbers: period.numbers,
            begin,
            end,
            first,
            last,
            values,
        }
    }

    /// The thread of an event record, and what was captured besides.
    fn of(&self, bound: Bound) -> (Option<ActorId>, Vec<Datum>) {
        let Bound {
            time,
            trace,
            cpu,
            mut captures,
        } = bound;
        let actor = match captures.pop() {
            Some(Datum::Integer(tid)) => self.thread(trace, i64::try_from(tid).ok(), time),
            _ => cpu.and_then(|cpu| self.on(trace, cpu, time)),
        };
        (actor, captures)
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
