//! What becomes of threads, by what all CPUs did in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Exited, Losses, Recorded, Table, ThreadKey};
use tracebraid_kernel_model::{Comm, Syscall};
use tracebraid_threads::{
    CallClass, CpuThreads, LeftAs, ParkedThread, Parking, ThreadCell, ThreadState, WakeEvent, WakeSource,
    WakerFacts, Wakeup, WakingThread,
};

use crate::calls::{LongCall, Longest};
use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, NO_OBJECT, Occupant, Occupied, Queue, State};
use crate::graph_step::{GraphItem, WakeOrigin};
use crate::holders::Held;
use crate::kept::Kept;
use crate::names::Names;
use crate::packets::Packets;
use crate::requests::Requests;
use crate::rings::Rings;
use crate::rules::GraphRules;
use crate::thread_life::ThreadLife;
use crate::works::Works;

/// What is known of threads, requests and segments.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GraphMachine {
    pub(crate) lives: Table<ThreadLife>,
    /// Where the thread that was looked at last is among them.
    #[serde(skip)]
    near: usize,
    losses: Losses,
    cpu_threads: CpuThreads,
    pub(crate) lines: Vec<Actor>,
    /// Which of them had which id, in the order of time, as far as nobody has taken that out.
    pub(crate) held: Vec<Held>,
    pub(crate) cpus: ByCpu<Vec<Occupied>>,
    pub(crate) requests: Requests,
    pub(crate) packets: Packets,
    pub(crate) works: Works,
    pub(crate) rings: Rings,
    /// Places of addresses.
    pub(crate) futexes: Vec<(i64, u32)>,
    pub(crate) calls: Longest,
    pub(crate) names: Names,
}

/// A machine at work.
pub(crate) struct Player<'a> {
    pub(crate) rules: &'a GraphRules,
    pub(crate) machine: &'a mut GraphMachine,
}

impl Player<'_> {
    /// Something happens.
    pub(crate) fn play(&mut self, cpu: CpuKey, time: i64, item: GraphItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        let at = (cpu, time);
        self.machine.ends_recording(&self.rules.recorded, time);
        match item {
            GraphItem::Enter(tid) => self.machine.enters(at, key(tid)),
            GraphItem::Arrive(tid, call, result) => self.arrives(at, key(tid), Exited { call, result, time }),
            GraphItem::Park(parked) => self.parks(at, &parked),
            GraphItem::Switch {
                prev,
                next,
                left,
                names,
            } => self.switches(at, (prev, next), left, names),
            GraphItem::Wake(wake, origin) => self.machine.wakes(&self.rules.recorded, at, wake, origin),
            GraphItem::Interrupted(tid, begin, by) => {
                let (life, line, losses) = self.machine.thread(key(tid));
                life.was_interrupted(line, at, (begin, by), losses);
            }
            GraphItem::Issue(request, tid, issued) => {
                let by = tid.map(|tid| self.machine.actor(key(tid)));
                self.machine.requests.issues((trace, request), time, by, issued);
            }
            GraphItem::Complete(request) => self.machine.requests.completes(cpu, request, time),
            GraphItem::Send(segment, tid) => {
                let by = tid.map(|tid| self.machine.actor(key(tid)));
                self.machine.packets.sends(segment, time, by);
            }
            GraphItem::Migrate(to) => {
                let is_gone = self.rules.recorded.loses_on_move(trace, (to.from, to.to), time);
                let life = self.machine.life(key(to.tid));
                life.cell.migrate((to.from, to.to), is_gone);
            }
            seldom => self.machine.seldom(at, seldom),
        }
    }

    /// A CPU goes from one thread to another.
    fn switches(
        &mut self,
        (cpu, time): (CpuKey, i64),
        (prev, next): (Option<i32>, Option<i32>),
        left: LeftAs,
        names: [Comm; 2],
    ) {
        let trace = cpu.trace;
        let machine = &mut *self.machine;
        if let Some(tid) = prev {
            let key = ThreadKey { trace, tid };
            let (call, argument) = machine.life(key).call();
            let object = match self.rules.classes.of(call) {
                CallClass::Futex => machine.futex(argument),
                _ => u32::try_from(argument).unwrap_or(NO_OBJECT),
            };
            let (life, line, losses) = machine.thread(key);
            life.leaves(line, (cpu, time), left, (call, object), losses);
            line.is_called(time, names[0]);
        }
        let mut by = Occupant::Idle;
        if let Some(tid) = next {
            let key = ThreadKey { trace, tid };
            let since = || machine.life(key).cell.since();
            let is_whole = self.rules.recorded.is_whole_between(trace, since, time);
            if !is_whole {
                machine.loses_sight(key);
            }
            let (life, line, losses) = machine.thread(key);
            life.comes(line, (cpu, time), losses, is_whole);
            line.is_called(time, names[1]);
            if time < self.rules.from {
                line.forgets();
            }
            by = Occupant::Thread(machine.actor(key));
        }
        machine.cpu_threads.switch(cpu, time, next);
        machine.occupies(cpu, time, by);
        if time < self.rules.from {
            machine.forgets(cpu);
        }
    }

    /// What a thread has done since it came.
    fn parks(&mut self, at: (CpuKey, i64), parked: &ParkedThread) {
        let (trace, tid) = (at.0.trace, parked.tid);
        let thread = ThreadKey { trace, tid };
        if let Parking::Ended((begun, exited, _)) = self.machine.life(thread).cell.park(at, parked) {
            self.ended(thread, (begun.call, begun.time), exited.time);
        }
    }

    /// A call ends that was open when its thread came.
    fn arrives(&mut self, at: (CpuKey, i64), thread: ThreadKey, exited: Exited) {
        let (life, line, losses) = self.machine.thread(thread);
        let (stretch, ended) = life.cell.arrive(at.0, thread.tid, exited, losses);
        if ThreadLife::is_seen_running(line, at, &stretch) {
            self.machine.is_seen_on(at, thread);
        }
        if let Some((begun, ..)) = ended {
            self.ended(thread, (begun.call, begun.time), at.1);
        }
    }

    /// A call has ended that was not of one stretch.
    fn ended(&mut self, thread: ThreadKey, (call, begin): (Syscall, i64), end: i64) {
        if self.rules.asks_for(call, begin) {
            let call = LongCall {
                call,
                thread,
                begin,
                end,
            };
            self.machine.calls.add(call, &self.rules.wanted);
        }
    }
}

