//! Processes: their creators, start and end, and resources used by each, alone and with all
//! descendants.
//!
//! Each CPU sums the activity of threads from one switch to the next. Threads are identified by id
//! and life: a fork under a known id begins another life. The life is determined when the events of
//! all CPUs are played in the order of time. `docs/reference/processes.md` defines each number.

mod item;
mod life;
mod lists;
mod machine;
mod options;
mod report;
mod sections;
mod slice;
mod tree;

pub use options::{GROUPINGS, ProcessOptions};
use serde::{Deserialize, Serialize};
use tracebraid_engine::Slice;
use tracebraid_kernel_model::{Body, Comm, Exec, Fork, IntField, KernelEvent, ProcessState};

use crate::garbage::Garbage;
use item::{ProcessItem, ProcessStep, Stretch, Told};
use life::NamedBy;
use life::{Life, Named, Parent, Sums};
use machine::ProcessMachine;
use slice::ProcessSlice;
use tracebraid_follow::{
    ByCpu, CallEvent, CallItem, CallStep, CpuKey, EndedCall, Entered, Event, Exited, Input, Items,
    Lane, Packet, People, PerCpu, Rules, Runs, Selection, learn, learn_switch, taken_over,
};
use tracebraid_tables::Report;

/// Analyses processes.
pub type ProcessAnalysis = PerCpu<ProcessRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct ProcessRules {
    selection: Selection,
    options: ProcessOptions,
}

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of CPUs, of threads that
/// ever lived, and of their names: the report lists each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessPartial {
    people: People,
    lanes: ByCpu<Lane<Stretch, ProcessStep>>,
    runs: ByCpu<Runs<()>>,
    items: Items<ProcessItem>,
    /// State at the end of the played slices, which is at the time `played` in nanoseconds from the
    /// origin.
    machine: ProcessMachine,
    played: i64,
    /// Ends of calls of unknown threads.
    nobodys: u64,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Index in `people` of the last thread that was switched to.
    #[serde(skip)]
    near: usize,
    /// Remains of composed slices.
    #[serde(skip)]
    garbage: Garbage,
}

impl Rules for ProcessRules {
    type Partial = ProcessPartial;
    type Report = Report;

    type Options = ProcessOptions;

