//! What becomes of threads and their calls, by what all CPUs did in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

use crate::kernel::{CallItem, CpuKey, Entered, Exited, Losses, Table, ThreadKey, WakeTells};
use crate::report::View;
use crate::stats::Bins;
use crate::waits::WaitRules;
use crate::waits::context::Source;
use crate::waits::done::{Done, Owner};
use crate::waits::futex::Futexes;
use crate::waits::kind::Kind;
use crate::waits::life::{Life, Parts, Stretch, Wakeup};

use crate::waits::socket::Sockets;
use crate::waits::step::{By, Details, Item, Left, Parked};
use crate::waits::sums::{Sums, Wait, Waker};
use crate::waits::why::{WakingThread, Why, wakes_futex};

/// What is known of threads and their calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Machine {
    lives: Table<Life>,
    /// Where the thread that was looked at last is among them.
    #[serde(skip)]
    near: usize,
    losses: Losses,
    pub(super) futexes: Futexes,
    pub(super) sockets: Sockets,
    /// Waits in the order in which their calls end.
    pub(super) log: Vec<Wait>,
}

/// A call from its beginning to its end on that CPU.
#[derive(Clone, Copy, Debug)]
struct Call {
    thread: ThreadKey,
    cpu: CpuKey,
    entered: Entered,
    exited: Exited,
    details: Details,
}

impl Call {
    fn duration(&self) -> u64 {
        self.entered.time.abs_diff(self.exited.time)
    }
}

/// A machine at work.
pub(super) struct Player<'a> {
    pub(super) rules: &'a WaitRules,
    pub(super) machine: &'a mut Machine,
    pub(super) sums: &'a mut Table<Sums>,
}

