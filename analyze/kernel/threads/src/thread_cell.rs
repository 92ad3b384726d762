//! The state of a thread, and why it waits: one cell for each thread, whose state changes by what
//! happens in the order of time.
//!
//! A change of state ends a stretch of time, which is given back: what becomes of it is up to the
//! analysis (sums by call, a time line). All that decides about a thread is in its cell, in the
//! [`Losses`] of its machine, and in the facts of the wake-up ([`Wakeup`]), so threads can be
//! followed apart from each other.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CallItem, CpuKey, Exited, Losses, OpenCall, Sight, WakeTells};

use crate::call_class::CallClass;
use crate::cpu_context::WakeSource;
use crate::early_wakes::EarlyWakes;
use crate::task_events::LeftAs;
use crate::thread_acts::{BegunCall, ParkedThread};
use crate::wait_reason::WaitReason;
use crate::waker_facts::WakingThread;

/// State of a thread. Numbers are those of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadState {
    /// Nothing has been recorded of it.
    #[default]
    Unseen,
    /// It is not known.
    Unknown,
    /// It runs there.
    Running(u16),
    /// It was taken from that CPU, and could run.
    Preempted(u16),
    /// It was woken, and could run there.
    Runnable(u16),
    /// It waits.
    Blocked,
    /// It has ended.
    Ended,
}

impl ThreadState {
    /// No CPU that is known.
    pub const NO_CPU: u16 = u16::MAX;

    /// Number of a CPU in states; [`ThreadState::NO_CPU`] for numbers that no Linux machine has.
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

/// A wake-up; `C` is what the analysis remembers of its cause.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Wakeup<C> {
    /// When it happens, in nanoseconds from the origin.
    pub time: i64,
    /// Its context.
    pub source: WakeSource,
    /// The thread in whose context it happens, if it is one.
    pub waking: Option<WakingThread>,
    /// The thread can run from now on; its waker may have been recorded before.
    pub is_ready: bool,
    /// All CPUs are recorded.
    pub is_whole: bool,
    /// Its cause.
    pub cause: C,
}

impl<C> Wakeup<C> {
    /// The waker is a thread of the kernel, or one that looks like it.
    pub(crate) fn is_by_kernel_thread(&self) -> bool {
        self.source == WakeSource::Thread
            && self.waking.is_some_and(|waking| !waking.is_in_program())
    }
}

/// Content of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Past<C> {
    /// It is not known.
    Unknown,
    /// The thread ran.
    Running,
    /// It was preempted.
    Preempted,
    /// It was woken, perhaps while still on its way out, and had no CPU.
    Runnable,
    /// It waited; what ended the wait, if that was recorded.
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
            Past::Waited(Some((reason, _))) => *reason,
            Past::Unknown | Past::Waited(None) => WaitReason::Unknown,
        }
    }
}

/// A stretch of time that has ended.
#[derive(Clone, Copy, Debug)]
pub struct PastStretch<C> {
    /// When it began, in nanoseconds from the origin.
    pub begin: i64,
    /// Its content.
    pub past: Past<C>,
}

/// Effect of a wake-up on a thread.
#[derive(Clone, Copy, Debug)]
pub enum WakeEffect<C> {
    /// It ends a wait: the thread is runnable.
    Ends(PastStretch<C>),
    /// The thread is runnable: it was woken on its way out, so what seemed to be a wait was none.
    WasAwake,
    /// The thread is runnable, and nothing was recorded of it before.
    Appears,
    /// The thread was runnable, and may go to another CPU.
    Moves,
    /// None, or it is not known yet.
    Nothing,
}

/// A call that has ended, on that CPU.
pub type EndedCallOf = (BegunCall, Exited, CpuKey);

/// Effect on its call of a thread's stretch on a CPU.
#[derive(Clone, Copy, Debug)]
pub enum Parking {
    /// It is in that call.
    InCall(BegunCall),
    /// The call that it seemed to be in had ended elsewhere, which was recorded before.
    Ended(EndedCallOf),
    /// It is in no call, or in a later one.
    Nothing,
}