    fn new(selection: &Selection, options: &ProcessOptions) -> Self {
        ProcessRules {
            selection: selection.clone(),
            options: options.clone(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        matches!(
            event,
            Entry(_)
                | Exit(_)
                | ThreadExit(_)
                | Switch(_)
                | Fork(_)
                | Exec(_)
                | Rename(..)
                | ProcessState(_)
        )
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        use KernelEvent::{Fork, ProcessState, Switch};
        if !has(&|event| matches!(event, Fork(_) | ProcessState(_))) {
            return Some(
                "the creators of processes are unknown: enable sched_process_fork and lttng_statedump_process_state",
            );
        }
        let switches = has(&|event| matches!(event, Switch(_)));
        (!switches).then_some("the running threads are unknown: enable sched_switch")
    }

    fn first(&self) -> ProcessPartial {
        ProcessPartial {
            is_first: true,
            played: i64::MIN,
            ..ProcessPartial::default()
        }
    }

    fn packet(&self, partial: &mut ProcessPartial, packet: &Packet) {
        let Packet {
            cpu, lost_before, ..
        } = *packet;
        let time = packet.begin.unwrap_or(i64::MIN);
        if !packet.tells_switches {
            if lost_before && packet.tells_calls {
                let (tid, step) = (None, CallStep::Lose);
                self.step(
                    partial,
                    cpu,
                    time,
                    ProcessStep::Call(CallEvent { tid, step }),
                );
            }
            return;
        }
        if lost_before {
            self.goes_over(partial, cpu, time, Stretch::new(None, time));
        }
        let ran = partial.runs.get(cpu).packet(packet);
        self.ran(partial, cpu, ran);
    }

    fn cut(&self, partial: &mut ProcessPartial, packet: &Packet, time: i64) {
        if packet.tells_switches {
            self.goes_over(partial, packet.cpu, time, Stretch::new(None, time));
            let ran = partial.runs.get(packet.cpu).cut(time);
            self.ran(partial, packet.cpu, ran);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut ProcessPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let is_over = self.selection.window.is_over(time);
        let step = match &model.event {
            KernelEvent::Entry(_) | KernelEvent::Exit(_) if is_over => return,
            KernelEvent::Entry(entry) => CallStep::Enter(entry.call(body)),
            KernelEvent::Exit(exit) => CallStep::of_exit(exit, body),
            KernelEvent::Switch(switch) => {
                let near = &mut partial.near;
                if let Some(tids) = learn_switch(&mut partial.people, near, event, switch, body) {
                    self.switch(partial, cpu, time, tids);
                }
                return;
            }
            _ => return self.task(partial, event, body),
        };
        let tid = model.tid(body);
        self.step(
            partial,
            cpu,
            time,
            ProcessStep::Call(CallEvent { tid, step }),
        );
    }

    fn merge(&self, earlier: &mut ProcessPartial, later: ProcessPartial) {
        earlier.people.merge(later.people);
        let step = |earlier: &mut _, cpu, time, step| self.step(earlier, cpu, time, step);
        let begin =
            |earlier: &mut _, cpu, time, stretch| self.goes_over(earlier, cpu, time, stretch);
        later.lanes.join(earlier, step, begin);
        for (cpu, runs) in later.runs {
            let ran = earlier.runs.get(cpu).join(runs, |()| ());
            self.ran(earlier, cpu, ran);
        }
        earlier.items.append(later.items);
        earlier.nobodys += later.nobodys;
    }

    fn slices<'a>(
        &'a self,
        partial: &mut ProcessPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, ProcessPartial>> {
        let begin = std::mem::replace(&mut partial.played, watermark);
        let mut items = partial.items.cut(watermark);
        if items.is_empty() {
            return Vec::new();
        }
        let selection = &self.selection;
        let garbage = partial.garbage.take();
        vec![Box::new(move |_| {
            drop(garbage);
            let mut slice = ProcessSlice::new(begin);
            items.play(None, |cpu, time, item| {
                slice.play(selection, cpu, time, item)
            });
            slice.end();
            drop(items);
            Box::new(move |partial| {
                slice.compose(selection, &mut partial.machine);
                partial.garbage.put(slice);
            })
        })]
    }

    fn finish(&self, input: &Input, mut partial: ProcessPartial) -> Report {
        for (cpu, lane) in std::mem::take(&mut partial.lanes) {
            if let Some(stretch) = lane.into_now() {
                Self::leaves(&mut partial, cpu, i64::MAX, stretch);
            }
        }
        for (cpu, mut runs) in std::mem::take(&mut partial.runs) {
            let until = input.recorded.until(cpu);
            let ran = input
                .end_of(cpu.trace)
                .and_then(|end| runs.close(end.min(until)));
            self.ran(&mut partial, cpu, ran);
        }
        let ProcessPartial { items, machine, .. } = &mut partial;
        items.play(None, |cpu, time, item| {
            machine.play(&self.selection, cpu, time, item)
        });
        // With switches, these threads are already known. Without switches, a thread none of whose
        // calls ended is known only by its open call.
        let callers = machine.open.threads();
        for thread in callers.filter(|thread| input.recorded.lacks_switches(thread.trace)) {
            machine.lives.get(thread).last().is_seen = true;
        }
        report::report(self, input, partial)
    }
}

impl ProcessRules {
    /// Processes a switch.
    #[inline]
    fn switch(
        &self,
        partial: &mut ProcessPartial,
        cpu: CpuKey,
        time: i64,
        (prev, next): (i32, i32),
    ) {
        self.goes_over(partial, cpu, time, Stretch::new(Some(next), time));
        let ran = partial.runs.get(cpu).goes_over(time, prev, next, ());
        let (ran, since) = ran.map_or((0, time), |ran| (self.active(cpu, &ran), ran.since));
        let switch = ProcessItem::Switch {
            prev,
            next,
            ran,
            since,
        };
        partial.items.push(cpu, time, switch);
    }

    /// The selected part of a stretch, in nanoseconds.
    #[inline]
    fn active(&self, cpu: CpuKey, ran: &tracebraid_follow::Stretch<()>) -> u64 {
        match self.selection.cpus.contains(cpu.cpu) {
            true => self.selection.window.clip(ran.since, ran.until),
            false => 0,
        }
    }

    /// Adds a stretch whose thread became known late, or whose end is a loss.
    fn ran(
        &self,
        partial: &mut ProcessPartial,
        cpu: CpuKey,
        ran: Option<tracebraid_follow::Stretch<()>>,
    ) {
        if let Some(ran) = ran {
            let active = self.active(cpu, &ran);
            if active > 0 {
                let did = ProcessItem::Did(ran.tid, Sums::active(active), ran.since);
                partial.items.push(cpu, ran.told, did);
            }
        }
    }

    /// Begins another stretch.
    #[inline]
    fn goes_over(&self, partial: &mut ProcessPartial, cpu: CpuKey, time: i64, next: Stretch) {
        if let Some(ended) = partial.lanes.get(cpu).goes_over(time, next) {
            Self::leaves(partial, cpu, time, ended);
        }
    }

    /// Adds the items at the end of a stretch.
    #[inline]
    fn leaves(partial: &mut ProcessPartial, cpu: CpuKey, time: i64, ended: Stretch) {
        if let Some((tid, sums)) = ended.did() {
            partial
                .items
                .push(cpu, time, ProcessItem::Did(tid, sums, ended.since));
        }
        if let Some((tid, entered)) = ended.calls.into_open() {
            let leaves = CallItem::Leaves(tid, entered);
            partial.items.push(cpu, time, ProcessItem::Call(leaves));
        }
    }

    /// Processes an event in the current stretch.
    #[inline(always)]
    fn step(&self, partial: &mut ProcessPartial, cpu: CpuKey, time: i64, step: ProcessStep) {
        let Some(mut stretch) = partial.lanes.get(cpu).now() else {
            return self.before(partial, cpu, time, step);
        };
        let CallEvent { tid, step } = match step {
            ProcessStep::Call(event) => event,
            ProcessStep::Item(item) => return partial.items.push(cpu, time, item),
        };
        if stretch.calls.is_left(tid) {
            self.goes_over(partial, cpu, time, Stretch::new(tid, time));
            let Some(own) = partial.lanes.get(cpu).now() else {
                return;
            };
            stretch = own;
        }
        let Some(tid) = stretch.calls.caller() else {
            partial.nobodys += u64::from(matches!(step, CallStep::Exit(..)));
            return;
        };
        match step {
            CallStep::Enter(call) => {
                if stretch.calls.enter(Entered { call, time }) {
                    let enters = CallItem::Enters(tid);
                    partial.items.push(cpu, time, ProcessItem::Call(enters));
                }
            }
            CallStep::Exit(call, result) => {
                let exited = Exited { call, result, time };
                match stretch.calls.exit(&exited) {
                    // A call counts at the CPU and the time of its end.
                    EndedCall::Call(entered) if self.selection.counts(time, cpu.cpu) => {
                        stretch.sums.call(entered.call, result);
                    }
                    EndedCall::Elsewhere => {
                        let arrives = CallItem::Arrives(tid, exited);
                        partial.items.push(cpu, time, ProcessItem::Call(arrives));
                    }
                    EndedCall::Call(_) | EndedCall::Nothing => {}
                }
            }
            CallStep::Lose => {
                if stretch.calls.lose() {
                    let enters = CallItem::Enters(tid);
                    partial.items.push(cpu, time, ProcessItem::Call(enters));
                }
            }
            CallStep::Make(_) => {}
        }
    }

    /// The thread is unknown: earlier chunks contain it, if there are any.
    #[cold]
    fn before(&self, partial: &mut ProcessPartial, cpu: CpuKey, time: i64, step: ProcessStep) {
        if partial.is_first {
            self.goes_over(partial, cpu, time, Stretch::new(None, time));
            return self.step(partial, cpu, time, step);
        }
        partial.lanes.get(cpu).wait(time, step);
    }

    /// Events of creation, end and names of threads.
    fn task(&self, partial: &mut ProcessPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        learn(&mut partial.people, model, cpu, time, body);
        let mut tell = |told| {
            self.step(
                partial,
                cpu,
                time,
                ProcessStep::Item(ProcessItem::Told(told)),
            )
        };
        match &model.event {
            KernelEvent::Fork(fork) => {
                if let (Some(tid), Some(pid)) =
                    (get(&fork.parent_tid, body), get(&fork.parent_pid, body))
                {
                    tell(Told::Belongs(tid, pid));
                }
                if let Some(tid) = fork.child_tid.get(body) {
                    tell(Told::Made(tid as i32, Box::new(born(time, fork, body))));
                }
            }
            KernelEvent::Exec(exec) => self.exec(partial, (cpu, time), exec, body),
            KernelEvent::Rename(tid, name) => {
                if let (Some(tid), Some(name)) = (tid.get(body), name.comm(body)) {
                    let by = NamedBy::Rename;
                    tell(Told::Named(tid as i32, Named { time, name, by }));
                }
            }
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    tell(Told::Ends(tid as i32));
                }
            }
            KernelEvent::ProcessState(state) => {
                dumped(time, state, body).into_iter().for_each(tell);
            }
            _ => {}
        }
    }

    fn exec(
        &self,
        partial: &mut ProcessPartial,
        (cpu, time): (CpuKey, i64),
        exec: &Exec,
        body: &mut Body<'_, '_>,
    ) {
        let Some(tid) = get(&exec.tid, body) else {
            return;
        };
        if let Some((old, tid)) = taken_over(exec, body) {
            self.switch(partial, cpu, time, (old, tid));
            let takes_over = ProcessItem::Told(Told::TakesOver(tid, old));
            partial.items.push(cpu, time, takes_over);
        }
        if let Some(path) = exec.path.as_ref().and_then(|path| path.bytes(body)) {
            let (name, by) = (Comm::of_program(path), NamedBy::Exec);
            let named = ProcessItem::Told(Told::Named(tid, Named { time, name, by }));
            self.step(partial, cpu, time, ProcessStep::Item(named));
        }
    }
}

fn get(field: &Option<IntField>, body: &mut Body<'_, '_>) -> Option<i32> {
    Some(field.as_ref()?.get(body)? as i32)
}

/// The life that a fork begins.
fn born(time: i64, fork: &Fork, body: &mut Body<'_, '_>) -> Life {
    let name = fork.child_name.as_ref().and_then(|name| name.comm(body));
    let by = NamedBy::Fork;
    Life {
        is_seen: true,
        begin: Some(time),
        parent: Some(Parent {
            tid: get(&fork.parent_tid, body),
            pid: get(&fork.parent_pid, body),
            time,
        }),
        pid: get(&fork.child_pid, body),
        names: name
            .map(|name| Named { time, name, by })
            .into_iter()
            .collect(),
        ..Life::default()
    }
}

/// A thread in a state dump.
fn dumped(time: i64, state: &ProcessState, body: &mut Body<'_, '_>) -> Option<Told> {
    let (tid, pid) = (state.tid.get(body)? as i32, state.pid.get(body)? as i32);
    let ppid = get(&state.ppid, body);
    let name = state.name.as_ref().and_then(|name| name.comm(body));
    let by = NamedBy::Dump;
    Some(Told::IsThere {
        tid,
        pid,
        parent: ppid.map(|ppid| Parent {
            tid: None,
            pid: Some(ppid),
            time,
        }),
        named: name.map(|name| Named { time, name, by }),
    })
}
