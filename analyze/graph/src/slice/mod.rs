//! Playing a slice of time without the state that precedes it.
//!
//! [`SliceCell`](tracebraid_threads::SliceCell)s follow the threads and add stretches to pieces of
//! time lines ([`LinePiece`](piece::LinePiece)). An item whose effect depends on the unknown state
//! becomes a [`GraphStep`], which composing replays on the graph of all earlier slices. The number
//! of steps is bounded by the number of threads, requests and connections, not by the number of
//! event records.

mod born;
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
    Arrival, LeftAs, ParkUse, ParkedThread, Parking, PastStretch, ThreadDirectory, ThreadState,
};

use crate::calls::{LongCall, Longest};
use crate::cause::{ActorId, Wake};
use crate::futexes::Futexes;
use crate::graph::{Actor, NO_OBJECT, Occupant, Occupied, State, Work};
use crate::graph_step::GraphItem;
use crate::later;
use crate::names::Told;
use crate::rules::GraphRules;
use crate::thread_life::TimeLine;

pub(crate) use packets::sender;
pub use part::{CutSlice, PlayedPart, RetiredSlices};
pub(crate) use places::{Places, SlicePlaces};

use born::{BornThread, Settled};
use compose::PlayedSlice;
use packets::SlicePackets;
use requests::SliceRequests;
use thread::{SliceThread, ThreadNews};
use wakes::KeptWake;
use works::SliceWorks;

/// A step that composing replays on the graph of all earlier slices.
#[derive(Debug)]
enum GraphStep {
    /// Assigns the next local number to the thread.
    Meets(ThreadKey),
    /// Assigns the next local numbers to new threads, with all their activity up to the end of the
    /// slice, or to the step that adds their state. References to other threads are local numbers.
    Born(Vec<Actor>),
    /// State of a new thread at this point of the slice.
    Lives(Box<BornThread>),
    /// Work of a new thread, by its local number.
    Works(ActorId, Vec<Work>),
    /// State of a thread at this point of the slice.
    News(ThreadKey, Box<ThreadNews>),
    /// Threads that ran on a CPU.
    Occupied(CpuKey, Vec<Occupied>),
    Item(CpuKey, i64, GraphItem),
    Leaves(CpuKey, i64, i32, LeftAs, Comm),
    Comes(CpuKey, i64, i32, Comm),
    Wakes(Box<KeptWake>),
    Lose(CpuKey),
}

/// A slice while it is played.
pub(crate) struct GraphSlice<'a> {
    rules: &'a GraphRules,
    begin: i64,
    directory: ThreadDirectory,
    threads: Table<SliceThread>,
    near: usize,
    /// Number of local thread numbers in use.
    actors: u32,
    losses: Losses,
    born: Settled,
    output: SliceOutput,
}

/// Results of playing a slice that composing takes as they are; those of threads depend on the end
/// of the slice.
#[derive(Debug, Default)]
struct SliceOutput {
    steps: Vec<GraphStep>,
    cpus: ByCpu<Vec<Occupied>>,
    requests: SliceRequests,
    packets: SlicePackets,
    works: SliceWorks,
    futexes: Futexes,
    calls: Longest,
    told: Vec<(u32, Told)>,
    /// Times of switches, wake-ups and interrupts, in nanoseconds from the origin.
    happened: Vec<i64>,
}