impl Player<'_> {
    /// Something happens.
    #[inline(always)]
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, item: Item) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            Item::Enters(tid) => {
                let (life, losses) = self.life(key(tid));
                life.calls.play(cpu, time, &CallItem::Enters(tid));
                life.enters(time, cpu, losses);
            }
            Item::Arrives(tid, call, result) => {
                self.arrives(cpu, key(tid), Exited { call, result, time });
            }
            Item::Parks(parked) => self.parks(cpu, time, parked),
            Item::Call {
                tid,
                call,
                operation,
                argument,
                begin,
                result,
            } => {
                let done = Call {
                    thread: key(tid),
                    cpu,
                    entered: Entered { call, time: begin },
                    exited: Exited {
                        call: None,
                        result,
                        time,
                    },
                    details: Details { argument, operation },
                };
                let counts = self.rules.counts(call, time, cpu, done.duration());
                self.concerns(&done, counts);
            }
            Item::Switch { prev, next, left } => {
                if let Some(prev) = prev {
                    self.leaves(cpu, time, key(prev), left);
                }
                if let Some(next) = next {
                    let rules = self.rules;
                    let (life, losses) = self.life(key(next));
                    let is_whole = rules.recorded.is_whole_between(trace, || life.since(), time);
                    let stretch = life.come(time, cpu, losses, is_whole);
                    self.list(key(next), stretch);
                }
            }
            Item::Wake {
                woken,
                is_ready,
                target,
                source,
                by,
            } => {
                let target = target.map(u32::from);
                let rules = self.rules;
                let since = || self.life(key(woken)).0.since();
                let tells = rules.recorded.wake((cpu, time), since, is_ready, target);
                self.wakes(cpu, time, key(woken), (source, by, is_ready), tells);
            }
            seldom => self.seldom(cpu, time, seldom),
        }
    }

    /// What happens seldom, or matters little.
    fn seldom(&mut self, cpu: CpuKey, time: i64, item: Item) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            Item::Moves { tid, from, to } => {
                let is_gone = self.rules.recorded.loses_on_move(trace, (from, to), time);
                self.life(key(tid)).0.moves(from, to, is_gone);
            }
            Item::Peer(tid, peer) => self.life(key(tid)).0.peer = Some(peer),
            Item::Born(tid) => {
                let (life, _) = self.life(key(tid));
                *life = Life::default();
                life.calls.play(cpu, time, &CallItem::Made(tid));
            }
            Item::TakesOver(tid, old) => {
                let left = std::mem::take(self.life(key(old)).0);
                *self.life(key(tid)).0 = left;
            }
            Item::Dies(tid) => self.life(key(tid)).0.dies(),
            Item::Belongs { tid, pid } => self.life(key(tid)).0.pid = Some(pid),
            Item::Lost => self.machine.losses.lose(cpu),
            _ => {}
        }
    }

    #[inline(always)]
    fn life(&mut self, thread: ThreadKey) -> (&mut Life, &Losses) {
        let Machine {
            lives, near, losses, ..
        } = &mut *self.machine;
        (lives.get_near(thread, near), losses)
    }

    fn leaves(&mut self, cpu: CpuKey, time: i64, thread: ThreadKey, left: Left) {
        let kinds = &self.rules.kinds;
        let (life, losses) = self.life(thread);
        let stretch = life.leave(time, cpu, left, losses, kinds);
        if stretch.why != Why::Running {
            self.list(thread, stretch);
        }
    }

    fn wakes(
        &mut self,
        cpu: CpuKey,
        time: i64,
        woken: ThreadKey,
        (source, by, is_ready): (Source, By, bool),
        tells: WakeTells,
    ) {
        let kinds = &self.rules.kinds;
        let (by, waking) = match by {
            By::Nobody => (None, None),
            By::Caller {
                tid,
                call,
                argument,
                has_closed,
            } => {
                let waking = WakingThread {
                    is_local: self.is_local(woken.with(tid), call, argument),
                    ..WakingThread::caller(call, has_closed)
                };
                (Some(tid), Some(waking))
            }
            By::Other { tid, requested } => {
                let (life, _) = self.life(woken.with(tid));
                let (waking, argument) = (life.waking(kinds, requested), life.details.argument);
                let waking = WakingThread {
                    is_local: self.is_local(woken.with(tid), waking.call, argument),
                    ..waking
                };
                (Some(tid), Some(waking))
            }
        };
        let thread = by.map(|tid| woken.with(tid));
        let wakeup = Wakeup {
            time,
            waker: Waker { source, thread },
            waking,
            is_ready,
            tells_sleep: tells.slept,
            is_whole: tells.is_whole(),
        };
        let (life, losses) = self.life(woken);
        let waited = life.lacks_cpu();
        if let Some(thread) = thread.filter(|_| wakes_futex(source, waking)) {
            life.freed = Some((time, thread));
        }
        if let Some(stretch) = life.wake(wakeup, cpu, losses, kinds) {
            self.list(woken, stretch);
        }
        self.life(woken).0.goes(tells, waited);
    }

    /// True if a thread's call is about a socket without a network.
    fn is_local(&mut self, thread: ThreadKey, call: Option<Kind>, descriptor: i64) -> bool {
        if !call.is_some_and(Kind::is_network) {
            return false;
        }
        let (life, _) = self.life(thread);
        let owner = owner(thread, life.pid);
        self.machine.sockets.is_local(owner, descriptor)
    }

    /// Keeps a wait that is to be listed if its call is.
    fn list(&mut self, thread: ThreadKey, stretch: Stretch) {
        let most = self.rules.listed();
        let limits = &self.rules.selection.limits;
        if most == 0 || stretch.duration == 0 || !limits.contain(stretch.duration) {
            return;
        }
        let (life, _) = self.life(thread);
        let Some(call) = life.call() else { return };
        life.waits.push(Wait {
            duration: stretch.duration,
            begin: stretch.begin,
            why: stretch.why,
            call,
            thread,
            waker: stretch.waker,
        });
        // A call may wait for ever: of its waits, those that cannot be among the longest are left out.
        if life.waits.len() >= most.saturating_mul(2).max(64) {
            life.waits.sort_unstable_by(|a, b| b.cmp(a));
            life.waits.truncate(most);
        }
    }

    /// What a thread has done since it came.
    fn parks(&mut self, cpu: CpuKey, time: i64, parked: Parked) {
        let (trace, tid) = (cpu.trace, parked.tid);
        let thread = ThreadKey { trace, tid };
        let (life, _) = self.life(thread);
        life.acted(&parked);
        let Some(call) = parked.call else { return };
        let open = Entered {
            call,
            time: parked.begin,
        };
        let details = Details {
            argument: parked.argument,
            operation: parked.operation,
        };
        match life.calls.play(cpu, time, &CallItem::Leaves(tid, open)) {
            // It has ended elsewhere, which was told before: of its time nothing is known.
            Some((entered, exited, cpu)) => {
                let call = Call {
                    thread,
                    cpu,
                    entered,
                    exited,
                    details,
                };
                let mut parts = Parts::default();
                parts[Why::Unknown as usize] = call.duration();
                self.ended(&call, Some(&parts));
            }
            None if life.calls.parked.is_some_and(|parked| parked.time == open.time) => {
                life.is_in(open, details);
            }
            None => {}
        }
    }

    /// A call ends that was open when its thread came.
    fn arrives(&mut self, cpu: CpuKey, thread: ThreadKey, exited: Exited) {
        let (life, losses) = self.life(thread);
        life.exits(exited.time, cpu, losses);
        let item = CallItem::Arrives(thread.tid, exited);
        let Some((entered, exited, cpu)) = life.calls.play(cpu, exited.time, &item) else {
            return;
        };
        let details = life.details;
        let parts = life.parts();
        let call = Call {
            thread,
            cpu,
            entered,
            exited,
            details,
        };
        self.ended(&call, parts.as_ref());
    }

    /// A call has ended that waited, or may have.
    fn ended(&mut self, call: &Call, parts: Option<&Parts>) {
        let rules = self.rules;
        let duration = call.duration();
        let counts = rules.counts(call.entered.call, call.exited.time, call.cpu, duration);
        if counts {
            let sums = self.sums.get(call.thread);
            rules.count(sums, call.entered.call, duration, parts);
            self.keep_waits(call.thread);
        }
        self.concerns(call, counts);
    }

    /// The waits of a call that counts are listed.
    fn keep_waits(&mut self, thread: ThreadKey) {
        let (life, _) = self.life(thread);
        if life.waits.is_empty() {
            return;
        }
        let waits = std::mem::take(&mut life.waits);
        let selection = &self.rules.selection;
        let sums = self.sums.get(thread);
        let top = selection.top();
        waits.iter().for_each(|wait| sums.top.add(*wait, top));
        if selection.shows(View::Log) {
            self.machine.log.extend(waits);
        }
    }

    /// A call has ended on a futex or a socket, or may have.
    fn concerns(&mut self, call: &Call, counts: bool) {
        let kind = self.rules.kinds.of(call.entered.call);
        let begin = call.entered.time;
        let thread = call.thread;
        let (life, _) = self.life(thread);
        let peer = life.peer.take().map(|peer| *peer);
        if !kind.concerns_others(call.exited.result) {
            return;
        }
        let freed = life.freed.filter(|(time, _)| *time >= begin);
        let done = Done {
            thread,
            owner: owner(thread, life.pid),
            kind,
            details: call.details,
            peer,
            begin,
            time: call.exited.time,
            result: call.exited.result,
            counts,
        };
        match kind {
            Kind::Futex if counts => self.machine.futexes.count(&done, freed.map(|freed| freed.1)),
            Kind::Futex => {}
            _ => self.machine.sockets.done(&done),
        }
    }
}