impl GraphMachine {
    /// The recording of CPUs ends up to `until` (nanoseconds from the origin): the state of their threads becomes unknown.
    #[inline(always)]
    fn ends_recording(&mut self, recorded: &Recorded, until: i64) {
        while let Some((cpu, time, tid)) = self.cpu_threads.next_end(recorded, until) {
            self.ends_recording_of(cpu, time, tid);
        }
    }

    #[cold]
    fn ends_recording_of(&mut self, cpu: CpuKey, time: i64, tid: Option<i32>) {
        if let Some(tid) = tid {
            let trace = cpu.trace;
            let (life, line, losses) = self.thread(ThreadKey { trace, tid });
            if life.cell.end_recording((cpu, time), losses).is_some() {
                line.begins(time, State::Unknown);
            }
        }
        if !self.cpus.get(cpu).is_empty() {
            self.occupies(cpu, time, Occupant::Unknown);
        }
    }

    /// A thread enters a call, and was in none when it came.
    fn enters(&mut self, at: (CpuKey, i64), thread: ThreadKey) {
        let (life, line, losses) = self.thread(thread);
        let stretch = life.cell.enter(at, thread.tid, losses);
        if ThreadLife::is_seen_running(line, at, &stretch) {
            self.is_seen_on(at, thread);
        }
    }

    /// A call shows that a thread runs on a CPU.
    #[cold]
    fn is_seen_on(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey) {
        let by = Occupant::Thread(self.actor(thread));
        self.cpu_threads.switch(cpu, time, Some(thread.tid));
        self.occupies(cpu, time, by);
    }

    /// Ends one trace, or all, at `end` (nanoseconds from the origin): threads that wait there are still waiting.
    pub(crate) fn ends_waiting(&mut self, recorded: &Recorded, trace: Option<u32>, end: i64) {
        self.ends_recording(recorded, end);
        let is_of = |key: ThreadKey| trace.is_none_or(|trace| trace == key.trace);
        for (key, life) in self.lives.entries().filter(|life| is_of(life.0)) {
            let line = life.actor.and_then(|actor| self.lines.get_mut(actor as usize));
            let Some(line) = line else { continue };
            if !recorded.is_whole(key.trace) {
                // An unrecorded CPU may have woken or run the thread.
                if let Some(State::Preempted(_) | State::Runnable(_)) = line.now() {
                    line.is(State::Unknown);
                }
            } else {
                let cpu = CpuKey {
                    trace: key.trace,
                    cpu: 0,
                };
                life.still_waits(line, &self.losses, cpu);
            }
        }
    }

    /// Drops the last state of a thread that seems to have waited for a CPU which went idle meanwhile: it has
    /// gone to a CPU that was not recorded.
    #[cold]
    fn loses_sight(&mut self, thread: ThreadKey) {
        let cell = &self.life(thread).cell;
        let (state, since) = (cell.state(), cell.since());
        if self.cpu_threads.is_out_of_sight(thread.trace, state, since) {
            let (life, line, _) = self.thread(thread);
            life.cell.lose_sight();
            line.is(State::Unknown);
        }
    }

