//! What delimits executions, whichever way: one analysis that finds all of them.
//!
//! Periods are found by their own analysis. The others are found here: what the kernel tells of
//! (system calls, processes) by each CPU alone, as other analyses of kernel events do it; what
//! programs tell of in the order of time. All are given as periods that ended, with the thread as
//! the last of their captures.

mod addresses;
mod call_slice;
mod calls;
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
use tracebraid_language::executions::{Definitions, Delimiter};
use tracebraid_language::glob::Glob;
use tracebraid_periods::{BegunPeriod, Bound, Ended, EndedAnalysis, EndedPeriod, PeriodPartial};

use crate::execution::with_threads;
use crate::turns::{Label, RecordThread, Turn};
pub use addresses::FunctionNames;
pub(crate) use log::{Block, EndedOnes};

use call_slice::CallSlice;
use kernel::{Kernel, KernelPartial, LifeEvent};
use log::Log;
use user::{User, UserPartial};

/// The analysis that finds all executions.
#[derive(Debug)]
pub struct DelimitedAnalysis {
    periods: Option<EndedAnalysis>,
    /// By place among the periods: that among the definitions.
    kinds: Vec<usize>,
    kernel: Option<Kernel>,
    user: Option<User>,
    /// How many definitions there are.
    count: usize,
}

/// What is known after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DelimitedPartial {
    periods: PeriodPartial,
    kernel: KernelPartial,
    user: UserPartial,
}

/// Patterns of names, each with the place of its definition.
pub(crate) type Patterns = Vec<(usize, Glob)>;

/// The patterns of definitions, by what they are of.
#[derive(Default)]
struct Patterned {
    calls: Patterns,
    functions: Patterns,
    spans: Patterns,
    processes: Patterns,
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
            };
            list.push((kind, glob.clone()));
        }
        patterned
    }
}

/// The definitions that a name fits.
pub(crate) fn fitting(patterns: &Patterns, name: &[u8]) -> Vec<usize> {
    let fitting = patterns.iter().filter(|(_, glob)| glob.matches(name));
    fitting.map(|(kind, _)| *kind).collect()
}

impl DelimitedAnalysis {
    /// Of those executions in those traces, as far as they are in the window.
    ///
    /// # Errors
    /// When there are too many conditions, for people.
    pub fn new(
        set: &TraceSet,
        definitions: &Definitions,
        names: FunctionNames,
        window: Window,
    ) -> Result<Self, String> {
        DelimitedAnalysis::sharing((set, None), definitions, names, window)
    }

