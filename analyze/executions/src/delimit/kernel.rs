//! Executions from kernel events: system calls and lifetimes of processes.
//!
//! The analysis of each CPU determines the running thread. The actions of threads become items,
//! which are played in the order of time.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Record, StreamPlace, StreamRef};
use tracebraid_follow::{
    ByCpu, CpuKey, Event, Input, Items, Lane, Packet, Recorded, Selection, ThreadKey, Window,
    taken_over,
};
use tracebraid_kernel_model::{Body, Comm, IntField, KernelEvent, Syscall, SyscallEntry};
use tracebraid_language::near::did_you_mean;

use crate::delimit::call_slice::CallSlice;
use crate::delimit::calls::Calls;
use crate::delimit::log::{Block, Log};
use crate::delimit::processes::Processes;
use crate::delimit::{Patterns, fitting};

/// Requested definitions and input.
#[derive(Debug)]
pub(crate) struct Kernel {
    input: Input,
    window: Window,
    /// Matching definitions by number of a system call.
    calls: Vec<Vec<usize>>,
    /// Definitions that match calls with neither a known name nor a known number.
    other: Vec<usize>,
    /// Exits may lack the call: then all entries matter.
    is_anonymous: bool,
    pub(crate) processes: Patterns,
    doubts: Vec<String>,
}

/// State after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct KernelPartial {
    lanes: ByCpu<Lane<Who, CpuCall>>,
    items: Items<LifeEvent>,
    /// True if the state starts at the beginning of the trace.
    is_first: bool,
    /// Threads that were seen in the chunk; each one's presence is recorded once.
    #[serde(skip)]
    met: HashSet<ThreadKey>,
    calls: Calls,
    processes: Processes,
}

/// The running thread of a CPU, if it is known.
type Who = Option<i32>;

/// An action on a CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum CpuCall {
    /// Of the thread in the event's context, or else of the running thread.
    Call(Option<i32>, CallEdge),
    /// An action that does not depend on the running thread.
    Life(LifeEvent),
}

/// Beginning or end of a system call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum CallEdge {
    /// Entry of a call, with its file descriptor.
    Enter(Syscall, Option<i32>),
    /// Exit of the call, or of any open call if the call is unknown, with its result.
    Exit(Option<Syscall>, Option<i64>),
    /// The end of an open call may have been lost.
    Lose,
}

/// An action of a thread, which is played in the order of time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum LifeEvent {
    /// Entry or exit of a system call.
    Call(i32, CallEdge),
    /// Creation of a thread, with its process and name, if they are recorded.
    Made(i32, Option<i32>, Option<Comm>),
    /// End of a thread.
    Ends(i32),
    /// Execution of a program, with its name if it is recorded; the second id is the thread's
    /// former id.
    Executes(i32, i32, Option<Comm>),
    /// Change of a thread's name.
    Named(i32, Comm),
    /// Presence of a thread, with its process and name, if they are recorded.
    IsThere(i32, Option<i32>, Option<Comm>),
    /// A thread leaves its CPU, with its process and its name at that time.
    Leaves(i32, Option<i32>, Option<Comm>),
}

impl Kernel {
    /// `None` if no definition concerns calls or processes.
    pub(crate) fn new(
        (set, recorded): (&TraceSet, Option<&Arc<Recorded>>),
        calls: Patterns,
        processes: Patterns,
        window: Window,
    ) -> Option<Kernel> {
        if calls.is_empty() && processes.is_empty() {
            return None;
        }
        let kinds = |call: Syscall| {
            let mut kinds = fitting(&calls, call.name().as_bytes());
            kinds.extend(fitting(&calls, call.user_name().as_bytes()));
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        };
        // Registers the system calls that the traces name.
        let input = Input::sharing(set, recorded, Selection::default(), |event| {
            matches!(event, KernelEvent::Exit(_))
        });
        let mut kernel = Kernel {
            input,
            window,
            calls: (0..Syscall::count()).map(Syscall).map(kinds).collect(),
            other: kinds(Syscall::OTHER),
            is_anonymous: false,
            processes,
            doubts: Vec::new(),
        };
        kernel.is_anonymous = kernel.input.sources.has(|event| match event {
            KernelEvent::Exit(exit) => exit.fixed().is_none(),
            _ => false,
        });
        let selection = Selection {
            window,
            ..Selection::default()
        };
        let recorded = kernel.input.recorded.clone();
        kernel.input = Input::sharing(set, Some(&recorded), selection, |event| {
            kernel.wants_event(event, !calls.is_empty())
        });
        kernel.doubt(&calls);
        Some(kernel)
    }

