//! The state of a thread and its wait reason: one cell per thread, which changes with events in
//! time order.
//!
//! A change of state ends a stretch of time and returns it; the analysis decides what to do with it
//! (sums by call, a time line). The state of a thread depends only on its cell, on the [`Losses`]
//! of its machine, and on the facts of the wake-up ([`Wakeup`]), so threads can be followed
//! independently.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CallItem, CpuKey, Exited, Losses, OpenCall, Sight, WakeTells};

use crate::call_class::CallClass;
use crate::cpu_context::WakeSource;
use crate::early_wakes::EarlyWakes;
use crate::task_events::LeftAs;
use crate::thread_acts::{BegunCall, ParkedThread};
use crate::wait_reason::WaitReason;
use crate::waker_facts::WakingThread;

/// State of a thread, with the number of the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadState {
    /// No event of the thread has been recorded.
    #[default]
    Unseen,
    /// Unknown.
    Unknown,
    /// Running on this CPU.
    Running(u16),
    /// Preempted on this CPU, and runnable.
    Preempted(u16),
    /// Woken, and runnable on this CPU.
    Runnable(u16),
    /// A user-level thread that could run, without an LWP.
    Ready,
    /// Waiting.
    Blocked,
    /// Ended.
    Ended,
}

impl ThreadState {
    /// CPU number for an unknown CPU.
    pub const NO_CPU: u16 = u16::MAX;

    /// Number of a CPU in states; [`ThreadState::NO_CPU`] for numbers beyond those of any Linux
    /// machine.
    #[inline]
    pub fn number(cpu: u32) -> u16 {
        u16::try_from(cpu).unwrap_or(ThreadState::NO_CPU)
    }

    /// True if the thread waits for a CPU.
    #[inline]
    pub fn lacks_cpu(self) -> bool {
        matches!(self, ThreadState::Preempted(_) | ThreadState::Runnable(_))
    }
}

/// A wake-up. `C` is the cause as the analysis represents it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Wakeup<C> {
    /// Time of the wake-up, in nanoseconds from the origin.
    pub time: i64,
    /// Context of the wake-up.
    pub source: WakeSource,
    /// The thread in whose context the wake-up happens, if it is a thread.
    pub waking: Option<WakingThread>,
    /// The thread can run from now on; its waker may have been recorded earlier.
    pub is_ready: bool,
    /// All CPUs are recorded.
    pub is_whole: bool,
    /// Cause of the wake-up.
    pub cause: C,
}

impl<C> Wakeup<C> {
    /// State after the wake-up, of a thread that shall run on the CPU of number `target`.
    pub fn makes(&self, target: u16) -> ThreadState {
        match self.source {
            WakeSource::User(_) => ThreadState::Ready,
            _ => ThreadState::Runnable(target),
        }
    }

    /// The waker is a kernel thread, or looks like one.
    pub(crate) fn is_by_kernel_thread(&self) -> bool {
        self.source == WakeSource::Thread
            && self.waking.is_some_and(|waking| !waking.is_in_program())
    }
}

/// Activity in a past stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Past<C> {
    /// Unknown.
    Unknown,
    /// The thread ran.
    Running,
    /// The thread was preempted.
    Preempted,
    /// The thread was woken, perhaps while it was still about to wait, and had no CPU.
    Runnable,
    /// The user-level thread could run, and had no LWP.
    Ready,
    /// The thread waited; with the reason and cause, if the end of the wait was recorded.
    Waited(Option<(WaitReason, C)>),
}

impl<C> Past<C> {
    /// The reason to which the time of the stretch is charged.
    #[inline]
    pub fn reason(&self) -> WaitReason {
        match self {
            Past::Running => WaitReason::Running,
            Past::Preempted => WaitReason::Preempted,
            Past::Runnable => WaitReason::Runnable,
            Past::Ready => WaitReason::Lwp,
            Past::Waited(Some((reason, _))) => *reason,
            Past::Unknown | Past::Waited(None) => WaitReason::Unknown,
        }
    }
}

/// A stretch of time that has ended.
#[derive(Clone, Copy, Debug)]
pub struct PastStretch<C> {
    /// Begin time, in nanoseconds from the origin.
    pub begin: i64,
    /// Activity in the stretch.
    pub past: Past<C>,
}