    /// A trace ends, and others go on: what its threads do from then on is not known.
    pub(crate) fn ends_knowing(&mut self, trace: u32, end: i64) {
        let of_trace = self.lines.iter_mut().filter(|line| line.key.trace == trace);
        for line in of_trace.filter(|line| line.now().is_some_and(|now| now != State::Ended)) {
            line.begins(end, State::Unknown);
        }
        let cpus = self
            .cpus
            .iter()
            .filter(|(cpu, line)| cpu.trace == trace && !line.is_empty());
        let cpus: Vec<CpuKey> = cpus.map(|(cpu, _)| *cpu).collect();
        for cpu in cpus {
            self.occupies(cpu, end, Occupant::Unknown);
        }
    }

    #[inline(always)]
    pub(crate) fn life(&mut self, thread: ThreadKey) -> &mut ThreadLife {
        self.lives.get_near(thread, &mut self.near)
    }

    /// A thread, its time line, and what was lost.
    #[inline(always)]
    pub(crate) fn thread(&mut self, thread: ThreadKey) -> (&mut ThreadLife, &mut Actor, &Losses) {
        let actor = self.actor(thread);
        let GraphMachine {
            lives,
            near,
            losses,
            lines,
            ..
        } = self;
        // `actor` has made it.
        let line = &mut lines[actor.0 as usize];
        (lives.get_near(thread, near), line, losses)
    }

    /// The thread that has that id now.
    #[inline]
    pub(crate) fn actor(&mut self, thread: ThreadKey) -> ActorId {
        let new = self.lines.len() as u32;
        let actor = *self.life(thread).actor.get_or_insert(new);
        if actor == new {
            self.lines.push(Actor::new(thread));
            self.held.push(Held {
                key: thread,
                since: i64::MIN,
                actor: Some(ActorId(actor)),
            });
        }
        ActorId(actor)
    }

    /// What came before what is now does not matter: no wait goes on that it could have ended.
    #[cold]
    fn forgets(&mut self, cpu: CpuKey) {
        let line = self.cpus.get(cpu);
        line.drain(..line.len().saturating_sub(1));
        self.requests.forget();
        self.packets.forget();
        self.rings.done = Kept::default();
    }

    fn occupies(&mut self, cpu: CpuKey, time: i64, by: Occupant) {
        let line = self.cpus.get(cpu);
        if line.last().is_some_and(|last| last.begin == time) {
            line.pop();
        }
        if line.last().is_none_or(|last| last.by != by) {
            line.push(Occupied { begin: time, by });
        }
    }

    /// The place of an address.
    fn futex(&mut self, address: i64) -> u32 {
        match self.futexes.binary_search_by_key(&address, |of| of.0) {
            Ok(at) => self.futexes[at].1,
            Err(at) => {
                let place = self.futexes.len() as u32;
                self.futexes.insert(at, (address, place));
                place
            }
        }
    }

    /// A thread is woken.
    fn wakes(&mut self, recorded: &Recorded, at: (CpuKey, i64), event: WakeEvent, origin: WakeOrigin) {
        let (cpu, time) = at;
        let trace = cpu.trace;
        let woken = ThreadKey {
            trace,
            tid: event.woken,
        };
        let since = || self.life(woken).cell.since();
        let tells = recorded.wake(at, since, event.is_ready, event.target.map(u32::from));
        let waking = self.waking(trace, origin);
        let (life, ..) = self.thread(woken);
        let (state, since) = (life.cell.state(), life.cell.since());
        let open = life.cell.call().filter(|open| open.call != Syscall::OTHER);
        let mut cause = Wake::Unknown;
        if state == ThreadState::Blocked {
            cause = self.wake(cpu, (origin, waking), (open.is_some(), since));
            // Without system calls it may wait for one.
            let class = open.map(|open| open.class);
            if matches!(class, None | Some(CallClass::Ring)) {
                self.ring_wakes(time, woken, cause, class.is_some());
            }
        }
        let wakeup = Wakeup {
            time,
            source: origin.source(),
            waking,
            is_ready: event.is_ready,
            is_whole: tells.is_whole(),
            cause,
        };
        let (life, line, losses) = self.thread(woken);
        let target = event.target.unwrap_or(ThreadState::NO_CPU);
        life.wakes(line, wakeup, (cpu, target), tells, losses);
    }

