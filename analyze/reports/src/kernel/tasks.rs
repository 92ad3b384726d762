//! Who runs where, for analyses that see all CPUs in the order of time.
//!
//! A chunk does not know who runs when it begins. What somebody does on a CPU before its first
//! switch in the chunk waits, and is told when the chunk is merged with the one before. Where events
//! were lost it is not known who runs, up to the next switch. A thread that runs on one CPU, or is
//! made, no longer runs on any other: if no event said so, that was lost, and who runs there is not
//! known either.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Body, KernelEvent, Switch};

use crate::kernel::frame::{Event, Packet};
use crate::kernel::learn::{learn, taken_over};
use crate::kernel::people::{People, Thread, ThreadKey};
use crate::kernel::sources::CpuKey;

/// Who runs where, and who they are. Threads have places, in the order in which they were met; `I`
/// is what waits for a thread to be known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tasks<I> {
    people: People,
    /// By place.
    whereabouts: Vec<Whereabouts>,
    /// In the order of their keys.
    cpus: Vec<CpuTask>,
    /// In the order of time.
    waiting: Vec<Waiting<I>>,
    /// Counts what the order of which matters: threads that appear, and what waits.
    steps: u64,
    /// The last step at which a thread appeared.
    appeared: u64,
}

impl<I> Default for Tasks<I> {
    fn default() -> Self {
        Tasks {
            people: People::default(),
            whereabouts: Vec::new(),
            cpus: Vec::new(),
            waiting: Vec::new(),
            steps: 0,
            appeared: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Whereabouts {
    /// The step at which it first ran or was made.
    first: Option<u64>,
    /// CPU on which it last ran.
    cpu: Option<CpuKey>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CpuTask {
    key: CpuKey,
    running: Running,
}

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Running {
    /// Whoever ran when the chunk began.
    Before,
    /// The thread at that place.
    Thread(usize),
    /// It is not known.
    Unknown,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting<I> {
    step: u64,
    cpu: CpuKey,
    time: i64,
    item: I,
}

/// What was told when two chunks were joined.
#[derive(Debug)]
pub(crate) struct Joined<I> {
    /// By place in the later chunk: place in both.
    pub(crate) places: Vec<usize>,
    /// What waited and need not any longer.
    pub(crate) told: Vec<Told<I>>,
}

/// What somebody did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<I> {
    /// Who; `None` if it is not known.
    pub(crate) place: Option<usize>,
    pub(crate) cpu: CpuKey,
    pub(crate) time: i64,
    /// The step by which it waited; 0 if it did not.
    pub(crate) step: u64,
    pub(crate) item: I,
}

impl<I> Tasks<I> {
    /// True for the events that [`Tasks::event`] learns from.
    pub(crate) fn wants(event: &KernelEvent) -> bool {
        use KernelEvent::*;
        matches!(
            event,
            Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
        )
    }

    #[inline]
    fn cpu(&mut self, key: CpuKey) -> &mut CpuTask {
        // Most often there is one trace, with all CPUs from 0 on.
        let direct = key.cpu as usize;
        let at = match self.cpus.get(direct) {
            Some(cpu) if cpu.key == key => direct,
            _ => match self.cpus.binary_search_by_key(&key, |cpu| cpu.key) {
                Ok(at) => at,
                Err(at) => {
                    let running = Running::Before;
                    self.cpus.insert(at, CpuTask { key, running });
                    at
                }
            },
        };
        &mut self.cpus[at]
    }

    /// Who runs there.
    #[inline]
    pub(crate) fn running(&mut self, cpu: CpuKey) -> Running {
        self.cpu(cpu).running
    }

    /// Who does what an event tells: the thread that its context names, else who runs there.
    #[inline]
    pub(crate) fn actor(&mut self, event: &Event<'_>, body: &mut Body<'_, '_>) -> Running {
        let running = self.running(event.cpu);
        let Some(tid) = event.model.tid(body) else {
            return running;
        };
        let actor = Running::Thread(self.place(event.cpu.trace, tid));
        if let Running::Thread(place) = actor
            && actor != running
        {
            self.runs(event.cpu, place);
        }
        actor
    }

    /// Lets something that was done there wait until it is known who ran when the chunk began; gives
    /// the step by which it is known. When chunks are joined, the steps of the later one come after
    /// all of the earlier.
    pub(crate) fn wait(&mut self, cpu: CpuKey, time: i64, item: I) -> u64 {
        let step = self.step();
        self.waiting.push(Waiting {
            step,
            cpu,
            time,
            item,
        });
        step
    }

    /// The last step.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Lets something wait as [`Tasks::wait`] does, or adds it to what waits there of the same thread.
    pub(crate) fn wait_together(&mut self, cpu: CpuKey, time: i64, item: I, add: impl FnOnce(&mut I, I)) {
        // Whoever ran there when the chunk began has not appeared elsewhere since. There is one of
        // these for each CPU at most.
        let appeared = self.appeared;
        let mut since = (self.waiting.iter_mut().rev()).take_while(|waiting| waiting.step > appeared);
        match since.find(|waiting| waiting.cpu == cpu) {
            Some(waiting) => add(&mut waiting.item, item),
            None => {
                self.wait(cpu, time, item);
            }
        }
    }

    /// What waits, and on which CPU it was done.
    pub(crate) fn waiting(&mut self) -> impl Iterator<Item = (CpuKey, &mut I)> {
        let waiting = self.waiting.iter_mut();
        waiting.map(|waiting| (waiting.cpu, &mut waiting.item))
    }

    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    /// The place of a thread.
    pub(crate) fn place(&mut self, trace: u32, tid: i32) -> usize {
        let place = self.people.place(ThreadKey { trace, tid });
        if place >= self.whereabouts.len() {
            self.whereabouts.resize(place + 1, Whereabouts::default());
        }
        place
    }

    /// The thread at a place.
    pub(crate) fn key(&self, place: usize) -> Option<ThreadKey> {
        self.people.key(place)
    }

    /// True for the idle threads, which all have one id: they may run on many CPUs.
    #[inline]
    pub(crate) fn is_idle(&self, place: usize) -> bool {
        self.key(place).is_none_or(|key| key.tid == 0)
    }

    /// Who the threads are.
    pub(crate) fn people(&self) -> &People {
        &self.people
    }

    /// Something tells the process of a thread.
    pub(crate) fn learn_pid(&mut self, place: usize, time: i64, cpu: CpuKey, pid: i32) {
        if let Some(identity) = self.people.at(place) {
            identity.learn_pid(time, cpu, pid);
        }
    }

    /// The thread at a place, as reports show it.
    pub(crate) fn thread(&self, place: usize) -> Thread {
        self.key(place)
            .map_or_else(Thread::default, |key| self.people.thread(key))
    }

    /// A packet begins: after lost events it is not known who runs.
    pub(crate) fn packet(&mut self, packet: &Packet) {
        if packet.lost_before && packet.tells_switches {
            self.cpu(packet.cpu).running = Running::Unknown;
        }
    }

    /// Learns from an event that tells about threads. Of a switch it gives the places of the threads
    /// before and after.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>, body: &mut Body<'_, '_>) -> Option<(usize, usize)> {
        let Event { model, cpu, time, .. } = *event;
        match &model.event {
            KernelEvent::Switch(switch) => return self.switch(event, switch, body),
            KernelEvent::Exec(exec) => {
                if let Some((_, tid)) = taken_over(exec, body) {
                    let place = self.place(cpu.trace, tid);
                    self.runs(cpu, place);
                }
            }
            KernelEvent::Fork(fork) => {
                if let Some(child) = fork.child_tid.get(body) {
                    let place = self.place(cpu.trace, child as i32);
                    self.appears(place, None);
                }
            }
            _ => {}
        }
        learn(&mut self.people, model, cpu, time, body);
        self.whereabouts.resize(self.people.len(), Whereabouts::default());
        None
    }

    fn switch(
        &mut self,
        event: &Event<'_>,
        switch: &Switch,
        body: &mut Body<'_, '_>,
    ) -> Option<(usize, usize)> {
        let Event { model, cpu, time, .. } = *event;
        let (prev, next) = (switch.prev_tid.get(body)?, switch.next_tid.get(body)?);
        let prev = self.place(cpu.trace, prev as i32);
        let next = self.place(cpu.trace, next as i32);
        let names = [(prev, &switch.prev_name), (next, &switch.next_name)];
        for (place, name) in names {
            let name = name.as_ref().and_then(|name| name.comm(body));
            if let (Some(name), Some(identity)) = (name, self.people.at(place)) {
                identity.learn_name(time, cpu, name);
            }
        }
        if let (Some(pid), Some(identity)) = (model.pid(body), self.people.at(prev)) {
            identity.learn_pid(time, cpu, pid);
        }
        self.runs(cpu, next);
        Some((prev, next))
    }

    /// A thread runs there from now on.
    fn runs(&mut self, cpu: CpuKey, place: usize) {
        self.appears(place, Some(cpu));
        self.cpu(cpu).running = Running::Thread(place);
    }

    /// A thread is there or, with none, is made: it does not run elsewhere.
    fn appears(&mut self, place: usize, cpu: Option<CpuKey>) {
        let step = self.step();
        if self.is_idle(place) {
            return;
        }
        let Some(whereabouts) = self.whereabouts.get_mut(place) else {
            return;
        };
        whereabouts.first.get_or_insert(step);
        self.appeared = step;
        let before = std::mem::replace(&mut whereabouts.cpu, cpu);
        if let Some(before) = before.filter(|_| before != cpu) {
            let before = self.cpu(before);
            if before.running == Running::Thread(place) {
                before.running = Running::Unknown;
            }
        }
    }

    /// Joins what comes later to this, and tells who did what waited.
    pub(crate) fn merge(&mut self, later: Tasks<I>) -> Joined<I> {
        let mut places = Vec::with_capacity(later.people.len());
        for (key, identity) in later.people.into_entries() {
            let place = self.place(key.trace, key.tid);
            if let Some(own) = self.people.at(place) {
                own.merge(identity);
            }
            places.push(place);
        }
        let appeared: HashMap<usize, u64> = (places.iter().zip(&later.whereabouts))
            .filter_map(|(&place, thread)| Some((place, thread.first?)))
            .collect();
        let told = self.tell(later.waiting, &appeared);
        // Whoever appeared elsewhere has left where he ran.
        for cpu in &mut self.cpus {
            let left = |place| appeared.contains_key(&place);
            if matches!(cpu.running, Running::Thread(place) if left(place)) {
                cpu.running = Running::Unknown;
            }
        }
        for cpu in later.cpus {
            match cpu.running {
                Running::Before => {
                    // It is in the list from now on.
                    self.cpu(cpu.key);
                }
                Running::Thread(place) => self.cpu(cpu.key).running = Running::Thread(places[place]),
                Running::Unknown => self.cpu(cpu.key).running = Running::Unknown,
            }
        }
        for (&place, thread) in places.iter().zip(&later.whereabouts) {
            let own = &mut self.whereabouts[place];
            let first = thread.first.map(|step| step + self.steps);
            own.first = own.first.or(first);
            own.cpu = thread.cpu.or(own.cpu);
        }
        if later.appeared > 0 {
            self.appeared = later.appeared + self.steps;
        }
        self.steps += later.steps;
        Joined { places, told }
    }

    /// Who did what waited; `appeared` is when threads first ran or were made in the later chunk.
    fn tell(&mut self, waiting: Vec<Waiting<I>>, appeared: &HashMap<usize, u64>) -> Vec<Told<I>> {
        let mut told = Vec::with_capacity(waiting.len());
        for waiting in waiting {
            let place = match self.running(waiting.cpu) {
                Running::Before => {
                    let step = waiting.step + self.steps;
                    self.waiting.push(Waiting { step, ..waiting });
                    continue;
                }
                Running::Unknown => None,
                Running::Thread(place) => {
                    let left = appeared.get(&place).is_some_and(|&step| step < waiting.step);
                    (!left).then_some(place)
                }
            };
            let Waiting {
                step,
                cpu,
                time,
                item,
            } = waiting;
            told.push(Told {
                place,
                cpu,
                time,
                step,
                item,
            });
        }
        told
    }

    /// What waits to the end: nobody can tell who did it.
    pub(crate) fn untold(&mut self) -> Vec<Told<I>> {
        let tell = |waiting: Waiting<I>| Told {
            place: None,
            cpu: waiting.cpu,
            time: waiting.time,
            step: waiting.step,
            item: waiting.item,
        };
        std::mem::take(&mut self.waiting).into_iter().map(tell).collect()
    }
}
