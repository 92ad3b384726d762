//! The state of a thread in a slice of time, without knowledge of earlier slices.
//!
//! Each part of a [`ThreadCell`] is unknown until an event sets it regardless of its old value: a
//! switch, the entry of a system call, the end of a wait. An item that depends on an unknown part
//! is kept by the owner of the cell, which replays the item with the methods of [`ThreadCell`] on
//! the state at the beginning of the slice; methods named `..._kept` update the parts that are
//! known after such an item. Before an item is kept, the known parts ([`SliceCell::news`]) are kept
//! too, to be installed first. So a slice and a plain pass agree by construction, and the number of
//! kept items depends on the number of threads.
//!
//! Slices require that switches on all CPUs were recorded
//! ([`Recorded::has_all_switches`](tracebraid_follow::Recorded::has_all_switches)). Slices of other
//! traces are played once the earlier state is known.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Beginning, CpuKey, Ending, Exited, Losses, OpenCall, WakeTells};

use crate::call_class::CallClass;
use crate::cell_news::CellNews;
use crate::task_events::LeftAs;
use crate::thread_acts::{BegunCall, ParkedThread};
use crate::thread_cell::{
    EndedCallOf, Parking, PastStretch, ThreadCell, ThreadState, WakeEffect, Wakeup,
};
use crate::wait_reason::WaitReason;
use crate::waker_facts::WakingThread;

/// The part of a thread's state that a slice knows. Losses count from the beginning of the slice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SliceCell<C> {
    cell: ThreadCell<C>,
    known: Known,
    /// The thread makes no calls and does not die, from the beginning of the trace to the end of
    /// the slice.
    is_plain: bool,
    /// The cell has changed since its news was last taken ([`SliceCell::news`]).
    has_news: bool,
    /// Lower bound of the times of the slice's items, in nanoseconds from the origin.
    begin: i64,
}

/// Flags for the parts of a cell that are known.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Known {
    /// The thread was created in the slice, and its news has not been taken yet: the cell replaces
    /// the old cell.
    pub(crate) is_new: bool,
    /// State, its begin time, and wake-ups that may apply.
    pub(crate) state: bool,
    /// The open call, or that no call is open.
    pub(crate) calls: bool,
    /// Calls that began before this time are unknown; in nanoseconds from the origin.
    pub(crate) calls_since: i64,
    /// The calls became known by the end of a call.
    pub(crate) by_end: bool,
    pub(crate) called: bool,
    pub(crate) has_called: bool,
    pub(crate) dying: bool,
    pub(crate) requested: bool,
    pub(crate) lingers: bool,
    pub(crate) waited_for: bool,
}

impl Known {
    fn all(time: i64) -> Known {
        Known {
            is_new: true,
            state: true,
            calls: true,
            calls_since: time,
            by_end: false,
            called: true,
            has_called: true,
            dying: true,
            requested: true,
            lingers: true,
            waited_for: true,
        }
    }
}

/// Effect of an exit that is the first event of a call since the thread was switched in.
#[derive(Clone, Copy, Debug)]
pub enum Arrival {
    /// Unknown: the item must be kept.
    Unknown,
    /// No call that began in the slice ends.
    Nothing,
    /// This call ends.
    Ends(BegunCall),
}

/// How to apply the activity of a thread since it was switched in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkUse {
    /// Play it.
    Play,
    /// Keep it.
    Keep,
    /// Keep it; the calls of the thread are unknown afterwards.
    KeepAndForget,
}

impl<C: Copy> SliceCell<C> {
    /// A thread whose parts are all unknown, in a slice whose items are not earlier than `begin`,
    /// in nanoseconds from the origin. `is_plain`: the thread makes no calls and does not die up to
    /// the end of the slice.
    pub fn new(begin: i64, is_plain: bool) -> Self {
        let mut cell = SliceCell {
            cell: ThreadCell::default(),
            known: Known::default(),
            is_plain,
            has_news: false,
            begin,
        };
        cell.cell.called = i64::MIN;
        cell.known.calls_since = i64::MIN;
        cell
    }

    /// Creates the thread, replacing any earlier thread with its id.
    pub fn is_made(&mut self, at: (CpuKey, i64), tid: i32, losses: &Losses) {
        self.cell = ThreadCell::made(at, tid, losses);
        (self.known, self.has_news) = (Known::all(at.1), true);
    }