impl<'a> GraphSlice<'a> {
    /// `begin`: no item is earlier, in nanoseconds from the origin.
    pub(crate) fn new(
        rules: &'a GraphRules,
        begin: i64,
        directory: ThreadDirectory,
    ) -> GraphSlice<'a> {
        GraphSlice {
            rules,
            begin,
            directory,
            threads: Table::default(),
            near: 0,
            actors: 0,
            losses: Losses::default(),
            born: Settled::default(),
            output: SliceOutput::default(),
        }
    }

    /// Plays one item.
    #[inline(always)]
    pub(crate) fn play(&mut self, cpu: CpuKey, time: i64, item: GraphItem) {
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        let at = (cpu, time);
        if item.is_activity() {
            self.output.happened.push(time);
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
                self.output
                    .requests
                    .issues((trace, request), time, by, issued);
            }
            GraphItem::Complete(request) => self.output.requests.completes(cpu, request, time),
            GraphItem::Send(segment, tid) => {
                let by = tid.map(|tid| self.actor(key(tid)));
                self.output.packets.sends(segment, time, by);
            }
            seldom => self.seldom(at, seldom),
        }
    }

    /// Plays a rare item.
    fn seldom(&mut self, at: (CpuKey, i64), item: GraphItem) {
        let (cpu, time) = at;
        let trace = cpu.trace;
        let key = |tid: i32| ThreadKey { trace, tid };
        match item {
            GraphItem::Made(tid, creator) => self.is_made(at, key(tid), creator.map(key)),
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
            GraphItem::Tells(told) => self.output.told.push((trace, *told)),
            GraphItem::Queue {
                work,
                queue,
                origin,
            } => self.queues(at, work, (queue, origin)),
            GraphItem::Execute(tid, work) => match self.output.works.begins((trace, work), time) {
                Some(Some(work)) => self.thread(key(tid)).1.works(work),
                Some(None) => {}
                None => self.keep(key(tid), at, GraphItem::Execute(tid, work)),
            },
            GraphItem::Lose => {
                self.losses.lose(cpu);
                self.output.requests.lose();
                self.output.works.lose();
                self.output.steps.push(GraphStep::Lose(cpu));
                self.occupies(cpu, time, Occupant::Unknown);
            }
            // Where the switches of all CPUs are recorded, they show where threads are.
            _ => {}
        }
    }

    /// State of a thread in the slice; does not add it to the graph.
    #[inline(always)]
    fn unmet(&mut self, key: ThreadKey) -> (&mut SliceThread, &Losses) {
        let thread = self.threads.get_near(key, &mut self.near);
        thread.meet(key, self.begin, &self.directory);
        (thread, &self.losses)
    }

    /// State of a thread in the slice; adds it to the graph.
    #[inline(always)]
    fn thread(&mut self, key: ThreadKey) -> (ActorId, &mut SliceThread, &Losses) {
        let thread = self.threads.get_near(key, &mut self.near);
        thread.meet(key, self.begin, &self.directory);
        let actor = match thread.actor {
            Some(actor) => actor,
            None => {
                self.output.steps.push(GraphStep::Meets(key));
                self.actors += 1;
                *thread.actor.insert(ActorId(self.actors - 1))
            }
        };
        (actor, thread, &self.losses)
    }

    /// Takes the next local number.
    fn next_number(&mut self) -> ActorId {
        self.actors += 1;
        ActorId(self.actors - 1)
    }

    /// Local number of a thread.
    #[inline]
    fn actor(&mut self, key: ThreadKey) -> ActorId {
        self.thread(key).0
    }

    /// Keeps an item for composing, after the state of its thread.
    #[cold]
    fn keep(&mut self, thread: ThreadKey, (cpu, time): (CpuKey, i64), item: GraphItem) {
        self.keep_step(thread, GraphStep::Item(cpu, time, item));
    }

    #[cold]
    fn keep_step(&mut self, thread: ThreadKey, step: GraphStep) {
        self.tell(thread);
        self.output.steps.push(step);
    }

    /// Emits the state of a thread as a step.
    fn tell(&mut self, thread: ThreadKey) {
        let (state, _) = self.unmet(thread);
        if let Some(born) = state.born.take() {
            self.tell_born(thread, born);
        } else if let Some(news) = state.news() {
            self.output
                .steps
                .push(GraphStep::News(thread, Box::new(news)));
        }
    }

    /// Emits the occupants of a CPU so far, since a kept item may change who runs there.
    fn tell_cpu(&mut self, cpu: CpuKey) {
        let line = std::mem::take(self.output.cpus.get(cpu));
        if !line.is_empty() {
            self.output.steps.push(GraphStep::Occupied(cpu, line));
        }
    }

    fn occupies(&mut self, cpu: CpuKey, time: i64, by: Occupant) {
        later::occupies(self.output.cpus.get(cpu), time, by);
    }

    /// A thread enters a call and was in none when it came to the CPU.
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

    /// Ends a call that was open when its thread came to the CPU.
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

    /// A thread leaves its CPU: applies its calls up to then.
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

    /// Records the end of a call that spans several stretches of its thread.
    fn ended(&mut self, thread: ThreadKey, (call, begin): (Syscall, i64), end: i64) {
        let call = LongCall {
            call,
            thread,
            begin,
            end,
        };
        self.rules.keep_call(&mut self.output.calls, call);
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
        let object = self
            .rules
            .object(&mut self.output.futexes, left, (call, argument));
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
    /// Starts a new piece of the time line at a time after a kept item; `now`: state after that
    /// item, if known.
    fn goes_on(&mut self, time: i64, now: Option<State>) {
        self.line = piece::LinePiece::after(time, now);
    }

    /// The same for a thread that runs on a CPU.
    fn runs_from(&mut self, (cpu, time): (CpuKey, i64)) {
        self.goes_on(time, Some(State::Running(ThreadState::number(cpu.cpu))));
    }
}