    fn wants_event(&self, event: &KernelEvent, has_calls: bool) -> bool {
        use KernelEvent::*;
        match event {
            Entry(entry) => {
                has_calls
                    && (self.is_anonymous || entry.fixed().is_none_or(|call| self.is_chosen(call)))
            }
            Exit(exit) => has_calls && exit.fixed().is_none_or(|call| self.is_chosen(call)),
            Switch(_) | Fork(_) | Exec(_) => true,
            ThreadExit(_) | Rename(..) | ProcessState(_) => !self.processes.is_empty(),
            _ => false,
        }
    }

    /// Definitions that match a call.
    pub(crate) fn kinds(&self, call: Syscall) -> &[usize] {
        self.calls.get(usize::from(call.0)).unwrap_or(&self.other)
    }

    fn is_chosen(&self, call: Syscall) -> bool {
        !self.kinds(call).is_empty()
    }

    /// Collects warnings about definitions that match nothing in the traces, or no call of Linux.
    fn doubt(&mut self, calls: &Patterns) {
        let has = |kind: &dyn Fn(&KernelEvent) -> bool| self.input.sources.has(kind);
        let mut doubts = Vec::new();
        for (kind, glob) in calls {
            let exists = self
                .calls
                .iter()
                .chain([&self.other])
                .any(|kinds| kinds.contains(kind));
            if !exists {
                let all = Syscall::all().flat_map(|call| [call.name(), call.user_name()]);
                let instead = did_you_mean(glob, all);
                doubts.push(format!("Linux has no system call {}{instead}", glob.text()));
            } else if !has(&|event| match event {
                KernelEvent::Entry(entry) => entry
                    .fixed()
                    .is_none_or(|call| self.kinds(call).contains(kind)),
                _ => false,
            }) {
                doubts.push(format!("no system call {} was recorded", glob.text()));
            }
        }
        if !self.processes.is_empty() && !has(&|event| matches!(event, KernelEvent::ThreadExit(_)))
        {
            doubts.push(
                "the traces do not record the end of processes (sched_process_exit)".to_owned(),
            );
        }
        self.doubts = doubts;
    }

