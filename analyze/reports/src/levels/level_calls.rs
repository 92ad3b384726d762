//! The functions and system calls of a thread, in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ThreadKey, Window};
use tracebraid_kernel_model::Syscall;
use tracebraid_threads::LeftAs;

use crate::levels::call_stack::{CallClock, CallMoment, CallStack, CallsOfThread, StackPlayer};
use crate::levels::level_step::LevelAct;
use crate::levels::level_sums::LevelSums;

/// Calls of a thread: functions, and system calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Calls<T> {
    pub(super) functions: T,
    pub(super) system: T,
}

/// Sums of the calls of a thread.
pub(super) type CallSumsOfThread = Calls<CallsOfThread>;

impl CallSumsOfThread {
    pub(super) fn merge(&mut self, other: CallSumsOfThread) {
        self.functions.merge(other.functions);
        self.system.merge(other.system);
    }
}

/// The part of an event that calls depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStep {
    /// The thread gets a CPU.
    Runs,
    /// The thread leaves its CPU.
    Stops,
    /// The thread ends.
    Ends,
    /// A thread with this id is created.
    Made,
    Enter(u64),
    Exit(u64),
    Call(Syscall),
    Return,
    /// The thread has spent this time in a probe, in nanoseconds.
    Probe(u32),
}

impl CallStep {
    /// `cost`: nanoseconds of a probe.
    pub(super) fn of(act: &LevelAct, cost: u32) -> Option<CallStep> {
        Some(match *act {
            LevelAct::Come { .. } => CallStep::Runs,
            LevelAct::Leave {
                left: LeftAs::Ended,
                ..
            }
            | LevelAct::Ended => CallStep::Ends,
            LevelAct::Leave { .. } => CallStep::Stops,
            LevelAct::Made => CallStep::Made,
            LevelAct::Function(key, true) => CallStep::Enter(key),
            LevelAct::Function(key, false) => CallStep::Exit(key),
            LevelAct::SystemCall(Some(call)) => CallStep::Call(call),
            LevelAct::SystemCall(None) => CallStep::Return,
            LevelAct::Probe if cost > 0 => CallStep::Probe(cost),
            LevelAct::Probe => return None,
            LevelAct::Wake(..) | LevelAct::Waits(_) | LevelAct::Call(_) => return None,
        })
    }
}

impl CallStep {
    /// True if the step changes the clock only.
    pub(super) fn only_moves(self) -> bool {
        matches!(self, CallStep::Runs | CallStep::Stops | CallStep::Probe(_))
    }
}

impl CallClock {
    /// Follows a step. Returns the clock at its time.
    pub(super) fn step(&mut self, window: &Window, time: i64, step: CallStep) -> CallMoment {
        match step {
            CallStep::Runs => self.runs(time),
            CallStep::Stops | CallStep::Ends => self.stops(window, time),
            CallStep::Made => self.since = None,
            // A thread records its events while it runs.
            CallStep::Enter(_) | CallStep::Exit(_) => self.runs(time),
            CallStep::Call(_) | CallStep::Return => self.runs(time),
            CallStep::Probe(cost) => {
                self.runs(time);
                if window.contains(time) {
                    self.ns -= i64::from(cost);
                }
            }
        }
        CallMoment {
            time,
            clock: self.now(window, time),
        }
    }
}

/// The calls of a thread at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadCalls {
    pub(super) clock: CallClock,
    pub(super) stacks: Calls<CallStack>,
    /// Number of losses of the trace at the last step: any later loss may hide entries and exits.
    pub(super) losses: u64,
}

impl ThreadCalls {
    pub(super) fn step(
        &mut self,
        sums: (&mut LevelSums, ThreadKey),
        window: &Window,
        (time, losses): (i64, u64),
        step: CallStep,
    ) {
        self.know(losses);
        let at = self.clock.step(window, time, step);
        if step.only_moves() {
            return;
        }
        let sums = &mut sums.0.threads.get(sums.1).made;
        let Calls { functions, system } = &mut self.stacks;
        let mut functions = StackPlayer {
            stack: functions,
            sums: &mut sums.functions,
            window,
        };
        let mut system = StackPlayer {
            stack: system,
            sums: &mut sums.system,
            window,
        };
        match step {
            CallStep::Runs | CallStep::Stops | CallStep::Probe(_) => {}
            CallStep::Enter(key) => functions.enter(key, at),
            CallStep::Exit(key) => functions.exit(key, at),
            CallStep::Call(call) => {
                // The exit of an earlier call was not recorded.
                system.stack.take();
                system.enter(call.0.into(), at);
            }
            CallStep::Return => {
                if let Some(key) = system.stack.innermost() {
                    system.exit(key, at);
                }
            }
            CallStep::Ends => {
                functions.end(at);
                system.end(at);
            }
            CallStep::Made => drop((functions.stack.take(), system.stack.take())),
        }
    }

    /// Forgets all calls if events were lost since the last step.
    pub(super) fn know(&mut self, losses: u64) {
        if self.losses != losses {
            *self = ThreadCalls {
                losses,
                ..ThreadCalls::default()
            };
        }
    }

    /// Ends the calls at the end of the range.
    pub(super) fn end(
        &mut self,
        sums: &mut LevelSums,
        key: ThreadKey,
        window: &Window,
        end: (i64, u64),
    ) {
        self.know(end.1);
        if !self.stacks.functions.is_empty() || !self.stacks.system.is_empty() {
            self.step((sums, key), window, end, CallStep::Ends);
        }
    }
}