    /// Forgets all parts; only calls that begin after `time`, in nanoseconds from the origin, will
    /// be known.
    pub fn forget(&mut self, time: i64) {
        *self = SliceCell::new(self.begin, self.is_plain);
        self.known.calls_since = time.saturating_add(1);
    }

    /// Forgets the state of the thread: items are kept from now on, until an event sets the state
    /// regardless of the previous one.
    pub fn forget_state(&mut self) {
        self.known.state = false;
    }

    /// True if the thread makes no calls from the beginning of the trace to the end of the slice.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// True if the state is known.
    #[inline]
    pub fn knows_state(&self) -> bool {
        self.known.state
    }

    /// State of the thread; valid only if [`SliceCell::knows_state`].
    #[inline]
    pub fn state(&self) -> ThreadState {
        self.cell.state
    }

    /// True if the thread runs on `cpu` and no events were lost since it was switched in. Valid
    /// only if the state is known.
    #[inline]
    pub fn runs_on(&self, cpu: CpuKey, losses: &Losses) -> bool {
        self.cell.runs_on(cpu, losses.of_cpu(cpu))
    }

    /// Begin time of the state, in nanoseconds from the origin; the least number if unknown.
    #[inline]
    pub fn since(&self) -> i64 {
        match self.known.state {
            true => self.cell.since,
            false => i64::MIN,
        }
    }

    /// The open call, as far as other CPUs know; the outer `None` if unknown.
    #[inline]
    pub fn call(&self) -> Option<Option<BegunCall>> {
        (self.is_plain || self.known.calls).then_some(self.cell.calls.parked)
    }

    /// Takes the known parts, if they have changed since the last call.
    pub fn news(&mut self) -> Option<CellNews<C>> {
        if !std::mem::take(&mut self.has_news) {
            return None;
        }
        let news = CellNews {
            cell: self.cell.clone(),
            known: self.known,
        };
        self.known.is_new = false;
        Some(news)
    }

    /// Takes the known parts at the end of the slice, if they have changed.
    pub fn into_news(self) -> Option<CellNews<C>> {
        let SliceCell {
            cell,
            known,
            has_news,
            ..
        } = self;
        has_news.then_some(CellNews { cell, known })
    }

    /// Class of the open call; the outer `None` if unknown.
    fn class(&self) -> Option<Option<CallClass>> {
        if self.is_plain {
            return Some(None);
        }
        match self.known.dying {
            true if self.cell.is_dying || self.known.calls => Some(self.cell.class()),
            _ => None,
        }
    }

    /// The thread as a waker, for a CPU that does not know the thread's open call; `None` if a
    /// relevant part is unknown.
    pub fn waking(&self, requested: bool) -> Option<WakingThread> {
        let mut waking = self.cell.waking(requested);
        waking.call = self.class()?;
        waking.has_called &= !self.is_plain;
        let is_known = match (waking.call, self.is_plain) {
            (Some(_), _) => true,
            (None, true) => self.knows_disk(requested),
            (None, false) if waking.has_called => self.known.lingers,
            (None, false) => self.known.has_called && self.knows_disk(requested),
        };
        is_known.then_some(waking)
    }

    /// True if it is known whether the thread is working for a disk.
    fn knows_disk(&self, requested: bool) -> bool {
        let is_at_disk = requested
            || self.known.requested && self.cell.requested
            || self.known.waited_for && self.cell.waited_for == WaitReason::BlockDevice;
        is_at_disk || self.known.requested && self.known.waited_for
    }

    /// Applies the entry of a call by a thread that was in no call when it was switched in. The
    /// result is valid only if the state was known.
    #[inline]
    pub fn enter(&mut self, at: (CpuKey, i64), tid: i32, losses: &Losses) -> PastStretch<C> {
        if !self.known.calls {
            self.knows_calls(at.1, false);
        }
        let stretch = self.cell.enter(at, tid, losses);
        let known = &mut self.known;
        (known.state, known.called, known.has_called) = (true, true, true);
        (known.dying, known.requested) = (true, true);
        self.has_news = true;
        stretch
    }

    fn knows_calls(&mut self, since: i64, by_end: bool) {
        self.cell.calls = OpenCall::changed_at(since);
        let known = &mut self.known;
        // Another call may have ended at the very time at which calls were forgotten.
        let forgotten = if by_end { i64::MIN } else { known.calls_since };
        known.calls_since = since.max(forgotten);
        (known.calls, known.by_end) = (true, by_end);
    }