    /// The thread that wakes another one, if one does.
    #[inline]
    fn waking(&mut self, trace: u32, origin: WakeOrigin) -> Option<WakingThread> {
        let waking = match origin.by() {
            WakerFacts::Nobody => return None,
            WakerFacts::Caller { call, lingers, .. } => WakingThread::caller(call, lingers),
            WakerFacts::Other { tid, requested } => {
                self.life(ThreadKey { trace, tid }).cell.waking(requested)
            }
        };
        Some(WakingThread {
            // What it sends is among the packets.
            is_local: !matches!(origin, WakeOrigin::Sender(..)),
            ..waking
        })
    }

    /// What ends a wait that began then, in a call or in none.
    fn wake(
        &mut self,
        cpu: CpuKey,
        (origin, waking): (WakeOrigin, Option<WakingThread>),
        (is_in_call, since): (bool, i64),
    ) -> Wake {
        if let WakeOrigin::Sender(connection, _) = origin
            && is_in_call
            && let Some(place) = self.packets.answers(connection, since)
        {
            return Wake::Packet(place);
        }
        let source = match origin {
            WakeOrigin::Network(segment) => return Wake::Packet(self.packets.wakes(segment)),
            origin => origin.source(),
        };
        match source {
            WakeSource::Timer => Wake::Timer,
            WakeSource::Interrupt(interrupt, _) => Wake::Interrupt(interrupt),
            WakeSource::BlockDevice => self.requests.last(cpu).map_or(Wake::Unknown, Wake::Request),
            WakeSource::Thread => {
                let tid = origin
                    .by()
                    .tid()
                    .filter(|_| waking.is_some_and(|waking| !waking.is_in_program()));
                let trace = cpu.trace;
                tid.map_or(Wake::Unknown, |tid| {
                    Wake::Thread(self.actor(ThreadKey { trace, tid }))
                })
            }
        }
    }

    /// What happens seldom, or matters little.
    fn seldom(&mut self, (cpu, time): (CpuKey, i64), item: GraphItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            GraphItem::Made(tid, creator) => self.born((cpu, time), key(tid), creator),
            GraphItem::TakeOver(tid, old) => self.takes_over((cpu, time), key(tid), key(old)),
            GraphItem::Die(tid) => self.life(key(tid)).cell.die(),
            GraphItem::Belongs { tid, pid } => self.thread(key(tid)).1.pid = Some(pid),
            GraphItem::Named(tid, name) => self.thread(key(tid)).1.is_called(time, name),
            GraphItem::Tells(told) => self.names.learn(trace, *told),
            GraphItem::Queue { work, queue, origin } => {
                let waking = self.waking(trace, origin);
                let cause = self.wake(cpu, (origin, waking), (false, time));
                let queue = Queue::Kernel(queue);
                self.works.queues((trace, work), time, cause, queue);
            }
            GraphItem::Execute(tid, work) => {
                if let Some(work) = self.works.begins((trace, work), time) {
                    self.thread(key(tid)).1.works(work);
                }
            }
            GraphItem::Ring(event, tid) => self.ring(time, key(tid), event),
            GraphItem::Lose => {
                self.losses.lose(cpu);
                self.cpu_threads.lose(cpu);
                self.requests.lose();
                self.works.lose();
                self.rings.lose();
                self.occupies(cpu, time, Occupant::Unknown);
            }
            _ => {}
        }
    }

    /// A new thread is another one than whoever had its id before.
    fn born(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey, creator: Option<i32>) {
        let creator = creator.map(|tid| self.actor(thread.with(tid)));
        if let Some(before) = self.life(thread).actor {
            self.ends(time, before);
        }
        *self.life(thread) = ThreadLife::default();
        let (life, line, losses) = self.thread(thread);
        line.creator = creator;
        // The wake-up that makes it ready names its CPU.
        life.cell = ThreadCell::made((cpu, time), thread.tid, losses);
        line.begins(time, State::Runnable(ThreadState::NO_CPU));
    }

    /// A thread is no more, whatever was seen of its end.
    fn ends(&mut self, time: i64, actor: u32) {
        let line = self.lines.get_mut(actor as usize);
        if let Some(line) = line.filter(|line| line.now().is_some_and(|now| now != State::Ended)) {
            line.begins(time, State::Ended);
        }
    }

    /// The thread with the second id goes on with the first one, whose thread ends.
    fn takes_over(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey, old: ThreadKey) {
        self.cpu_threads.rename(cpu, old.tid, thread.tid);
        if let Some(before) = self.life(thread).actor {
            self.ends(time, before);
        }
        let life = std::mem::take(self.life(old));
        if let Some(line) = life.actor.and_then(|actor| self.lines.get_mut(actor as usize)) {
            line.key = thread;
        }
        if let Some(actor) = life.actor {
            let held = |key, actor: Option<u32>| Held {
                key,
                since: time,
                actor: actor.map(ActorId),
            };
            self.held.extend([held(old, None), held(thread, Some(actor))]);
        }
        *self.life(thread) = life;
    }
}
