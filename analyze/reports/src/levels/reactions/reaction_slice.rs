//! Plays a slice of time without the state before it.

use std::collections::BTreeSet;

use tracebraid_follow::{ByCpu, CpuKey, Table, ThreadKey};

use crate::levels::reactions::ReactionRules;
use crate::levels::reactions::reaction::Reaction;
use crate::levels::reactions::reaction_machine::{ReactionMachine, ReactionThread};
use crate::levels::reactions::reaction_step::{ReactionStep, ThreadAct, acts_of_switch};
use crate::levels::reactions::reaction_sums::ReactionSums;
use crate::levels::reactions::reaction_unknown::{
    KnownParts, SliceAct, SliceCpu, SliceEffect, SliceThread,
};

/// An act whose effect depends on the state before the slice.
struct KeptAct {
    at: (CpuKey, i64),
    key: ThreadKey,
    /// Known parts of the thread before the act.
    known: KnownParts,
    act: SliceAct,
}

/// Steps of composing, in order.
enum KeptStep {
    Act(Box<KeptAct>),
    /// The first loss of this trace in the slice. After it, all of the trace is known.
    Lost(u32),
}

/// A slice that is being played.
pub(super) struct ReactionSlice<'a> {
    rules: &'a ReactionRules,
    threads: Table<Option<SliceThread>>,
    cpus: ByCpu<SliceCpu>,
    lost: BTreeSet<u32>,
    steps: Vec<KeptStep>,
}

/// A played slice. Its size depends on the number of threads and CPUs.
pub(super) struct PlayedReactions {
    steps: Vec<KeptStep>,
    threads: Vec<(ThreadKey, KnownParts)>,
    cpus: ByCpu<SliceCpu>,
}

impl<'a> ReactionSlice<'a> {
    pub(super) fn new(rules: &'a ReactionRules) -> ReactionSlice<'a> {
        ReactionSlice {
            rules,
            threads: Table::default(),
            cpus: ByCpu::default(),
            lost: BTreeSet::new(),
            steps: Vec::new(),
        }
    }

    pub(super) fn play(
        &mut self,
        sums: &mut ReactionSums,
        (cpu, time): (CpuKey, i64),
        step: ReactionStep,
    ) {
        let at = (cpu, time);
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        let here = self.cpus.get(cpu);
        match step {
            ReactionStep::Interrupt(step) => here.step(time, step),
            ReactionStep::Switch {
                prev,
                next,
                lwp,
                waits,
                is_user,
            } => {
                *here = SliceCpu::IDLE;
                for (key, act) in acts_of_switch(at, (prev, next), lwp, (waits, is_user)) {
                    self.act(sums, at, key, SliceAct::Known(act));
                }
            }
            ReactionStep::Wake {
                woken,
                scheduler,
                is_user,
            } => {
                let act = match is_user {
                    false => here.wakes(time),
                    true => self.passes_on(scheduler.map(key), time),
                };
                self.act(sums, at, key(woken), act);
            }
            ReactionStep::Act(tid) => {
                self.act(sums, at, key(tid), SliceAct::Known(ThreadAct::Acts));
            }
            ReactionStep::Begins(tid) => {
                self.act(sums, at, key(tid), SliceAct::Known(ThreadAct::Begins));
            }
            ReactionStep::Lost => {
                *here = SliceCpu::IDLE;
                self.lose(trace);
            }
        }
    }

    fn thread(&mut self, key: ThreadKey) -> &mut SliceThread {
        let lost = &self.lost;
        let thread = self.threads.get(key);
        thread.get_or_insert_with(|| match lost.contains(&key.trace) {
            true => SliceThread::Known(ReactionThread::default()),
            false => SliceThread::unknown(),
        })
    }

    /// The effect of a wake-up by the runtime.
    fn passes_on(&mut self, scheduler: Option<ThreadKey>, time: i64) -> SliceAct {
        let known = |begun| SliceAct::Known(ThreadAct::PassedOn(Reaction::passed_on(begun, time)));
        match scheduler {
            None => known(None),
            Some(scheduler) => match self.thread(scheduler).passes_on() {
                Some(begun) => known(begun),
                None => SliceAct::PassedOn(scheduler),
            },
        }
    }

    fn act(&mut self, sums: &mut ReactionSums, at: (CpuKey, i64), key: ThreadKey, act: SliceAct) {
        let rules = self.rules;
        let thread = self.thread(key);
        let is_simple = matches!(
            (&*thread, &act),
            (SliceThread::Known(_), SliceAct::Known(_))
        );
        let known = (!is_simple).then(|| thread.known_parts());
        match (thread.act(&act), known) {
            (SliceEffect::Known(Some(reaction)), _) => sums.add(rules, key, at, reaction),
            (SliceEffect::Unknown, Some(known)) => {
                let kept = KeptAct {
                    at,
                    key,
                    known,
                    act,
                };
                self.steps.push(KeptStep::Act(Box::new(kept)));
            }
            (SliceEffect::Known(None) | SliceEffect::Unknown, _) => {}
        }
    }

    fn lose(&mut self, trace: u32) {
        let threads = self.threads.entries_mut();
        for (_, thread) in threads.filter(|(key, _)| key.trace == trace) {
            *thread = Some(SliceThread::Known(ReactionThread::default()));
        }
        if self.lost.insert(trace) {
            self.steps.push(KeptStep::Lost(trace));
        }
    }

    /// Ends the slice.
    pub(super) fn end(self) -> PlayedReactions {
        let threads = self.threads.into_entries().into_iter();
        let known = |(key, thread): (_, Option<SliceThread>)| Some((key, thread?.known_parts()));
        PlayedReactions {
            steps: self.steps,
            threads: threads.filter_map(known).collect(),
            cpus: self.cpus,
        }
    }
}

impl PlayedReactions {
    /// Number of acts that composing plays.
    #[cfg(test)]
    pub(super) fn kept_acts(&self) -> usize {
        self.steps.len()
    }

    /// Number of steps, threads and CPUs that composing visits.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.steps.len() + self.threads.len() + self.cpus.iter().count()
    }

    /// Appends the slice to the state at its beginning.
    pub(super) fn compose(
        self,
        rules: &ReactionRules,
        machine: &mut ReactionMachine,
        sums: &mut ReactionSums,
    ) {
        for step in self.steps {
            match step {
                KeptStep::Act(kept) => kept.replay(rules, machine, sums),
                KeptStep::Lost(trace) => machine.lose(trace),
            }
        }
        for (key, known) in self.threads {
            known.install(machine.threads.get(key));
        }
        for (cpu, known) in self.cpus {
            let here = machine.cpus.get(cpu);
            *here = known.after(*here);
        }
    }
}

impl KeptAct {
    /// CPUs of the machine are in their state at the beginning of the slice.
    fn replay(self, rules: &ReactionRules, machine: &mut ReactionMachine, sums: &mut ReactionSums) {
        let (cpu, time) = self.at;
        let before = *machine.cpus.get(cpu);
        let act = self.act.known(machine, before, time);
        let thread = machine.threads.get(self.key);
        self.known.install(thread);
        if let Some(reaction) = thread.act(&act) {
            sums.add(rules, self.key, self.at, reaction);
        }
    }
}
