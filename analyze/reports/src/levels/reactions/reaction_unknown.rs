//! A thread in a slice of time, whose state before the slice is unknown.
//!
//! An unknown state is a set of examples that stand for all states in which the thread may be. An
//! act is applied to every example, so that a slice follows the rules of [`ReactionThread`] by
//! construction. The act is kept for the composition only if it changes the reaction of an example,
//! and the outcome depends on which: acts of a thread that cannot react, and a preempted thread's
//! returns, are not kept. Once all examples are the same, the thread is known.

use tracebraid_follow::ThreadKey;

use crate::levels::reactions::reaction::{Reaction, ReactionSource};
use crate::levels::reactions::reaction_machine::{ReactionCpu, ReactionMachine, ReactionThread};
use crate::levels::reactions::reaction_step::{CpuStep, ThreadAct};

/// A slice's knowledge of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SliceCpu {
    cpu: ReactionCpu,
    knows_hard: bool,
    knows_soft: bool,
}

impl SliceCpu {
    /// A CPU without interrupts.
    pub(super) const IDLE: SliceCpu = SliceCpu {
        cpu: ReactionCpu {
            hard: None,
            soft: None,
        },
        knows_hard: true,
        knows_soft: true,
    };

    pub(super) fn step(&mut self, time: i64, step: CpuStep) {
        self.cpu.step(time, step);
        match step {
            CpuStep::Hard(_) | CpuStep::HardEnd => self.knows_hard = true,
            CpuStep::Softirq(_) | CpuStep::SoftirqEnd => self.knows_soft = true,
        }
    }

    /// The CPU, if it was in the state `before` at the beginning of the slice.
    pub(super) fn after(&self, before: ReactionCpu) -> ReactionCpu {
        let of = |knows: bool| if knows { self.cpu } else { before };
        ReactionCpu {
            hard: of(self.knows_hard).hard,
            soft: of(self.knows_soft).soft,
        }
    }

    /// The effect of a wake-up by the kernel on this CPU.
    pub(super) fn wakes(&self, time: i64) -> SliceAct {
        let hides_hard = self.cpu.soft.is_some();
        match self.knows_soft && (self.knows_hard || hides_hard) {
            true => SliceAct::Known(self.cpu.wakes(time)),
            false => SliceAct::Woken(*self),
        }
    }
}

/// An act on a thread, as far as a slice knows it.
#[derive(Clone, Copy, Debug)]
pub(super) enum SliceAct {
    Known(ThreadAct),
    /// A wake-up by the kernel, perhaps in an interrupt that began before the slice.
    Woken(SliceCpu),
    /// A wake-up by this LWP's scheduler, whose reaction is unknown.
    PassedOn(ThreadKey),
}

impl SliceAct {
    /// The act with each of two values for its unknown part; the second is `None` if all is known.
    fn examples(&self) -> (ThreadAct, Option<ThreadAct>) {
        let both = |act: fn(i64) -> ThreadAct| {
            let [first, second] = BEGINS.map(act);
            (first, Some(second))
        };
        match *self {
            SliceAct::Known(act) => (act, None),
            SliceAct::Woken(_) => both(|begin| ReactionCpu::default().wakes(begin)),
            SliceAct::PassedOn(_) => {
                both(|begin| ThreadAct::PassedOn(Reaction::passed_on(None, begin)))
            }
        }
    }

    /// The act, given the state to which all earlier kept acts have been applied. `before`: the CPU
    /// of the act at the beginning of the slice.
    pub(super) fn known(
        &self,
        machine: &mut ReactionMachine,
        before: ReactionCpu,
        time: i64,
    ) -> ThreadAct {
        match self {
            SliceAct::Known(act) => *act,
            SliceAct::Woken(cpu) => cpu.after(before).wakes(time),
            SliceAct::PassedOn(scheduler) => {
                let begun = machine.of_scheduler(*scheduler);
                ThreadAct::PassedOn(Reaction::passed_on(begun, time))
            }
        }
    }
}

/// A slice's knowledge of a thread.
#[derive(Clone, Debug)]
pub(super) enum SliceThread {
    Known(ReactionThread),
    /// Examples, each once.
    Unknown(Vec<ReactionThread>),
}

/// The parts of a thread that a slice knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownParts {
    is_on: Option<bool>,
    reaction: Option<Option<Reaction>>,
}

/// The effect of an act on a thread.
pub(super) enum SliceEffect {
    /// The act finishes this reaction, or none; it is not kept for the composition.
    Known(Option<Reaction>),
    /// The effect differs between states before the slice; the act is kept.
    Unknown,
}

