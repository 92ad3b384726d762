//! Plays events on the states of threads, in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Losses, Table, ThreadKey, WakeTells};
use tracebraid_threads::{LeftAs, Past, PastStretch, ThreadCell, ThreadState, WakeEffect};

use crate::levels::LevelRules;
use crate::levels::cpu_turns::{self, PastTurns, Turn, Turns};
use crate::levels::level_calls::{CallStep, ThreadCalls};
use crate::levels::level_step::{LevelAct, LevelItem, LevelMoment};
use crate::levels::level_sums::LevelSums;
use crate::levels::level_thread::{LevelCounter, LevelPlace};

/// A thread at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LevelThread {
    pub(super) cell: ThreadCell<()>,
    pub(super) place: LevelPlace,
    pub(super) calls: ThreadCalls,
}

/// The states of all threads at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LevelMachine {
    pub(super) threads: Table<LevelThread>,
    pub(super) losses: Losses,
    pub(super) turns: Turns,
}

/// Plays events on a machine.
pub(super) struct LevelPlayer<'a> {
    pub(super) rules: &'a LevelRules,
    pub(super) machine: &'a mut LevelMachine,
    pub(super) sums: &'a mut LevelSums,
}

impl LevelPlayer<'_> {
    pub(super) fn play(&mut self, at: LevelMoment, item: LevelItem) {
        if self.rules.selection.window.is_over(at.1) {
            return;
        }
        if let LevelItem::Lost = item {
            self.machine.losses.lose(at.0);
        }
        if let Some(tid) = item.ends_turn() {
            let turns = self.machine.turns.get(at.0);
            turns.end(at.1, tid);
            turns.shorten_at_times();
        }
        for (key, act) in item.acts(at) {
            self.call(at, key, &act);
            self.act(at, key, &act, &[]);
        }
    }

    /// The effect of an event on the calls of a thread.
    fn call(&mut self, at: LevelMoment, key: ThreadKey, act: &LevelAct) {
        let cost = self.rules.options.probe_cost(key.trace);
        let Some(step) = CallStep::of(act, cost) else {
            return;
        };
        let LevelMachine {
            threads, losses, ..
        } = &mut *self.machine;
        let at = (at.1, losses.of_trace(at.0));
        let sums = &mut *self.sums;
        let window = &self.rules.selection.window;
        let calls = &mut threads.get(key).calls;
        calls.step((sums, key), window, at, step);
    }

    /// An event of one thread. `later`: turns on its CPU that are not in the machine yet.
    pub(super) fn act(&mut self, at: LevelMoment, key: ThreadKey, act: &LevelAct, later: &[Turn]) {
        let LevelMachine {
            threads,
            losses,
            turns,
        } = &mut *self.machine;
        let LevelThread { cell, place, .. } = threads.get(key);
        let earlier = cpu_turns::of(turns, at.0);
        let mut counter = LevelCounter {
            rules: self.rules,
            sums: self.sums,
            key,
            turns: PastTurns { earlier, later },
        };
        match *act {
            LevelAct::Leave { left, lwp, .. } => {
                let stretch = cell.leave(at, left, losses);
                counter.spend(place, stretch, at, lwp);
            }
            LevelAct::Come { lwp, is_user } => {
                let stretch = cell.come(at, losses, true);
                counter.spend(place, stretch, at, lwp);
                counter.comes(place, stretch.past, at, (lwp, is_user));
            }
            LevelAct::Wake(wakeup, target) => {
                let tells = WakeTells::ALL;
                if let WakeEffect::Ends(stretch) = cell.wake(wakeup, (at.0, target), tells, losses)
                {
                    counter.spend(place, stretch, at, -1);
                }
            }
            LevelAct::Ended => {
                if let Some(stretch) = cell.end_elsewhere(at, losses) {
                    counter.spend(place, stretch, at, -1);
                }
            }
            LevelAct::Made => *cell = ThreadCell::made(at, key.tid, losses),
            LevelAct::Call(false) => counter.returns(place, at.1),
            LevelAct::Waits(_) | LevelAct::Call(true) => {}
            LevelAct::Function(..) | LevelAct::SystemCall(_) => return,
            LevelAct::Probe => return counter.probes(at.1),
        }
        place.follow(at, act);
    }
}

impl LevelMachine {
    /// Ends all stretches at the end of the range.
    pub(super) fn end(
        &mut self,
        rules: &LevelRules,
        sums: &mut LevelSums,
        end: impl Fn(u32) -> Option<i64>,
    ) {
        let LevelMachine {
            threads, losses, ..
        } = self;
        for (key, thread) in threads.entries_mut() {
            let Some(end) = end(key.trace) else { continue };
            let LevelThread { cell, place, calls } = thread;
            let key_of_cpu = CpuKey {
                trace: key.trace,
                cpu: 0,
            };
            let losses_at_end = losses.of_trace(key_of_cpu);
            calls.end(sums, key, &rules.selection.window, (end, losses_at_end));
            let begin = cell.since();
            let trace = key.trace;
            let (cpu, past) = match cell.state() {
                ThreadState::Running(cpu) => (u32::from(cpu), Past::Running),
                ThreadState::Preempted(_) => (0, Past::Preempted),
                ThreadState::Runnable(_) => (0, Past::Runnable),
                ThreadState::Ready => (0, Past::Ready),
                ThreadState::Blocked => (0, Past::Waited(None)),
                ThreadState::Unseen | ThreadState::Unknown | ThreadState::Ended => continue,
            };
            let at = (CpuKey { trace, cpu }, end);
            // A loss makes the state unknown, as it would at the thread's next event.
            let past = match past {
                Past::Running => cell.leave(at, LeftAs::Runnable, losses).past,
                other => match cell.come(at, losses, true).past {
                    Past::Unknown => Past::Unknown,
                    _ => other,
                },
            };
            let lwp = place.on.unwrap_or(key.tid);
            let turns = PastTurns::default();
            let mut counter = LevelCounter {
                rules,
                sums,
                key,
                turns,
            };
            counter.spend(place, PastStretch { begin, past }, at, lwp);
        }
    }
}
