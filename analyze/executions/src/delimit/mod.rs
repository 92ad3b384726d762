//! What delimits executions, whichever way: one analysis that finds all of them.
//!
//! Periods are found by their own analysis. The others are found here: what the kernel tells of (system calls, processes)
//! by each CPU alone, as other analyses of kernel events do it; what programs tell of in the order of time. All are given as
//! periods that ended, with the thread as the last of their captures.

mod calls;
mod kernel;
mod log;
mod processes;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_filter::executions::{Definitions, Delimiter};
use tracebraid_filter::glob::Glob;
use tracebraid_fold::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_kernel_fold::Window;
use tracebraid_reports::periods::{Ended, EndedAnalysis, EndedPeriod, PeriodPartial};

use crate::execution::with_threads;
use kernel::{Kernel, KernelPartial};
use log::Log;

/// The analysis that finds all executions.
#[derive(Debug)]
pub struct DelimitedAnalysis {
    periods: Option<EndedAnalysis>,
    /// By place among the periods: that among the definitions.
    kinds: Vec<usize>,
    kernel: Option<Kernel>,
    /// How many definitions there are.
    count: usize,
}

/// What is known after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DelimitedPartial {
    periods: PeriodPartial,
    kernel: KernelPartial,
}

/// Patterns of names, each with the place of its definition.
pub(crate) type Patterns = Vec<(usize, Glob)>;

fn patterns(definitions: &Definitions, of: impl Fn(&Delimiter) -> Option<&Glob>) -> Patterns {
    let list = definitions.list.iter().enumerate();
    list.filter_map(|(kind, definition)| Some((kind, of(&definition.delimiter)?.clone())))
        .collect()
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
    pub fn new(set: &TraceSet, definitions: &Definitions, window: Window) -> Result<Self, String> {
        let kinds = definitions.list.iter().enumerate();
        let kinds = kinds.filter(|(_, definition)| matches!(definition.delimiter, Delimiter::Period(_)));
        let kinds: Vec<usize> = kinds.map(|(kind, _)| kind).collect();
        let periods = match kinds.is_empty() {
            true => None,
            false => Some(EndedAnalysis::new(
                set,
                with_threads(definitions.periods.clone()),
                window,
            )?),
        };
        let calls = patterns(definitions, |delimiter| match delimiter {
            Delimiter::Call(glob) => Some(glob),
            _ => None,
        });
        let processes = patterns(definitions, |delimiter| match delimiter {
            Delimiter::Process(glob) => Some(glob),
            _ => None,
        });
        Ok(DelimitedAnalysis {
            periods,
            kinds,
            kernel: Kernel::new(set, calls, processes, window),
            count: definitions.list.len(),
        })
    }

    /// What in the definitions is probably wrong, for people.
    pub fn doubts(&self) -> Vec<String> {
        let periods = self.periods.iter().flat_map(EndedAnalysis::doubts).cloned();
        let kernel = self.kernel.iter().flat_map(Kernel::doubts);
        periods.chain(kernel).collect()
    }

    /// All that ended, by whichever definition, in the order in which they began.
    fn ended(&self, periods: Ended, logs: Vec<Log>) -> Ended {
        let mut ended = Ended {
            periods: Vec::new(),
            unfinished: vec![0; self.count],
            refused: periods.refused,
        };
        let kind = |place: usize| self.kinds.get(place).copied().unwrap_or(place);
        for (place, count) in periods.unfinished.into_iter().enumerate() {
            if let Some(unfinished) = ended.unfinished.get_mut(kind(place)) {
                *unfinished = count;
            }
        }
        ended
            .periods
            .extend(periods.periods.into_iter().map(|period| EndedPeriod {
                period: kind(period.period),
                ..period
            }));
        for log in logs {
            for (own, count) in ended.unfinished.iter_mut().zip(log.unfinished()) {
                *own += count;
            }
            ended.refused += log.refused;
            ended.periods.extend(log.ended);
        }
        // Stable: what began at one time is in the order of definitions' kinds, and there of its numbers.
        ended
            .periods
            .sort_by(|one, other| (one.begin.time, &one.numbers).cmp(&(other.begin.time, &other.numbers)));
        ended
    }
}

impl Analysis for DelimitedAnalysis {
    type Partial = DelimitedPartial;
    type Report = Ended;

    /// Periods need their streams in the order of time; what else is read alone may stay alone.
    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let mut groups = self
            .periods
            .as_ref()
            .map_or_else(Vec::new, |periods| periods.groups(set));
        groups.retain(|group| !group.is_empty());
        let others = self.kernel.iter().flat_map(|kernel| kernel.groups());
        for group in others {
            let is_read = |stream: &StreamRef| groups.iter().any(|group| group.contains(stream));
            match group.iter().any(is_read) {
                // Who reads one of a CPU's streams reads all.
                true => {
                    let more: Vec<StreamRef> = group.into_iter().filter(|stream| !is_read(stream)).collect();
                    groups.iter_mut().take(1).for_each(|first| first.extend(&more));
                }
                false => groups.push(group),
            }
        }
        groups
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let periods = self.periods.as_ref();
        periods.is_some_and(|periods| periods.wants(trace, stream_class, class))
            || self
                .kernel
                .as_ref()
                .is_some_and(|kernel| kernel.wants(trace, stream_class, class))
    }

    fn begin(&self, chunk: &Chunk) -> DelimitedPartial {
        DelimitedPartial {
            periods: PeriodPartial::default(),
            kernel: KernelPartial::new(chunk.index == 0),
        }
    }

    fn packet(&self, partial: &mut DelimitedPartial, packet: &StreamPlace<'_>) {
        if let Some(periods) = &self.periods {
            periods.packet(&mut partial.periods, packet);
        }
        if let Some(kernel) = &self.kernel {
            kernel.packet(&mut partial.kernel, packet);
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
    }

    fn end(&self, partial: &mut DelimitedPartial, chunk: &Chunk) {
        if let Some(periods) = &self.periods {
            periods.end(&mut partial.periods, chunk);
        }
    }

    fn merge(&self, earlier: &mut DelimitedPartial, later: DelimitedPartial) {
        if let Some(periods) = &self.periods {
            periods.merge(&mut earlier.periods, later.periods);
        }
        if let Some(kernel) = &self.kernel {
            kernel.merge(&mut earlier.kernel, later.kernel);
        }
    }

    fn settle(&self, partial: &mut DelimitedPartial, watermark: Timestamp) {
        if let Some(periods) = &self.periods {
            periods.settle(&mut partial.periods, watermark);
        }
        if let Some(kernel) = &self.kernel {
            kernel.play(&mut partial.kernel, Some(watermark.0));
        }
    }

    fn finish(&self, mut partial: DelimitedPartial) -> Ended {
        let periods = match &self.periods {
            Some(periods) => periods.finish(partial.periods),
            None => Ended::default(),
        };
        let mut logs = Vec::new();
        if let Some(kernel) = &self.kernel {
            kernel.play(&mut partial.kernel, None);
            logs.extend(partial.kernel.into_logs(kernel));
        }
        self.ended(periods, logs)
    }
}
