//! Delimits executions of all families in one analysis.
//!
//! `tracebraid-periods` finds periods. The other families are found here: executions from kernel
//! events (system calls, processes) by CPU, like other analyses of kernel events, and those from
//! programs' events (functions, spans) in the order of time. Those by commands of devices (kernels,
//! frames) are known before the first event is read. All are returned as ended periods,
//! whose last capture is the thread.

mod addresses;
mod call_slice;
mod calls;
mod device_executions;
mod functions;
mod kernel;
mod log;
mod processes;
mod spans;
mod user;

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, Slice, StreamPlace, StreamRef};
use tracebraid_follow::{Items, Recorded, Window};
use tracebraid_graph::DeviceTimes;
use tracebraid_language::executions::{Definitions, Delimiter};
use tracebraid_language::glob::Glob;
use tracebraid_periods::{BegunPeriod, Bound, Ended, EndedAnalysis, EndedPeriod, PeriodPartial};

use crate::execution::with_threads;
use crate::turns::{Label, RecordThread, Turn};
pub use addresses::FunctionNames;
pub(crate) use log::{Block, EndedOnes};

use call_slice::CallSlice;
use device_executions::{DeviceExecutions, DeviceExecutionsPartial};
use kernel::{Kernel, KernelPartial, LifeEvent};
use log::Log;
use user::{User, UserPartial};

/// Analysis that finds all executions.
#[derive(Debug)]
pub struct DelimitedAnalysis {
    periods: Option<EndedAnalysis>,
    /// Index of the definition, by index of the period.
    kinds: Vec<usize>,
    kernel: Option<Kernel>,
    user: Option<User>,
    devices: Option<DeviceExecutions>,
    /// Number of definitions.
    count: usize,
}

/// State after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DelimitedPartial {
    periods: PeriodPartial,
    kernel: KernelPartial,
    user: UserPartial,
    devices: DeviceExecutionsPartial,
}

/// Patterns of names, each with the index of its definition.
pub(crate) type Patterns = Vec<(usize, Glob)>;

/// Patterns of definitions, by family.
#[derive(Default)]
struct Patterned {
    calls: Patterns,
    functions: Patterns,
    spans: Patterns,
    processes: Patterns,
    kernels: Patterns,
    frames: Patterns,
}

impl Patterned {
    fn of(definitions: &Definitions) -> Patterned {
        let mut patterned = Patterned::default();
        for (kind, definition) in definitions.list.iter().enumerate() {
            let (list, glob) = match &definition.delimiter {
                Delimiter::Period(_) => continue,
                Delimiter::Call(glob) => (&mut patterned.calls, glob),
                Delimiter::Function(glob) => (&mut patterned.functions, glob),
                Delimiter::Span(glob) => (&mut patterned.spans, glob),
                Delimiter::Process(glob) => (&mut patterned.processes, glob),
                Delimiter::Kernel(glob) => (&mut patterned.kernels, glob),
                Delimiter::Frame(glob) => (&mut patterned.frames, glob),
            };
            list.push((kind, glob.clone()));
        }
        patterned
    }
}

/// Definitions that match a name.
pub(crate) fn fitting(patterns: &Patterns, name: &[u8]) -> Vec<usize> {
    let fitting = patterns.iter().filter(|(_, glob)| glob.matches(name));
    fitting.map(|(kind, _)| *kind).collect()
}

impl DelimitedAnalysis {
    /// Creates the analysis for executions inside the window.
    ///
    /// # Errors
    /// A message for the user if there are too many conditions.
    pub fn new(
        set: &TraceSet,
        definitions: &Definitions,
        names: FunctionNames,
        window: Window,
    ) -> Result<Self, String> {
        let none = Arc::default();
        DelimitedAnalysis::sharing((set, None), definitions, (names, none), window)
    }

    /// As [`DelimitedAnalysis::new`], with commands of devices. `recorded`: the recorded CPUs, if
    /// another analysis has determined them.
    ///
    /// # Errors
    /// As [`DelimitedAnalysis::new`].
    pub(crate) fn sharing(
        (set, recorded): (&TraceSet, Option<&Arc<Recorded>>),
        definitions: &Definitions,
        (names, devices): (FunctionNames, Arc<DeviceTimes>),
        window: Window,
    ) -> Result<Self, String> {
        let kinds = definitions.list.iter().enumerate();
        let kinds =
            kinds.filter(|(_, definition)| matches!(definition.delimiter, Delimiter::Period(_)));
        let kinds: Vec<usize> = kinds.map(|(kind, _)| kind).collect();
        let periods = match kinds.is_empty() {
            true => None,
            false => {
                let periods = with_threads(definitions.periods.clone());
                Some(EndedAnalysis::new(set, periods, window)?)
            }
        };
        let Patterned {
            calls,
            functions,
            spans,
            processes,
            kernels,
            frames,
        } = Patterned::of(definitions);
        Ok(DelimitedAnalysis {
            periods,
            kinds,
            kernel: Kernel::new((set, recorded), calls, processes, window),
            user: User::new(set, functions, spans, names, window),
            devices: DeviceExecutions::new(devices, kernels, frames, window),
            count: definitions.list.len(),
        })
    }

