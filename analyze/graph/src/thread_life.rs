//! State of a thread, and the changes of its time line that follow from it.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Interrupt, Losses, WakeTells};
use tracebraid_kernel_model::Syscall;
use tracebraid_threads::{
    LeftAs, Past, PastStretch, ThreadCell, ThreadState, WaitReason, WakeEffect, WakeSource, Wakeup,
};

use crate::cause::Wake;
use crate::graph::{Actor, NO_OBJECT, State};
use crate::rings::RingLife;

/// State of a thread besides its time line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ThreadLife {
    /// Index of the thread in the graph.
    pub(crate) actor: Option<u32>,
    pub(crate) cell: ThreadCell<Wake>,
    /// State of io_uring use, if any.
    pub(crate) ring: Option<Box<RingLife>>,
}

/// The reason of a wait with that cause: a segment or a request is more specific than the context
/// of the wake-up.
fn reason(reason: WaitReason, wake: Wake) -> WaitReason {
    match wake {
        Wake::Packet(_) => WaitReason::Network,
        Wake::Request(_) => WaitReason::BlockDevice,
        _ => reason,
    }
}

impl ThreadLife {
    /// The thread leaves its CPU; if it waits, in that call and for that object.
    pub(crate) fn leaves(
        &mut self,
        line: &mut impl TimeLine,
        at: (CpuKey, i64),
        left: LeftAs,
        of_call: (Syscall, u32),
        losses: &Losses,
    ) {
        let stretch = self.cell.leave(at, left, losses);
        line.leaves(at, left, of_call, &stretch);
    }

    /// A switch to the thread. `is_whole`: all CPUs are recorded.
    pub(crate) fn comes(
        &mut self,
        line: &mut impl TimeLine,
        at: (CpuKey, i64),
        losses: &Losses,
        is_whole: bool,
    ) {
        let stretch = self.cell.come(at, losses, is_whole);
        line.comes(at, &stretch);
    }

    /// The thread is woken on the first CPU and shall run on the second.
    pub(crate) fn wakes(
        &mut self,
        line: &mut impl TimeLine,
        wakeup: Wakeup<Wake>,
        (cpu, target): (CpuKey, u16),
        tells: WakeTells,
        losses: &Losses,
    ) {
        let effect = self.cell.wake(wakeup, (cpu, target), tells, losses);
        line.is_woken(wakeup.time, State::woken(wakeup.source, target), &effect);
        if tells.is_gone && self.cell.state() == ThreadState::Unknown {
            line.is(State::Unknown);
        }
    }

    /// Marks the current wait as still in progress at the end, unless events were lost.
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

    /// The thread was interrupted on its CPU, from `by.0` up to now.
    pub(crate) fn was_interrupted(
        &self,
        line: &mut impl TimeLine,
        at: (CpuKey, i64),
        by: (i64, Interrupt),
        losses: &Losses,
    ) {
        if self.cell.runs_on(at.0, losses.of_cpu(at.0)) {
            line.was_interrupted(at, by);
        }
    }

    /// The current call and its argument, if known.
    pub(crate) fn call(&self) -> (Syscall, i64) {
        let open = self.cell.call();
        open.map_or((Syscall::OTHER, i64::from(NO_OBJECT)), |open| {
            (open.call, open.argument)
        })
    }
}

/// A time line, or the part of one in a slice of the trace.
pub(crate) trait TimeLine {
    /// The current state, if known.
    fn now(&self) -> Option<State>;

    /// Replaces the current state.
    fn is(&mut self, state: State);

    /// Begins a state.
    fn begins(&mut self, time: i64, state: State);

    /// Ends an apparent wait with its actual state.
    fn has_waited(&mut self, past: Past<Wake>);