    /// The call that an exit ends. An exit without an open call is kept, since its entry may be
    /// recorded late, unless the thread is new: all calls of a new thread are known.
    #[inline]
    pub fn arrival(&self, exited: &Exited) -> Arrival {
        match self.cell.calls.parked {
            Some(begun) if self.known.state && self.known.calls => match exited.ends(&begun) {
                true => Arrival::Ends(begun),
                false => Arrival::Nothing,
            },
            None if self.known.is_new => Arrival::Nothing,
            _ => Arrival::Unknown,
        }
    }

    /// Ends the call that was open when the thread was switched in. Valid only if
    /// [`SliceCell::arrival`] is known.
    #[inline]
    pub fn arrive(
        &mut self,
        cpu: CpuKey,
        tid: i32,
        exited: Exited,
        losses: &Losses,
    ) -> (PastStretch<C>, Option<EndedCallOf>) {
        let arrived = self.cell.arrive(cpu, tid, exited, losses);
        self.has_arrived();
        arrived
    }

    /// Updates the known parts after an arrival that was kept.
    pub fn arrive_kept(&mut self, cpu: CpuKey, tid: i32, exited: Exited, losses: &Losses) {
        match self.known.calls {
            true => _ = self.cell.arrive(cpu, tid, exited, losses),
            false => {
                self.cell.arrive(cpu, tid, exited, losses);
                self.knows_calls(exited.time, true);
            }
        }
        self.has_arrived();
    }

    fn has_arrived(&mut self) {
        let known = &mut self.known;
        (known.state, known.called, known.has_called) = (true, true, true);
        self.has_news = true;
    }

    /// How to apply the thread's activity since it was switched in. A call that began before the
    /// calls became known may be the call that a kept exit ends.
    pub fn parking(&self, parked: &ParkedThread) -> ParkUse {
        let Some(open) = parked.open else {
            return ParkUse::Play;
        };
        let known = &self.known;
        if known.is_new && !self.cell.calls.has_missed(&open) {
            return ParkUse::Play;
        }
        let from = self.begin.max(known.calls_since);
        match (known.calls, open.time()) {
            (false, time) if time >= from => ParkUse::Play,
            (true, time) if time == known.calls_since && known.by_end => {
                match self.cell.calls.has_changed_after(time) {
                    true => ParkUse::Keep,
                    false => ParkUse::KeepAndForget,
                }
            }
            (true, time) if time >= from && !self.cell.calls.has_missed(&open) => ParkUse::Play,
            _ => ParkUse::Keep,
        }
    }

    /// Applies the activity of the thread since it was switched in. Only for [`ParkUse::Play`].
    pub fn park(&mut self, at: (CpuKey, i64), parked: &ParkedThread) -> Parking {
        if let Some(open) = parked.open.filter(|_| !self.known.calls) {
            self.knows_calls(open.time, false);
        }
        let parking = self.cell.park(at, parked);
        self.has_parked(parked);
        parking
    }

    /// Updates the known parts after activity that was kept.
    pub fn park_kept(&mut self, at: (CpuKey, i64), parked: &ParkedThread, with: ParkUse) {
        // While the calls are unknown, the content of the cell does not matter.
        self.cell.park(at, parked);
        self.has_parked(parked);
        if with == ParkUse::KeepAndForget {
            let known = &mut self.known;
            (known.calls, known.calls_since) = (false, at.1.saturating_add(1));
        }
    }

    fn has_parked(&mut self, parked: &ParkedThread) {
        let known = &mut self.known;
        known.called |= parked.called > i64::MIN;
        known.has_called |= parked.called > i64::MIN;
        known.lingers |= parked.lingers.is_some();
        known.requested |= parked.has_entered || parked.requested;
        known.dying |= parked.has_entered || parked.is_dying;
        self.has_news = true;
    }

    /// Switches the thread out. Valid only if the state is known.
    #[inline]
    pub fn leave(&mut self, at: (CpuKey, i64), left: LeftAs, losses: &Losses) -> PastStretch<C> {
        self.has_news = true;
        self.cell.leave(at, left, losses)
    }

    /// Updates the known parts after a switch-out that was kept. The thread may have been woken
    /// while it ran, so its state is known afterwards only if it does not wait.
    pub fn leave_kept(&mut self, at: (CpuKey, i64), left: LeftAs, losses: &Losses) {
        self.cell.leave(at, left, losses);
        self.known.state = self.cell.state != ThreadState::Blocked;
        self.has_news = true;
    }

