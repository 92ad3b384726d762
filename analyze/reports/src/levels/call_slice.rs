//! The calls of a thread in a slice of time, without the calls that were open before it.
//!
//! A call whose entry is in the slice is counted there. What depends on earlier calls is kept, and
//! played on them when the slice is appended: exits of earlier calls, the time of calls from them,
//! and whether calls are within earlier calls of the same function. Its size depends on the depth
//! of the stack at the begin of the slice and on the number of functions.

use std::collections::BTreeMap;

use tracebraid_follow::{ThreadKey, Window};

use crate::levels::call_stack::{
    CallClock, CallMoment, CallStack, CallsOfThread, EndedCall, StackPlayer, UnendedCall,
};
use crate::levels::level_calls::{CallStep, Calls, ThreadCalls};
use crate::levels::level_sums::LevelSums;

/// A step on the calls that were open before the slice. Clocks count from the first step of the
/// thread in the slice.
enum EarlierStep {
    Exit(u64, CallMoment),
    /// The exit of the innermost call, whichever it is.
    Return(CallMoment),
    /// The thread ends.
    End(CallMoment),
    /// Earlier calls are unknown from now on.
    Forget,
    /// Calls from the slice that may have ended with an earlier one.
    Calls(Vec<UnendedCall>),
    Ended(EndedCalls),
}

/// Calls that have ended in the slice.
#[derive(Default)]
struct EndedCalls {
    /// Nanoseconds on a CPU in those that an earlier call made.
    inner: i64,
    /// Those not within another call of the function in the slice: nanoseconds on a CPU, and in all.
    outermost: BTreeMap<u64, (i64, u64)>,
}

/// Calls of one kind.
#[derive(Default)]
struct StackSlice {
    stack: CallStack,
    steps: Vec<EarlierStep>,
    ended: EndedCalls,
    /// No earlier call is open.
    is_alone: bool,
}

/// The calls of a thread in a slice.
#[derive(Default)]
pub(super) struct SliceCalls {
    /// Time of the first step.
    first: Option<i64>,
    clock: CallClock,
    stacks: Calls<StackSlice>,
    /// Number of losses in the slice before the last step.
    losses: u64,
}

impl StackSlice {
    /// True if composing has no effect.
    fn is_nothing(&self) -> bool {
        let ended = &self.ended;
        let has_ended = ended.inner != 0 || !ended.outermost.is_empty();
        self.steps.is_empty() && self.stack.is_empty() && !has_ended
    }

    fn exit(&mut self, sums: &mut CallsOfThread, window: &Window, key: u64, at: CallMoment) {
        if !self.stack.contains(key) {
            if self.is_alone {
                sums.strays += u64::from(window.contains(at.time));
            } else {
                self.keep(EarlierStep::Exit(key, at));
            }
            return;
        }
        while let Some(ended) = self.stack.pop(at.clock) {
            self.count(sums, window, &ended, (at.time, true));
            if ended.key == key {
                return;
            }
        }
    }

    fn count(
        &mut self,
        sums: &mut CallsOfThread,
        window: &Window,
        ended: &EndedCall,
        end: (i64, bool),
    ) {
        if self.stack.is_empty() {
            self.ended.inner += ended.active;
        }
        let whole = ended.count(sums, window, end);
        if !ended.is_outermost || whole == (0, 0) {
            return;
        }
        if self.is_alone {
            return sums.add_outermost(ended.key, whole);
        }
        let outermost = self.ended.outermost.entry(ended.key).or_default();
        outermost.0 += whole.0;
        outermost.1 += whole.1;
    }

    /// Ends all calls, which have no exit.
    fn end(&mut self, sums: &mut CallsOfThread, window: &Window, at: CallMoment) {
        while let Some(ended) = self.stack.pop(at.clock) {
            self.count(sums, window, &ended, (at.time, false));
        }
        self.be_alone(EarlierStep::End(at));
    }

    fn forget(&mut self) {
        self.stack.take();
        self.be_alone(EarlierStep::Forget);
    }

    /// Keeps a step after which no earlier call is open.
    fn be_alone(&mut self, step: EarlierStep) {
        if !self.is_alone {
            self.keep(step);
            self.is_alone = true;
        }
    }

