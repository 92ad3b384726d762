//! Tracks the states of threads from the items of all CPUs in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Exited, Losses, Recorded, Table, ThreadKey};
use tracebraid_kernel_model::{Comm, Syscall};
use tracebraid_threads::{CpuThreads, LeftAs, ParkedThread, Parking, ThreadCell, ThreadState};

use crate::calls::{LongCall, Longest};
use crate::cause::ActorId;
use crate::dropping::Dropped;
use crate::futexes::Futexes;
use crate::graph::{Actor, Occupant, Occupied, Queue, State};
use crate::graph_step::GraphItem;
use crate::holders::Held;
use crate::later::{CpuChange, LaterChanges, Line, Unplaced, is_unplaced};
use crate::names::Names;
use crate::packets::Packets;
use crate::requests::Requests;
use crate::rings::Rings;
use crate::rules::GraphRules;
use crate::slice::RetiredSlices;
use crate::thread_life::{ThreadLife, TimeLine};
use crate::works::{Queued, Works};

/// State of all threads, requests and segments, and the graph made so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GraphMachine {
    pub(crate) lives: Table<ThreadLife>,
    /// Index in `lives` of the last thread that was looked up.
    #[serde(skip)]
    near: usize,
    pub(crate) losses: Losses,
    cpu_threads: CpuThreads,
    pub(crate) lines: Vec<Actor>,
    /// By index of the thread: queued changes of its time line; `are_later` lists the threads that
    /// have any.
    pub(crate) later: Vec<LaterChanges>,
    pub(crate) are_later: Vec<u32>,
    /// Threads that still have the numbers of their slices, ascending.
    pub(crate) unplaced: Vec<Unplaced>,
    /// Holders of ids in the order of time; a growing graph takes them out.
    pub(crate) held: Vec<Held>,
    pub(crate) cpus: ByCpu<Vec<Occupied>>,
    pub(crate) cpus_later: ByCpu<Vec<CpuChange>>,
    pub(crate) requests: Requests,
    pub(crate) packets: Packets,
    pub(crate) works: Works,
    pub(crate) rings: Rings,
    pub(crate) futexes: Futexes,
    pub(crate) calls: Longest,
    pub(crate) names: Names,
    pub(crate) dropped: Dropped,
    #[serde(skip)]
    pub(crate) retired: RetiredSlices,
}

/// Plays items on a [`GraphMachine`].
pub(crate) struct Player<'a> {
    pub(crate) rules: &'a GraphRules,
    pub(crate) machine: &'a mut GraphMachine,
}

