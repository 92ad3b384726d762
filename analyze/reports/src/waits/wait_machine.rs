//! Follows threads and their calls over all CPUs in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};
use tracebraid_threads::{
    BegunCall, CallClass, CpuThreads, EndedCallOf, LeftAs, ParkedThread, Parking, Past,
    PastStretch, ThreadState, WaitReason, WakeEffect, WakeEvent, WakeSource, WakerFacts, Wakeup,
    WakingThread,
};

use crate::waits::WaitRules;
use crate::waits::ended_call::{EndedCall, Owner, concerns_others};
use crate::waits::socket::Sockets;
use crate::waits::sums::{Sums, Wait, Waker};
use crate::waits::thread_waits::{Parts, SpentTime, ThreadWaits};
use crate::waits::wait_step::WaitItem;
use crate::waits::wait_sums::WaitSums;
use tracebraid_follow::{CpuKey, Exited, Losses, Table, ThreadKey};
use tracebraid_statistics::Bins;
use tracebraid_tables::View;

/// State of threads and their calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WaitMachine {
    threads: Table<ThreadWaits>,
    /// Index of the last thread in `threads`.
    #[serde(skip)]
    near: usize,
    pub(super) losses: Losses,
    cpus: CpuThreads,
    pub(super) sockets: Sockets,
}

/// A call from start to end, on the CPU of its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeCall {
    pub(super) thread: ThreadKey,
    pub(super) cpu: CpuKey,
    pub(super) begun: BegunCall,
    pub(super) time: i64,
    pub(super) result: i64,
}

impl WholeCall {
    pub(super) fn new(thread: ThreadKey, (begun, exited, cpu): EndedCallOf) -> WholeCall {
        WholeCall {
            thread,
            cpu,
            begun,
            time: exited.time,
            result: exited.result,
        }
    }

    /// The call as input for futexes and sockets, if it concerns them.
    #[inline]
    pub(super) fn ended(
        &self,
        pid: Option<i32>,
        peer: Option<Peer>,
        counts: bool,
    ) -> Option<EndedCall> {
        let WholeCall {
            thread,
            begun,
            time,
            result,
            ..
        } = *self;
        let ended = EndedCall {
            thread,
            owner: owner(thread, pid),
            begun,
            peer,
            time,
            result,
            counts,
        };
        concerns_others(begun.class, result).then_some(ended)
    }

    pub(super) fn duration(&self) -> u64 {
        self.begun.time.abs_diff(self.time)
    }
}

/// Plays items on a machine.
pub(super) struct Player<'a> {
    pub(super) rules: &'a WaitRules,
    pub(super) machine: &'a mut WaitMachine,
    pub(super) sums: &'a mut WaitSums,
}

