//! Follows threads from their wake-up to their next act, in the order of time over all CPUs.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Interrupt, Table, ThreadKey};

use crate::levels::reactions::ReactionRules;
use crate::levels::reactions::reaction::{Reaction, ReactionSource};
use crate::levels::reactions::reaction_step::{
    CpuStep, Leaving, ReactionStep, ThreadAct, acts_of_switch,
};
use crate::levels::reactions::reaction_sums::ReactionSums;

/// State of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReactionThread {
    /// On a CPU, or as a user-level thread on an LWP.
    pub(super) is_on: bool,
    pub(super) reaction: Option<Reaction>,
}

impl ReactionThread {
    /// Applies an act; returns the reaction that it finishes.
    pub(super) fn act(&mut self, act: &ThreadAct) -> Option<Reaction> {
        match *act {
            ThreadAct::Woken(reaction) if !self.is_on => {
                self.reaction = self.reaction.or(Some(reaction));
            }
            ThreadAct::PassedOn(reaction) if !self.is_on => self.reaction = Some(reaction),
            ThreadAct::Woken(_) | ThreadAct::PassedOn(_) => {}
            ThreadAct::Comes { time, is_user } => self.comes(time, is_user),
            ThreadAct::Leaves(leaving) => {
                self.is_on = false;
                match leaving {
                    Leaving::GoesOn => {}
                    Leaving::Acts => return self.finishes(),
                    Leaving::Forgets => self.reaction = None,
                }
            }
            ThreadAct::Acts => return self.finishes(),
            ThreadAct::Begins => *self = ReactionThread::default(),
        }
        None
    }

    fn finishes(&mut self) -> Option<Reaction> {
        self.reaction.take_if(|reaction| reaction.is_running())
    }

    fn comes(&mut self, time: i64, is_user: bool) {
        self.is_on = true;
        let Some(reaction) = &mut self.reaction else {
            return;
        };
        match is_user {
            true if reaction.ult_woken.is_some() => reaction.ult = reaction.ult.or(Some(time)),
            true => {}
            false => reaction.lwp = reaction.lwp.or(Some(time)),
        }
    }
}

/// An interrupt and the time at which it began.
pub(super) type BegunInterrupt = (Interrupt, i64);

/// Interrupts that are active on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReactionCpu {
    pub(super) hard: Option<BegunInterrupt>,
    pub(super) soft: Option<BegunInterrupt>,
}

impl ReactionCpu {
    pub(super) fn step(&mut self, time: i64, step: CpuStep) {
        match step {
            CpuStep::Hard(interrupt) => self.hard = Some((interrupt, time)),
            CpuStep::HardEnd => self.hard = None,
            CpuStep::Softirq(vector) => self.soft = Some((Interrupt::Softirq(vector), time)),
            CpuStep::SoftirqEnd => self.soft = None,
        }
    }

    /// The effect of a wake-up by the kernel on this CPU.
    pub(super) fn wakes(&self, time: i64) -> ThreadAct {
        // The outer interrupt began first.
        let (source, begin) = match self.soft.or(self.hard) {
            Some((interrupt, begin)) => (ReactionSource::Interrupt(interrupt), begin),
            None => (ReactionSource::Thread, time),
        };
        ThreadAct::Woken(Reaction::new(source, begin, time))
    }
}

/// State of all threads and CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ReactionMachine {
    pub(super) threads: Table<ReactionThread>,
    pub(super) cpus: ByCpu<ReactionCpu>,
}

impl ReactionMachine {
    /// Forgets all threads of a trace, since each may have acted while events were lost.
    pub(super) fn lose(&mut self, trace: u32) {
        let threads = self.threads.entries_mut();
        let of_trace = threads.filter(|(key, _)| key.trace == trace);
        of_trace.for_each(|(_, thread)| *thread = ReactionThread::default());
    }

    /// The reaction of the LWP whose scheduler wakes a user-level thread.
    pub(super) fn of_scheduler(&mut self, scheduler: ThreadKey) -> Option<Reaction> {
        self.threads.find_mut(scheduler)?.reaction
    }
}

/// Plays steps on a machine.
pub(super) struct ReactionPlayer<'a> {
    pub(super) rules: &'a ReactionRules,
    pub(super) machine: &'a mut ReactionMachine,
    pub(super) sums: &'a mut ReactionSums,
}

impl ReactionPlayer<'_> {
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, step: ReactionStep) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        let here = self.machine.cpus.get(cpu);
        match step {
            ReactionStep::Interrupt(step) => here.step(time, step),
            ReactionStep::Switch {
                prev,
                next,
                lwp,
                waits,
                is_user,
            } => {
                *here = ReactionCpu::default();
                let at = (cpu, time);
                for (key, act) in acts_of_switch(at, (prev, next), lwp, (waits, is_user)) {
                    self.act(at, key, &act);
                }
            }
            ReactionStep::Wake {
                woken,
                scheduler,
                is_user,
            } => {
                let act = match is_user {
                    false => here.wakes(time),
                    true => {
                        let scheduler = scheduler.map(key);
                        let begun = scheduler.and_then(|lwp| self.machine.of_scheduler(lwp));
                        ThreadAct::PassedOn(Reaction::passed_on(begun, time))
                    }
                };
                self.act((cpu, time), key(woken), &act);
            }
            ReactionStep::Act(tid) => self.act((cpu, time), key(tid), &ThreadAct::Acts),
            ReactionStep::Begins(tid) => self.act((cpu, time), key(tid), &ThreadAct::Begins),
            ReactionStep::Lost => {
                *here = ReactionCpu::default();
                self.machine.lose(trace);
            }
        }
    }

    fn act(&mut self, at: (CpuKey, i64), key: ThreadKey, act: &ThreadAct) {
        if let Some(reaction) = self.machine.threads.get(key).act(act) {
            self.sums.add(self.rules, key, at, reaction);
        }
    }
}
