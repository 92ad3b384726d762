//! What a thread does, and what of its time line follows from that.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::{CpuKey, Exited, Losses, OpenCall, Sight, WakeTells};
use tracebraid_kernel_model::Syscall;

use crate::cause::{Interrupt, Wake};
use crate::graph::{Actor, NO_OBJECT, State};
use crate::rings::RingLife;
use crate::step::{Begun, Left};

/// What is known of a thread besides its time line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Life {
    /// Its place among the actors.
    pub(crate) actor: Option<u32>,
    /// Losses up to the beginning of its stretch.
    losses: u64,
    /// Wake-ups while it runs: it may be about to leave.
    early: [Option<Early>; 2],
    /// It was woken before it was seen leaving: `is_ready` of that wake-up.
    woken: Option<bool>,
    /// Only used where a CPU was not recorded: the thread may have run there while it seems to wait.
    sight: Sight,
    /// When a call of it began or ended last.
    pub(crate) called: i64,
    /// It has made a call: it is no thread of the kernel.
    pub(crate) has_called: bool,
    /// It may be in the kernel though it is in no call: see [`crate::step::Parked::lingers`].
    pub(crate) lingers: bool,
    pub(crate) is_dying: bool,
    pub(crate) calls: OpenCall<Begun, Exited>,
    /// What is known of it and io_uring, if anything.
    pub(crate) ring: Option<Box<RingLife>>,
}

/// A wake-up of a thread that runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Early {
    time: i64,
    is_ready: bool,
}

/// No CPU that is known.
pub(crate) const NO_CPU: u16 = u16::MAX;

/// A CPU's number as stretches keep it.
pub(crate) fn number(cpu: u32) -> u16 {
    u16::try_from(cpu).unwrap_or(NO_CPU)
}

impl Life {
    /// What it did up to now ends: it was that, unless events were lost.
    fn ends(&mut self, line: &mut Actor, losses: u64) {
        if losses != self.losses {
            line.is(State::Unknown);
        }
    }

    fn begins(&mut self, line: &mut Actor, time: i64, state: State, losses: u64) {
        line.begins(time, state);
        self.losses = losses;
        (self.early, self.woken) = ([None; 2], None);
        self.sight = Sight::default();
    }

    /// It leaves its CPU: if it waits, in that call, about that object.
    pub(crate) fn leaves(
        &mut self,
        line: &mut Actor,
        (cpu, time): (CpuKey, i64),
        left: Left,
        (call, object): (Syscall, u32),
        losses: &Losses,
    ) {
        if line.now() != Some(State::Running(number(cpu.cpu))) {
            line.is(State::Unknown);
        }
        self.ends(line, losses.of_cpu(cpu));
        let state = match left {
            Left::Runnable => State::Preempted(number(cpu.cpu)),
            Left::Ended => State::Ended,
            Left::Blocked | Left::Idle => State::Blocked {
                call,
                object,
                wake: Wake::Unknown,
                is_idle: left == Left::Idle,
            },
        };
        // Wake-ups before its call were of a wait that never was. Who wakes is told first; then that it is ready.
        let is_of_it = |early: &Early| early.time > self.called;
        let [ready, waking] = self.early.map(|early| early.filter(is_of_it));
        let woken = waking.or(ready).map(|early| early.is_ready);
        self.begins(line, time, state, losses.of_trace(cpu));
        if let State::Preempted(_) = state {
            self.sight = Sight::preempted_on(cpu.cpu);
        }
        self.woken = woken.filter(|_| matches!(left, Left::Blocked | Left::Idle));
    }

    /// A switch to the thread. `is_whole`: all CPUs are recorded.
    pub(crate) fn comes(
        &mut self,
        line: &mut Actor,
        (cpu, time): (CpuKey, i64),
        losses: &Losses,
        is_whole: bool,
    ) {
        let place = number(cpu.cpu);
        match line.now() {
            Some(State::Runnable(_) | State::Preempted(_)) if !is_whole && self.sight.comes_lost(cpu.cpu) => {
                line.is(State::Unknown);
            }
            Some(State::Blocked { .. }) if !is_whole => line.is(State::Unknown),
            Some(State::Runnable(_)) => line.is(State::Runnable(place)),
            // It was woken on its way out, so it did not wait.
            Some(State::Blocked { .. }) if self.woken.is_some() => line.is(State::Runnable(place)),
            Some(State::Blocked { .. } | State::Preempted(_)) | None => {}
            Some(_) => line.is(State::Unknown),
        }
        self.ends(line, losses.of_trace(cpu));
        self.begins(line, time, State::Running(place), losses.of_cpu(cpu));
    }

