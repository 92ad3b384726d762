//! Events on which reactions depend, and their effects on CPUs and threads.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Interrupt, InterruptStep, ThreadKey};

use crate::levels::reactions::reaction::Reaction;

/// An event on which reactions depend.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum ReactionStep {
    Interrupt(CpuStep),
    Switch {
        prev: i32,
        next: i32,
        lwp: i32,
        waits: bool,
        is_user: bool,
    },
    Wake {
        woken: i32,
        /// The LWP whose scheduler wakes the thread; `None` if no scheduler wakes it.
        scheduler: Option<i32>,
        is_user: bool,
    },
    /// A user-level thread enters or leaves a call or a function.
    Act(i32),
    /// A thread is created, perhaps with the id of an earlier one.
    Begins(i32),
    Lost,
}

/// The begin or end of an interrupt on a CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum CpuStep {
    Hard(Interrupt),
    HardEnd,
    Softirq(u8),
    SoftirqEnd,
}

impl CpuStep {
    /// `None` for steps of timers, which do not begin a reaction.
    pub(super) fn of(step: InterruptStep) -> Option<CpuStep> {
        match step {
            InterruptStep::Hard(interrupt) => Some(CpuStep::Hard(interrupt)),
            InterruptStep::HardEnd => Some(CpuStep::HardEnd),
            InterruptStep::Softirq(vector) => Some(CpuStep::Softirq(vector)),
            InterruptStep::SoftirqEnd => Some(CpuStep::SoftirqEnd),
            InterruptStep::Timer(_) | InterruptStep::TimerEnd => None,
        }
    }
}

/// The effect of an event on a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum ThreadAct {
    /// The kernel wakes the thread, which begins this reaction unless it runs or reacts already.
    Woken(Reaction),
    /// The runtime wakes the thread, which continues this reaction unless it runs.
    PassedOn(Reaction),
    /// The thread gets a CPU, or from the runtime an LWP.
    Comes { time: i64, is_user: bool },
    /// The thread loses its CPU or LWP.
    Leaves(Leaving),
    /// The thread acts, which ends its reaction.
    Acts,
    /// The thread is created.
    Begins,
}

/// The effect of leaving a CPU or an LWP on a reaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaving {
    /// The reaction goes on: the thread was preempted.
    GoesOn,
    /// The user-level thread yields or waits, which is an act.
    Acts,
    /// The scheduler of an LWP has reacted once it waits or runs a user-level thread.
    Forgets,
}

/// The acts of a switch on its two threads.
pub(super) fn acts_of_switch(
    (cpu, time): (CpuKey, i64),
    (prev, next): (i32, i32),
    lwp: i32,
    (waits, is_user): (bool, bool),
) -> [(ThreadKey, ThreadAct); 2] {
    let trace = cpu.trace;
    let key = |tid| ThreadKey { trace, tid };
    let leaving = match waits || is_user {
        false => Leaving::GoesOn,
        true if prev != lwp => Leaving::Acts,
        true => Leaving::Forgets,
    };
    [
        (key(prev), ThreadAct::Leaves(leaving)),
        (key(next), ThreadAct::Comes { time, is_user }),
    ]
}