impl Player<'_> {
    /// Processes an item.
    #[inline(always)]
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, item: WaitItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        self.ends_recording(time);
        match item {
            WaitItem::Enter(tid) => {
                let (thread, losses) = self.thread(key(tid));
                let stretch = thread.cell.enter((cpu, time), tid, losses);
                thread.enters();
                self.is_seen_on((cpu, time), tid, &stretch);
            }
            WaitItem::Arrive(tid, call, result) => {
                self.arrives(cpu, key(tid), Exited { call, result, time });
            }
            WaitItem::Park(parked) => self.parks(cpu, time, &parked),
            WaitItem::Call(tid, begun, result) => {
                let call = WholeCall {
                    thread: key(tid),
                    cpu,
                    begun,
                    time,
                    result,
                };
                let counts = self
                    .rules
                    .counts_plain(begun.call, time, cpu, call.duration());
                self.concerns(&call, counts);
            }
            WaitItem::Switch { prev, next, left } => {
                if let Some(prev) = prev {
                    self.leaves((cpu, time), key(prev), left);
                }
                if let Some(next) = next {
                    self.comes((cpu, time), key(next));
                }
                self.machine.cpus.switch(cpu, time, next);
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
            WaitItem::Migrate(to) => {
                let is_gone = self
                    .rules
                    .recorded
                    .loses_on_move(trace, (to.from, to.to), time);
                self.thread(key(to.tid))
                    .0
                    .cell
                    .migrate((to.from, to.to), is_gone);
            }
            WaitItem::Peer(tid, peer) => self.thread(key(tid)).0.peer = Some(peer),
            WaitItem::Made(tid) => {
                let (thread, losses) = self.thread(key(tid));
                *thread = ThreadWaits::made((cpu, time), tid, losses);
            }
            WaitItem::TakeOver(tid, old) => {
                let left = std::mem::take(self.thread(key(old)).0);
                *self.thread(key(tid)).0 = left;
                self.machine.cpus.rename(cpu, old, tid);
            }
            WaitItem::Die(tid) => self.thread(key(tid)).0.cell.die(),
            WaitItem::Belongs { tid, pid } => self.thread(key(tid)).0.pid = Some(pid),
            WaitItem::Lose => {
                self.machine.losses.lose(cpu);
                self.machine.cpus.lose(cpu);
            }
            _ => {}
        }
    }

    #[inline(always)]
    pub(super) fn thread(&mut self, thread: ThreadKey) -> (&mut ThreadWaits, &Losses) {
        let WaitMachine {
            threads,
            near,
            losses,
            ..
        } = &mut *self.machine;
        (threads.get_near(thread, near), losses)
    }

    /// Ends the recording of CPUs up to a time: the state of their threads is unknown from then on.
    #[inline(always)]
    fn ends_recording(&mut self, until: i64) {
        let rules = self.rules;
        while let Some((cpu, time, tid)) = self.machine.cpus.next_end(&rules.recorded, until) {
            if let Some(tid) = tid {
                self.ends_recording_of((cpu, time), tid);
            }
        }
    }

    #[cold]
    fn ends_recording_of(&mut self, at: (CpuKey, i64), tid: i32) {
        let trace = at.0.trace;
        let thread = ThreadKey { trace, tid };
        let (of, losses) = self.thread(thread);
        if let Some(stretch) = of.cell.end_recording(at, losses) {
            self.spends(thread, at.1, stretch, Waker::NOBODY);
        }
    }

    /// A call shows that a thread runs on a CPU.
    #[inline]
    fn is_seen_on(&mut self, (cpu, time): (CpuKey, i64), tid: i32, stretch: &PastStretch<()>) {
        if !matches!(stretch.past, Past::Running) {
            self.machine.cpus.switch(cpu, time, Some(tid));
        }
    }

    /// Adds a stretch of a thread's time that has ended, and lists it if its call is listed.
    #[inline]
    fn spends(&mut self, thread: ThreadKey, time: i64, stretch: PastStretch<()>, waker: Waker) {
        let spent = self.thread(thread).0.spent.spend(time, stretch, waker);
        if spent.why != WaitReason::Running {
            self.list(thread, spent);
        }
    }

    pub(super) fn leaves(&mut self, at: (CpuKey, i64), thread: ThreadKey, left: LeftAs) {
        let (of, losses) = self.thread(thread);
        let stretch = of.cell.leave(at, left, losses);
        self.spends(thread, at.1, stretch, Waker::NOBODY);
    }

    #[inline]
    pub(super) fn comes(&mut self, at: (CpuKey, i64), thread: ThreadKey) {
        let rules = self.rules;
        let (of, losses) = self.thread(thread);
        let since = || of.cell.since();
        let is_whole = rules.recorded.is_whole_between(thread.trace, since, at.1);
        let stretch = of.cell.come(at, losses, is_whole);
        self.spends(thread, at.1, stretch, Waker::NOBODY);
    }

    fn wakes(&mut self, at: (CpuKey, i64), wake: WakeEvent, source: WakeSource, by: WakerFacts) {
        let trace = at.0.trace;
        let waking = self.waking(trace, by);
        let thread = by.tid().map(|tid| ThreadKey { trace, tid });
        self.is_woken(at, wake, (source, thread), waking);
    }

    /// A thread is woken, by the given thread if a thread woke it.
    pub(super) fn is_woken(
        &mut self,
        at: (CpuKey, i64),
        wake: WakeEvent,
        (source, thread): (WakeSource, Option<ThreadKey>),
        waking: Option<WakingThread>,
    ) {
        let (cpu, time) = at;
        let woken = ThreadKey {
            trace: cpu.trace,
            tid: wake.woken,
        };
        let rules = self.rules;
        let target = wake.target.map(u32::from);
        let since = || self.thread(woken).0.cell.since();
        let tells = rules.recorded.wake(at, since, wake.is_ready, target);
        let wakeup = Wakeup {
            time,
            source,
            waking,
            is_ready: wake.is_ready,
            is_whole: tells.is_whole(),
            cause: (),
        };
        let (of, losses) = self.thread(woken);
        if let Some(thread) = thread.filter(|_| frees(source, waking)) {
            of.freed = Some((time, thread));
        }
        let target = wake.target.unwrap_or(ThreadState::NO_CPU);
        if let WakeEffect::Ends(stretch) = of.cell.wake(wakeup, (cpu, target), tells, losses) {
            // After a loss of events, the waker is still known.
            let waker = match tells.slept {
                true => Waker { source, thread },
                false => Waker::NOBODY,
            };
            self.spends(woken, time, stretch, waker);
        }
    }

    /// The thread that wakes another one.
    #[inline]
    pub(super) fn waking(&mut self, trace: u32, by: WakerFacts) -> Option<WakingThread> {
        let key = |tid: i32| ThreadKey { trace, tid };
        match by {
            WakerFacts::Nobody => None,
            WakerFacts::Caller {
                tid,
                descriptor,
                call,
                lingers,
            } => Some(WakingThread {
                is_local: self.is_local(key(tid), call, descriptor.into()),
                ..WakingThread::caller(call, lingers)
            }),
            WakerFacts::Other { tid, requested } => {
                let (of, _) = self.thread(key(tid));
                let waking = of.cell.waking(requested);
                let descriptor = of.cell.call().map_or(-1, |open| open.argument);
                Some(WakingThread {
                    is_local: self.is_local(key(tid), waking.call, descriptor),
                    ..waking
                })
            }
        }
    }

    /// True if a thread's call is on a socket of the family AF_UNIX.
    fn is_local(&mut self, thread: ThreadKey, call: Option<CallClass>, descriptor: i64) -> bool {
        if !call.is_some_and(CallClass::is_network) {
            return false;
        }
        let owner = owner(thread, self.thread(thread).0.pid);
        self.machine.sockets.is_local(owner, descriptor)
    }

    /// Keeps a wait, which is listed if its call is listed.
    fn list(&mut self, thread: ThreadKey, spent: SpentTime) {
        if !self.rules.lists(&spent) {
            return;
        }
        let most = self.rules.listed();
        let (of, _) = self.thread(thread);
        if let Some(call) = of.call() {
            of.spent.list(spent.as_wait(thread, call), most);
        }
    }

    /// Processes the summary of a thread's stretch on a CPU.
    fn parks(&mut self, cpu: CpuKey, time: i64, parked: &ParkedThread) {
        let (trace, tid) = (cpu.trace, parked.tid);
        let thread = ThreadKey { trace, tid };
        let (of, _) = self.thread(thread);
        match of.cell.park((cpu, time), parked) {
            Parking::InCall(open) => of.is_in(&open),
            // The time of the call by wait reason is unknown.
            Parking::Ended(ended) => {
                let call = WholeCall::new(thread, ended);
                let mut parts = Parts::default();
                parts[WaitReason::Unknown as usize] = call.duration();
                let counts = self.rules.count_end(self.sums, &call, Some(&parts));
                self.concerns(&call, counts);
            }
            Parking::Nothing => {}
        }
    }

    /// The end of a call that was open when its thread's stretch began.
    fn arrives(&mut self, cpu: CpuKey, thread: ThreadKey, exited: Exited) {
        let (of, losses) = self.thread(thread);
        let (stretch, ended) = of.cell.arrive(cpu, thread.tid, exited, losses);
        of.spent.spend(exited.time, stretch, Waker::NOBODY);
        self.is_seen_on((cpu, exited.time), thread.tid, &stretch);
        let (of, _) = self.thread(thread);
        let Some(ended) = ended else {
            return of.spent.waits.clear();
        };
        let parts = of.spent.parts();
        self.ended(&WholeCall::new(thread, ended), parts.as_ref());
    }

    /// A call has ended during which the thread may have waited.
    fn ended(&mut self, call: &WholeCall, parts: Option<&Parts>) {
        let counts = self.rules.count_end(self.sums, call, parts);
        if counts {
            let (of, _) = self.thread(call.thread);
            let waits = std::mem::take(&mut of.spent.waits);
            self.rules.keep_waits(self.sums, call.thread, waits);
        }
        self.concerns(call, counts);
    }

    /// Passes an ended call on to futexes and sockets, if it concerns them.
    fn concerns(&mut self, call: &WholeCall, counts: bool) {
        let (of, _) = self.thread(call.thread);
        let peer = of.peer.take().map(|peer| *peer);
        let freed = of.freed.filter(|(time, _)| *time >= call.begun.time);
        let Some(ended) = call.ended(of.pid, peer, counts) else {
            return;
        };
        match call.begun.class {
            CallClass::Futex if counts => {
                self.sums.futexes.count(&ended, freed.map(|freed| freed.1))
            }
            CallClass::Futex => {}
            _ => self.machine.sockets.done(&mut self.sums.sockets, &ended),
        }
    }
}

