//! Follows threads from their wake-up to their next act, in the order of time over all CPUs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Interrupt, InterruptStep, Table, ThreadKey};
use tracebraid_statistics::{Distribution, Top};

use crate::levels::reactions::ReactionRules;

/// An event on which reactions depend.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum ReactionStep {
    Hard(Interrupt),
    HardEnd,
    Softirq(u8),
    SoftirqEnd,
    /// A step of a timer, which changes nothing here.
    Timer,
    Switch {
        prev: i32,
        next: i32,
        lwp: i32,
        waits: bool,
        is_user: bool,
    },
    Wake {
        woken: i32,
        /// The LWP whose scheduler wakes, if it is one.
        scheduler: Option<i32>,
        is_user: bool,
    },
    /// A user-level thread enters or leaves a call or a function.
    Act(i32),
    Lost,
}

impl ReactionStep {
    pub(super) fn interrupt(step: InterruptStep) -> ReactionStep {
        match step {
            InterruptStep::Hard(interrupt) => ReactionStep::Hard(interrupt),
            InterruptStep::HardEnd => ReactionStep::HardEnd,
            InterruptStep::Softirq(vector) => ReactionStep::Softirq(vector),
            InterruptStep::SoftirqEnd => ReactionStep::SoftirqEnd,
            InterruptStep::Timer(_) | InterruptStep::TimerEnd => ReactionStep::Timer,
        }
    }
}

/// The origin of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum ReactionSource {
    Interrupt(Interrupt),
    /// A thread, in the kernel.
    Thread,
    /// A user-level thread, or the runtime by itself.
    Runtime,
}

/// Steps of a reaction, in nanoseconds from the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Reaction {
    pub(super) source: ReactionSource,
    /// Entry of the interrupt, or the first wake-up.
    pub(super) begin: i64,
    pub(super) woken: i64,
    /// The LWP is on a CPU.
    pub(super) lwp: Option<i64>,
    /// The scheduler wakes the user-level thread.
    pub(super) ult_woken: Option<i64>,
    /// The user-level thread has an LWP.
    pub(super) ult: Option<i64>,
}

/// Parts of a reaction, in order.
pub(super) const PARTS: [&str; 5] = ["interrupt", "kernel", "scheduler", "lwp", "thread"];

impl Reaction {
    fn new(source: ReactionSource, begin: i64, woken: i64) -> Reaction {
        Reaction {
            source,
            begin,
            woken,
            lwp: None,
            ult_woken: None,
            ult: None,
        }
    }

    /// Durations of [`PARTS`] up to the act at `end`.
    pub(super) fn parts(&self, end: i64) -> [u64; 5] {
        let lwp = self.lwp.unwrap_or(self.woken);
        let ult_woken = self.ult_woken.unwrap_or(lwp);
        let ult = self.ult.unwrap_or(ult_woken);
        [
            self.woken.abs_diff(self.begin),
            lwp.abs_diff(self.woken),
            ult_woken.abs_diff(lwp),
            ult.abs_diff(ult_woken),
            end.abs_diff(ult),
        ]
    }

    fn is_running(&self) -> bool {
        self.lwp.is_some() && self.ult_woken.is_none() || self.ult.is_some()
    }
}

/// A finished reaction: the longest come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Reacted {
    pub(super) total: u64,
    pub(super) end: i64,
    pub(super) cpu: u32,
    pub(super) reaction: Reaction,
}

/// Sums of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadReactions {
    pub(super) all: Distribution,
    pub(super) longest: Top<Reacted>,
    /// By source: the parts, and the whole.
    pub(super) by_source: Vec<(ReactionSource, Vec<Distribution>)>,
}

/// Sums of all threads.
pub(super) type ReactionSums = Table<ThreadReactions>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ReactionThread {
    is_on: bool,
    reaction: Option<Reaction>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ReactionCpu {
    hard: Option<(Interrupt, i64)>,
    soft: Option<(Interrupt, i64)>,
}

/// The state at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ReactionMachine {
    threads: Table<ReactionThread>,
    cpus: ByCpu<ReactionCpu>,
}

/// Plays steps on a machine.
pub(super) struct ReactionPlayer<'a> {
    pub(super) rules: &'a ReactionRules,
    pub(super) machine: &'a mut ReactionMachine,
    pub(super) sums: &'a mut ReactionSums,
}

