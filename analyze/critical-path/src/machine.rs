//! What becomes of threads, by what all CPUs did in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::{
    ByCpu, CallItem, CpuKey, Exited, Losses, Recorded, Table, ThreadKey, WakeTells,
};
use tracebraid_kernel_model::{Comm, Syscall};

use crate::calls::{LongCall, Longest};
use crate::cause::{ActorId, Wake};
use crate::context::Source;
use crate::graph::{Actor, NO_OBJECT, Occupant, Occupied, Queue, State, Stretch};
use crate::holders::Held;
use crate::kept::Kept;
use crate::kinds::{Kind, Kinds};
use crate::life::{Life, NO_CPU, number};
use crate::names::Names;
use crate::packets::Packets;
use crate::requests::Requests;
use crate::rings::Rings;
use crate::rules::GraphRules;
use crate::step::{Begun, By, Item, Left, Parked};
use crate::works::Works;

/// What is known of threads, requests and segments.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) lives: Table<Life>,
    /// Where the thread that was looked at last is among them.
    #[serde(skip)]
    near: usize,
    losses: Losses,
    /// Number of [`Recorded::ends`] that were processed.
    ended: usize,
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
    pub(crate) machine: &'a mut Machine,
}

impl Player<'_> {
    /// Something happens.
    pub(crate) fn play(&mut self, cpu: CpuKey, time: i64, item: Item) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        let at = (cpu, time);
        self.machine.ends_recording(&self.rules.recorded, time);
        match item {
            Item::Enters(tid) => {
                let life = self.machine.life(key(tid));
                life.calls.play(cpu, time, &CallItem::Enters(tid));
                (life.called, life.has_called) = (time, true);
            }
            Item::Arrives(tid, call, result) => self.arrives(at, key(tid), Exited { call, result, time }),
            Item::Parks(parked) => self.parks(at, parked),
            Item::Switch {
                prev,
                next,
                left,
                names,
            } => self.switches(at, (prev, next), left, names),
            Item::Wake {
                woken,
                is_ready,
                cpu: target,
                source,
                by,
            } => {
                let kinds = &self.rules.kinds;
                let since = || self.machine.since(key(woken));
                let tells = self.rules.recorded.wake(at, since, is_ready, target);
                self.machine
                    .wakes(kinds, at, key(woken), (source, by), (is_ready, target), tells);
            }
            Item::Interrupted(tid, begin, by) => {
                let (life, line, losses) = self.machine.thread(key(tid));
                life.was_interrupted(line, at, (begin, by), losses);
            }
            Item::Issue(request, tid, issued) => {
                let by = tid.map(|tid| self.machine.actor(key(tid)));
                self.machine.requests.issues((trace, request), time, by, issued);
            }
            Item::Complete(request) => self.machine.requests.completes(cpu, request, time),
            Item::Send(segment, tid) => {
                let by = tid.map(|tid| self.machine.actor(key(tid)));
                self.machine.packets.sends(segment, time, by);
            }
            Item::Moves { tid, from, to } => {
                let is_gone = self.rules.recorded.loses_on_move(trace, (from, to), time);
                let (life, line, _) = self.machine.thread(key(tid));
                life.moves(line, (from, to), is_gone);
            }
            seldom => self.machine.seldom(at, seldom),
        }
    }

    /// A CPU goes from one thread to another.
    fn switches(
        &mut self,
        (cpu, time): (CpuKey, i64),
        (prev, next): (Option<i32>, Option<i32>),
        left: Left,
        names: [Comm; 2],
    ) {
        let trace = cpu.trace;
        let machine = &mut *self.machine;
        if let Some(tid) = prev {
            let key = ThreadKey { trace, tid };
            let (call, argument) = machine.life(key).call();
            let object = match self.rules.kinds.of(call) {
                Kind::Futex => machine.futex(argument),
                _ => u32::try_from(argument).unwrap_or(NO_OBJECT),
            };
            let (life, line, losses) = machine.thread(key);
            life.leaves(line, (cpu, time), left, (call, object), losses);
            line.is_called(time, names[0]);
        }
        let mut by = Occupant::Idle;
        if let Some(tid) = next {
            let key = ThreadKey { trace, tid };
            let is_whole = self
                .rules
                .recorded
                .is_whole_between(trace, || machine.since(key), time);
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
        machine.occupies(cpu, time, by);
        if time < self.rules.from {
            machine.forgets(cpu);
        }
    }

    /// What a thread has done since it came.
    fn parks(&mut self, (cpu, time): (CpuKey, i64), parked: Parked) {
        let (trace, tid) = (cpu.trace, parked.tid);
        let thread = ThreadKey { trace, tid };
        let life = self.machine.life(thread);
        (life.called, life.has_called) = (parked.called, true);
        life.lingers = parked.lingers;
        let Some(call) = parked.call else { return };
        let begun = Begun {
            call,
            time: parked.begin,
            argument: parked.argument,
        };
        let ended = life.calls.play(cpu, time, &CallItem::Leaves(tid, begun));
        if let Some((begun, exited, _)) = ended {
            self.ended(thread, begun, exited.time);
        }
    }

    /// A call ends that was open when its thread came.
    fn arrives(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey, exited: Exited) {
        let kinds = &self.rules.kinds;
        let life = self.machine.life(thread);
        (life.called, life.has_called) = (time, true);
        let ended = life.calls.play(cpu, time, &CallItem::Arrives(thread.tid, exited));
        let call = exited.call.or(ended.map(|(begun, ..)| begun.call));
        life.lingers = call.is_some_and(|call| kinds.of(call) == Kind::Close);
        if let Some((begun, ..)) = ended {
            self.ended(thread, begun, time);
        }
    }

    /// A call has ended that was not of one stretch.
    fn ended(&mut self, thread: ThreadKey, begun: Begun, end: i64) {
        if self.rules.asks_for(begun.call, begun.time) {
            let call = LongCall {
                call: begun.call,
                thread,
                begin: begun.time,
                end,
            };
            self.machine.calls.add(call, &self.rules.wanted);
        }
    }
}