impl WaitMachine {
    /// Number of selected calls that are open, without calls that never return, of threads that
    /// `shows` selects.
    pub(super) fn unfinished(&self, rules: &WaitRules, shows: impl Fn(ThreadKey) -> bool) -> u64 {
        let is_open = |(thread, of): &(ThreadKey, &ThreadWaits)| {
            let call = of.call().filter(|&call| rules.chosen.contain(call));
            call.is_some() && of.cell.class() != Some(CallClass::Exit) && shows(*thread)
        };
        self.threads.entries().filter(is_open).count() as u64
    }
}

/// True if a wake-up frees threads that wait at a futex.
pub(super) fn frees(source: WakeSource, waking: Option<WakingThread>) -> bool {
    WaitReason::of_wake(Some(CallClass::Futex), source, waking) == WaitReason::Futex
}

pub(super) fn owner(thread: ThreadKey, pid: Option<i32>) -> Owner {
    let alone = -1 - i64::from(thread.tid);
    (thread.trace, pid.map_or(alone, i64::from))
}

impl WaitRules {
    /// True if a stretch of time is listed if its call is.
    #[inline]
    pub(super) fn lists(&self, spent: &SpentTime) -> bool {
        self.listed() > 0
            && spent.duration > 0
            && self.options.views.limits.contain(spent.duration)
            && self.reasons.contain(spent.why)
    }