/// Effect of a wake-up on a thread.
#[derive(Clone, Copy, Debug)]
pub enum WakeEffect<C> {
    /// Ends a wait: the thread is runnable.
    Ends(PastStretch<C>),
    /// The thread is runnable: it was woken while it was about to wait, so it did not wait.
    WasAwake,
    /// The thread is runnable, and is recorded for the first time.
    Appears,
    /// The thread was already runnable, and may move to another CPU.
    Moves,
    /// No effect, or not yet known.
    Nothing,
}

/// An ended call: the call, its exit, and the CPU of the exit.
pub type EndedCallOf = (BegunCall, Exited, CpuKey);

/// Effect of a thread's stretch on a CPU on its open call.
#[derive(Clone, Copy, Debug)]
pub enum Parking {
    /// The thread is in this call.
    InCall(BegunCall),
    /// The call that seemed open had ended on another CPU, as an earlier record shows.
    Ended(EndedCallOf),
    /// The thread is in no call, or in a later one.
    Nothing,
}

/// State of a thread, as far as it is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadCell<C> {
    pub(crate) state: ThreadState,
    /// Beginning of the state, in nanoseconds from the origin.
    pub(crate) since: i64,
    /// Loss count at the begin time; a higher count makes the state unknown.
    pub(crate) losses: u64,
    pub(crate) early: EarlyWakes<C>,
    /// The wake-up that was recorded before the thread was seen leaving its CPU.
    pub(crate) woken: Option<Wakeup<C>>,
    /// Used only if some CPU was not recorded: the thread may have run on that CPU while it seems
    /// to wait.
    pub(crate) sight: Sight,
    /// Time at which a call last began or ended, in nanoseconds from the origin.
    pub(crate) called: i64,
    pub(crate) in_disk_sleep: bool,
    pub(crate) is_dying: bool,
    /// The thread has issued a block request since it last waited.
    pub(crate) requested: bool,
    /// The thread has made a call, so it is not a kernel thread.
    pub(crate) has_called: bool,
    pub(crate) lingers: bool,
    /// Reason of the last wait.
    pub(crate) waited_for: WaitReason,
    pub(crate) calls: OpenCall<BegunCall, Exited>,
}

impl<C> Default for ThreadCell<C> {
    fn default() -> Self {
        ThreadCell {
            state: ThreadState::Unseen,
            since: 0,
            losses: 0,
            early: EarlyWakes::default(),
            woken: None,
            sight: Sight::default(),
            called: 0,
            in_disk_sleep: false,
            is_dying: false,
            requested: false,
            has_called: false,
            lingers: false,
            waited_for: WaitReason::Unknown,
            calls: OpenCall::default(),
        }
    }
}

impl<C: Copy> ThreadCell<C> {
    /// A thread that was just created; its first wake-up follows.
    pub fn made((cpu, time): (CpuKey, i64), tid: i32, losses: &Losses) -> Self {
        let mut cell = ThreadCell::default();
        cell.begin(
            time,
            ThreadState::Runnable(ThreadState::NO_CPU),
            losses.of_trace(cpu),
        );
        cell.sight.wakes(WakeTells::made(cpu), false);
        cell.calls.play(cpu, time, &CallItem::Made(tid));
        cell
    }

    /// State of the thread.
    #[inline]
    pub fn state(&self) -> ThreadState {
        self.state
    }

    /// Begin time of the state, in nanoseconds from the origin.
    #[inline]
    pub fn since(&self) -> i64 {
        self.since
    }

    /// The open call, as known to CPUs other than the one where the thread runs.
    #[inline]
    pub fn call(&self) -> Option<BegunCall> {
        self.calls.parked
    }

    /// Class of the open call; a dying thread counts as [`CallClass::Exit`].
    #[inline]
    pub fn class(&self) -> Option<CallClass> {
        match self.is_dying {
            true => Some(CallClass::Exit),
            false => self.calls.parked.map(|open| open.class),
        }
    }