    pub(crate) fn doubts(&self) -> impl Iterator<Item = String> + '_ {
        self.doubts.iter().cloned()
    }

    pub(crate) fn groups(&self) -> Vec<Vec<StreamRef>> {
        self.input.groups()
    }

    pub(crate) fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.input.wants(trace, stream_class, class)
    }

    pub(crate) fn packet(&self, partial: &mut KernelPartial, place: &StreamPlace<'_>) {
        for packet in self.input.any_packets(place) {
            self.lost(partial, &packet);
        }
    }

    pub(crate) fn cut(
        &self,
        partial: &mut KernelPartial,
        place: &StreamPlace<'_>,
        time: Timestamp,
    ) {
        for packet in self.input.any_packets(place) {
            self.lost(partial, &packet.cut(time.0));
        }
    }

    /// Handles events that may have been lost before a packet.
    fn lost(&self, partial: &mut KernelPartial, packet: &Packet) {
        let time = packet.begin.unwrap_or(i64::MIN);
        if !packet.lost_before {
            return;
        }
        // As in the report on system calls: a thread that may have been switched out is still in
        // its call.
        if packet.tells_switches {
            partial.lanes.get(packet.cpu).goes_over(time, None);
        } else if packet.tells_calls {
            self.step(
                partial,
                packet.cpu,
                time,
                CpuCall::Call(None, CallEdge::Lose),
            );
        }
    }

    #[inline(always)]
    pub(crate) fn event(&self, partial: &mut KernelPartial, record: &mut Record<'_>) {
        self.input.event(record, |event, body| {
            // Later events must not matter, since it depends on the analyses whether they are read.
            if !self.window.is_over(event.time) {
                self.tell(partial, event, body);
            }
        });
    }

    #[inline(always)]
    fn tell(&self, partial: &mut KernelPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let what = match &model.event {
            KernelEvent::Entry(entry) => {
                let call = entry.call(body);
                CallEdge::Enter(call, descriptor(entry, call, body))
            }
            KernelEvent::Exit(exit) => {
                // `rt_sigreturn` loses its number before its exit: an exit without a number ends
                // any open call.
                let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
                CallEdge::Exit(call, exit.result.get(body))
            }
            _ => return self.task(partial, event, body),
        };
        let tid = model.tid(body);
        self.step(partial, cpu, time, CpuCall::Call(tid, what));
    }

    /// Handles events about threads.
    fn task(&self, partial: &mut KernelPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let mut tell = |item| self.step(partial, cpu, time, CpuCall::Life(item));
        match &model.event {
            KernelEvent::Switch(switch) => {
                let tids = [&switch.prev_tid, &switch.next_tid].map(|tid| tid.get(body));
                let [Some(prev), Some(next)] = tids.map(|tid| tid.map(|tid| tid as i32)) else {
                    return;
                };
                if !self.processes.is_empty() {
                    let names = [&switch.prev_name, &switch.next_name];
                    let names = names.map(|name| name.as_ref().and_then(|name| name.comm(body)));
                    let pid = model.pid(body);
                    // The lane's first boundary follows, so no item waits after this one.
                    Self::passes(
                        partial,
                        (cpu, time),
                        (prev, pid, names[0]),
                        (next, names[1]),
                    );
                }
                partial.lanes.get(cpu).goes_over(time, Some(next));
            }
            KernelEvent::Fork(fork) => {
                let name = fork.child_name.as_ref().and_then(|name| name.comm(body));
                let parents = [&fork.parent_tid, &fork.parent_pid].map(|field| get(field, body));
                if let [Some(tid), Some(pid)] = parents {
                    tell(LifeEvent::IsThere(tid, Some(pid), None));
                }
                if let Some(tid) = fork.child_tid.get(body) {
                    tell(LifeEvent::Made(
                        tid as i32,
                        get(&fork.child_pid, body),
                        name,
                    ));
                }
            }
            KernelEvent::Exec(exec) => {
                let path = exec.path.as_ref().and_then(|path| path.bytes(body));
                let name = path.map(Comm::of_program);
                let taken = taken_over(exec, body);
                if let Some(tid) = get(&exec.tid, body) {
                    let old = taken.map_or(tid, |(old, _)| old);
                    tell(LifeEvent::Executes(tid, old, name));
                }
                // The thread takes over the id of its process's first thread.
                if let Some((_, tid)) = taken {
                    partial.lanes.get(cpu).goes_over(time, Some(tid));
                }
            }
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    tell(LifeEvent::Ends(tid as i32));
                }
            }
            KernelEvent::Rename(tid, name) => {
                if let (Some(tid), Some(name)) = (tid.get(body), name.comm(body)) {
                    tell(LifeEvent::Named(tid as i32, name));
                }
            }
            KernelEvent::ProcessState(state) => {
                let name = state.name.as_ref().and_then(|name| name.comm(body));
                if let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) {
                    tell(LifeEvent::IsThere(tid as i32, Some(pid as i32), name));
                }
            }
            _ => {}
        }
    }

    /// Records that a thread leaves its CPU, and, once in a chunk, the presence of the next thread.
    fn passes(
        partial: &mut KernelPartial,
        (cpu, time): (CpuKey, i64),
        (prev, pid, name): (i32, Option<i32>, Option<Comm>),
        (next, next_name): (i32, Option<Comm>),
    ) {
        if prev != 0 {
            partial
                .items
                .push(cpu, time, LifeEvent::Leaves(prev, pid, name));
        }
        let trace = cpu.trace;
        if next != 0 && partial.met.insert(ThreadKey { trace, tid: next }) {
            let is_there = LifeEvent::IsThere(next, None, next_name);
            partial.items.push(cpu, time, is_there);
        }
    }

    /// Applies an action on a CPU.
    #[inline(always)]
    fn step(&self, partial: &mut KernelPartial, cpu: CpuKey, time: i64, step: CpuCall) {
        let lane = partial.lanes.get(cpu);
        let told = match step {
            CpuCall::Call(tid, _) => tid,
            CpuCall::Life(_) => None,
        };
        if told.is_some() && lane.now().is_none_or(|who| *who != told) {
            lane.goes_over(time, told);
        }
        if partial.is_first && lane.now().is_none() {
            lane.goes_over(time, None);
        }
        let item = match (step, lane.now()) {
            (step, None) => return lane.wait(time, step),
            (CpuCall::Life(item), _) => item,
            // Idle threads make no system calls: the switch to the calling thread was lost.
            (CpuCall::Call(..), Some(None | Some(0))) => return,
            (CpuCall::Call(_, what), Some(Some(tid))) => LifeEvent::Call(*tid, what),
        };
        partial.items.push(cpu, time, item);
    }

    pub(crate) fn merge(&self, earlier: &mut KernelPartial, later: KernelPartial) {
        let step = |earlier: &mut _, cpu, time, step| self.step(earlier, cpu, time, step);
        let begin = |earlier: &mut KernelPartial, cpu, time, who: Who| {
            earlier.lanes.get(cpu).goes_over(time, who);
        };
        later.lanes.join(earlier, step, begin);
        earlier.items.append(later.items);
    }

    /// Plays the items in the order of time, up to `until`.
    pub(crate) fn play(&self, partial: &mut KernelPartial, until: Option<i64>) {
        let (calls, processes) = (&mut partial.calls, &mut partial.processes);
        let from = self.window.from.map_or(i64::MIN, |from| from.0);
        partial.items.play(until, |cpu, time, item| {
            calls.play(self, (cpu, time), &item);
            if !self.processes.is_empty() {
                processes.play(&self.processes, from, (cpu, time), &item);
            }
        });
        // No further item can follow.
        if until.is_none_or(|until| until == i64::MAX) {
            processes.close_all(&self.processes);
        }
    }

    /// Removes and returns the items before a time that can be played for calls alone; `None` if a
    /// definition concerns processes.
    pub(crate) fn cut_calls(
        &self,
        partial: &mut KernelPartial,
        until: i64,
    ) -> Option<Items<LifeEvent>> {
        self.processes.is_empty().then(|| partial.items.cut(until))
    }

    /// True if executions that begin at that time are inside the window.
    pub(crate) fn has_begun(&self, time: i64) -> bool {
        self.window.from.is_none_or(|from| from.0 <= time)
    }
}

impl KernelPartial {
    /// State before the first event of a chunk.
    pub(crate) fn new(is_first: bool) -> KernelPartial {
        KernelPartial {
            is_first,
            ..KernelPartial::default()
        }
    }

    /// Appends the calls of a slice of time.
    pub(crate) fn compose(&mut self, kernel: &Kernel, slice: CallSlice) {
        slice.compose(kernel, &mut self.calls);
    }

    /// Removes and returns the calls that ended.
    pub(crate) fn take_calls(&mut self) -> Vec<Block> {
        self.calls.take()
    }

    /// Logs of calls and processes.
    pub(crate) fn logs(&mut self) -> [&mut Log; 2] {
        [&mut self.calls.log, &mut self.processes.log]
    }

    /// Begins of the open executions.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.calls.open().chain(self.processes.open())
    }
}

fn get(field: &Option<IntField>, body: &mut Body<'_, '_>) -> Option<i32> {
    Some(field.as_ref()?.get(body)? as i32)
}

/// File descriptor argument of a call.
fn descriptor(entry: &SyscallEntry, call: Syscall, body: &mut Body<'_, '_>) -> Option<i32> {
    let place = call.descriptor()?;
    i32::try_from(entry.argument(call, place, body)?).ok()
}