impl Machine {
    /// Processes the ends of CPUs up to `until` (nanoseconds from the origin): the state of their threads becomes unknown.
    #[inline(always)]
    fn ends_recording(&mut self, recorded: &Recorded, until: i64) {
        while let Some(&(time, cpu)) = recorded.ends().get(self.ended)
            && time <= until
        {
            self.ended += 1;
            self.ends_recording_of(cpu, time);
        }
    }

    #[cold]
    fn ends_recording_of(&mut self, cpu: CpuKey, time: i64) {
        let Some(&Occupied { by, .. }) = self.cpus.get(cpu).last() else {
            return;
        };
        let runs_here =
            |state| matches!(state, State::Running(on) | State::Interrupted(on, _) if on == number(cpu.cpu));
        if let Occupant::Thread(actor) = by
            && let Some(line) = self.lines.get_mut(actor.0 as usize)
            && line.now().is_some_and(runs_here)
        {
            line.begins(time, State::Unknown);
        }
        self.occupies(cpu, time, Occupant::Unknown);
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
                life.still_waits(line, self.losses.of_trace(cpu));
            }
        }
    }

    /// Begin of the current state of a thread, in nanoseconds from the origin; the least number if it has none.
    fn since(&mut self, thread: ThreadKey) -> i64 {
        let actor = self.life(thread).actor;
        let line = actor.and_then(|actor| self.lines.get(actor as usize));
        line.and_then(|line| line.line.last())
            .map_or(i64::MIN, |stretch| stretch.begin)
    }

    /// Drops the last state of a thread that seems to have waited for a CPU which went idle meanwhile: it has
    /// gone to a CPU that was not recorded.
    #[cold]
    fn loses_sight(&mut self, thread: ThreadKey) {
        let actor = self.actor(thread);
        let Machine { lines, cpus, .. } = self;
        let Some(line) = lines.get_mut(actor.0 as usize) else {
            return;
        };
        let Some(&Stretch { begin, state }) = line.line.last() else {
            return;
        };
        let (State::Preempted(cpu) | State::Runnable(cpu)) = state else {
            return;
        };
        let trace = thread.trace;
        let occupied = cpus.get(CpuKey {
            trace,
            cpu: u32::from(cpu),
        });
        let since = occupied.partition_point(|occupied| occupied.begin <= begin);
        let rest = occupied.get(since..).unwrap_or_default();
        if cpu == NO_CPU || rest.iter().any(|occupied| occupied.by == Occupant::Idle) {
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
    pub(crate) fn life(&mut self, thread: ThreadKey) -> &mut Life {
        self.lives.get_near(thread, &mut self.near)
    }

    /// A thread, its time line, and what was lost.
    #[inline(always)]
    pub(crate) fn thread(&mut self, thread: ThreadKey) -> (&mut Life, &mut Actor, &Losses) {
        let actor = self.actor(thread);
        let Machine {
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
    fn wakes(
        &mut self,
        kinds: &Kinds,
        at: (CpuKey, i64),
        woken: ThreadKey,
        (source, by): (Source, By),
        (is_ready, target): (bool, Option<u32>),
        tells: WakeTells,
    ) {
        let actor = self.actor(woken);
        let line = self.lines.get(actor.0 as usize);
        let wake = match line.and_then(|line| line.line.last()).copied() {
            Some(Stretch {
                begin,
                state: State::Blocked { call, .. },
            }) => {
                let wake = self.wake(at.0, (source, by), (call, begin));
                // Without system calls it may wait for one.
                if call == Syscall::OTHER || kinds.of(call) == Kind::Ring {
                    self.ring_wakes(at.1, woken, wake, kinds.of(call) == Kind::Ring);
                }
                wake
            }
            _ => Wake::Unknown,
        };
        let (life, line, losses) = self.thread(woken);
        let target = target.map_or(NO_CPU, number);
        life.wakes(line, at, (wake, is_ready, target), tells, losses);
    }

    /// What ends a wait in that call that began then.
    fn wake(&mut self, cpu: CpuKey, (source, by): (Source, By), (call, since): (Syscall, i64)) -> Wake {
        let key = |tid| ThreadKey {
            trace: cpu.trace,
            tid,
        };
        if let Source::Sender(connection) = source
            && call != Syscall::OTHER
            && let Some(place) = self.packets.answers(connection, since)
        {
            return Wake::Packet(place);
        }
        match (source, by) {
            (Source::Timer, _) => Wake::Timer,
            (Source::Interrupt(interrupt), _) => Wake::Interrupt(interrupt),
            (Source::Network(segment), _) => Wake::Packet(self.packets.wakes(segment)),
            (Source::Disk(_), _) => self.requests.last(cpu).map_or(Wake::Unknown, Wake::Request),
            (Source::Thread | Source::Sender(_), By::Thread(tid)) => Wake::Thread(self.actor(key(tid))),
            (Source::Thread | Source::Sender(_), By::PerhapsThread(tid)) => {
                match self.life(key(tid)).is_in_program() {
                    true => Wake::Unknown,
                    false => Wake::Thread(self.actor(key(tid))),
                }
            }
            (Source::Thread | Source::Sender(_), By::Nobody) => Wake::Unknown,
        }
    }

    /// What happens seldom, or matters little.
    fn seldom(&mut self, (cpu, time): (CpuKey, i64), item: Item) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            Item::Born(tid, creator) => self.born((cpu, time), key(tid), creator),
            Item::TakesOver(tid, old) => self.takes_over(time, key(tid), key(old)),
            Item::Dies(tid) => {
                let life = self.life(key(tid));
                life.is_dying = true;
                life.calls.parked = None;
            }
            Item::Belongs { tid, pid } => self.thread(key(tid)).1.pid = Some(pid),
            Item::Named(tid, name) => self.thread(key(tid)).1.is_called(time, name),
            Item::Tells(told) => self.names.learn(trace, *told),
            Item::Queue {
                work,
                queue,
                source,
                by,
            } => {
                let cause = self.wake(cpu, (source, by), (Syscall::OTHER, time));
                let queue = Queue::Kernel(queue);
                self.works.queues((trace, work), time, cause, queue);
            }
            Item::Executes(tid, work) => {
                if let Some(work) = self.works.begins((trace, work), time) {
                    self.thread(key(tid)).1.works(work);
                }
            }
            Item::Ring(event, tid) => self.ring(time, key(tid), event),
            Item::Lost => {
                self.losses.lose(cpu);
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
        *self.life(thread) = Life::default();
        let (life, line, losses) = self.thread(thread);
        line.creator = creator;
        // The wake-up that makes it ready names its CPU.
        let wake = (Wake::Unknown, false, NO_CPU);
        life.wakes(line, (cpu, time), wake, WakeTells::made(cpu), losses);
        life.calls.play(cpu, time, &CallItem::Made(thread.tid));
    }

    /// A thread is no more, whatever was seen of its end.
    fn ends(&mut self, time: i64, actor: u32) {
        let line = self.lines.get_mut(actor as usize);
        if let Some(line) = line.filter(|line| line.now().is_some_and(|now| now != State::Ended)) {
            line.begins(time, State::Ended);
        }
    }

    /// The thread with the second id goes on with the first one, whose thread ends.
    fn takes_over(&mut self, time: i64, thread: ThreadKey, old: ThreadKey) {
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