/// Begins of example reactions: no event is that early. An outcome that is the same for both does
/// not depend on the reaction before the slice.
const BEGINS: [i64; 2] = [i64::MIN, i64::MIN + 1];

/// A reaction at each of its steps.
fn reactions(begin: i64) -> [Reaction; 4] {
    let woken = Reaction::new(ReactionSource::Thread, begin, begin);
    let has_lwp = Reaction {
        lwp: Some(begin),
        ..woken
    };
    let passed_on = Reaction::passed_on(Some(has_lwp), begin);
    let has_ult = Reaction {
        ult: Some(begin),
        ..passed_on
    };
    [woken, has_lwp, passed_on, has_ult]
}

impl SliceThread {
    /// A thread of which nothing is known.
    pub(super) fn unknown() -> SliceThread {
        let reactions = BEGINS.into_iter().flat_map(reactions).map(Some);
        let both = |reaction| [false, true].map(|is_on| ReactionThread { is_on, reaction });
        SliceThread::Unknown(reactions.chain([None]).flat_map(both).collect())
    }

    /// The reaction that the scheduler of this LWP passes on; the outer `None` if it is unknown.
    pub(super) fn passes_on(&self) -> Option<Option<Reaction>> {
        match self {
            SliceThread::Known(thread) => Some(thread.reaction),
            SliceThread::Unknown(examples) => {
                let mut reactions = examples.iter().filter_map(|example| example.reaction);
                reactions
                    .all(|reaction| !reaction.has_lwp())
                    .then_some(None)
            }
        }
    }

    pub(super) fn known_parts(&self) -> KnownParts {
        match self {
            SliceThread::Known(thread) => KnownParts {
                is_on: Some(thread.is_on),
                reaction: Some(thread.reaction),
            },
            SliceThread::Unknown(examples) => {
                let is_on = examples.first().map(|first| first.is_on);
                let all_are = |is_on| examples.iter().all(|example| example.is_on == is_on);
                KnownParts {
                    is_on: is_on.filter(|is_on| all_are(*is_on)),
                    reaction: None,
                }
            }
        }
    }

    /// Applies an act.
    pub(super) fn act(&mut self, act: &SliceAct) -> SliceEffect {
        let mut examples = match (&mut *self, act) {
            (SliceThread::Known(thread), SliceAct::Known(act)) => {
                return SliceEffect::Known(thread.act(act));
            }
            (SliceThread::Known(thread), _) => vec![*thread],
            (SliceThread::Unknown(examples), _) => std::mem::take(examples),
        };
        let (first, second) = act.examples();
        let mut others = second.map(|act| (act, examples.clone()));
        let mut applied = apply(&mut examples, &first);
        if let Some((act, others)) = &mut others {
            applied = applied.and(apply(others, act));
            examples.append(others);
        }
        if applied.changes_any {
            examples = each_once(examples);
        }
        let is_kept = match *examples {
            [known] => {
                *self = SliceThread::Known(known);
                applied.finishes
            }
            _ => {
                *self = SliceThread::Unknown(examples);
                applied.changes_reaction
            }
        };
        match is_kept {
            true => SliceEffect::Unknown,
            false => SliceEffect::Known(None),
        }
    }
}

/// The effect of an act on examples.
#[derive(Clone, Copy, Default)]
struct Applied {
    changes_any: bool,
    changes_reaction: bool,
    finishes: bool,
}

impl Applied {
    fn and(self, other: Applied) -> Applied {
        Applied {
            changes_any: true,
            changes_reaction: self.changes_reaction || other.changes_reaction,
            finishes: self.finishes || other.finishes,
        }
    }
}

fn apply(examples: &mut [ReactionThread], act: &ThreadAct) -> Applied {
    let mut applied = Applied::default();
    for example in examples {
        let before = *example;
        applied.finishes |= example.act(act).is_some();
        applied.changes_any |= *example != before;
        applied.changes_reaction |= example.reaction != before.reaction;
    }
    applied
}

fn each_once(examples: Vec<ReactionThread>) -> Vec<ReactionThread> {
    let mut once = Vec::with_capacity(examples.len());
    for example in examples {
        if !once.contains(&example) {
            once.push(example);
        }
    }
    once
}

impl KnownParts {
    /// Replaces the state of a thread by the parts that are known.
    pub(super) fn install(self, thread: &mut ReactionThread) {
        thread.is_on = self.is_on.unwrap_or(thread.is_on);
        thread.reaction = self.reaction.unwrap_or(thread.reaction);
    }
}