    /// True if the thread runs on `cpu` and no events were lost since it was switched in. `losses`
    /// is the CPU's current count ([`Losses::of_cpu`](tracebraid_follow::Losses::of_cpu)).
    #[inline]
    pub fn runs_on(&self, cpu: CpuKey, losses: u64) -> bool {
        self.state == ThreadState::Running(ThreadState::number(cpu.cpu)) && self.losses == losses
    }

    /// True if the thread waits, and neither a wake-up nor a loss of events has ended the wait.
    pub fn still_waits(&self, losses: &Losses, cpu: CpuKey) -> bool {
        self.state == ThreadState::Blocked
            && self.woken.is_none()
            && self.losses == losses.of_trace(cpu)
    }

    /// The thread as a waker, for a CPU that does not know the thread's open call.
    pub fn waking(&self, requested: bool) -> WakingThread {
        WakingThread {
            call: self.class(),
            has_called: self.has_called,
            lingers: self.lingers,
            is_local: false,
            is_at_disk: requested || self.requested || self.waited_for == WaitReason::BlockDevice,
        }
    }

    fn end(&mut self, time: i64, past: Past<C>, losses: u64) -> PastStretch<C> {
        let past = match losses == self.losses {
            true => past,
            false => Past::Unknown,
        };
        let begin = std::mem::replace(&mut self.since, time);
        PastStretch { begin, past }
    }

    #[inline]
    pub(crate) fn begin(&mut self, time: i64, state: ThreadState, losses: u64) {
        (self.state, self.since, self.losses) = (state, time, losses);
        (self.early, self.woken) = (EarlyWakes::default(), None);
        self.sight = Sight::default();
    }

    fn runs(&self, cpu: CpuKey) -> Past<C> {
        match self.state == ThreadState::Running(ThreadState::number(cpu.cpu)) {
            true => Past::Running,
            false => Past::Unknown,
        }
    }

    /// An entry or exit of a call shows that the thread runs on this CPU.
    fn is_seen_running(&mut self, (cpu, time): (CpuKey, i64), losses: &Losses) -> PastStretch<C> {
        let stretch = self.end(time, self.runs(cpu), losses.of_cpu(cpu));
        let state = ThreadState::Running(ThreadState::number(cpu.cpu));
        self.begin(time, state, losses.of_cpu(cpu));
        (self.called, self.has_called) = (time, true);
        stretch
    }

    /// Applies the entry of a call by a thread that was in no call when it was switched in.
    #[inline]
    pub fn enter(
        &mut self,
        (cpu, time): (CpuKey, i64),
        tid: i32,
        losses: &Losses,
    ) -> PastStretch<C> {
        self.calls.play(cpu, time, &CallItem::Enters(tid));
        (self.requested, self.is_dying) = (false, false);
        self.is_seen_running((cpu, time), losses)
    }

    /// Ends the call that was open when the thread was switched in.
    #[inline]
    pub fn arrive(
        &mut self,
        cpu: CpuKey,
        tid: i32,
        exited: Exited,
        losses: &Losses,
    ) -> (PastStretch<C>, Option<EndedCallOf>) {
        let stretch = self.is_seen_running((cpu, exited.time), losses);
        let item = CallItem::Arrives(tid, exited);
        (stretch, self.calls.play(cpu, exited.time, &item))
    }

    /// Applies the activity of the thread since it was switched in.
    #[inline]
    pub fn park(&mut self, (cpu, time): (CpuKey, i64), parked: &ParkedThread) -> Parking {
        if parked.called > i64::MIN {
            (self.called, self.has_called) = (parked.called, true);
        }
        self.lingers = parked.lingers.unwrap_or(self.lingers);
        if parked.has_entered {
            (self.requested, self.is_dying) = (false, false);
        }
        self.requested |= parked.requested;
        self.is_dying |= parked.is_dying;
        let Some(open) = parked.open else {
            return Parking::Nothing;
        };
        match self
            .calls
            .play(cpu, time, &CallItem::Leaves(parked.tid, open))
        {
            Some(ended) => Parking::Ended(ended),
            None if self
                .calls
                .parked
                .is_some_and(|parked| parked.time == open.time) =>
            {
                Parking::InCall(open)
            }
            None => Parking::Nothing,
        }
    }

