//! Processes: who made whom, when they began and ended, and what each used, alone and with all that
//! it made.
//!
//! Threads are kept by id and life: a fork under an id that is known begins another life. Which life
//! a thread lives when a chunk begins is for the chunks before to tell: a chunk counts from there.
//! `docs/reports-processes.md` defines each number.

mod life;
mod report;
mod sections;
mod tree;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, Body, Comm, Fork, IntField, KernelEvent, Syscall};

use crate::kernel::{CpuKey, Event, InOrder, Input, Packet, Rules, Runs, Selection, Stretch, Tasks, Told};
pub use life::NamedBy;
use life::{Exited, Life, Lives, Named, Parent};
pub use report::{ProcessName, ProcessRow, ProcessTotal, ProcessesReport};

/// The analysis.
pub type ProcessAnalysis = InOrder<ProcessRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct ProcessRules {
    selection: Selection,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessPartial {
    tasks: Tasks<Step>,
    /// By place of the thread.
    threads: Vec<Lives>,
    /// In the order of their keys.
    cpus: Vec<(CpuKey, Runs<Who>)>,
    /// Calls that nobody is known to have made.
    nobodys: u64,
}

/// A life: the place of its thread, and its number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Who {
    place: usize,
    life: usize,
}

/// What happens to a thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Step {
    Enter(Syscall),
    /// Exit, of that call or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
}

impl Rules for ProcessRules {
    type Partial = ProcessPartial;
    type Report = ProcessesReport;

