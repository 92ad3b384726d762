//! Plays a slice of time without the state of threads before it.
//!
//! Threads are followed by [`SliceCell`]s, sockets by [`SocketSlice`]. An item that depends on
//! unknown state becomes a [`WaitStep`], which composing plays on the state at the start of the
//! slice.

use tracebraid_threads::{
    Arrival, BegunCall, CallClass, CallClasses, CellNews, EndedCallOf, LeftAs, ParkUse,
    ParkedThread, Parking, PastStretch, SliceCell, ThreadDirectory, ThreadState, WaitReason,
    WakeEffect, WakeEvent, WakeSource, WakerFacts, Wakeup, WakingThread,
};

use crate::waits::WaitRules;
use crate::waits::ended_call::concerns_others;
use crate::waits::socket_slice::SocketSlice;
use crate::waits::sums::Waker;
use crate::waits::thread_waits::{Parts, SpentCall};
use crate::waits::wait_machine::{WholeCall, frees, owner};
use crate::waits::wait_step::WaitItem;
use crate::waits::wait_sums::WaitSums;
use tracebraid_follow::{CpuKey, Exited, Losses, Table, ThreadKey};
use tracebraid_kernel_model::{Peer, Syscall};

/// A slice's knowledge of a thread.
#[derive(Clone, Debug)]
pub(super) struct SliceThread {
    cell: SliceCell<()>,
    /// Process id.
    pid: Option<i32>,
    peer: KnownPeer,
    freed: Freed,
    spent: SpentCall,
    /// True if the time of the call before the slice is known, or the thread is in no call.
    knows_spent: bool,
    /// True if the thread has changed since its news were taken.
    has_news: bool,
}

/// The peer of a thread's call.
#[derive(Clone, Debug)]
enum KnownPeer {
    Unknown,
    Known(Option<Box<Peer>>),
}

/// The last wake-up that freed the thread while it waited at a futex.
#[derive(Clone, Copy, Debug)]
enum Freed {
    /// None in the slice so far.
    Before,
    Unknown,
    Nobody,
    By(i64, ThreadKey),
}

/// Facts about a thread, which composing installs.
#[derive(Clone, Debug)]
pub(super) struct WaitNews {
    pub(super) cell: Option<CellNews<()>>,
    pub(super) pid: Option<i32>,
    pub(super) peer: Option<Option<Box<Peer>>>,
    pub(super) freed: Option<Option<(i64, ThreadKey)>>,
    pub(super) spent: SpentCall,
    pub(super) knows_spent: bool,
}

/// Steps of composing, played on the state at the start of the slice.
#[derive(Debug)]
pub(super) enum WaitStep {
    /// Facts about a thread.
    News(ThreadKey, Box<WaitNews>),
    Item(CpuKey, i64, WaitItem),
    Leaves(CpuKey, i64, i32, LeftAs),
    Comes(CpuKey, i64, i32),
    Wakes(Box<KeptWake>),
}

/// A kept wake-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptWake {
    pub(super) cpu: CpuKey,
    pub(super) time: i64,
    pub(super) wake: WakeEvent,
    pub(super) source: WakeSource,
    pub(super) waker: KeptWaker,
}

/// The waker of a kept wake-up.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeptWaker {
    Known(Option<ThreadKey>, Option<WakingThread>),
    By(WakerFacts),
}

/// A slice that is being played.
pub(super) struct WaitSlice<'a> {
    rules: &'a WaitRules,
    begin: i64,
    directory: ThreadDirectory,
    threads: Table<Option<Box<SliceThread>>>,
    near: usize,
    losses: Losses,
    pub(super) sockets: SocketSlice,
    pub(super) steps: Vec<WaitStep>,
}