    /// Switches the thread out.
    pub fn leave(
        &mut self,
        (cpu, time): (CpuKey, i64),
        left: LeftAs,
        losses: &Losses,
    ) -> PastStretch<C> {
        let stretch = self.end(time, self.runs(cpu), losses.of_cpu(cpu));
        let number = ThreadState::number(cpu.cpu);
        let state = match left {
            LeftAs::Runnable => ThreadState::Preempted(number),
            LeftAs::Ready => ThreadState::Ready,
            LeftAs::Ended => ThreadState::Ended,
            LeftAs::Blocked | LeftAs::DiskSleep | LeftAs::Idle => ThreadState::Blocked,
        };
        self.in_disk_sleep = left == LeftAs::DiskSleep;
        let woken = self.early.after(self.called);
        self.begin(time, state, losses.of_trace(cpu));
        match state {
            ThreadState::Preempted(_) => self.sight = Sight::preempted_on(cpu.cpu),
            ThreadState::Blocked => self.woken = woken,
            _ => {}
        }
        stretch
    }

    /// Switches the thread in. `is_whole`: all CPUs are recorded.
    pub fn come(
        &mut self,
        (cpu, time): (CpuKey, i64),
        losses: &Losses,
        is_whole: bool,
    ) -> PastStretch<C> {
        let past = match self.state {
            ThreadState::Preempted(_) | ThreadState::Runnable(_)
                if !is_whole && self.sight.comes_lost(cpu.cpu) =>
            {
                Past::Unknown
            }
            ThreadState::Preempted(_) => Past::Preempted,
            ThreadState::Runnable(_) => Past::Runnable,
            ThreadState::Ready => Past::Ready,
            ThreadState::Blocked => self.comes_from_wait(is_whole),
            _ => Past::Unknown,
        };
        let stretch = self.end(time, past, losses.of_trace(cpu));
        let state = ThreadState::Running(ThreadState::number(cpu.cpu));
        self.begin(time, state, losses.of_cpu(cpu));
        stretch
    }

    fn comes_from_wait(&mut self, is_whole: bool) -> Past<C> {
        match self.woken.filter(|_| is_whole) {
            // The thread was woken while it was about to wait, so it did not wait.
            Some(woken) => {
                self.has_waited(self.reason(&woken));
                match woken.source {
                    WakeSource::User(_) => Past::Ready,
                    _ => Past::Runnable,
                }
            }
            None => {
                self.has_waited(WaitReason::Unknown);
                match is_whole {
                    true => Past::Waited(None),
                    false => Past::Unknown,
                }
            }
        }
    }

    fn has_waited(&mut self, reason: WaitReason) {
        self.waited_for = reason;
        self.requested = false;
    }

    /// Reason of the wait if this wake-up ends it.
    fn reason(&self, wakeup: &Wakeup<C>) -> WaitReason {
        match WaitReason::of_wake(self.class(), wakeup.source, wakeup.waking) {
            WaitReason::Kernel | WaitReason::Unknown if self.in_disk_sleep && self.requested => {
                WaitReason::BlockDevice
            }
            // The cause of a kernel thread's wait may be on an unrecorded CPU.
            WaitReason::Kernel if !wakeup.is_whole && wakeup.source == WakeSource::Thread => {
                WaitReason::Unknown
            }
            reason => reason,
        }
    }

    /// The reason to which a wait is charged. Without a call, nothing shows what a thread waits for
    /// when another thread wakes it: a kernel thread waits for work, whatever else its waker does,
    /// and if no calls were recorded, user threads look like kernel threads.
    fn counts_as(&self, reason: WaitReason, wakeup: &Wakeup<C>) -> WaitReason {
        match self.class() {
            None if wakeup.is_by_kernel_thread() && !(self.in_disk_sleep && self.requested) => {
                WaitReason::Thread
            }
            _ => reason,
        }
    }

    /// True if a wake-up only shows that the thread can run: the thread was already awake, or was
    /// woken while it was about to wait.
    #[inline]
    pub fn only_gets_ready(&self, is_ready: bool) -> bool {
        match (self.state, self.woken) {
            (ThreadState::Blocked, Some(woken)) => is_ready && !woken.is_ready,
            (ThreadState::Blocked | ThreadState::Running(_), _) => false,
            _ => true,
        }
    }

