//! Reactions of user-level threads: from the interrupt or wake-up that makes a thread ready to its
//! next act, by the scheduler that delayed it.
//!
//! A chain may cross threads: an interrupt wakes an LWP, whose scheduler then wakes the user-level
//! thread. Steps are therefore played in the order of time over all CPUs (`reaction_machine`), not
//! by thread as in [`levels`](crate::levels). Slices of time are played without the state before
//! them (`reaction_slice`): an act on a thread is kept for the composition only while its effect
//! depends on that state (`reaction_unknown`).

mod reaction;
mod reaction_machine;
mod reaction_slice;
mod reaction_step;
mod reaction_sums;
mod reaction_tables;
mod reaction_unknown;
#[cfg(test)]
mod slice_tests;

use serde::{Deserialize, Serialize};
use tracebraid_engine::Slice;
use tracebraid_follow::{
    Event, Input, InterruptStep, Items, Packet, People, PerCpu, Rules, Selection, Table, ThreadKey,
    learn, learn_switch,
};
use tracebraid_kernel_model::events::user_level::UserLevelStep;
use tracebraid_kernel_model::{Body, KernelEvent};
use tracebraid_tables::Report;
use tracebraid_threads::{LeftAs, WakeEvent};

use crate::levels::{Described, LevelOptions, is_selected, latest};
use reaction_machine::{ReactionMachine, ReactionPlayer};
use reaction_slice::ReactionSlice;
use reaction_step::{CpuStep, ReactionStep};
use reaction_sums::ReactionSums;

/// Analyses reactions of user-level threads.
pub type ReactionAnalysis = PerCpu<ReactionRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct ReactionRules {
    selection: Selection,
    options: LevelOptions,
}

/// State after some chunks. Besides steps that wait to be played, its size is bounded by the number
/// of threads and of sources of wake-ups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReactionPartial {
    people: People,
    described: Table<(i64, u32, Described)>,
    items: Items<ReactionStep>,
    machine: ReactionMachine,
    sums: ReactionSums,
    #[serde(skip)]
    near: usize,
}

impl Rules for ReactionRules {
    type Partial = ReactionPartial;
    type Report = Report;
    type Options = LevelOptions;

    fn new(selection: &Selection, options: &LevelOptions) -> Self {
        ReactionRules {
            selection: selection.clone(),
            options: options.clone(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            Switch(_) | Wakeup(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_) => true,
            Entry(_) | Exit(_) | UserLevel(_) => true,
            interrupt => InterruptStep::is_told_by(interrupt),
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        if !has(&|event| matches!(event, KernelEvent::UserLevel(_))) {
            return Some("no user-level threads: record a program whose runtime reports them");
        }
        let wakes = has(&|event| matches!(event, KernelEvent::Wakeup(_)));
        (!wakes).then_some("no wake-ups were recorded: enable sched_waking and sched_wakeup")
    }

    fn packet(&self, partial: &mut ReactionPartial, packet: &Packet) {
        if packet.lost_before && packet.tells_switches {
            let time = packet.begin.unwrap_or(i64::MIN);
            partial.items.push(packet.cpu, time, ReactionStep::Lost);
        }
    }

    fn event(&self, partial: &mut ReactionPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let lwp = model.lwp(body).unwrap_or(-1);
        let step = match &model.event {
            KernelEvent::Switch(switch) => {
                let near = &mut partial.near;
                let people = &mut partial.people;
                let Some((prev, next)) = learn_switch(people, near, event, switch, body) else {
                    return;
                };
                ReactionStep::Switch {
                    prev,
                    next,
                    lwp,
                    waits: LeftAs::of(switch, body).waits(),
                    is_user: switch.is_user_level(body),
                }
            }
            KernelEvent::Wakeup(wakeup) => match WakeEvent::of(wakeup, body) {
                Some(wake) => ReactionStep::Wake {
                    woken: wake.woken,
                    // Only a scheduler passes on why it was woken.
                    scheduler: model.tid(body).filter(|tid| *tid == lwp),
                    is_user: wake.user.is_some(),
                },
                None => return,
            },
            KernelEvent::UserLevel(step) if step.step == UserLevelStep::Thread => {
                if let Some(thread) = step.thread(body) {
                    let trace = cpu.trace;
                    let tid = thread.tid;
                    let known = partial.described.get(ThreadKey { trace, tid });
                    latest(known, (time, cpu.cpu, thread.into()));
                }
                return;
            }
            KernelEvent::Entry(_) | KernelEvent::Exit(_) | KernelEvent::UserLevel(_) => {
                match model.tid(body) {
                    // Only user-level threads have other ids than their LWPs.
                    Some(tid) if tid != lwp => ReactionStep::Act(tid),
                    _ => return,
                }
            }
            other => match InterruptStep::of(other, body) {
                Some(step) => match CpuStep::of(step) {
                    Some(step) => ReactionStep::Interrupt(step),
                    None => return,
                },
                None => {
                    learn(&mut partial.people, model, cpu, time, body);
                    match other {
                        KernelEvent::Fork(fork) => match fork.child_tid.get(body) {
                            Some(child) => ReactionStep::Begins(child as i32),
                            None => return,
                        },
                        _ => return,
                    }
                }
            },
        };
        partial.items.push(cpu, time, step);
    }

    fn exchange(&self, partial: &mut ReactionPartial, resident: &mut ReactionPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut ReactionPartial, later: ReactionPartial) {
        earlier.people.merge(later.people);
        earlier.described.merge_by(later.described, latest);
        earlier.items.append(later.items);
        earlier.sums.merge(later.sums, self.longest());
    }

    fn slices<'a>(
        &'a self,
        partial: &mut ReactionPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, ReactionPartial>> {
        let mut items = partial.items.cut(watermark);
        if items.is_empty() {
            return Vec::new();
        }
        vec![Box::new(move |resident| {
            let mut slice = ReactionSlice::new(self);
            let sums = &mut resident.sums;
            items.play(None, |cpu, time, step| slice.play(sums, (cpu, time), step));
            let played = slice.end();
            Box::new(move |partial| played.compose(self, &mut partial.machine, &mut partial.sums))
        })]
    }

    fn resolve(&self, partial: &mut ReactionPartial, watermark: i64) -> bool {
        let items = partial.items.cut(watermark);
        self.play(partial, items);
        true
    }

    fn finish(&self, input: &Input, mut partial: ReactionPartial) -> Report {
        let items = std::mem::take(&mut partial.items);
        self.play(&mut partial, items);
        reaction_tables::report(self, input, partial)
    }
}

impl ReactionRules {
    fn play(&self, partial: &mut ReactionPartial, mut items: Items<ReactionStep>) {
        let mut player = ReactionPlayer {
            rules: self,
            machine: &mut partial.machine,
            sums: &mut partial.sums,
        };
        items.play(None, |cpu, time, step| player.play(cpu, time, step));
    }

    /// Number of longest reactions of a thread to keep.
    fn longest(&self) -> usize {
        self.options.views.top()
    }

    fn counts(&self, time: i64, cpu: u32) -> bool {
        self.selection.counts(time, cpu)
    }

    fn shows(&self, thread: &tracebraid_follow::Thread, ult: u64) -> bool {
        is_selected(&self.selection, &self.options, thread, ult)
    }
}
