//! Playing a slice of time without knowledge of what was before it.
//!
//! Threads are followed by [`SliceCell`](tracebraid_threads::SliceCell)s, and what they do is added to pieces of time lines
//! ([`LinePiece`](piece::LinePiece)). What depends on something that is unknown becomes a [`GraphStep`], which composing plays
//! on the graph as it was at the beginning of the slice. The steps are as many as threads, requests and the like, not as
//! event records. Composing also copies stretches of time lines, with the places of what they refer to: a few nanoseconds for
//! each, where playing takes a hundred.

mod compose;
mod packets;
mod part;
mod piece;
mod places;
mod requests;
#[cfg(test)]
mod tests;
mod thread;
mod wakes;
mod works;

use tracebraid_follow::{ByCpu, CpuKey, Exited, Losses, Table, ThreadKey};
use tracebraid_kernel_model::{Comm, Syscall};
use tracebraid_threads::{
    Arrival, CallClass, LeftAs, ParkUse, ParkedThread, Parking, PastStretch, ThreadDirectory, ThreadState,
};

use crate::calls::{LongCall, Longest};
use crate::cause::{ActorId, Wake};
use crate::futexes::Futexes;
use crate::graph::{NO_OBJECT, Occupant, Occupied, State};
use crate::graph_step::GraphItem;
use crate::later;
use crate::names::Told;
use crate::rules::GraphRules;
use crate::thread_life::TimeLine;

pub(crate) use packets::sender;
pub use part::{CutSlice, PlayedPart};
pub(crate) use places::SlicePlaces;

use compose::PlayedSlice;
use packets::SlicePackets;
use requests::SliceRequests;
use thread::{SliceThread, ThreadNews};
use wakes::KeptWake;
use works::SliceWorks;

/// What composing plays on the graph at the beginning of the slice.
#[derive(Debug)]
enum GraphStep {
    /// The next thread that the slice numbers is that one.
    Meets(ThreadKey),
    /// The next thread that it numbers is made then, and is the first one, by that one.
    Made(i64, ThreadKey, Option<i32>),
    /// That became known of a thread.
    News(ThreadKey, Box<ThreadNews>),
    /// Those ran on a CPU.
    Occupied(CpuKey, Vec<Occupied>),
    Item(CpuKey, i64, GraphItem),
    Leaves(CpuKey, i64, i32, LeftAs, Comm),
    Comes(CpuKey, i64, i32, Comm),
    Wakes(Box<KeptWake>),
    Lose(CpuKey),
}

/// A slice that is being played.
pub(crate) struct GraphSlice<'a> {
    rules: &'a GraphRules,
    begin: i64,
    directory: ThreadDirectory,
    threads: Table<SliceThread>,
    near: usize,
    /// How many threads have numbers.
    actors: u32,
    losses: Losses,
    cpus: ByCpu<Vec<Occupied>>,
    requests: SliceRequests,
    packets: SlicePackets,
    works: SliceWorks,
    futexes: Futexes,
    calls: Longest,
    told: Vec<(u32, Told)>,
    /// When there were switches, wake-ups and interrupts.
    happened: Vec<i64>,
    steps: Vec<GraphStep>,
}