    /// Applies a wake-up recorded on `cpu`, which lets the thread run on the CPU of number
    /// `target`.
    pub fn wake(
        &mut self,
        wakeup: Wakeup<C>,
        (cpu, target): (CpuKey, u16),
        tells: WakeTells,
        losses: &Losses,
    ) -> WakeEffect<C> {
        let waited = self.state.lacks_cpu();
        let effect = self.is_woken(wakeup, (cpu, target), tells.slept, losses);
        if self.state.lacks_cpu() || self.state == ThreadState::Blocked {
            self.sight.wakes(tells, waited);
            if tells.is_gone {
                self.state = ThreadState::Unknown;
            }
        }
        effect
    }

    #[inline]
    fn is_woken(
        &mut self,
        wakeup: Wakeup<C>,
        (cpu, target): (CpuKey, u16),
        slept: bool,
        losses: &Losses,
    ) -> WakeEffect<C> {
        let lost = losses.of_trace(cpu);
        let runnable = wakeup.makes(target);
        match (self.state, self.woken) {
            (ThreadState::Blocked, Some(woken)) if wakeup.is_ready && !woken.is_ready => {
                self.has_waited(self.reason(&woken));
                (self.woken, self.state) = (None, runnable);
                WakeEffect::WasAwake
            }
            (ThreadState::Blocked, _) => {
                let reason = self.reason(&wakeup);
                let past = match slept {
                    true => Past::Waited(Some((self.counts_as(reason, &wakeup), wakeup.cause))),
                    false => Past::Unknown,
                };
                let stretch = self.end(wakeup.time, past, lost);
                self.has_waited(match stretch.past {
                    Past::Waited(_) => reason,
                    _ => WaitReason::Unknown,
                });
                self.begin(wakeup.time, runnable, lost);
                WakeEffect::Ends(stretch)
            }
            (ThreadState::Running(_), _) => {
                self.early.add(wakeup);
                WakeEffect::Nothing
            }
            (ThreadState::Runnable(_), _) => {
                self.state = runnable;
                WakeEffect::Moves
            }
            (ThreadState::Unseen, _) => {
                self.begin(wakeup.time, runnable, lost);
                WakeEffect::Appears
            }
            (
                ThreadState::Unknown
                | ThreadState::Preempted(_)
                | ThreadState::Ready
                | ThreadState::Ended,
                _,
            ) => WakeEffect::Nothing,
        }
    }

    /// Applies a migration between two CPUs. `is_gone`: the new CPU was not recorded.
    pub fn migrate(&mut self, (from, to): (u32, u32), is_gone: bool) {
        if self.state.lacks_cpu() {
            self.sight.moves(from, to, is_gone);
        }
    }

    /// Marks the thread as dying, by a call or by a signal: its open call will not end.
    pub fn die(&mut self) {
        self.is_dying = true;
        self.calls.parked = None;
    }

    /// Ends a user-level thread that is not running; returns its last stretch. `None` if it runs:
    /// it then ends when it leaves its LWP. Requires that all CPUs are recorded.
    pub fn end_elsewhere(
        &mut self,
        (cpu, time): (CpuKey, i64),
        losses: &Losses,
    ) -> Option<PastStretch<C>> {
        if matches!(self.state, ThreadState::Running(_)) {
            return None;
        }
        let stretch = self.come((cpu, time), losses, true);
        self.begin(time, ThreadState::Ended, losses.of_trace(cpu));
        Some(stretch)
    }

    /// Marks the state as unknown.
    pub fn lose_sight(&mut self) {
        self.state = ThreadState::Unknown;
    }