    fn new(selection: &Selection) -> Self {
        ProcessRules {
            selection: selection.clone(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::{Entry, Exit, ThreadExit};
        matches!(event, Entry(_) | Exit(_) | ThreadExit(_)) || Tasks::<Step>::wants(event)
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        use KernelEvent::{Fork, ProcessState, Switch};
        if !has(&|event| matches!(event, Fork(_) | ProcessState(_))) {
            return Some(
                "nothing here tells who made which process: enable sched_process_fork and lttng_statedump_process_state",
            );
        }
        let switches = has(&|event| matches!(event, Switch(_)));
        (!switches).then_some("nothing here tells who used the CPUs: enable sched_switch")
    }

    fn packet(&self, partial: &mut ProcessPartial, packet: &Packet) {
        partial.tasks.packet(packet);
        if packet.tells_switches {
            let end = packet.end.or(packet.begin);
            let ran = partial.runs(packet.cpu).packet(packet.lost_before, end);
            self.ran(partial, packet.cpu, ran);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut ProcessPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let step = match &event.model.event {
            KernelEvent::Entry(entry) => Step::Enter(entry.call(body)),
            KernelEvent::Exit(exit) => {
                // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
                let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
                Step::Exit(call, exit.result.get(body).unwrap_or(0))
            }
            KernelEvent::Switch(_) => {
                if let Some((prev, next)) = partial.tasks.event(event, body) {
                    self.goes_over(partial, event, prev, next);
                }
                return;
            }
            _ => return self.thread(partial, event, body),
        };
        let actor = partial.tasks.actor(event, body);
        if let Some(told) = partial.tasks.tell_or_wait(actor, event.cpu, event.time, step) {
            self.step(partial, told);
        }
    }

    fn merge(&self, earlier: &mut ProcessPartial, later: ProcessPartial) {
        let joined = earlier.tasks.merge(later.tasks);
        joined.told.into_iter().for_each(|told| self.step(earlier, told));
        // Lives of the later chunk are counted from the one that is lived here.
        let mut numbers = Vec::with_capacity(later.threads.len());
        for (mut lives, &place) in later.threads.into_iter().zip(&joined.places) {
            if let Some(exited) = lives.head.take() {
                self.exited(earlier, place, exited);
            }
            let own = earlier.thread(place);
            numbers.push(own.number());
            own.merge(lives);
        }
        for (key, runs) in later.cpus {
            let moved = |who: Who| Who {
                place: joined.places.get(who.place).copied().unwrap_or(0),
                life: who.life + numbers.get(who.place).copied().unwrap_or(0),
            };
            let ran = earlier.runs(key).join(runs, moved);
            self.ran(earlier, key, ran);
        }
        earlier.nobodys += later.nobodys;
    }

    fn finish(&self, input: &Input, mut partial: ProcessPartial) -> ProcessesReport {
        for at in 0..partial.cpus.len() {
            let (key, runs) = &mut partial.cpus[at];
            if let Some(end) = input.end_of(key.trace) {
                let (key, ran) = (*key, runs.close(end));
                self.ran(&mut partial, key, ran);
            }
        }
        report::report(&self.selection, input, partial)
    }
}

impl ProcessPartial {
    #[inline]
    fn thread(&mut self, place: usize) -> &mut Lives {
        if place >= self.threads.len() {
            self.threads.resize_with(place + 1, Lives::default);
        }
        &mut self.threads[place]
    }

    #[inline]
    fn runs(&mut self, key: CpuKey) -> &mut Runs<Who> {
        // Most often there is one trace, with all CPUs from 0 on.
        let direct = key.cpu as usize;
        let at = match self.cpus.get(direct) {
            Some((own, _)) if *own == key => direct,
            _ => match self.cpus.binary_search_by_key(&key, |(key, _)| *key) {
                Ok(at) => at,
                Err(at) => {
                    self.cpus.insert(at, (key, Runs::default()));
                    at
                }
            },
        };
        &mut self.cpus[at].1
    }

    /// Ends of calls that waited for a thread to the end.
    fn untold_exits(&mut self) -> u64 {
        let untold = self.tasks.untold();
        let exits = untold.iter().filter(|told| matches!(told.item, Step::Exit(..)));
        exits.count() as u64
    }

    /// The life that a thread lives now.
    fn life(&mut self, trace: u32, tid: i64) -> &mut Life {
        let place = self.tasks.place(trace, tid as i32);
        let life = self.thread(place).last();
        life.is_seen = true;
        life
    }
}

impl ProcessRules {
    /// A CPU goes from one thread to another.
    #[inline]
    fn goes_over(&self, partial: &mut ProcessPartial, event: &Event<'_>, prev: usize, next: usize) {
        let tid = |place: usize| partial.tasks.key(place).map_or(0, |key| key.tid);
        let (prev_tid, next_tid) = (tid(prev), tid(next));
        let lives = partial.thread(next);
        lives.last().is_seen = true;
        let who = Who {
            place: next,
            life: lives.number(),
        };
        let ran = partial
            .runs(event.cpu)
            .goes_over(event.time, prev_tid, next_tid, who);
        if ran.is_none() {
            // Else it was seen when it began to run.
            partial.thread(prev).last().is_seen = true;
        }
        self.ran(partial, event.cpu, ran);
    }

    /// A thread ran.
    #[inline]
    fn ran(&self, partial: &mut ProcessPartial, cpu: CpuKey, stretch: Option<Stretch<Who>>) {
        let Some(Stretch {
            since, until, who, ..
        }) = stretch
        else {
            return;
        };
        if self.selection.cpus.contains(cpu.cpu)
            && let Some(life) = partial.thread(who.place).get(who.life)
        {
            life.sums.active += self.selection.window.clip(since, until);
        }
    }

    /// What tells of threads' beginnings, ends and names.
    fn thread(&self, partial: &mut ProcessPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        partial.tasks.event(event, body);
        let Event { cpu, time, .. } = *event;
        let get = |field: &Option<IntField>, body: &mut Body<'_, '_>| {
            field.as_ref().and_then(|field| field.get(body))
        };
        let named = |name: Comm, by: NamedBy| Named { time, name, by };
        match &event.model.event {
            KernelEvent::Fork(fork) => self.fork(partial, event, fork, body),
            KernelEvent::Exec(exec) => {
                let (Some(tid), old) = (get(&exec.tid, body), get(&exec.old_tid, body)) else {
                    return;
                };
                if let Some(old) = old.filter(|&old| old != tid) {
                    let old = partial.tasks.place(cpu.trace, old as i32);
                    let place = partial.tasks.place(cpu.trace, tid as i32);
                    self.goes_over(partial, event, old, place);
                }
                if let Some(path) = exec.path.as_ref().and_then(|path| path.bytes(body)) {
                    let named = named(Comm::of_program(path), NamedBy::Exec);
                    partial.life(cpu.trace, tid).name(named);
                }
            }
            KernelEvent::Rename(tid, name) => {
                if let (Some(tid), Some(name)) = (tid.get(body), name.comm(body)) {
                    partial.life(cpu.trace, tid).name(named(name, NamedBy::Rename));
                }
            }
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    partial.life(cpu.trace, tid).end = Some(time);
                }
            }
            KernelEvent::ProcessState(state) => {
                let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) else {
                    return;
                };
                let ppid = get(&state.ppid, body).map(|ppid| ppid as i32);
                let name = state.name.as_ref().and_then(|name| name.comm(body));
                let life = partial.life(cpu.trace, tid);
                life.learn_pid(pid);
                if life.parent.is_none() {
                    life.parent = ppid.map(|ppid| Parent {
                        tid: None,
                        pid: Some(ppid),
                        time,
                    });
                }
                name.into_iter()
                    .for_each(|name| life.name(named(name, NamedBy::Dump)));
            }
            _ => {}
        }
    }