    /// Counts a call that has ended, if it is selected; true if so.
    pub(super) fn count_end(
        &self,
        sums: &mut WaitSums,
        call: &WholeCall,
        parts: Option<&Parts>,
    ) -> bool {
        let duration = call.duration();
        let counts = self.counts(call.begun.call, call.time, call.cpu, duration)
            && self.reasons.contain_any(parts);
        if counts {
            let sums = sums.threads.get(call.thread);
            self.count(sums, call.begun.call, duration, parts);
        }
        counts
    }

    /// Lists the waits of a selected call.
    pub(super) fn keep_waits(&self, sums: &mut WaitSums, thread: ThreadKey, waits: Vec<Wait>) {
        if waits.is_empty() {
            return;
        }
        let longest = &mut sums.threads.get(thread).top;
        let top = self.options.views.top();
        waits.iter().for_each(|wait| longest.add(*wait, top));
        if self.options.views.shows(View::Log) {
            sums.log.extend(waits);
        }
    }

    /// Counts a selected call, with its time by wait reason unless the thread ran all the time.
    #[inline(always)]
    pub(super) fn count(
        &self,
        sums: &mut Sums,
        call: Syscall,
        duration: u64,
        parts: Option<&Parts>,
    ) {
        let chosen = parts.and_then(|parts| self.reasons.of(parts));
        let (duration, parts) = match &chosen {
            Some((parts, duration)) => (*duration, Some(parts)),
            None => (duration, parts),
        };
        match &self.ranges {
            None => sums.calls.get(call).count(duration, parts),
            Some(ranges) => bin(&mut sums.bins, ranges, duration, parts),
        }
    }
}

/// Adds the time of a call by wait reason to the histograms.
fn bin(bins: &mut Vec<Bins>, ranges: &[Option<(u64, u64)>], duration: u64, parts: Option<&Parts>) {
    bins.resize(WaitReason::ALL.len(), Bins::default());
    let mut add = |why: WaitReason, time: u64| {
        let at = why as usize;
        if let (Some(bins), Some(Some(range))) = (bins.get_mut(at), ranges.get(at)) {
            bins.add(*range, time);
        }
    };
    match parts {
        None => add(WaitReason::Running, duration),
        Some(parts) => {
            let parts = WaitReason::ALL
                .into_iter()
                .zip(parts)
                .filter(|part| *part.1 > 0);
            parts.for_each(|(why, &time)| add(why, time));
        }
    }
}