impl<'a> GraphSlice<'a> {
    /// A slice whose items are not earlier than that time, in nanoseconds from the origin.
    pub(crate) fn new(rules: &'a GraphRules, begin: i64, directory: ThreadDirectory) -> GraphSlice<'a> {
        GraphSlice {
            rules,
            begin,
            directory,
            threads: Table::default(),
            near: 0,
            actors: 0,
            losses: Losses::default(),
            cpus: ByCpu::default(),
            requests: SliceRequests::default(),
            packets: SlicePackets::default(),
            works: SliceWorks::default(),
            futexes: Futexes::default(),
            calls: Longest::default(),
            told: Vec::new(),
            happened: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Something happens.
    #[inline(always)]
    pub(crate) fn play(&mut self, cpu: CpuKey, time: i64, item: GraphItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        let at = (cpu, time);
        if item.is_activity() {
            self.happened.push(time);
        }
        match item {
            GraphItem::Enter(tid) => self.enters(at, key(tid)),
            GraphItem::Arrive(tid, call, result) => {
                self.arrives(cpu, key(tid), Exited { call, result, time })
            }
            GraphItem::Park(parked) => self.parks(at, parked),
            GraphItem::Switch {
                prev,
                next,
                left,
                names,
            } => {
                if let Some(prev) = prev {
                    self.leaves(at, key(prev), left, names[0]);
                }
                let by = next.map(|next| self.comes(at, key(next), names[1]));
                self.occupies(cpu, time, by.unwrap_or(Occupant::Idle));
            }
            GraphItem::Wake(wake, origin) => self.wakes(at, wake, origin),
            GraphItem::Interrupted(tid, begin, by) => {
                let (_, thread, losses) = self.thread(key(tid));
                if !thread.cell.knows_state() {
                    let losses = losses.of_cpu(cpu);
                    thread.line.may_be_interrupted(at, (begin, by), losses);
                } else if thread.cell.runs_on(cpu, losses) {
                    thread.line.was_interrupted(at, (begin, by));
                }
            }
            GraphItem::Issue(request, tid, issued) => {
                let by = tid.map(|tid| self.actor(key(tid)));
                self.requests.issues((trace, request), time, by, issued);
            }
            GraphItem::Complete(request) => self.requests.completes(cpu, request, time),
            GraphItem::Send(segment, tid) => {
                let by = tid.map(|tid| self.actor(key(tid)));
                self.packets.sends(segment, time, by);
            }
            seldom => self.seldom(at, seldom),
        }
    }

    /// What happens seldom, or matters little.
    fn seldom(&mut self, at: (CpuKey, i64), item: GraphItem) {
        let (cpu, time) = at;
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            GraphItem::Made(tid, creator) => {
                self.keep_step(key(tid), GraphStep::Made(time, key(tid), creator));
                let number = self.next_number();
                let (thread, losses) = self.unmet(key(tid));
                thread.cell.is_made(at, tid, losses);
                thread.is_another(i64::MIN, None);
                thread.actor = Some(number);
                thread.line.begins(time, State::Runnable(ThreadState::NO_CPU));
            }
            GraphItem::TakeOver(tid, old) => {
                self.tell(key(old));
                self.keep(key(tid), at, GraphItem::TakeOver(tid, old));
                for tid in [old, tid] {
                    let (thread, _) = self.unmet(key(tid));
                    thread.cell.forget(time);
                    thread.is_another(time, None);
                }
            }
            GraphItem::Die(tid) => {
                let (thread, _) = self.unmet(key(tid));
                if thread.cell.call().is_none() {
                    self.keep(key(tid), at, GraphItem::Die(tid));
                }
                self.unmet(key(tid)).0.cell.die();
            }
            GraphItem::Belongs { tid, pid } => self.thread(key(tid)).1.belongs(pid),
            GraphItem::Named(tid, name) => self.thread(key(tid)).1.is_called(time, name),
            GraphItem::Tells(told) => self.told.push((trace, *told)),
            GraphItem::Queue { work, queue, origin } => self.queues(at, work, (queue, origin)),
            GraphItem::Execute(tid, work) => match self.works.begins((trace, work), time) {
                Some(Some(work)) => self.thread(key(tid)).1.works(work),
                Some(None) => {}
                None => self.keep(key(tid), at, GraphItem::Execute(tid, work)),
            },
            GraphItem::Lose => {
                self.losses.lose(cpu);
                self.requests.lose();
                self.works.lose();
                self.steps.push(GraphStep::Lose(cpu));
                self.occupies(cpu, time, Occupant::Unknown);
            }
            // Where switches of all CPUs are recorded these show where threads are.
            _ => {}
        }
    }

    /// What is known of a thread, which the graph need not know.
    #[inline(always)]
    fn unmet(&mut self, key: ThreadKey) -> (&mut SliceThread, &Losses) {
        let thread = self.threads.get_near(key, &mut self.near);
        thread.meet(key, self.begin, &self.directory);
        (thread, &self.losses)
    }

    /// What is known of a thread of the graph.
    #[inline(always)]
    fn thread(&mut self, key: ThreadKey) -> (ActorId, &mut SliceThread, &Losses) {
        let thread = self.threads.get_near(key, &mut self.near);
        thread.meet(key, self.begin, &self.directory);
        let actor = match thread.actor {
            Some(actor) => actor,
            None => {
                self.steps.push(GraphStep::Meets(key));
                self.actors += 1;
                *thread.actor.insert(ActorId(self.actors - 1))
            }
        };
        (actor, thread, &self.losses)
    }

    /// The number of another thread.
    fn next_number(&mut self) -> ActorId {
        self.actors += 1;
        ActorId(self.actors - 1)
    }

    /// The number of a thread in the slice.
    #[inline]
    fn actor(&mut self, key: ThreadKey) -> ActorId {
        self.thread(key).0
    }

    /// Keeps something for a thread, of which what is known is told first.
    #[cold]
    fn keep(&mut self, thread: ThreadKey, (cpu, time): (CpuKey, i64), item: GraphItem) {
        self.keep_step(thread, GraphStep::Item(cpu, time, item));
    }

    #[cold]
    fn keep_step(&mut self, thread: ThreadKey, step: GraphStep) {
        self.tell(thread);
        self.steps.push(step);
    }

    /// Tells what is known of a thread.
    fn tell(&mut self, thread: ThreadKey) {
        if let Some(news) = self.unmet(thread).0.news() {
            self.steps.push(GraphStep::News(thread, Box::new(news)));
        }
    }

    /// Tells who ran on a CPU: who runs there is unknown.
    fn tell_cpu(&mut self, cpu: CpuKey) {
        let line = std::mem::take(self.cpus.get(cpu));
        if !line.is_empty() {
            self.steps.push(GraphStep::Occupied(cpu, line));
        }
    }

    fn occupies(&mut self, cpu: CpuKey, time: i64, by: Occupant) {
        later::occupies(self.cpus.get(cpu), time, by);
    }

    /// A thread enters a call, and was in none when it came.
    fn enters(&mut self, at: (CpuKey, i64), key: ThreadKey) {
        let tid = key.tid;
        if !self.unmet(key).0.cell.knows_state() {
            self.tell_cpu(at.0);
            self.keep(key, at, GraphItem::Enter(tid));
            let (thread, losses) = self.unmet(key);
            thread.cell.enter(at, tid, losses);
            return thread.runs_from(at);
        }
        let (_, thread, losses) = self.thread(key);
        let stretch = thread.cell.enter(at, tid, losses);
        self.is_seen_on(at, key, &stretch);
    }

    /// A call shows that a thread runs on a CPU.
    #[inline]
    fn is_seen_on(&mut self, at: (CpuKey, i64), key: ThreadKey, stretch: &PastStretch<Wake>) {
        let (actor, thread, _) = self.thread(key);
        if thread.line.is_seen_running(at, stretch) {
            self.occupies(at.0, at.1, Occupant::Thread(actor));
        }
    }

    /// A call ends that was open when its thread came.
    fn arrives(&mut self, cpu: CpuKey, key: ThreadKey, exited: Exited) {
        let at = (cpu, exited.time);
        let tid = key.tid;
        if let Arrival::Unknown = self.unmet(key).0.cell.arrival(&exited) {
            self.tell_cpu(cpu);
            self.keep(key, at, GraphItem::Arrive(tid, exited.call, exited.result));
            let (thread, losses) = self.unmet(key);
            thread.cell.arrive_kept(cpu, tid, exited, losses);
            return thread.runs_from(at);
        }
        let (_, thread, losses) = self.thread(key);
        let (stretch, ended) = thread.cell.arrive(cpu, tid, exited, losses);
        self.is_seen_on(at, key, &stretch);
        if let Some((begun, ..)) = ended {
            self.ended(key, (begun.call, begun.time), exited.time);
        }
    }

    /// What a thread has done since it came.
    fn parks(&mut self, at: (CpuKey, i64), parked: ParkedThread) {
        let (trace, tid) = (at.0.trace, parked.tid);
        let key = ThreadKey { trace, tid };
        let (thread, _) = self.unmet(key);
        let with = thread.cell.parking(&parked);
        if with != ParkUse::Play {
            self.keep(key, at, GraphItem::Park(parked));
            return self.unmet(key).0.cell.park_kept(at, &parked, with);
        }
        if let Parking::Ended((begun, exited, _)) = thread.cell.park(at, &parked) {
            self.ended(key, (begun.call, begun.time), exited.time);
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
            self.calls.add(call, &self.rules.wanted);
        }
    }

    /// What the open call of a thread is about.
    fn object(&mut self, call: Syscall, argument: i64) -> u32 {
        match self.rules.classes.of(call) {
            CallClass::Futex => self.futexes.place(argument),
            _ => u32::try_from(argument).unwrap_or(NO_OBJECT),
        }
    }

    #[inline]
    fn leaves(&mut self, at: (CpuKey, i64), key: ThreadKey, left: LeftAs, name: Comm) {
        let waits = left.waits();
        let (thread, _) = self.unmet(key);
        let (knows_state, call) = (thread.cell.knows_state(), thread.cell.call());
        if !knows_state || waits && call.is_none() {
            self.keep_step(key, GraphStep::Leaves(at.0, at.1, key.tid, left, name));
            let (thread, losses) = self.unmet(key);
            match knows_state {
                true => _ = thread.cell.leave(at, left, losses),
                false => thread.cell.leave_kept(at, left, losses),
            }
            let now = (!waits).then(|| State::left(at.0, left, (Syscall::OTHER, NO_OBJECT)));
            thread.was_called(name);
            return thread.goes_on(at.1, now);
        }
        let open = call.flatten();
        let (call, argument) = open.map_or((Syscall::OTHER, i64::from(NO_OBJECT)), |open| {
            (open.call, open.argument)
        });
        let object = match waits {
            true => self.object(call, argument),
            false => NO_OBJECT,
        };
        let (_, thread, losses) = self.thread(key);
        let stretch = thread.cell.leave(at, left, losses);
        thread.line.leaves(at, left, (call, object), &stretch);
        thread.is_called(at.1, name);
    }

    #[inline]
    fn comes(&mut self, at: (CpuKey, i64), key: ThreadKey, name: Comm) -> Occupant {
        if !self.unmet(key).0.cell.knows_state() {
            self.keep_step(key, GraphStep::Comes(at.0, at.1, key.tid, name));
            let (thread, losses) = self.unmet(key);
            thread.cell.come_kept(at, losses);
            thread.was_called(name);
            thread.runs_from(at);
            return Occupant::Thread(self.actor(key));
        }
        let (actor, thread, losses) = self.thread(key);
        let stretch = thread.cell.come(at, losses);
        thread.line.comes(at, &stretch);
        thread.is_called(at.1, name);
        Occupant::Thread(actor)
    }
}

impl SliceThread {
    /// What it did up to a time composing finds out; from then on it does that.
    fn goes_on(&mut self, time: i64, now: Option<State>) {
        self.line = piece::LinePiece::after(time, now);
    }

    /// The same, and it runs there.
    fn runs_from(&mut self, (cpu, time): (CpuKey, i64)) {
        self.goes_on(time, Some(State::Running(ThreadState::number(cpu.cpu))));
    }
}