impl Machine {
    /// Calls that were asked for and are open, and are to end, of threads that `shows` chooses.
    pub(super) fn unfinished(&self, rules: &WaitRules, shows: impl Fn(ThreadKey) -> bool) -> u64 {
        let is_open = |(thread, life): &(ThreadKey, &Life)| {
            let call = life.call().filter(|&call| rules.chosen.contain(call));
            call.is_some() && life.kind(&rules.kinds) != Some(Kind::Exit) && shows(*thread)
        };
        self.lives.entries().filter(is_open).count() as u64
    }
}

fn owner(thread: ThreadKey, pid: Option<i32>) -> Owner {
    let alone = -1 - i64::from(thread.tid);
    (thread.trace, pid.map_or(alone, i64::from))
}

impl WaitRules {
    /// Counts a call that was asked for, with its parts if it did anything but run.
    #[inline(always)]
    pub(super) fn count(&self, sums: &mut Sums, call: Syscall, duration: u64, parts: Option<&Parts>) {
        match &self.ranges {
            None => sums.calls.get(call).count(duration, parts),
            Some(ranges) => bin(&mut sums.bins, ranges, duration, parts),
        }
    }
}

/// Counts the parts of a call among those of their size.
fn bin(bins: &mut Vec<Bins>, ranges: &[Option<(u64, u64)>], duration: u64, parts: Option<&Parts>) {
    bins.resize(Why::ALL.len(), Bins::default());
    let mut add = |why: Why, time: u64| {
        let at = why as usize;
        if let (Some(bins), Some(Some(range))) = (bins.get_mut(at), ranges.get(at)) {
            bins.add(*range, time);
        }
    };
    match parts {
        None => add(Why::Running, duration),
        Some(parts) => {
            let parts = Why::ALL.into_iter().zip(parts).filter(|part| *part.1 > 0);
            parts.for_each(|(why, &time)| add(why, time));
        }
    }
}