/// State of a thread, as far as it is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadCell<C> {
    pub(crate) state: ThreadState,
    /// Beginning of the state, in nanoseconds from the origin.
    pub(crate) since: i64,
    /// Losses up to then that would make the state unknown.
    pub(crate) losses: u64,
    pub(crate) early: EarlyWakes<C>,
    /// The wake-up that came before the thread was seen leaving its CPU.
    pub(crate) woken: Option<Wakeup<C>>,
    /// Only used where a CPU was not recorded: the thread may have run there while it seems to
    /// wait.
    pub(crate) sight: Sight,
    /// When a call began or ended last.
    pub(crate) called: i64,
    pub(crate) in_disk_sleep: bool,
    pub(crate) is_dying: bool,
    /// It has made a block request since it last waited.
    pub(crate) requested: bool,
    /// It has made a call: it is no thread of the kernel.
    pub(crate) has_called: bool,
    pub(crate) lingers: bool,
    /// The reason of its last wait.
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
    /// A thread that has just been made; its first wake-up follows.
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

    /// Its state.
    #[inline]
    pub fn state(&self) -> ThreadState {
        self.state
    }

    /// Beginning of the state, in nanoseconds from the origin.
    #[inline]
    pub fn since(&self) -> i64 {
        self.since
    }

    /// The open call, as far as other CPUs than the one where the thread runs know.
    #[inline]
    pub fn call(&self) -> Option<BegunCall> {
        self.calls.parked
    }

    /// Class of the call; dying counts as [`CallClass::Exit`].
    #[inline]
    pub fn class(&self) -> Option<CallClass> {
        match self.is_dying {
            true => Some(CallClass::Exit),
            false => self.calls.parked.map(|open| open.class),
        }
    }

    /// True if it runs there, and nothing was lost since it came, after so many losses there
    /// ([`Losses::of_cpu`](tracebraid_follow::Losses::of_cpu)).
    #[inline]
    pub fn runs_on(&self, cpu: CpuKey, losses: u64) -> bool {
        self.state == ThreadState::Running(ThreadState::number(cpu.cpu)) && self.losses == losses
    }

    /// True if it waits, and neither a wake-up nor a loss has ended that.
    pub fn still_waits(&self, losses: &Losses, cpu: CpuKey) -> bool {
        self.state == ThreadState::Blocked
            && self.woken.is_none()
            && self.losses == losses.of_trace(cpu)
    }

    /// The thread as the waker of another one, if its CPU does not know which call it is in.
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

    /// An entry or exit of a call shows that it runs there.
    fn is_seen_running(&mut self, (cpu, time): (CpuKey, i64), losses: &Losses) -> PastStretch<C> {
        let stretch = self.end(time, self.runs(cpu), losses.of_cpu(cpu));
        let state = ThreadState::Running(ThreadState::number(cpu.cpu));
        self.begin(time, state, losses.of_cpu(cpu));
        (self.called, self.has_called) = (time, true);
        stretch
    }

    /// It enters a call, and was in none when it came.
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

    /// The call ends that was open when it came.
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

    /// It has done that since it came.
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

    /// It leaves its CPU.
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

    /// It comes to a CPU. `is_whole`: all CPUs are recorded.
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
            // It was woken on its way out, so it did not wait.
            Some(woken) => {
                self.has_waited(self.reason(&woken));
                Past::Runnable
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

    /// Why it waits if that wake-up ends the wait.
    fn reason(&self, wakeup: &Wakeup<C>) -> WaitReason {
        match WaitReason::of_wake(self.class(), wakeup.source, wakeup.waking) {
            WaitReason::Kernel | WaitReason::Unknown if self.in_disk_sleep && self.requested => {
                WaitReason::BlockDevice
            }
            // The cause of a kernel thread's wait may lie on an unrecorded CPU.
            WaitReason::Kernel if !wakeup.is_whole && wakeup.source == WakeSource::Thread => {
                WaitReason::Unknown
            }
            reason => reason,
        }
    }

    /// The reason as which a wait counts. Without a call nothing shows what a thread waits for that
    /// another one wakes: a thread of the kernel waits for work, whatever else its waker does, and
    /// where no calls were recorded programs look like threads of the kernel.
    fn counts_as(&self, reason: WaitReason, wakeup: &Wakeup<C>) -> WaitReason {
        match self.class() {
            None if wakeup.is_by_kernel_thread() && !(self.in_disk_sleep && self.requested) => {
                WaitReason::Thread
            }
            _ => reason,
        }
    }

    /// True if a wake-up matters only in that the thread can run: it was woken before, on its way
    /// out, or awake.
    #[inline]
    pub fn only_gets_ready(&self, is_ready: bool) -> bool {
        match (self.state, self.woken) {
            (ThreadState::Blocked, Some(woken)) => is_ready && !woken.is_ready,
            (ThreadState::Blocked | ThreadState::Running(_), _) => false,
            _ => true,
        }
    }

    /// It is woken, as recorded on `cpu`, to run on the CPU of number `target`.
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
        let runnable = ThreadState::Runnable(target);
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
            (ThreadState::Unknown | ThreadState::Preempted(_) | ThreadState::Ended, _) => {
                WakeEffect::Nothing
            }
        }
    }

    /// A migration between two CPUs. `is_gone`: the new one was not recorded.
    pub fn migrate(&mut self, (from, to): (u32, u32), is_gone: bool) {
        if self.state.lacks_cpu() {
            self.sight.moves(from, to, is_gone);
        }
    }

    /// It dies, by a call or by a signal: its call will not end.
    pub fn die(&mut self) {
        self.is_dying = true;
        self.calls.parked = None;
    }

    /// Its state turns out to be unknown.
    pub fn lose_sight(&mut self) {
        self.state = ThreadState::Unknown;
    }

    /// The recording of its CPU ends: if it runs there, its state is unknown from now on.
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
    use tracebraid_kernel_model::Syscall;

    use crate::device_class::DeviceClass;

    const CPU: CpuKey = CpuKey { trace: 0, cpu: 1 };
    const TID: i32 = 7;

    /// A thread that does one thing after the other, and the reasons of its stretches.
    struct Script {
        cell: ThreadCell<u8>,
        losses: Losses,
        past: Vec<(i64, WaitReason)>,
    }

    impl Script {
        /// The thread comes at time 0.
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

    /// It did not wait, but is at a disk as one that did: it passes that on to those whom it wakes.
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
        // What came before its last call was of a wait that never happened.
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

    /// A worker that another one wakes was idle; whom it wakes in turn may have waited for the
    /// disk.
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

    /// Who enters a call is alive, whoever died with that id.
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