impl SliceThread {
    fn news(&mut self) -> Option<WaitNews> {
        let cell = self.cell.news();
        if !std::mem::take(&mut self.has_news) && cell.is_none() {
            return None;
        }
        let spent = match self.knows_spent {
            true => self.spent.clone(),
            false => {
                let rest = SpentCall::in_slice(self.spent.entered());
                std::mem::replace(&mut self.spent, rest)
            }
        };
        Some(WaitNews {
            cell,
            pid: self.pid,
            peer: match &self.peer {
                KnownPeer::Known(peer) => Some(peer.clone()),
                KnownPeer::Unknown => None,
            },
            freed: match self.freed {
                Freed::By(time, thread) => Some(Some((time, thread))),
                Freed::Nobody => Some(None),
                Freed::Before | Freed::Unknown => None,
            },
            spent,
            knows_spent: self.knows_spent,
        })
    }

    /// Separates the time from now on from the time before, which is unknown.
    fn forget_spent(&mut self) {
        if self.knows_spent {
            self.spent = SpentCall::in_slice(self.spent.entered());
            self.knows_spent = false;
        }
    }

    /// The thread may be in an unknown call from before the slice.
    fn forget_call(&mut self) {
        (self.spent, self.knows_spent) = (SpentCall::in_slice(i64::MIN), false);
    }

    /// The peer may have been used.
    fn may_use_peer(&mut self) {
        if !matches!(self.peer, KnownPeer::Known(None)) {
            self.peer = KnownPeer::Unknown;
        }
    }

    /// True if all facts that the end of the call depends on are known.
    fn knows_end_of(&self, begun: &BegunCall, begin: i64) -> bool {
        match begun.class {
            CallClass::Futex => match self.freed {
                Freed::Before => begun.time >= begin,
                Freed::Unknown => false,
                Freed::By(..) | Freed::Nobody => true,
            },
            CallClass::Connect | CallClass::Accept => matches!(self.peer, KnownPeer::Known(_)),
            _ => true,
        }
    }
}