    /// Ends the recording of a CPU: the state of the thread that runs there is unknown from now on.
    pub fn end_recording(
        &mut self,
        (cpu, time): (CpuKey, i64),
        losses: &Losses,
    ) -> Option<PastStretch<C>> {
        if !matches!(self.runs(cpu), Past::Running) {
            return None;
        }
        let stretch = self.end(time, Past::Running, losses.of_cpu(cpu));
        self.begin(time, ThreadState::Unknown, losses.of_cpu(cpu));
        Some(stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracebraid_follow::Interrupt;
    use tracebraid_kernel_model::{Syscall, UserWake};

    use crate::device_class::DeviceClass;

    const CPU: CpuKey = CpuKey { trace: 0, cpu: 1 };
    const TID: i32 = 7;

    /// A thread with a sequence of steps, and the reasons of its stretches.
    struct Script {
        cell: ThreadCell<u8>,
        losses: Losses,
        past: Vec<(i64, WaitReason)>,
    }

    impl Script {
        /// The thread comes to its CPU at time 0.
        fn new() -> Script {
            let mut script = Script {
                cell: ThreadCell::default(),
                losses: Losses::default(),
                past: Vec::new(),
            };
            script.cell.come((CPU, 0), &script.losses, true);
            script
        }

        fn add(&mut self, stretch: PastStretch<u8>) {
            self.past.push((stretch.begin, stretch.past.reason()));
        }

        fn come(&mut self, time: i64) {
            let stretch = self.cell.come((CPU, time), &self.losses, true);
            self.add(stretch);
        }

        fn leave(&mut self, time: i64, left: LeftAs) {
            let stretch = self.cell.leave((CPU, time), left, &self.losses);
            self.add(stretch);
        }

        fn wake(&mut self, time: i64, source: WakeSource, is_ready: bool) -> WakeEffect<u8> {
            let wakeup = Wakeup {
                time,
                source,
                waking: None,
                is_ready,
                is_whole: true,
                cause: 9,
            };
            let effect = self
                .cell
                .wake(wakeup, (CPU, 1), WakeTells::ALL, &self.losses);
            if let WakeEffect::Ends(stretch) = effect {
                self.add(stretch);
            }
            effect
        }
    }

    #[test]
    fn stretches_follow_each_other() {
        use WaitReason::*;
        let mut script = Script::new();
        script.leave(10, LeftAs::Runnable);
        script.come(20);
        script.leave(30, LeftAs::Blocked);
        let disk = WakeSource::Interrupt(Interrupt::Irq(3), DeviceClass::BlockDevice);
        let effect = script.wake(40, disk, false);
        assert!(
            matches!(effect, WakeEffect::Ends(stretch) if stretch.past == Past::Waited(Some((BlockDevice, 9))))
        );
        assert!(matches!(script.wake(41, disk, true), WakeEffect::Moves));
        script.come(50);
        script.leave(60, LeftAs::Blocked);
        script.come(70);
        script.leave(80, LeftAs::Ended);
        let expected = [
            (0, Running),
            (10, Preempted),
            (20, Running),
            (30, BlockDevice),
            (40, Runnable),
            (50, Running),
            (60, Unknown),
            (70, Running),
        ];
        assert_eq!(script.past, expected);
        assert_eq!(script.cell.state(), ThreadState::Ended);
        assert!(matches!(script.wake(90, disk, true), WakeEffect::Nothing));
    }

    /// A user-level thread waits for an LWP after it yields and after it is woken; its LWP may be
    /// preempted, and wait.
    #[test]
    fn user_level_threads_wait_for_lwps() {
        use WaitReason::*;
        let mut script = Script::new();
        script.leave(10, LeftAs::Ready);
        script.come(20);
        script.leave(30, LeftAs::Blocked);
        script.wake(40, WakeSource::User(UserWake::Network), true);
        script.come(50);
        script.leave(60, LeftAs::Runnable);
        script.come(70);
        script.leave(80, LeftAs::Blocked);
        script.wake(90, WakeSource::Timer, true);
        script.come(100);
        let expected = [
            (0, Running),
            (10, Lwp),
            (20, Running),
            (30, Network),
            (40, Lwp),
            (50, Running),
            (60, Preempted),
            (70, Running),
            (80, Timer),
            (90, Runnable),
        ];
        assert_eq!(script.past, expected);
        let made = ThreadCell::<u8>::made((CPU, 5), TID, &script.losses);
        script.cell = made;
        let effect = script.wake(5, WakeSource::User(UserWake::Thread), true);
        assert!(matches!(effect, WakeEffect::Moves));
        script.come(15);
        assert_eq!(script.past.last(), Some(&(5, Lwp)));
    }

    /// The thread did not wait, but counts as working for a disk as if it had: threads it wakes
    /// inherit that.
    #[test]
    fn threads_may_be_woken_on_their_way_out() {
        let mut script = Script::new();
        script.wake(10, WakeSource::BlockDevice, false);
        script.leave(20, LeftAs::DiskSleep);
        assert!(matches!(
            script.wake(30, WakeSource::Timer, true),
            WakeEffect::WasAwake
        ));
        script.come(40);
        assert_eq!(
            script.past,
            [(0, WaitReason::Running), (20, WaitReason::Runnable)]
        );
        assert!(script.cell.waking(false).is_at_disk);
        // Wake-ups before the last call belong to a wait that never happened.
        script.wake(50, WakeSource::Timer, false);
        let exited = Exited {
            call: Some(Syscall(3)),
            result: 0,
            time: 60,
        };
        script.cell.arrive(CPU, TID, exited, &script.losses);
        script.leave(70, LeftAs::Blocked);
        assert!(script.cell.still_waits(&script.losses, CPU));
        assert!(matches!(
            script.wake(80, WakeSource::Timer, true),
            WakeEffect::Ends(_)
        ));
    }

    /// A worker that another worker wakes was idle; a thread that it wakes in turn may have waited
    /// for the disk.
    #[test]
    fn without_a_call_a_thread_waits_for_a_thread() {
        let worker = WakingThread {
            call: None,
            has_called: false,
            lingers: false,
            is_local: false,
            is_at_disk: true,
        };
        let wakeup = |time| Wakeup {
            time,
            source: WakeSource::Thread,
            waking: Some(worker),
            is_ready: true,
            is_whole: true,
            cause: 0,
        };
        let mut script = Script::new();
        script.leave(10, LeftAs::Blocked);
        let on = (CPU, 1);
        let effect = script
            .cell
            .wake(wakeup(20), on, WakeTells::ALL, &script.losses);
        let is = |effect, reason| matches!(effect, WakeEffect::<u8>::Ends(stretch) if stretch.past.reason() == reason);
        assert!(is(effect, WaitReason::Thread));
        assert!(script.cell.waking(false).is_at_disk);
        let begun = BegunCall {
            call: Syscall(3),
            class: CallClass::Sync,
            operation: 0,
            time: 40,
            argument: 5,
        };
        let parked = ParkedThread {
            tid: TID,
            open: Some(begun),
            called: 40,
            has_entered: true,
            lingers: None,
            requested: false,
            is_dying: false,
        };
        script.come(30);
        script.cell.enter((CPU, 40), TID, &script.losses);
        script.cell.park((CPU, 50), &parked);
        script.leave(50, LeftAs::Blocked);
        let effect = script
            .cell
            .wake(wakeup(60), on, WakeTells::ALL, &script.losses);
        assert!(is(effect, WaitReason::BlockDevice));
    }

    #[test]
    fn losses_make_unknown_until_the_thread_is_seen_again() {
        let mut script = Script::new();
        script.losses.lose(CPU);
        let stretch = script.cell.enter((CPU, 10), TID, &script.losses);
        script.add(stretch);
        script.leave(20, LeftAs::Blocked);
        script.losses.lose(CPU);
        script.wake(30, WakeSource::Timer, true);
        script.come(40);
        let stretch = script.cell.end_recording((CPU, 50), &script.losses);
        script.add(stretch.expect("it runs"));
        script.come(60);
        use WaitReason::*;
        let expected = [
            (0, Unknown),
            (10, Running),
            (20, Unknown),
            (30, Runnable),
            (40, Running),
            (50, Unknown),
        ];
        assert_eq!(script.past, expected);
    }

    /// A thread that enters a call is alive, even if an earlier thread with its id died.
    #[test]
    fn dying_ends_with_the_next_call() {
        let mut script = Script::new();
        script.cell.die();
        assert_eq!(script.cell.class(), Some(CallClass::Exit));
        script.cell.enter((CPU, 10), TID, &script.losses);
        assert_eq!(script.cell.class(), None);
        let waking = script.cell.waking(false);
        assert!(waking.is_in_program());
    }
}