    fn keep(&mut self, step: EarlierStep) {
        let ended = std::mem::take(&mut self.ended);
        if ended.inner != 0 || !ended.outermost.is_empty() {
            self.steps.push(EarlierStep::Ended(ended));
        }
        if !self.stack.is_empty() {
            self.steps.push(EarlierStep::Calls(self.stack.take()));
        }
        self.steps.push(step);
    }

    /// Plays the kept steps on the earlier calls. `zero` is the thread's clock at its first step in
    /// the slice.
    fn compose(mut self, player: &mut StackPlayer<'_>, zero: i64) {
        self.keep(EarlierStep::Ended(EndedCalls::default()));
        let later = |at: CallMoment| CallMoment {
            clock: at.clock + zero,
            ..at
        };
        for step in self.steps {
            match step {
                EarlierStep::Exit(key, at) => player.exit(key, later(at)),
                EarlierStep::Return(at) => {
                    if let Some(key) = player.stack.innermost() {
                        player.exit(key, later(at));
                    }
                }
                EarlierStep::End(at) => player.end(later(at)),
                EarlierStep::Forget => drop(player.stack.take()),
                EarlierStep::Calls(calls) => {
                    for call in calls {
                        player.stack.push(UnendedCall {
                            entered: call.entered + zero,
                            ..call
                        });
                    }
                }
                EarlierStep::Ended(ended) => {
                    player.stack.add_inner(ended.inner);
                    for (key, whole) in ended.outermost {
                        if !player.stack.contains(key) {
                            player.sums.add_outermost(key, whole);
                        }
                    }
                }
            }
        }
    }
}

impl SliceCalls {
    /// `losses`: those of the trace in the slice so far.
    pub(super) fn step(
        &mut self,
        sums: (&mut LevelSums, ThreadKey),
        window: &Window,
        (time, losses): (i64, u64),
        step: CallStep,
    ) {
        if self.losses != losses {
            self.clock = CallClock::default();
            self.losses = losses;
            self.stacks.functions.forget();
            self.stacks.system.forget();
        }
        self.first.get_or_insert(time);
        let at = self.clock.step(window, time, step);
        if step.only_moves() {
            return;
        }
        let sums = &mut sums.0.threads.get(sums.1).made;
        let Calls { functions, system } = &mut self.stacks;
        let call = |key: u64| UnendedCall {
            key,
            begin: at.time,
            entered: at.clock,
            inner: 0,
        };
        match step {
            CallStep::Runs | CallStep::Stops | CallStep::Probe(_) => {}
            CallStep::Enter(key) => functions.stack.push(call(key)),
            CallStep::Exit(key) => functions.exit(&mut sums.functions, window, key, at),
            CallStep::Call(key) => {
                system.forget();
                system.stack.push(call(key.0.into()));
            }
            CallStep::Return => match system.stack.innermost() {
                Some(key) => system.exit(&mut sums.system, window, key, at),
                // At most one call is open.
                None => system.be_alone(EarlierStep::Return(at)),
            },
            CallStep::Ends => {
                functions.end(&mut sums.functions, window, at);
                system.end(&mut sums.system, window, at);
            }
            CallStep::Made => {
                functions.forget();
                system.forget();
            }
        }
    }

    /// Appends the slice to the calls at its begin. `before` is the number of losses of the trace
    /// before the slice.
    pub(super) fn compose(
        self,
        calls: &mut ThreadCalls,
        sums: (&mut LevelSums, ThreadKey),
        window: &Window,
        before: u64,
    ) {
        let Some(first) = self.first else { return };
        calls.know(before);
        // Until its first step in the slice, the thread did what it did at the end of the last.
        calls.clock.stops(window, first);
        let zero = calls.clock.ns;
        calls.clock = CallClock {
            ns: self.clock.ns + zero,
            ..self.clock
        };
        calls.losses = before + self.losses;
        let Calls { functions, system } = self.stacks;
        if functions.is_nothing() && system.is_nothing() {
            return;
        }
        let sums = &mut sums.0.threads.get(sums.1).made;
        let mut player = StackPlayer {
            stack: &mut calls.stacks.functions,
            sums: &mut sums.functions,
            window,
        };
        functions.compose(&mut player, zero);
        let mut player = StackPlayer {
            stack: &mut calls.stacks.system,
            sums: &mut sums.system,
            window,
        };
        system.compose(&mut player, zero);
    }
}