    /// Removes and returns the system calls made before `until`, if calls are all that definitions
    /// need of the kernel. They can then be played on any thread, and [`Analysis::settle`] skips
    /// them. `None` if definitions need more than calls, or nothing of the kernel.
    pub(crate) fn cut_calls(
        &self,
        partial: &mut DelimitedPartial,
        until: i64,
    ) -> Option<CutCalls<'_>> {
        let kernel = self.kernel.as_ref()?;
        let items = kernel.cut_calls(&mut partial.kernel, until)?;
        Some(CutCalls { kernel, items })
    }

    /// Probable mistakes in the definitions, as messages for the user.
    pub fn doubts(&self) -> Vec<String> {
        let periods = self.periods.iter().flat_map(EndedAnalysis::doubts).cloned();
        let kernel = self.kernel.iter().flat_map(Kernel::doubts);
        let user = self.user.iter().flat_map(User::doubts);
        periods.chain(kernel).chain(user).collect()
    }

    /// Removes and returns the ended executions, in the order in which their ends became known.
    pub fn take(&self, partial: &mut DelimitedPartial) -> Vec<EndedPeriod> {
        let blocks = self.take_with_turns(partial, &[]).0.into_iter();
        let ended = blocks.flat_map(Block::numbered);
        ended.map(|(_, period)| period).collect()
    }

    /// As [`DelimitedAnalysis::take`], in blocks that span none of the times in `cuts`. Also
    /// returns the times at which threads turned to other work, unordered.
    pub(crate) fn take_with_turns(
        &self,
        partial: &mut DelimitedPartial,
        cuts: &[i64],
    ) -> (Vec<Block>, Vec<Turn>) {
        let mut turns = Vec::new();
        if let Some(periods) = &self.periods {
            let begun = periods.take_begun(&mut partial.periods);
            turns.extend(begun.map(|begun| begins(&begun, self.kinds.get(begun.period).copied())));
        }
        for log in partial.logs() {
            turns.append(&mut log.turns);
        }
        let [periods, others] = self.take_others(partial);
        let calls = partial.kernel.take_calls();
        // Calls never go from one thread to another.
        let ended = periods.iter().chain(&others);
        turns.extend(ended.filter_map(|(_, ended)| ends(ended, self.label(ended)?)));
        (joined((periods, calls, others), cuts), turns)
    }

    /// Label of executions of one kind; `None` if such executions never go from one thread to
    /// another.
    pub(crate) fn label(&self, period: &EndedPeriod) -> Option<Label> {
        if self.kinds.contains(&period.period) {
            return Some(Label::of_period(period.period));
        }
        let mut spans = self.user.iter().flat_map(|user| &user.spans);
        let name = period
            .begin
            .captures
            .first()
            .filter(|_| spans.any(|of| of.0 == period.period));
        Some(Label::of_span(name?.bytes().unwrap_or_default()))
    }

    /// Index in [`DeviceTimes::commands`] of the command that is the execution, if one is.
    pub(crate) fn command(&self, period: &EndedPeriod) -> Option<u32> {
        self.devices.as_ref()?.command(period)
    }

    /// Removes and returns periods, and the executions in logs.
    fn take_others(&self, partial: &mut DelimitedPartial) -> [Vec<(i64, EndedPeriod)>; 2] {
        let mut periods = Vec::new();
        if let Some(analysis) = &self.periods {
            let ended = analysis.take(&mut partial.periods);
            periods.extend(ended.map(|period| (period.end.time, self.of_definition(period))));
        }
        let mut others = Vec::new();
        for log in partial.logs() {
            others.append(&mut log.ended);
        }
        [periods, others]
    }

    /// Begins of the open executions.
    pub fn open<'p>(&'p self, partial: &'p DelimitedPartial) -> impl Iterator<Item = i64> + 'p {
        let periods = self
            .periods
            .iter()
            .flat_map(|periods| periods.open(&partial.periods));
        periods
            .chain(partial.kernel.open())
            .chain(partial.user.open())
            .chain(partial.devices.open())
    }

    /// Upper bound of the number of executions that [`DelimitedAnalysis::open`] visits.
    pub fn room(&self, partial: &DelimitedPartial) -> usize {
        let periods = self.periods.as_ref();
        let periods = periods.map_or(0, |periods| periods.room(&partial.periods));
        let others = partial.kernel.open().chain(partial.user.open());
        periods + others.chain(partial.devices.open()).count()
    }

    fn of_definition(&self, period: EndedPeriod) -> EndedPeriod {
        let kind = self.kinds.get(period.period).copied();
        EndedPeriod {
            period: kind.unwrap_or(period.period),
            ..period
        }
    }
}