impl<'a> WaitSlice<'a> {
    /// A slice whose items are not before `begin`, in nanoseconds from the origin.
    pub(super) fn new(
        rules: &'a WaitRules,
        begin: i64,
        directory: ThreadDirectory,
    ) -> WaitSlice<'a> {
        WaitSlice {
            rules,
            begin,
            directory,
            threads: Table::default(),
            near: 0,
            losses: Losses::default(),
            sockets: SocketSlice::default(),
            steps: Vec::new(),
        }
    }

    /// Processes an item.
    #[inline(always)]
    pub(super) fn play(&mut self, sums: &mut WaitSums, cpu: CpuKey, time: i64, item: WaitItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            WaitItem::Enter(tid) => {
                let (thread, losses) = self.thread(key(tid));
                thread.cell.enter((cpu, time), tid, losses);
                (thread.knows_spent, thread.has_news) = (true, true);
                thread.spent.waits.clear();
                thread.peer = KnownPeer::Known(None);
            }
            WaitItem::Arrive(tid, call, result) => {
                self.arrives(sums, cpu, key(tid), Exited { call, result, time });
            }
            WaitItem::Park(parked) => self.parks(cpu, time, parked),
            WaitItem::Call(tid, begun, result) => {
                self.calls(sums, (cpu, time), (tid, begun, result))
            }
            WaitItem::Switch { prev, next, left } => {
                if let Some(prev) = prev {
                    self.leaves((cpu, time), key(prev), left);
                }
                if let Some(next) = next {
                    self.comes((cpu, time), key(next));
                }
            }
            WaitItem::Wake(wake, source, by) => self.wakes((cpu, time), wake, source, by),
            seldom => self.seldom(cpu, time, seldom),
        }
    }

    /// Processes rare items.
    fn seldom(&mut self, cpu: CpuKey, time: i64, item: WaitItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            WaitItem::Peer(tid, peer) => {
                let (thread, _) = self.thread(key(tid));
                thread.peer = KnownPeer::Known(Some(peer));
                thread.has_news = true;
            }
            WaitItem::Made(tid) => {
                let (thread, losses) = self.thread(key(tid));
                thread.cell.is_made((cpu, time), tid, losses);
                thread.pid = None;
                thread.peer = KnownPeer::Known(None);
                thread.freed = Freed::Nobody;
                (thread.spent, thread.knows_spent) = (SpentCall::default(), true);
                thread.has_news = true;
            }
            WaitItem::TakeOver(tid, old) => self.takes_over((cpu, time), key(tid), key(old)),
            WaitItem::Die(tid) => {
                let (thread, _) = self.thread(key(tid));
                let knows_call = thread.cell.call().is_some();
                if !knows_call {
                    self.keep(key(tid), WaitStep::Item(cpu, time, WaitItem::Die(tid)));
                }
                self.thread(key(tid)).0.cell.die();
            }
            WaitItem::Belongs { tid, pid } => {
                let (thread, _) = self.thread(key(tid));
                (thread.pid, thread.has_news) = (Some(pid), true);
            }
            WaitItem::Lose => {
                self.losses.lose(cpu);
                self.steps.push(WaitStep::Item(cpu, time, WaitItem::Lose));
            }
            // Slices require the switches of all CPUs, which show where threads run.
            _ => {}
        }
    }

    #[inline(always)]
    fn thread(&mut self, key: ThreadKey) -> (&mut SliceThread, &Losses) {
        let thread = self.threads.get_near(key, &mut self.near);
        let (begin, directory) = (self.begin, &self.directory);
        let thread = thread.get_or_insert_with(|| met(key, begin, directory));
        (thread, &self.losses)
    }

    /// Keeps a step for a thread, after the facts about it.
    #[cold]
    fn keep(&mut self, thread: ThreadKey, step: WaitStep) {
        self.tell(thread);
        self.steps.push(step);
    }

    /// Adds the facts about a thread as a step.
    fn tell(&mut self, thread: ThreadKey) {
        if let Some(news) = self.thread(thread).0.news() {
            self.steps.push(WaitStep::News(thread, Box::new(news)));
        }
    }

    fn step_count(&self) -> u32 {
        self.steps.len() as u32
    }

    /// The last kept step may change sockets of a thread's process.
    fn bars_sockets(&mut self, thread: ThreadKey) {
        let pid = self.thread(thread).0.pid;
        self.sockets.bar(owner(thread, pid), self.step_count());
    }

    #[cold]
    fn takes_over(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey, old: ThreadKey) {
        self.tell(old);
        let item = WaitItem::TakeOver(thread.tid, old.tid);
        self.keep(thread, WaitStep::Item(cpu, time, item));
        let pid = self.thread(old).0.pid;
        for (key, pid) in [(old, None), (thread, pid)] {
            let (of, _) = self.thread(key);
            of.cell.forget(time);
            of.pid = pid;
            (of.peer, of.freed) = (KnownPeer::Unknown, Freed::Unknown);
            of.forget_call();
        }
    }

    /// Adds a stretch of a thread's time that has ended, and lists it if its call is listed.
    #[inline]
    fn spends(&mut self, key: ThreadKey, time: i64, stretch: PastStretch<()>, waker: Waker) {
        let rules = self.rules;
        let (thread, _) = self.thread(key);
        // The thread makes no calls.
        if thread.cell.is_plain() {
            return;
        }
        let spent = thread.spent.spend(time, stretch, waker);
        thread.has_news = true;
        if spent.why == WaitReason::Running || !rules.lists(&spent) {
            return;
        }
        let call = match thread.cell.call() {
            Some(None) => return,
            Some(Some(open)) => open.call,
            // Stands for the call that is open when the slice is composed.
            None => Syscall::OTHER,
        };
        thread.spent.list(spent.as_wait(key, call), rules.listed());
    }

    #[inline]
    fn leaves(&mut self, at: (CpuKey, i64), key: ThreadKey, left: LeftAs) {
        let (thread, losses) = self.thread(key);
        if thread.cell.knows_state() {
            let stretch = thread.cell.leave(at, left, losses);
            return self.spends(key, at.1, stretch, Waker::NOBODY);
        }
        self.keep(key, WaitStep::Leaves(at.0, at.1, key.tid, left));
        let (thread, losses) = self.thread(key);
        thread.cell.leave_kept(at, left, losses);
        thread.forget_spent();
    }

    #[inline]
    fn comes(&mut self, at: (CpuKey, i64), key: ThreadKey) {
        let (thread, losses) = self.thread(key);
        if thread.cell.knows_state() {
            let stretch = thread.cell.come(at, losses);
            return self.spends(key, at.1, stretch, Waker::NOBODY);
        }
        self.keep(key, WaitStep::Comes(at.0, at.1, key.tid));
        let (thread, losses) = self.thread(key);
        thread.cell.come_kept(at, losses);
        thread.forget_spent();
    }

    /// The thread that wakes another one; `None` if an unknown fact about it may matter.
    #[inline]
    fn waking(&mut self, trace: u32, by: WakerFacts) -> Option<Option<WakingThread>> {
        let key = |tid: i32| ThreadKey { trace, tid };
        match by {
            WakerFacts::Nobody => Some(None),
            WakerFacts::Caller {
                tid,
                descriptor,
                call,
                lingers,
            } => Some(Some(WakingThread {
                is_local: self.is_local(key(tid), call, descriptor.into())?,
                ..WakingThread::caller(call, lingers)
            })),
            WakerFacts::Other { tid, requested } => {
                let (thread, _) = self.thread(key(tid));
                let waking = thread.cell.waking(requested)?;
                let open = thread.cell.call().flatten();
                let descriptor = open.map_or(-1, |open| open.argument);
                Some(Some(WakingThread {
                    is_local: self.is_local(key(tid), waking.call, descriptor)?,
                    ..waking
                }))
            }
        }
    }

    /// True if a thread's call is on a socket of the family AF_UNIX; `None` if unknown.
    fn is_local(
        &mut self,
        key: ThreadKey,
        call: Option<CallClass>,
        descriptor: i64,
    ) -> Option<bool> {
        if !call.is_some_and(CallClass::is_network) {
            return Some(false);
        }
        let pid = self.thread(key).0.pid;
        let steps = self.step_count();
        self.sockets.is_local((owner(key, pid), descriptor), steps)
    }

    #[inline]
    fn wakes(&mut self, at: (CpuKey, i64), wake: WakeEvent, source: WakeSource, by: WakerFacts) {
        let (cpu, time) = at;
        let trace = cpu.trace;
        let woken = ThreadKey {
            trace,
            tid: wake.woken,
        };
        let waking = self.waking(trace, by);
        let thread = by.tid().map(|tid| ThreadKey { trace, tid });
        let wakeup = Wakeup {
            time,
            source,
            waking: waking.flatten(),
            is_ready: wake.is_ready,
            is_whole: true,
            cause: (),
        };
        let cell = &self.thread(woken).0.cell;
        let is_known = cell.knows_wake(&wakeup, waking.is_some());
        // Calls on futexes need the waker.
        if !is_known || waking.is_none() && !cell.is_plain() {
            self.keeps_wake(woken, thread, (waking, by), (cpu, wakeup, wake));
        }
        let (of, losses) = self.thread(woken);
        if let Some(thread) = thread {
            match waking {
                Some(waking) if frees(source, waking) => of.freed = Freed::By(time, thread),
                Some(_) => {}
                None => of.freed = Freed::Unknown,
            }
        }
        let target = wake.target.unwrap_or(ThreadState::NO_CPU);
        if !is_known {
            of.cell.wake_kept(&wakeup, (cpu, target), losses);
            of.forget_spent();
        } else if let WakeEffect::Ends(stretch) = of.cell.wake(wakeup, (cpu, target), losses) {
            self.spends(woken, time, stretch, Waker { source, thread });
        }
    }

    #[cold]
    fn keeps_wake(
        &mut self,
        woken: ThreadKey,
        thread: Option<ThreadKey>,
        (waking, by): (Option<Option<WakingThread>>, WakerFacts),
        (cpu, wakeup, wake): (CpuKey, Wakeup<()>, WakeEvent),
    ) {
        let waker = match waking {
            Some(waking) => KeptWaker::Known(thread, waking),
            None => {
                thread.into_iter().for_each(|thread| self.tell(thread));
                KeptWaker::By(by)
            }
        };
        let kept = KeptWake {
            cpu,
            time: wakeup.time,
            wake,
            source: wakeup.source,
            waker,
        };
        self.keep(woken, WaitStep::Wakes(Box::new(kept)));
        if let (KeptWaker::By(WakerFacts::Other { .. }), Some(thread)) = (waker, thread) {
            // The socket of the waker's call is unknown.
            self.bars_sockets(thread);
        }
    }

    /// Processes the summary of a thread's stretch on a CPU.
    fn parks(&mut self, cpu: CpuKey, time: i64, parked: ParkedThread) {
        let (trace, tid) = (cpu.trace, parked.tid);
        let key = ThreadKey { trace, tid };
        let (thread, _) = self.thread(key);
        let with = thread.cell.parking(&parked);
        if with != ParkUse::Play {
            return self.keeps_parking(cpu, time, parked, with);
        }
        // The time before depends on the start of the thread's stretch.
        let is_vague = parked.open.is_some() && !thread.cell.knows_state();
        if is_vague {
            self.keep(key, WaitStep::Item(cpu, time, WaitItem::Park(parked)));
        }
        let (thread, _) = self.thread(key);
        let since = thread.cell.since();
        if let Parking::InCall(open) = thread.cell.park((cpu, time), &parked) {
            thread.peer = KnownPeer::Known(None);
            thread.spent.is_in(&open, since);
            (thread.knows_spent, thread.has_news) = (true, true);
        }
        if is_vague {
            thread.forget_spent();
        }
    }

    #[cold]
    fn keeps_parking(&mut self, cpu: CpuKey, time: i64, parked: ParkedThread, with: ParkUse) {
        let (trace, tid) = (cpu.trace, parked.tid);
        let key = ThreadKey { trace, tid };
        self.keep(key, WaitStep::Item(cpu, time, WaitItem::Park(parked)));
        let (thread, _) = self.thread(key);
        // With known calls, this is the start of one that has ended.
        let is_over = with == ParkUse::Keep && thread.cell.call().is_some();
        thread.cell.park_kept((cpu, time), &parked, with);
        thread.may_use_peer();
        if !is_over {
            thread.forget_call();
            // The current state may only partly belong to the call, whose start is unknown.
            thread.cell.forget_state();
        }
        // The end of the call may be known.
        if parked
            .open
            .is_some_and(|open| is_of_descriptors(open.class))
        {
            self.bars_sockets(key);
        }
    }

    /// The end of a call that was open when its thread's stretch began.
    #[inline]
    fn arrives(&mut self, sums: &mut WaitSums, cpu: CpuKey, key: ThreadKey, exited: Exited) {
        let begin = self.begin;
        let (thread, losses) = self.thread(key);
        let is_known = match thread.cell.arrival(&exited) {
            Arrival::Unknown => false,
            Arrival::Nothing => true,
            Arrival::Ends(begun) => thread.knows_spent && thread.knows_end_of(&begun, begin),
        };
        if !is_known {
            return self.keeps_arrival(cpu, key, exited);
        }
        let (stretch, ended) = thread.cell.arrive(cpu, key.tid, exited, losses);
        thread.spent.spend(exited.time, stretch, Waker::NOBODY);
        thread.has_news = true;
        if ended.is_none() {
            thread.spent.waits.clear();
        }
        if let Some(ended) = ended {
            let parts = thread.spent.parts();
            self.ended(sums, key, ended, parts.as_ref());
        }
    }

    #[cold]
    fn keeps_arrival(&mut self, cpu: CpuKey, key: ThreadKey, exited: Exited) {
        let Exited { call, result, time } = exited;
        let item = WaitItem::Arrive(key.tid, call, result);
        self.keep(key, WaitStep::Item(cpu, time, item));
        let (thread, losses) = self.thread(key);
        thread.cell.arrive_kept(cpu, key.tid, exited, losses);
        thread.may_use_peer();
        // The thread is in no call.
        thread.spent.waits.clear();
        thread.knows_spent = true;
        if call.is_none_or(|call| self.rules.may_change_sockets(call, result)) {
            self.bars_sockets(key);
        }
    }

    /// A call has ended during which the thread may have waited.
    fn ended(
        &mut self,
        sums: &mut WaitSums,
        thread: ThreadKey,
        ended: EndedCallOf,
        parts: Option<&Parts>,
    ) {
        let rules = self.rules;
        let call = WholeCall::new(thread, ended);
        let counts = rules.count_end(sums, &call, parts);
        if counts {
            let waits = std::mem::take(&mut self.thread(thread).0.spent.waits);
            rules.keep_waits(sums, thread, waits);
        }
        self.concerns(sums, &call, counts);
    }

    /// The end of a call on a futex or a descriptor that began in the thread's stretch.
    #[inline]
    fn calls(
        &mut self,
        sums: &mut WaitSums,
        (cpu, time): (CpuKey, i64),
        (tid, begun, result): (i32, BegunCall, i64),
    ) {
        let trace = cpu.trace;
        let key = ThreadKey { trace, tid };
        let begin = self.begin;
        let (thread, _) = self.thread(key);
        if thread.knows_end_of(&begun, begin) {
            let call = WholeCall {
                thread: key,
                cpu,
                begun,
                time,
                result,
            };
            let counts = self
                .rules
                .counts_plain(begun.call, time, cpu, call.duration());
            return self.concerns(sums, &call, counts);
        }
        let item = WaitItem::Call(tid, begun, result);
        self.keep(key, WaitStep::Item(cpu, time, item));
        let (thread, _) = self.thread(key);
        (thread.peer, thread.has_news) = (KnownPeer::Known(None), true);
        if is_of_descriptors(begun.class) {
            self.bars_sockets(key);
        }
    }

    /// Passes an ended call on to futexes and sockets, if it concerns them.
    #[inline]
    fn concerns(&mut self, sums: &mut WaitSums, call: &WholeCall, counts: bool) {
        let key = call.thread;
        let steps = self.step_count();
        let (thread, _) = self.thread(key);
        let peer = match std::mem::replace(&mut thread.peer, KnownPeer::Known(None)) {
            KnownPeer::Known(None) => None,
            KnownPeer::Known(peer) => {
                thread.has_news = true;
                peer.map(|peer| *peer)
            }
            KnownPeer::Unknown => {
                thread.has_news = true;
                None
            }
        };
        let Some(ended) = call.ended(thread.pid, peer, counts) else {
            return;
        };
        match (call.begun.class, thread.freed) {
            (CallClass::Futex, _) if !counts => {}
            (CallClass::Futex, Freed::By(time, by)) if time >= call.begun.time => {
                sums.futexes.count(&ended, Some(by));
            }
            (CallClass::Futex, _) => sums.futexes.count(&ended, None),
            _ => self.sockets.done(&mut sums.sockets, &ended, steps),
        }
    }

    /// Ends the slice: returns the steps, and the facts about threads at its end.
    pub(super) fn end(self) -> (Vec<WaitStep>, Vec<(ThreadKey, WaitNews)>, SocketSlice) {
        let threads = self.threads.into_entries().into_iter();
        let news = threads.filter_map(|(key, thread)| Some((key, thread?.news()?)));
        (self.steps, news.collect(), self.sockets)
    }
}

/// The state of a thread at its first item in the slice.
#[cold]
fn met(key: ThreadKey, begin: i64, directory: &ThreadDirectory) -> Box<SliceThread> {
    let facts = directory.get(key);
    Box::new(SliceThread {
        cell: SliceCell::new(begin, !facts.is_active),
        pid: facts.pid,
        peer: KnownPeer::Unknown,
        freed: Freed::Before,
        spent: SpentCall::in_slice(i64::MIN),
        knows_spent: false,
        has_news: false,
    })
}

/// True if a call of that class may change the socket of a descriptor.
fn is_of_descriptors(class: CallClass) -> bool {
    class != CallClass::Futex && (concerns_others(class, 1) || concerns_others(class, 0))
}

impl WaitRules {
    /// True if the end of a call with that result may change sockets.
    fn may_change_sockets(&self, call: Syscall, result: i64) -> bool {
        let class = self.class(call);
        class != CallClass::Futex && concerns_others(class, result)
    }

    fn class(&self, call: Syscall) -> CallClass {
        let classes: &CallClasses = &self.classes;
        classes.of(call)
    }
}