    /// Switches the thread in. Valid only if the state is known.
    #[inline]
    pub fn come(&mut self, at: (CpuKey, i64), losses: &Losses) -> PastStretch<C> {
        self.has_news = true;
        if self.cell.state == ThreadState::Blocked {
            self.known.waited_for = self
                .cell
                .woken
                .is_none_or(|woken| self.knows_reason(&woken));
            self.known.requested = true;
        }
        self.cell.come(at, losses, true)
    }

    /// Updates the known parts after a switch-in that was kept.
    pub fn come_kept(&mut self, (cpu, time): (CpuKey, i64), losses: &Losses) {
        let state = ThreadState::Running(ThreadState::number(cpu.cpu));
        self.cell.begin(time, state, losses.of_cpu(cpu));
        self.known.state = true;
        self.may_have_waited();
    }

    /// Updates the known parts if a wait may have ended.
    fn may_have_waited(&mut self) {
        // The end of a wait clears `requested`.
        self.known.requested &= !self.cell.requested;
        self.known.waited_for = false;
        self.has_news = true;
    }

    /// See [`ThreadCell::only_gets_ready`]. Valid only if the state is known.
    #[inline]
    pub fn only_gets_ready(&self, is_ready: bool) -> bool {
        self.cell.only_gets_ready(is_ready)
    }

    /// True if the effect of a wake-up on this thread is known. `is_waker_known`: the waker is
    /// known.
    #[inline]
    pub fn knows_wake(&self, wakeup: &Wakeup<C>, is_waker_known: bool) -> bool {
        self.known.state
            && (self.only_gets_ready(wakeup.is_ready)
                || is_waker_known
                    && (self.cell.state != ThreadState::Blocked || self.knows_reason(wakeup)))
    }

    /// True if the reason of the wait that the wake-up ends is known.
    fn knows_reason(&self, wakeup: &Wakeup<C>) -> bool {
        let by_thread = wakeup.is_by_kernel_thread();
        let class = match self.class() {
            None if by_thread => return false,
            class => class.flatten(),
        };
        let is_vague = class.is_none() && by_thread
            || matches!(
                WaitReason::of_wake(class, wakeup.source, wakeup.waking),
                WaitReason::Kernel | WaitReason::Unknown
            );
        self.known.requested || !is_vague || !self.cell.in_disk_sleep
    }

    /// Applies a wake-up recorded on `cpu`, which lets the thread run on the CPU of number
    /// `target`. Valid only if its effect is known.
    #[inline]
    pub fn wake(
        &mut self,
        wakeup: Wakeup<C>,
        (cpu, target): (CpuKey, u16),
        losses: &Losses,
    ) -> WakeEffect<C> {
        self.has_news = true;
        let woken = self.cell.woken;
        let knows_woken = || woken.is_none_or(|woken| self.knows_reason(&woken));
        let knows_reason = !self.only_gets_ready(wakeup.is_ready) || knows_woken();
        let effect = self
            .cell
            .wake(wakeup, (cpu, target), WakeTells::ALL, losses);
        if let WakeEffect::Ends(_) | WakeEffect::WasAwake = effect {
            (self.known.waited_for, self.known.requested) = (knows_reason, true);
        }
        effect
    }

    /// Updates the known parts after a wake-up that was kept.
    pub fn wake_kept(&mut self, wakeup: &Wakeup<C>, (cpu, target): (CpuKey, u16), losses: &Losses) {
        match self.cell.state {
            ThreadState::Blocked if self.known.state => {
                let losses = losses.of_trace(cpu);
                self.cell.begin(wakeup.time, wakeup.makes(target), losses);
                self.cell.requested = false;
                (self.known.requested, self.known.waited_for) = (true, false);
            }
            // The wake-up may apply later.
            _ => self.known.state = false,
        }
        self.may_have_waited();
    }

    /// See [`ThreadCell::end_elsewhere`]. Valid only if the state is known.
    pub fn end_elsewhere(&mut self, at: (CpuKey, i64), losses: &Losses) -> Option<PastStretch<C>> {
        self.may_have_waited();
        self.cell.end_elsewhere(at, losses)
    }

    /// Updates the known parts after an end elsewhere that was kept: the thread may have run.
    pub fn end_elsewhere_kept(&mut self) {
        self.known.state = false;
        self.may_have_waited();
    }

    /// Marks the thread as dying. If its calls are unknown, the death must be kept too, since
    /// the open call will not end.
    pub fn die(&mut self) {
        self.cell.die();
        (self.known.dying, self.has_news) = (true, true);
    }
}
