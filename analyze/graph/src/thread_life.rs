//! A thread, and what of its time line follows from what it does.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Interrupt, Losses, WakeTells};
use tracebraid_kernel_model::Syscall;
use tracebraid_threads::{
    LeftAs, Past, PastStretch, ThreadCell, ThreadState, WaitReason, WakeEffect, Wakeup,
};

use crate::cause::Wake;
use crate::graph::{Actor, NO_OBJECT, State};
use crate::rings::RingLife;

/// What is known of a thread besides its time line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ThreadLife {
    /// Its place among the actors.
    pub(crate) actor: Option<u32>,
    pub(crate) cell: ThreadCell<Wake>,
    /// What is known of it and io_uring, if anything.
    pub(crate) ring: Option<Box<RingLife>>,
}

/// What ended a wait for that reason, as far as that is known: a segment or a request says more than the context of the
/// wake-up.
fn reason(reason: WaitReason, wake: Wake) -> WaitReason {
    match wake {
        Wake::Packet(_) => WaitReason::Network,
        Wake::Request(_) => WaitReason::BlockDevice,
        _ => reason,
    }
}

impl ThreadLife {
    /// An entry or exit of a call shows that it runs there; true if that is new.
    pub(crate) fn is_seen_running(
        line: &mut Actor,
        (cpu, time): (CpuKey, i64),
        stretch: &PastStretch<Wake>,
    ) -> bool {
        let is_new = !matches!(stretch.past, Past::Running);
        if is_new {
            line.is(State::Unknown);
            line.begins(time, State::Running(ThreadState::number(cpu.cpu)));
        }
        is_new
    }

    /// It leaves its CPU: if it waits, in that call, about that object.
    pub(crate) fn leaves(
        &mut self,
        line: &mut Actor,
        at: (CpuKey, i64),
        left: LeftAs,
        (call, object): (Syscall, u32),
        losses: &Losses,
    ) {
        let stretch = self.cell.leave(at, left, losses);
        if !matches!(stretch.past, Past::Running) {
            line.is(State::Unknown);
        }
        let state = match left {
            LeftAs::Runnable => State::Preempted(ThreadState::number(at.0.cpu)),
            LeftAs::Ended => State::Ended,
            LeftAs::Blocked | LeftAs::DiskSleep | LeftAs::Idle => State::Blocked {
                call,
                object,
                wake: Wake::Unknown,
                reason: WaitReason::Unknown,
                is_idle: left == LeftAs::Idle,
            },
        };
        line.begins(at.1, state);
    }

    /// A switch to the thread. `is_whole`: all CPUs are recorded.
    pub(crate) fn comes(&mut self, line: &mut Actor, at: (CpuKey, i64), losses: &Losses, is_whole: bool) {
        let place = ThreadState::number(at.0.cpu);
        match self.cell.come(at, losses, is_whole).past {
            Past::Runnable => line.is(State::Runnable(place)),
            Past::Unknown => line.is(State::Unknown),
            Past::Preempted | Past::Running | Past::Waited(_) => {}
        }
        line.begins(at.1, State::Running(place));
    }

    /// It is woken, as the first CPU recorded; it is to run on the second one.
    pub(crate) fn wakes(
        &mut self,
        line: &mut Actor,
        wakeup: Wakeup<Wake>,
        (cpu, target): (CpuKey, u16),
        tells: WakeTells,
        losses: &Losses,
    ) {
        let time = wakeup.time;
        match self.cell.wake(wakeup, (cpu, target), tells, losses) {
            WakeEffect::Ends(stretch) => {
                line.has_waited(stretch.past);
                line.begins(time, State::Runnable(target));
            }
            WakeEffect::WasAwake | WakeEffect::Moves => line.is(State::Runnable(target)),
            WakeEffect::Appears => line.begins(time, State::Runnable(target)),
            WakeEffect::Nothing => {}
        }
        if tells.is_gone && self.cell.state() == ThreadState::Unknown {
            line.is(State::Unknown);
        }
    }

    /// If it waits and nothing was lost, nothing has ended that.
    pub(crate) fn still_waits(&self, line: &mut Actor, losses: &Losses, cpu: CpuKey) {
        if let Some(State::Blocked {
            call,
            object,
            wake: Wake::Unknown,
            is_idle,
            ..
        }) = line.now()
            && self.cell.still_waits(losses, cpu)
        {
            line.is(State::Blocked {
                call,
                object,
                wake: Wake::StillWaiting,
                reason: WaitReason::StillWaiting,
                is_idle,
            });
        }
    }

    /// It was interrupted on its CPU, from then up to now.
    pub(crate) fn was_interrupted(
        &self,
        line: &mut Actor,
        (cpu, time): (CpuKey, i64),
        (begin, by): (i64, Interrupt),
        losses: &Losses,
    ) {
        let place = ThreadState::number(cpu.cpu);
        let running = State::Running(place);
        if self.cell.runs_on(cpu, losses) && line.now() == Some(running) {
            line.begins(begin, State::Interrupted(place, by));
            line.begins(time, running);
        }
    }

    /// The call that it is in and its argument, if that is known.
    pub(crate) fn call(&self) -> (Syscall, i64) {
        let open = self.cell.call();
        open.map_or((Syscall::OTHER, i64::from(NO_OBJECT)), |open| {
            (open.call, open.argument)
        })
    }
}

impl Actor {
    /// What seemed to be a wait has ended, and was that.
    fn has_waited(&mut self, past: Past<Wake>) {
        let Some(State::Blocked {
            call,
            object,
            is_idle,
            ..
        }) = self.now()
        else {
            return;
        };
        self.is(match past {
            Past::Waited(Some((why, wake))) => State::Blocked {
                call,
                object,
                wake,
                reason: reason(why, wake),
                is_idle,
            },
            _ => State::Unknown,
        });
    }
}