/// Ended executions of all families, in the order in which their ends became known. Ends at the
/// same time are in the order periods, calls, others, and each family keeps its own order.
fn joined(
    (periods, calls, others): (Vec<(i64, EndedPeriod)>, Vec<Block>, Vec<(i64, EndedPeriod)>),
    cuts: &[i64],
) -> Vec<Block> {
    let reaches_over = |block: &Block| {
        let place = |told: i64| cuts.partition_point(|cut| *cut <= told);
        block
            .told()
            .is_some_and(|(first, last)| place(first) != place(last))
    };
    if periods.is_empty() && others.is_empty() && !calls.iter().any(reaches_over) {
        return calls;
    }
    let mut ended = periods;
    ended.extend(calls.into_iter().flat_map(Block::numbered));
    ended.extend(others);
    // A stable sort.
    ended.sort_by_key(|(told, _)| *told);
    Block::all(ended, cuts)
}

/// System calls of a slice of time, not yet played.
pub(crate) struct CutCalls<'a> {
    kernel: &'a Kernel,
    items: Items<LifeEvent>,
}

/// System calls of a slice of time.
#[derive(Debug)]
pub(crate) struct PlayedCalls(CallSlice);

impl CutCalls<'_> {
    /// Finds the calls that begin in the slice. No block spans one of the times in `cuts`.
    pub(crate) fn play(self, cuts: &[i64]) -> PlayedCalls {
        PlayedCalls(CallSlice::play(self.kernel, self.items, cuts))
    }
}

impl PlayedCalls {
    /// Appends the calls to earlier state.
    pub(crate) fn compose(self, analysis: &DelimitedAnalysis, partial: &mut DelimitedPartial) {
        if let Some(kernel) = &analysis.kernel {
            partial.kernel.compose(kernel, self.0);
        }
    }
}

/// Turn at the beginning of a period.
pub(crate) fn begins(begun: &BegunPeriod, kind: Option<usize>) -> Turn {
    Turn {
        time: begun.begin.time,
        thread: RecordThread::of(&begun.begin),
        label: Label::of_period(kind.unwrap_or(begun.period)),
        begun: None,
    }
}

/// Turn at the end of an execution.
pub(crate) fn ends(ended: &EndedPeriod, label: Label) -> Option<Turn> {
    let of = |bound: &Bound| (bound.time, RecordThread::of(bound));
    Turn::ends(label, of(&ended.begin), of(&ended.end))
}

impl DelimitedPartial {
    fn logs(&mut self) -> impl Iterator<Item = &mut Log> {
        let of_events = self.kernel.logs().into_iter().chain(self.user.logs());
        of_events.chain([&mut self.devices.log])
    }
}

impl Analysis for DelimitedAnalysis {
    type Partial = DelimitedPartial;
    type Report = Ended;