    /// It is woken, which was told on the first CPU; it is to run on the second one.
    pub(crate) fn wakes(
        &mut self,
        line: &mut Actor,
        (at, time): (CpuKey, i64),
        (wake, is_ready, cpu): (Wake, bool, u16),
        tells: WakeTells,
        losses: &Losses,
    ) {
        let lost = losses.of_trace(at);
        let waited = matches!(line.now(), Some(State::Runnable(_) | State::Preempted(_)));
        match (line.now(), self.woken) {
            // It was woken on its way out, and is ready only now: it did not wait.
            (Some(State::Blocked { .. }), Some(false)) if is_ready => {
                line.is(State::Runnable(cpu));
                self.woken = None;
            }
            (
                Some(State::Blocked {
                    call,
                    object,
                    is_idle,
                    ..
                }),
                _,
            ) => {
                line.is(match tells.slept {
                    true => State::Blocked {
                        call,
                        object,
                        wake,
                        is_idle,
                    },
                    false => State::Unknown,
                });
                self.ends(line, lost);
                self.begins(line, time, State::Runnable(cpu), lost);
            }
            (Some(State::Running(_) | State::Interrupted(..)), _) => {
                self.early[usize::from(!is_ready)] = Some(Early { time, is_ready });
            }
            (Some(State::Runnable(_)), _) => line.is(State::Runnable(cpu)),
            (None, _) => self.begins(line, time, State::Runnable(cpu), lost),
            (Some(_), _) => {}
        }
        let waits = matches!(
            line.now(),
            Some(State::Runnable(_) | State::Preempted(_) | State::Blocked { .. })
        );
        if waits {
            self.sight.wakes(tells, waited);
            if tells.is_gone {
                line.is(State::Unknown);
            }
        }
    }

    /// A migration. `is_gone`: the new CPU was not recorded.
    pub(crate) fn moves(&mut self, line: &Actor, (from, to): (u32, u32), is_gone: bool) {
        if let Some(State::Runnable(_) | State::Preempted(_)) = line.now() {
            self.sight.moves(from, to, is_gone);
        }
    }

    /// If it waits and nothing was lost, nothing has ended that.
    pub(crate) fn still_waits(&self, line: &mut Actor, losses: u64) {
        let Some(State::Blocked {
            call,
            object,
            wake: Wake::Unknown,
            is_idle,
        }) = line.now()
        else {
            return;
        };
        if self.woken.is_none() && losses == self.losses {
            line.is(State::Blocked {
                call,
                object,
                wake: Wake::StillWaiting,
                is_idle,
            });
        }
    }

    /// It was interrupted on its CPU, from then up to now.
    pub(crate) fn was_interrupted(
        &mut self,
        line: &mut Actor,
        (cpu, time): (CpuKey, i64),
        (begin, by): (i64, Interrupt),
        losses: &Losses,
    ) {
        let place = number(cpu.cpu);
        let running = State::Running(place);
        if line.now() != Some(running) || losses.of_cpu(cpu) != self.losses {
            return;
        }
        line.begins(begin, State::Interrupted(place, by));
        line.begins(time, running);
    }

    /// The call that it is in and its argument, if that is known.
    pub(crate) fn call(&self) -> (Syscall, i64) {
        let open = self.calls.parked;
        open.map_or((Syscall::OTHER, i64::from(NO_OBJECT)), |open| {
            (open.call, open.argument)
        })
    }

    /// True if it is known to run its program, where it can wake nobody.
    pub(crate) fn is_in_program(&self) -> bool {
        self.has_called && self.calls.parked.is_none() && !self.lingers && !self.is_dying
    }
}