    /// A call shows that the thread runs on a CPU. Returns true if that was not known.
    #[inline]
    fn is_seen_running(&mut self, (cpu, time): (CpuKey, i64), stretch: &PastStretch<Wake>) -> bool {
        let is_new = !matches!(stretch.past, Past::Running);
        if is_new {
            self.is(State::Unknown);
            self.begins(time, State::Running(ThreadState::number(cpu.cpu)));
        }
        is_new
    }

    /// The thread leaves its CPU; if it waits, in that call and for that object.
    #[inline]
    fn leaves(
        &mut self,
        (cpu, time): (CpuKey, i64),
        left: LeftAs,
        of_call: (Syscall, u32),
        stretch: &PastStretch<Wake>,
    ) {
        if !matches!(stretch.past, Past::Running) {
            self.is(State::Unknown);
        }
        self.begins(time, State::left(cpu, left, of_call));
    }

    /// The thread comes to a CPU.
    #[inline]
    fn comes(&mut self, (cpu, time): (CpuKey, i64), stretch: &PastStretch<Wake>) {
        let place = ThreadState::number(cpu.cpu);
        match stretch.past {
            Past::Runnable => self.is(State::Runnable(place)),
            Past::Ready => self.is(State::Ready),
            Past::Unknown => self.is(State::Unknown),
            Past::Preempted | Past::Running | Past::Waited(_) => {}
        }
        self.begins(time, State::Running(place));
    }

    /// The thread is woken: `woken` is its state from now on.
    #[inline]
    fn is_woken(&mut self, time: i64, woken: State, effect: &WakeEffect<Wake>) {
        match *effect {
            WakeEffect::Ends(stretch) => {
                self.has_waited(stretch.past);
                self.begins(time, woken);
            }
            WakeEffect::WasAwake | WakeEffect::Moves => self.is(woken),
            WakeEffect::Appears => self.begins(time, woken),
            WakeEffect::Nothing => {}
        }
    }

    /// Ends the thread, whether or not its end was recorded.
    fn ends(&mut self, time: i64) {
        if self.now().is_some_and(|now| now != State::Ended) {
            self.begins(time, State::Ended);
        }
    }

    /// The thread runs on a CPU and was interrupted, from `begin` up to now.
    #[inline]
    fn was_interrupted(&mut self, (cpu, time): (CpuKey, i64), (begin, by): (i64, Interrupt)) {
        let place = ThreadState::number(cpu.cpu);
        let running = State::Running(place);
        if self.now() == Some(running) {
            self.begins(begin, State::Interrupted(place, by));
            self.begins(time, running);
        }
    }
}

impl State {
    /// The state of a thread that was woken and shall run on the CPU of number `target`.
    pub(crate) fn woken(source: WakeSource, target: u16) -> State {
        match source {
            WakeSource::User(_) => State::Ready,
            _ => State::Runnable(target),
        }
    }

    /// The actual state of an apparent wait that has ended.
    pub(crate) fn after_wait(self, past: Past<Wake>) -> Option<State> {
        let State::Blocked {
            call,
            object,
            is_idle,
            ..
        } = self
        else {
            return None;
        };
        Some(match past {
            Past::Waited(Some((why, wake))) => State::Blocked {
                call,
                object,
                wake,
                reason: reason(why, wake),
                is_idle,
            },
            _ => State::Unknown,
        })
    }

    /// The state of a thread that leaves its CPU; if it waits, in that call and for that object.
    pub(crate) fn left(cpu: CpuKey, left: LeftAs, (call, object): (Syscall, u32)) -> State {
        match left {
            LeftAs::Runnable => State::Preempted(ThreadState::number(cpu.cpu)),
            LeftAs::Ready => State::Ready,
            LeftAs::Ended => State::Ended,
            LeftAs::Blocked | LeftAs::DiskSleep | LeftAs::Idle => State::Blocked {
                call,
                object,
                wake: Wake::Unknown,
                reason: WaitReason::Unknown,
                is_idle: left == LeftAs::Idle,
            },
        }
    }
}
