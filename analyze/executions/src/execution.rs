//! Executions, and the threads to which they belong.

use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_graph::{ActorId, Graph, Occupant, Passed, Path};
use tracebraid_language::Datum;
use tracebraid_language::ast::Field;
use tracebraid_language::periods::{Capture, Periods, Reference, Source};
use tracebraid_periods::{Bound, Ended, EndedPeriod};

use crate::delimit;
use crate::turns::{Label, RecordThread, Turns};

/// An execution of a task, from one event record to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// Index of its definition.
    pub kind: usize,
    /// Numbers of the enclosing executions, the outermost first, and its own number. Numbers begin
    /// at 1, in the order of begins.
    pub numbers: Vec<u64>,
    /// Begin, in nanoseconds from the origin.
    pub begin: i64,
    /// End, in nanoseconds from the origin.
    pub end: i64,
    /// Thread in which it begins, if it is known.
    pub first: Option<ActorId>,
    /// Thread in which it ends, if it is known.
    pub last: Option<ActorId>,
    /// Captured values: those of the beginning, then those of the end.
    pub values: Vec<Datum>,
    /// Possible hand-over from the first to the last thread, if they differ.
    pub passed: Option<Passed>,
    /// The command of a device that it is, if it is one: an index in
    /// [`DeviceTimes::commands`](tracebraid_graph::DeviceTimes::commands).
    pub command: Option<u32>,
}

impl Execution {
    /// Duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }

    /// Critical path of the thread in which it ends, and of the thread in which it begins up to the
    /// hand-over; or of its command. `None` if its thread is unknown, and it is no command.
    pub fn path(&self, graph: &Graph) -> Option<Path> {
        if let Some(passed) = &self.passed {
            return Some(graph.passed_path(passed));
        }
        if let Some(command) = self.command {
            return graph.command_path(self.first, command);
        }
        let actor = self.last.or(self.first)?;
        Some(graph.path(actor, self.begin, self.end))
    }
}

/// The thread of an event record. It is captured for each period, after the definition's own
/// captures.
const THREAD: Field = Field::OwnTid;

/// Adds to each definition the capture of the thread in which a period begins and ends, which
/// executions need.
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

/// Executions from ended periods of definitions [`with_threads`].
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
        whose.execution(period, (label, None), &turns)
    };
    periods.map(execution).collect()
}

/// The kernel trace of the same machine, by trace.
#[derive(Debug)]
pub(crate) struct Kernels(Vec<Option<u32>>);

/// Resolves the threads of event records.
pub(crate) struct Whose<'g> {
    graph: &'g Graph,
    kernels: &'g Kernels,
}

impl Kernels {
    /// Kernel traces are those that record the running threads.
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

    /// The kernel trace of a trace's machine.
    pub(crate) fn of(&self, trace: u32) -> Option<u32> {
        self.0.get(trace as usize).copied().flatten()
    }
}

impl<'g> Whose<'g> {
    pub(crate) fn new(kernels: &'g Kernels, graph: &'g Graph) -> Whose<'g> {
        Whose { graph, kernels }
    }

    /// The execution of a period. Has a label if executions of its kind go from one thread to
    /// another, and a command if it is one.
    pub(crate) fn execution(
        &self,
        period: EndedPeriod,
        (label, command): (Option<Label>, Option<u32>),
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
            command,
        }
    }

    /// The thread of an event record, and its other captures.
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

    /// The thread with an id.
    pub(crate) fn thread(&self, trace: u32, tid: Option<i64>, time: i64) -> Option<ActorId> {
        let (trace, tid) = (self.kernels.of(trace)?, i32::try_from(tid?).ok()?);
        self.graph.at(ThreadKey { trace, tid }, time)
    }

    /// The thread that ran on a CPU.
    fn on(&self, trace: u32, cpu: u32, time: i64) -> Option<ActorId> {
        let trace = self.kernels.of(trace)?;
        match self.graph.occupied(CpuKey { trace, cpu }, time).first()?.by {
            Occupant::Thread(actor) => Some(actor),
            Occupant::Idle | Occupant::Unknown => None,
        }
    }
}

/// Hostname in a trace's environment.
pub(crate) fn machine(trace: &Trace) -> Option<&str> {
    let class = &trace.layout.class;
    class.env_str("hostname").or_else(|| class.env_str("host"))
}