    /// The streams of each CPU form a group; every other stream is a group of its own, and its
    /// events are sorted by time when they are settled.
    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let mut groups = self.kernel.as_ref().map_or_else(Vec::new, Kernel::groups);
        let mut known: HashSet<StreamRef> = groups.iter().flatten().copied().collect();
        let periods = self
            .periods
            .iter()
            .flat_map(|periods| periods.groups(set))
            .flatten();
        let user = self.user.iter().flat_map(|user| user.streams(set));
        for stream in periods.chain(user) {
            if known.insert(stream) {
                groups.push(vec![stream]);
            }
        }
        groups
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let periods = self.periods.iter();
        let mut wanted = periods
            .map(|periods| periods.wants(trace, stream_class, class))
            .chain(
                self.kernel
                    .iter()
                    .map(|kernel| kernel.wants(trace, stream_class, class)),
            )
            .chain(
                self.user
                    .iter()
                    .map(|user| user.wants(trace, stream_class, class)),
            );
        wanted.any(|wanted| wanted)
    }

    fn begin(&self, chunk: &Chunk) -> DelimitedPartial {
        DelimitedPartial {
            periods: PeriodPartial::default(),
            kernel: KernelPartial::new(chunk.index == 0),
            user: UserPartial::default(),
            devices: DeviceExecutionsPartial::default(),
        }
    }

    fn packet(&self, partial: &mut DelimitedPartial, packet: &StreamPlace<'_>) {
        if let Some(periods) = &self.periods {
            periods.packet(&mut partial.periods, packet);
        }
        if let Some(kernel) = &self.kernel {
            kernel.packet(&mut partial.kernel, packet);
        }
        if let Some(user) = &self.user {
            user.packet(&mut partial.user, packet);
        }
    }

    fn cut(&self, partial: &mut DelimitedPartial, packet: &StreamPlace<'_>, time: Timestamp) {
        if let Some(periods) = &self.periods {
            periods.cut(&mut partial.periods, packet, time);
        }
        if let Some(kernel) = &self.kernel {
            kernel.cut(&mut partial.kernel, packet, time);
        }
    }

    #[inline]
    fn event(&self, partial: &mut DelimitedPartial, record: &mut Record<'_>) {
        if let Some(periods) = &self.periods {
            periods.event(&mut partial.periods, record);
        }
        if let Some(kernel) = &self.kernel {
            kernel.event(&mut partial.kernel, record);
        }
        if let Some(user) = &self.user {
            user.event(&mut partial.user, record);
        }
    }

    fn end(&self, partial: &mut DelimitedPartial, chunk: &Chunk) {
        if let Some(periods) = &self.periods {
            periods.end(&mut partial.periods, chunk);
        }
        if let Some(user) = &self.user {
            user.end(&mut partial.user);
        }
    }

    fn merge(&self, earlier: &mut DelimitedPartial, later: DelimitedPartial) {
        if let Some(periods) = &self.periods {
            periods.merge(&mut earlier.periods, later.periods);
        }
        if let Some(kernel) = &self.kernel {
            kernel.merge(&mut earlier.kernel, later.kernel);
        }
        if let Some(user) = &self.user {
            user.merge(&mut earlier.user, later.user);
        }
    }

    fn settle(&self, partial: &mut DelimitedPartial, watermark: Timestamp) {
        if let Some(periods) = &self.periods {
            periods.settle(&mut partial.periods, watermark);
        }
        if let Some(kernel) = &self.kernel {
            kernel.play(&mut partial.kernel, Some(watermark.0));
        }
        if let Some(user) = &self.user {
            user.play(&mut partial.user, Some(watermark.0));
        }
        if let Some(devices) = &self.devices {
            devices.play(&mut partial.devices, watermark.0);
        }
    }

    fn slices<'a>(
        &'a self,
        partial: &mut DelimitedPartial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, DelimitedPartial>> {
        let Some(calls) = self.cut_calls(partial, watermark.0) else {
            self.settle(partial, watermark);
            return Vec::new();
        };
        let slice: Slice<'a, DelimitedPartial> = Box::new(move |_: &mut DelimitedPartial| {
            let played = calls.play(&[]);
            Box::new(move |partial: &mut DelimitedPartial| {
                played.compose(self, partial);
                self.settle(partial, watermark);
            })
        });
        vec![slice]
    }

    fn finish(&self, mut partial: DelimitedPartial) -> Ended {
        self.settle(&mut partial, Timestamp(i64::MAX));
        let mut ended = Ended {
            periods: self.take(&mut partial),
            begun: Vec::new(),
            unfinished: vec![0; self.count],
            refused: 0,
        };
        ended.periods.sort_by(|one, other| {
            (one.begin.time, &one.numbers).cmp(&(other.begin.time, &other.numbers))
        });
        for log in partial.logs() {
            for (own, count) in ended.unfinished.iter_mut().zip(log.unfinished()) {
                *own += count;
            }
            ended.refused += log.refused;
        }
        if let Some(periods) = &self.periods {
            let periods = periods.finish(partial.periods);
            for (kind, count) in self.kinds.iter().zip(periods.unfinished) {
                if let Some(unfinished) = ended.unfinished.get_mut(*kind) {
                    *unfinished = count;
                }
            }
            ended.refused += periods.refused;
        }
        ended
    }
}