impl Player<'_> {
    /// Applies an item.
    pub(crate) fn play(&mut self, cpu: CpuKey, time: i64, item: GraphItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        let at = (cpu, time);
        self.machine.ends_recording(&self.rules.recorded, time);
        match item {
            GraphItem::Enter(tid) => self.machine.enters(at, key(tid)),
            GraphItem::Arrive(tid, call, result) => {
                self.arrives(at, key(tid), Exited { call, result, time })
            }
            GraphItem::Park(parked) => self.parks(at, &parked),
            GraphItem::Switch {
                prev,
                next,
                left,
                names,
            } => self.switches(at, (prev, next), left, names),
            GraphItem::Wake(wake, origin) => {
                self.machine.wakes(&self.rules.recorded, at, wake, origin)
            }
            GraphItem::Interrupted(tid, begin, by) => {
                let (life, mut line, losses) = self.machine.thread(key(tid));
                life.was_interrupted(&mut line, at, (begin, by), losses);
            }
            GraphItem::Issue(request, tid, issued) => {
                let by = tid.map(|tid| self.machine.actor(key(tid)));
                self.machine
                    .requests
                    .issues((trace, request), time, by, issued);
            }
            GraphItem::Complete(request) => self.machine.requests.completes(cpu, request, time),
            GraphItem::Send(segment, tid) => {
                let by = tid.map(|tid| self.machine.actor(key(tid)));
                self.machine.packets.sends(segment, time, by);
            }
            GraphItem::Migrate(to) => {
                let is_gone = self
                    .rules
                    .recorded
                    .loses_on_move(trace, (to.from, to.to), time);
                let life = self.machine.life(key(to.tid));
                life.cell.migrate((to.from, to.to), is_gone);
            }
            seldom => self.machine.seldom(at, seldom),
        }
    }

    /// Switches a CPU from one thread to another.
    fn switches(
        &mut self,
        at: (CpuKey, i64),
        (prev, next): (Option<i32>, Option<i32>),
        left: LeftAs,
        names: [Comm; 2],
    ) {
        if let Some(prev) = prev {
            self.leaves(at, prev, left, names[0]);
        }
        let mut by = Occupant::Idle;
        if let Some(next) = next {
            by = Occupant::Thread(self.comes(at, next, names[1]));
        }
        let (cpu, time) = at;
        self.machine.cpu_threads.switch(cpu, time, next);
        self.machine.occupies(cpu, time, by);
    }

    /// A thread leaves its CPU; `name` is its name at that time.
    pub(crate) fn leaves(&mut self, at: (CpuKey, i64), tid: i32, left: LeftAs, name: Comm) {
        let machine = &mut *self.machine;
        let key = ThreadKey {
            trace: at.0.trace,
            tid,
        };
        let (call, argument) = machine.life(key).call();
        let object = self
            .rules
            .object(&mut machine.futexes, left, (call, argument));
        let (life, mut line, losses) = machine.thread(key);
        life.leaves(&mut line, at, left, (call, object), losses);
        line.is_called(at.1, name);
    }

    /// A thread comes to a CPU; `name` is its name at that time.
    pub(crate) fn comes(&mut self, (cpu, time): (CpuKey, i64), tid: i32, name: Comm) -> ActorId {
        let trace = cpu.trace;
        let machine = &mut *self.machine;
        let key = ThreadKey { trace, tid };
        let since = || machine.life(key).cell.since();
        let is_whole = self.rules.recorded.is_whole_between(trace, since, time);
        if !is_whole {
            machine.loses_sight(key);
        }
        let (life, mut line, losses) = machine.thread(key);
        life.comes(&mut line, (cpu, time), losses, is_whole);
        line.is_called(time, name);
        machine.actor(key)
    }

    /// Applies the calls of a thread since it came to its CPU.
    pub(crate) fn parks(&mut self, at: (CpuKey, i64), parked: &ParkedThread) {
        let (trace, tid) = (at.0.trace, parked.tid);
        let thread = ThreadKey { trace, tid };
        if let Parking::Ended((begun, exited, _)) = self.machine.life(thread).cell.park(at, parked)
        {
            self.ended(thread, (begun.call, begun.time), exited.time);
        }
    }

    /// Ends a call that was open when its thread came to the CPU.
    fn arrives(&mut self, at: (CpuKey, i64), thread: ThreadKey, exited: Exited) {
        let (life, mut line, losses) = self.machine.thread(thread);
        let (stretch, ended) = life.cell.arrive(at.0, thread.tid, exited, losses);
        if line.is_seen_running(at, &stretch) {
            self.machine.is_seen_on(at, thread);
        }
        if let Some((begun, ..)) = ended {
            self.ended(thread, (begun.call, begun.time), at.1);
        }
    }

    /// Records the end of a call that spans several stretches of its thread.
    fn ended(&mut self, thread: ThreadKey, (call, begin): (Syscall, i64), end: i64) {
        let call = LongCall {
            call,
            thread,
            begin,
            end,
        };
        self.rules.keep_call(&mut self.machine.calls, call);
    }
}