    /// As [`DelimitedAnalysis::new`]. `recorded`: the recorded CPUs, if another analysis has read
    /// them.
    ///
    /// # Errors
    /// As [`DelimitedAnalysis::new`].
    pub(crate) fn sharing(
        (set, recorded): (&TraceSet, Option<&Arc<Recorded>>),
        definitions: &Definitions,
        names: FunctionNames,
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
        } = Patterned::of(definitions);
        Ok(DelimitedAnalysis {
            periods,
            kinds,
            kernel: Kernel::new((set, recorded), calls, processes, window),
            user: User::new(set, functions, spans, names, window),
            count: definitions.list.len(),
        })
    }

    /// Takes out what calls were made before the last of these times, or what calls were made, if
    /// that is all that is asked of the kernel: then it is played on any thread, and
    /// [`Analysis::settle`] has nothing to do for it.
    pub(crate) fn cut_calls(
        &self,
        partial: &mut DelimitedPartial,
        until: i64,
    ) -> Option<CutCalls<'_>> {
        let kernel = self.kernel.as_ref()?;
        let items = kernel.cut_calls(&mut partial.kernel, until)?;
        Some(CutCalls { kernel, items })
    }

    /// What in the definitions is probably wrong, for people.
    pub fn doubts(&self) -> Vec<String> {
        let periods = self.periods.iter().flat_map(EndedAnalysis::doubts).cloned();
        let kernel = self.kernel.iter().flat_map(Kernel::doubts);
        let user = self.user.iter().flat_map(User::doubts);
        periods.chain(kernel).chain(user).collect()
    }

    /// Takes those out that are known to have ended so far, in the order in which that was known.
    pub fn take(&self, partial: &mut DelimitedPartial) -> Vec<EndedPeriod> {
        let blocks = self.take_with_turns(partial, &[]).0.into_iter();
        let ended = blocks.flat_map(Block::numbered);
        ended.map(|(_, period)| period).collect()
    }

    /// As above, in blocks of which none reaches over one of these times, with the times so far at
    /// which threads turned to others, in no order.
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
        // Calls stay in their threads.
        let ended = periods.iter().chain(&others);
        turns.extend(ended.filter_map(|(_, ended)| ends(ended, self.label(ended)?)));
        (joined((periods, calls, others), cuts), turns)
    }

    /// Label of executions of one kind; `None` if these never go from one thread to another.
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

    /// Takes out periods, and what stands in logs.
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

    /// When those began that are open.
    pub fn open<'p>(&'p self, partial: &'p DelimitedPartial) -> impl Iterator<Item = i64> + 'p {
        let periods = self
            .periods
            .iter()
            .flat_map(|periods| periods.open(&partial.periods));
        periods
            .chain(partial.kernel.open())
            .chain(partial.user.open())
    }

    /// How many may have been open at a time: what [`DelimitedAnalysis::open`] looks through.
    pub fn room(&self, partial: &DelimitedPartial) -> usize {
        let periods = self.periods.as_ref();
        let periods = periods.map_or(0, |periods| periods.room(&partial.periods));
        periods + partial.kernel.open().chain(partial.user.open()).count()
    }

    fn of_definition(&self, period: EndedPeriod) -> EndedPeriod {
        let kind = self.kinds.get(period.period).copied();
        EndedPeriod {
            period: kind.unwrap_or(period.period),
            ..period
        }
    }
}

/// Executions of all families that ended, in the order in which that was known: what ended at one
/// time is in the order of what it is, and there in its own.
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
    // Stable.
    ended.sort_by_key(|(told, _)| *told);
    Block::all(ended, cuts)
}

/// What threads called in a slice of time.
pub(crate) struct CutCalls<'a> {
    kernel: &'a Kernel,
    items: Items<LifeEvent>,
}

/// Calls in a slice of time.
#[derive(Debug)]
pub(crate) struct PlayedCalls(CallSlice);

impl CutCalls<'_> {
    /// Finds the calls that began there. Those that end on both sides of one of these times are not
    /// in one block.
    pub(crate) fn play(self, cuts: &[i64]) -> PlayedCalls {
        PlayedCalls(CallSlice::play(self.kernel, self.items, cuts))
    }
}

impl PlayedCalls {
    /// Adds them to what is known before.
    pub(crate) fn compose(self, analysis: &DelimitedAnalysis, partial: &mut DelimitedPartial) {
        if let Some(kernel) = &analysis.kernel {
            partial.kernel.compose(kernel, self.0);
        }
    }
}

/// A period begins, of that definition.
pub(crate) fn begins(begun: &BegunPeriod, kind: Option<usize>) -> Turn {
    Turn {
        time: begun.begin.time,
        thread: RecordThread::of(&begun.begin),
        label: Label::of_period(kind.unwrap_or(begun.period)),
        begun: None,
    }
}

/// An execution ends.
pub(crate) fn ends(ended: &EndedPeriod, label: Label) -> Option<Turn> {
    let of = |bound: &Bound| (bound.time, RecordThread::of(bound));
    Turn::ends(label, of(&ended.begin), of(&ended.end))
}

impl DelimitedPartial {
    fn logs(&mut self) -> impl Iterator<Item = &mut Log> {
        self.kernel.logs().into_iter().chain(self.user.logs())
    }
}

impl Analysis for DelimitedAnalysis {
    type Partial = DelimitedPartial;
    type Report = Ended;

    /// Each CPU's streams together, and what else is read each stream alone: what must be in the
    /// order of time is put in order when it is settled.
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