    /// A thread is made: another life begins under its id.
    fn fork(&self, partial: &mut ProcessPartial, event: &Event<'_>, fork: &Fork, body: &mut Body<'_, '_>) {
        let Event { cpu, time, .. } = *event;
        let get = |field: &Option<IntField>, body: &mut Body<'_, '_>| {
            field.as_ref().and_then(|field| field.get(body))
        };
        let Some(child) = fork.child_tid.get(body) else {
            return;
        };
        let (tid, pid) = (get(&fork.parent_tid, body), get(&fork.parent_pid, body));
        if let (Some(tid), Some(pid)) = (tid, pid) {
            partial.life(cpu.trace, tid).learn_pid(pid);
        }
        let name = fork.child_name.as_ref().and_then(|name| name.comm(body));
        let named = name.map(|name| Named {
            time,
            name,
            by: NamedBy::Fork,
        });
        let life = Life {
            is_seen: true,
            begin: Some(time),
            parent: Some(Parent {
                tid: tid.map(|tid| tid as i32),
                pid: pid.map(|pid| pid as i32),
                time,
            }),
            pid: get(&fork.child_pid, body).map(|pid| pid as i32),
            names: named.into_iter().collect(),
            ..Life::default()
        };
        let place = partial.tasks.place(cpu.trace, child as i32);
        partial.thread(place).begin(life);
    }

    #[inline(always)]
    fn step(&self, partial: &mut ProcessPartial, told: Told<Step>) {
        // Idle threads make no calls: the switch to whoever did was lost.
        let place = told.place.filter(|&place| !partial.tasks.is_idle(place));
        match (place, told.item) {
            (Some(place), Step::Enter(call)) => partial.thread(place).enter(call),
            (Some(place), Step::Exit(call, result)) => {
                let exited = Exited {
                    call,
                    result,
                    time: told.time,
                    cpu: told.cpu.cpu,
                };
                self.exited(partial, place, exited);
            }
            (None, Step::Enter(_)) => {}
            (None, Step::Exit(..)) => partial.nobodys += 1,
        }
    }

    /// A call counts where and when it ends.
    #[inline]
    fn exited(&self, partial: &mut ProcessPartial, place: usize, exited: Exited) {
        let lives = partial.thread(place);
        let Some(call) = lives.exit(exited) else { return };
        if !self.selection.counts(exited.time, exited.cpu) {
            return;
        }
        let sums = &mut lives.last().sums;
        sums.calls += 1;
        let bytes = u64::try_from(exited.result).unwrap_or(0);
        let (reads, writes) = match call.action() {
            Action::Read => (bytes, 0),
            Action::Write => (0, bytes),
            Action::Copy => (bytes, bytes),
            _ => return,
        };
        sums.read = sums.read.saturating_add(reads);
        sums.written = sums.written.saturating_add(writes);
    }
}