impl GraphMachine {
    /// The recording of CPUs ends up to `until` (nanoseconds from the origin): the state of their
    /// threads becomes unknown.
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
            let (life, mut line, losses) = self.thread(ThreadKey { trace, tid });
            if life.cell.end_recording((cpu, time), losses).is_some() {
                line.begins(time, State::Unknown);
            }
        }
        if !self.cpus.get(cpu).is_empty() {
            self.occupies(cpu, time, Occupant::Unknown);
        }
    }

    /// A thread enters a call and was in none when it came to the CPU.
    fn enters(&mut self, at: (CpuKey, i64), thread: ThreadKey) {
        let (life, mut line, losses) = self.thread(thread);
        let stretch = life.cell.enter(at, thread.tid, losses);
        if line.is_seen_running(at, &stretch) {
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

    /// Ends one trace, or all, at `end` (nanoseconds from the origin): threads that wait there are
    /// still waiting.
    pub(crate) fn ends_waiting(&mut self, recorded: &Recorded, trace: Option<u32>, end: i64) {
        self.ends_recording(recorded, end);
        let is_of = |key: ThreadKey| trace.is_none_or(|trace| trace == key.trace);
        for (key, life) in self.lives.entries().filter(|life| is_of(life.0)) {
            let line = life
                .actor
                .and_then(|actor| self.lines.get_mut(actor as usize));
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

    /// Drops the last state of a thread that seems to have waited for a CPU which went idle
    /// meanwhile: it has gone to a CPU that was not recorded.
    #[cold]
    fn loses_sight(&mut self, thread: ThreadKey) {
        let cell = &self.life(thread).cell;
        let (state, since) = (cell.state(), cell.since());
        if self.cpu_threads.is_out_of_sight(thread.trace, state, since) {
            let (life, mut line, _) = self.thread(thread);
            life.cell.lose_sight();
            line.is(State::Unknown);
        }
    }

    /// Ends a trace while others continue: the states of its threads are unknown from then on.
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

    /// A thread, its time line and the losses so far.
    #[inline(always)]
    pub(crate) fn thread(&mut self, thread: ThreadKey) -> (&mut ThreadLife, Line<'_>, &Losses) {
        let actor = self.actor(thread).0 as usize;
        let GraphMachine {
            lives,
            near,
            losses,
            lines,
            later,
            unplaced,
            ..
        } = self;
        // `actor` has created the entry.
        let line = Line {
            actor: &mut lines[actor],
            later: &mut later[actor],
            is_unplaced: is_unplaced(unplaced, actor as u32),
        };
        (lives.get_near(thread, near), line, losses)
    }

    /// The thread that has an id now.
    #[inline]
    pub(crate) fn actor(&mut self, thread: ThreadKey) -> ActorId {
        let new = self.lines.len() as u32;
        let actor = *self.life(thread).actor.get_or_insert(new);
        if actor == new {
            self.lines.push(Actor::new(thread));
            self.later.push(LaterChanges::default());
            self.held.push(Held {
                key: thread,
                since: i64::MIN,
                actor: Some(ActorId(actor)),
            });
        }
        ActorId(actor)
    }

    /// Applies a rare item.
    fn seldom(&mut self, (cpu, time): (CpuKey, i64), item: GraphItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            GraphItem::Made(tid, creator) => self.born((cpu, time), key(tid), creator),
            GraphItem::TakeOver(tid, old) => self.takes_over((cpu, time), key(tid), key(old)),
            GraphItem::Die(tid) => self.life(key(tid)).cell.die(),
            GraphItem::Belongs { tid, pid } => self.thread(key(tid)).1.actor.pid = Some(pid),
            GraphItem::Named(tid, name) => self.thread(key(tid)).1.is_called(time, name),
            GraphItem::Tells(told) => self.names.learn(trace, *told),
            GraphItem::Queue {
                work,
                queue,
                origin,
            } => {
                let waking = self.waking(trace, origin);
                let cause = self.cause(cpu, (origin, waking), None);
                let queue = Queue::Kernel(queue);
                self.works
                    .adds((trace, work), Queued { time, cause, queue });
            }
            GraphItem::Execute(tid, work) => {
                if let Some(work) = self.works.begins((trace, work), time) {
                    self.thread(key(tid)).1.actor.works(work);
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

    /// A new thread replaces the previous holder of its id.
    fn born(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey, creator: Option<i32>) {
        self.is_another(time, thread, creator);
        let (life, mut line, losses) = self.thread(thread);
        // The wake-up that follows the creation determines the CPU.
        life.cell = ThreadCell::made((cpu, time), thread.tid, losses);
        line.begins(time, State::Runnable(ThreadState::NO_CPU));
    }

    /// Gives the id to a new thread that `creator` made. The caller adds its state.
    pub(crate) fn is_another(
        &mut self,
        time: i64,
        thread: ThreadKey,
        creator: Option<i32>,
    ) -> ActorId {
        let creator = creator.map(|tid| self.actor(thread.with(tid)));
        let life = self.life(thread);
        life.ring = None;
        if let Some(before) = life.actor.take() {
            self.ends(time, before);
        }
        let actor = self.actor(thread);
        self.lines[actor.0 as usize].creator = creator;
        actor
    }

    /// Ends a thread, whether or not its end was recorded.
    pub(crate) fn ends(&mut self, time: i64, actor: u32) {
        let is_unplaced = is_unplaced(&self.unplaced, actor);
        let actor = actor as usize;
        if let (Some(actor), Some(later)) = (self.lines.get_mut(actor), self.later.get_mut(actor)) {
            let mut line = Line {
                actor,
                later,
                is_unplaced,
            };
            line.ends(time);
        }
    }

    /// The thread with id `old` takes over the id of `thread`, which ends.
    fn takes_over(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey, old: ThreadKey) {
        self.cpu_threads.rename(cpu, old.tid, thread.tid);
        if let Some(before) = self.life(thread).actor {
            self.ends(time, before);
        }
        let life = std::mem::take(self.life(old));
        if let Some(line) = life
            .actor
            .and_then(|actor| self.lines.get_mut(actor as usize))
        {
            line.key = thread;
        }
        if let Some(actor) = life.actor {
            let held = |key, actor: Option<u32>| Held {
                key,
                since: time,
                actor: actor.map(ActorId),
            };
            self.held
                .extend([held(old, None), held(thread, Some(actor))]);
        }
        *self.life(thread) = life;
    }
}