impl ReactionPlayer<'_> {
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, step: ReactionStep) {
        let here = self.machine.cpus.get(cpu);
        let key = |tid: i32| ThreadKey {
            trace: cpu.trace,
            tid,
        };
        match step {
            ReactionStep::Hard(interrupt) => here.hard = Some((interrupt, time)),
            ReactionStep::HardEnd => here.hard = None,
            ReactionStep::Softirq(vector) => {
                here.soft = Some((Interrupt::Softirq(vector), time));
            }
            ReactionStep::SoftirqEnd => here.soft = None,
            ReactionStep::Timer => {}
            ReactionStep::Switch {
                prev,
                next,
                lwp,
                waits,
                is_user,
            } => {
                (here.hard, here.soft) = (None, None);
                self.leaves((cpu, time), key(prev), lwp, waits, is_user);
                self.comes(key(next), time, is_user);
            }
            ReactionStep::Wake {
                woken,
                scheduler,
                is_user,
            } => {
                let scheduler = scheduler.map(key);
                self.wakes((cpu, time), key(woken), scheduler, is_user);
            }
            ReactionStep::Act(tid) => self.acts((cpu, time), key(tid)),
            // Any thread may have acted meanwhile.
            ReactionStep::Lost => {
                *here = ReactionCpu::default();
                let threads = self.machine.threads.entries_mut();
                let of_trace = threads.filter(|(key, _)| key.trace == cpu.trace);
                of_trace.for_each(|(_, thread)| *thread = ReactionThread::default());
            }
        }
    }

    fn wakes(
        &mut self,
        (cpu, time): (CpuKey, i64),
        woken: ThreadKey,
        scheduler: Option<ThreadKey>,
        is_user: bool,
    ) {
        let here = self.machine.cpus.get(cpu);
        // The outer interrupt began first.
        let interrupt = here.soft.or(here.hard);
        if !is_user {
            let (source, begin) = match interrupt {
                Some((interrupt, begin)) => (ReactionSource::Interrupt(interrupt), begin),
                None => (ReactionSource::Thread, time),
            };
            let thread = self.machine.threads.get(woken);
            if !thread.is_on && thread.reaction.is_none() {
                thread.reaction = Some(Reaction::new(source, begin, time));
            }
            return;
        }
        let scheduler = scheduler.and_then(|lwp| self.machine.threads.get(lwp).reaction);
        let begun = scheduler.filter(|begun| begun.lwp.is_some());
        let begun = begun.unwrap_or(Reaction {
            lwp: Some(time),
            ..Reaction::new(ReactionSource::Runtime, time, time)
        });
        let thread = self.machine.threads.get(woken);
        if !thread.is_on {
            thread.reaction = Some(Reaction {
                ult_woken: Some(time),
                ult: None,
                ..begun
            });
        }
    }

    fn comes(&mut self, key: ThreadKey, time: i64, is_user: bool) {
        let thread = self.machine.threads.get(key);
        thread.is_on = true;
        let Some(reaction) = &mut thread.reaction else {
            return;
        };
        match is_user {
            true if reaction.ult_woken.is_some() => reaction.ult = reaction.ult.or(Some(time)),
            true => {}
            false => reaction.lwp = reaction.lwp.or(Some(time)),
        }
    }

    fn leaves(&mut self, at: (CpuKey, i64), key: ThreadKey, lwp: i32, waits: bool, is_user: bool) {
        let thread = self.machine.threads.get(key);
        thread.is_on = false;
        if key.tid != lwp && (waits || is_user) {
            return self.acts(at, key);
        }
        // The scheduler of an LWP has reacted once it waits or runs a user-level thread.
        if waits || is_user {
            self.machine.threads.get(key).reaction = None;
        }
    }

    fn acts(&mut self, (cpu, end): (CpuKey, i64), key: ThreadKey) {
        let thread = self.machine.threads.get(key);
        let Some(reaction) = thread.reaction.take_if(|reaction| reaction.is_running()) else {
            return;
        };
        if !self.rules.counts(end, cpu.cpu) {
            return;
        }
        let parts = reaction.parts(end);
        let total = end.abs_diff(reaction.begin);
        let sums = self.sums.get(key);
        sums.all.add(total);
        let reacted = Reacted {
            total,
            end,
            cpu: cpu.cpu,
            reaction,
        };
        sums.longest.add(reacted, self.rules.longest());
        let by_source = &mut sums.by_source;
        let at = by_source
            .iter()
            .position(|(source, _)| *source == reaction.source);
        let at = at.unwrap_or_else(|| {
            by_source.push((
                reaction.source,
                vec![Distribution::default(); PARTS.len() + 1],
            ));
            by_source.len() - 1
        });
        if let Some((_, sums)) = by_source.get_mut(at) {
            for (sum, part) in sums.iter_mut().zip(parts.into_iter().chain([total])) {
                sum.add(part);
            }
        }
    }
}

/// Distributions of several threads by source.
pub(super) fn by_source<'a>(
    threads: impl Iterator<Item = &'a ThreadReactions>,
) -> BTreeMap<ReactionSource, Vec<Distribution>> {
    let mut all: BTreeMap<ReactionSource, Vec<Distribution>> = BTreeMap::new();
    for (source, parts) in threads.flat_map(|thread| &thread.by_source) {
        let sums = all
            .entry(*source)
            .or_insert_with(|| vec![Distribution::default(); parts.len()]);
        sums.iter_mut()
            .zip(parts)
            .for_each(|(sum, part)| sum.merge(part));
    }
    all
}
