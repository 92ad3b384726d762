//! Translates kernel events into changes of attributes.
//!
//! An event sets attributes to values that the event contains, or of the thread that runs on its
//! CPU, which the CPU's own switches show. So no CPU depends on others, except for requests to
//! block devices ([`crate::disks`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Event, Input, Items, Lane, Packet, Recorded, taken_over};
use tracebraid_kernel_model::events::irq::SoftirqStep;
use tracebraid_kernel_model::events::power::CpuIdle;
use tracebraid_kernel_model::events::sched::{EndStep, WakeStep, Wakeup};
use tracebraid_kernel_model::events::user_level::is_ended_elsewhere;
use tracebraid_kernel_model::{
    Body, Comm, Exec, Fork, IntField, KernelEvent, Priority, Switch, Syscall, TaskState,
    softirq_name,
};

use crate::attribute::{Attribute, AttributeKind, Subject};
use crate::disks::{Disks, Request};
use crate::ends::Ends;
use crate::piece::{Piece, Pieces, WAKE};
use crate::slices::Slices;
use crate::value::ThreadState;
use crate::varint::{self, NULL};

/// State after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partial {
    lanes: Lanes,
    pieces: ByCpu<Pieces>,
    requests: Items<Request>,
    disks: Disks,
    /// Changes of attributes of disks.
    of_disks: Pieces,
    ends: Ends,
    pub(crate) losses: u64,
    /// True if the part begins with the trace.
    is_first: bool,
    /// Earlier slices have been passed on.
    handed_on: usize,
}

/// State of a CPU: the thread that runs there.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Active {
    tid: Option<i32>,
}

/// An action of the running thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum KernelStep {
    Enter(Syscall),
    Exit,
    Named(Comm),
    /// Events were lost: the state of the thread is unknown from now on.
    Lost,
}

/// Events that change attributes.
pub(crate) fn wants(event: &KernelEvent) -> bool {
    use KernelEvent::*;
    match event {
        Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_) | Wakeup(_) | Migrate(_)
        | Inherit(_) => true,
        Entry(_) | Exit(_) => true,
        IrqEntry(_) | IrqExit(_) | Frequency(_) | CpuIdle(_) => true,
        Softirq(softirq) => softirq.step != SoftirqStep::Raise,
        ThreadEnd(end) => end.step == EndStep::Free,
        ThreadExit(_) => true,
        Block(block) => Request::is_of(block),
        _ => false,
    }
}

/// A CPU at a time, with the destination of changes.
struct At<'p> {
    slices: &'p Slices,
    lanes: &'p mut Lanes,
    pieces: &'p mut ByCpu<Pieces>,
    is_first: bool,
    cpu: CpuKey,
    time: i64,
}

/// Value of `thread/TID/syscall` where an unrecorded CPU may hide an entry or exit.
pub(crate) const UNKNOWN: &str = "unknown";
/// Text number of [`UNKNOWN`]: after those of softirqs (0 to 0xff), before those of system calls.
const UNKNOWN_NUMBER: u16 = 0x100;

type Lanes = ByCpu<Lane<Active, KernelStep>>;

/// Joins a chunk whose first steps depend on earlier chunks.
struct Joining<'p> {
    lanes: &'p mut Lanes,
    is_first: bool,
    /// By CPU: the latest event before the chunk.
    latest: ByCpu<Latest>,
    resolved: ByCpu<Pieces>,
}

#[derive(Clone, Copy, Debug)]
struct Latest(i64);

impl Default for Latest {
    fn default() -> Latest {
        Latest(i64::MIN)
    }
}

impl Joining<'_> {
    fn at<'p>(&'p mut self, slices: &'p Slices, cpu: CpuKey, time: i64) -> At<'p> {
        let time = time.max(self.latest.get(cpu).0);
        let (lanes, pieces, is_first) = (&mut *self.lanes, &mut self.resolved, self.is_first);
        At {
            slices,
            lanes,
            pieces,
            is_first,
            cpu,
            time,
        }
    }
}

impl Partial {
    /// The state before a chunk.
    pub(crate) fn new(is_first: bool) -> Partial {
        Partial {
            is_first,
            ..Partial::default()
        }
    }

    /// The state before the first chunk that is read, after the kept part of a history.
    pub(crate) fn behind(values: &BTreeMap<Attribute, u64>) -> Partial {
        let mut partial = Partial::new(true);
        for (attribute, code) in values {
            partial.ends.note(i64::MIN, *attribute, *code);
            let Some(number) = varint::number(*code) else {
                continue;
            };
            let cpu = CpuKey {
                trace: attribute.host(),
                cpu: attribute.id(),
            };
            match attribute.kind() {
                AttributeKind::CpuThread => {
                    let tid = i32::try_from(number).ok();
                    partial.lanes.get(cpu).goes_over(i64::MIN, Active { tid });
                }
                AttributeKind::DiskDepth => {
                    partial.disks.know(attribute.host(), attribute.id(), number)
                }
                _ => {}
            }
        }
        partial
    }

    /// The state of a CPU at the time of an event.
    #[inline(always)]
    fn at<'p>(&'p mut self, slices: &'p Slices, cpu: CpuKey, time: i64) -> At<'p> {
        let time = self.pieces.get(cpu).see(time);
        let (lanes, pieces, is_first) = (&mut self.lanes, &mut self.pieces, self.is_first);
        At {
            slices,
            lanes,
            pieces,
            is_first,
            cpu,
            time,
        }
    }

    /// Begins a packet; events may have been lost before it.
    pub(crate) fn packet(&mut self, slices: &Slices, packet: &Packet) {
        // A chunk may begin at any packet, so names are repeated at each: the file must not depend
        // on chunks.
        self.pieces.get(packet.cpu).forget_names();
        if !packet.lost_before {
            return;
        }
        self.losses += 1;
        let Some(time) = packet.begin else { return };
        let at = &mut self.at(slices, packet.cpu, time);
        at.pieces.get(at.cpu).lose(slices, at.time);
        if packet.tells_switches {
            at.step(KernelStep::Lost);
            for kind in [
                AttributeKind::CpuThread,
                AttributeKind::CpuIrq,
                AttributeKind::CpuSoftirq,
            ] {
                at.set_cpu(kind, NULL);
            }
            at.goes_over(None);
        }
    }

    /// Applies an event.
    #[inline(always)]
    pub(crate) fn event(
        &mut self,
        slices: &Slices,
        input: &Input,
        event: &Event<'_>,
        body: &mut Body<'_, '_>,
    ) {
        let recorded = &*input.recorded;
        let at = &mut self.at(slices, event.cpu, event.time);
        match &event.model.event {
            KernelEvent::Entry(entry) => {
                let call = entry.call(body);
                at.by(event.model.tid(body), KernelStep::Enter(call));
            }
            KernelEvent::Exit(_) => at.by(event.model.tid(body), KernelStep::Exit),
            KernelEvent::Switch(switch) => at.switch(input, switch, body),
            KernelEvent::Wakeup(wakeup) => at.wakeup(recorded, wakeup, body),
            KernelEvent::IrqEntry(entry) => {
                let irq = entry.irq.get(body).map_or(NULL, varint::code);
                at.set_cpu(AttributeKind::CpuIrq, irq);
            }
            KernelEvent::IrqExit(_) => at.set_cpu(AttributeKind::CpuIrq, NULL),
            KernelEvent::Softirq(softirq) => match softirq.step {
                SoftirqStep::Entry => at.softirq(softirq.vector.get(body).unwrap_or(-1)),
                _ => at.set_cpu(AttributeKind::CpuSoftirq, NULL),
            },
            KernelEvent::Block(block) => {
                // A request issued on one CPU may complete on one that was not recorded.
                if let Some(request) = Request::new(block, body)
                    && recorded.is_whole_between(event.cpu.trace, || i64::MIN, event.time)
                {
                    self.requests.push(event.cpu, event.time, request);
                }
            }
            KernelEvent::ThreadExit(tid) => {
                let ended = tid.get(body).map(|tid| tid as i32);
                let running = event.model.tid(body);
                if let Some(tid) = ended.filter(|tid| is_ended_elsewhere(*tid, running)) {
                    at.set_state(tid, ThreadState::Dead);
                }
            }
            other => at.rare(recorded, other, body),
        }
    }

    /// Adds later chunks.
    pub(crate) fn merge(&mut self, slices: &Slices, later: Partial) {
        let latest = |(cpu, pieces): &(CpuKey, Pieces)| (*cpu, Latest(pieces.latest()));
        let mut joining = Joining {
            lanes: &mut self.lanes,
            is_first: self.is_first,
            latest: self.pieces.iter().map(latest).collect(),
            resolved: ByCpu::default(),
        };
        let step =
            |joining: &mut Joining<'_>, cpu, time, step| joining.at(slices, cpu, time).step(step);
        let begin = |joining: &mut Joining<'_>, cpu, time, active: Active| {
            joining.at(slices, cpu, time).goes_over(active.tid);
        };
        later.lanes.join(&mut joining, step, begin);
        let resolved = joining.resolved;
        for (cpu, pieces) in resolved.into_iter().chain(later.pieces) {
            self.pieces.get(cpu).append(slices, pieces);
        }
        self.requests.append(later.requests);
        self.losses += later.losses;
    }

    /// Ends a chunk: drops the state that only adding changes needs.
    pub(crate) fn end(&mut self) {
        self.pieces.iter_mut().for_each(|(_, pieces)| pieces.end());
    }

    /// Passes on the slices before a time, or all, with the changes in `more`.
    pub(crate) fn hand_on(
        &mut self,
        (slices, recorded): (&Slices, &Recorded),
        until: Option<i64>,
        more: [&mut Pieces; 2],
        mut to: impl FnMut(usize, Vec<Piece>),
    ) {
        let (disks, of_disks) = (&mut self.disks, &mut self.of_disks);
        self.requests.play(until, |cpu, time, request| {
            disks.play(slices, of_disks, cpu.trace, time, request);
        });
        let ready = until.map_or(slices.len(), |until| slices.find(until));
        let mut by_slice: Vec<Vec<Piece>> = Vec::new();
        by_slice.resize_with(ready.saturating_sub(self.handed_on), Vec::new);
        let of_cpus = self.pieces.iter_mut().map(|(_, pieces)| pieces);
        for piece in of_cpus
            .chain([of_disks])
            .chain(more)
            .flat_map(|pieces| pieces.take_before(ready))
        {
            if let Some(of_slice) = piece
                .slice
                .checked_sub(self.handed_on)
                .and_then(|at| by_slice.get_mut(at))
            {
                of_slice.push(piece);
            }
        }
        for (slice, mut pieces) in (self.handed_on..).zip(by_slice) {
            self.end_cpus(slices, recorded, slice, &mut pieces);
            to(slice, pieces);
        }
        self.handed_on = self.handed_on.max(ready);
    }

    /// Adds the changes at ends of CPUs. Each end is the start of a slice.
    fn end_cpus(
        &mut self,
        slices: &Slices,
        recorded: &Recorded,
        slice: usize,
        pieces: &mut Vec<Piece>,
    ) {
        let begin = slices.begin(slice);
        let first = recorded.ends().partition_point(|end| end.0 < begin);
        let later = recorded.ends().get(first..).unwrap_or_default();
        let now = later.iter().take_while(|end| end.0 == begin);
        let ended = now.clone().count();
        if ended > 0 {
            let piece = self.ends.end(slice, begin, now.map(|end| end.1));
            pieces.insert(0, piece);
        }
        if later.len() > ended {
            self.ends.note_all(pieces);
        }
    }
}

impl At<'_> {
    #[inline(always)]
    fn set(&mut self, attribute: Attribute, code: u64) {
        self.pieces
            .get(self.cpu)
            .set(self.slices, self.time, attribute, code);
    }

    #[inline(always)]
    fn set_cpu(&mut self, kind: AttributeKind, code: u64) {
        self.set(Attribute::new(kind, self.cpu.trace, self.cpu.cpu), code);
    }

    #[inline(always)]
    fn set_thread(&mut self, kind: AttributeKind, tid: i32, code: u64) {
        self.set(Attribute::new(kind, self.cpu.trace, tid as u32), code);
    }

    fn set_state(&mut self, tid: i32, state: ThreadState) {
        self.set_thread(AttributeKind::ThreadState, tid, varint::code(state as i64));
    }

    /// State of a thread that does not run: unknown where an unrecorded CPU may wake the thread and
    /// run it.
    fn set_away(&mut self, tid: i32, state: ThreadState, is_whole: bool) {
        match is_whole {
            true => self.set_state(tid, state),
            false => self.set_thread(AttributeKind::ThreadState, tid, NULL),
        }
    }

    fn name(&mut self, tid: i32, name: Comm) {
        let pieces = self.pieces.get(self.cpu);
        pieces.name(self.slices, self.time, self.cpu.trace, tid, name);
    }

    /// Another thread runs on the CPU from now on.
    fn goes_over(&mut self, tid: Option<i32>) {
        self.lanes
            .get(self.cpu)
            .goes_over(self.time, Active { tid });
    }

    /// Applies a step of that thread, or of the running thread.
    #[inline(always)]
    fn by(&mut self, tid: Option<i32>, step: KernelStep) {
        match tid {
            Some(tid) => self.done(tid, step),
            None => self.step(step),
        }
    }

    /// Applies a step of the running thread.
    #[inline(always)]
    fn step(&mut self, step: KernelStep) {
        let is_first = self.is_first;
        let lane = self.lanes.get(self.cpu);
        match lane
            .now_or_first(is_first, self.time)
            .map(|active| active.tid)
        {
            Some(Some(tid)) => self.done(tid, step),
            Some(None) => {}
            None => lane.wait(self.time, step),
        }
    }

    #[inline(always)]
    fn done(&mut self, tid: i32, step: KernelStep) {
        // There is an idle thread on each CPU, all with id 0.
        if tid == 0 {
            return;
        }
        match step {
            KernelStep::Enter(call) => {
                let attribute =
                    Attribute::new(AttributeKind::ThreadSyscall, self.cpu.trace, tid as u32);
                let text = || call.name().to_owned();
                let number = match call {
                    Syscall::OTHER => UNKNOWN_NUMBER + 1,
                    call => call.0.saturating_add(UNKNOWN_NUMBER + 2),
                };
                let pieces = self.pieces.get(self.cpu);
                pieces.set_text(self.slices, self.time, attribute, number, text);
            }
            KernelStep::Exit => self.set_thread(AttributeKind::ThreadSyscall, tid, NULL),
            KernelStep::Named(name) => {
                // The step may have waited until now; the names before it are then unknown here.
                self.pieces.get(self.cpu).forget_name(tid);
                self.name(tid, name);
                self.pieces.get(self.cpu).forget_name(tid);
            }
            KernelStep::Lost => self.set_thread(AttributeKind::ThreadState, tid, NULL),
        }
    }

    /// Sets the call of a thread to [`UNKNOWN`].
    fn lose_call(&mut self, tid: i32) {
        let attribute = Attribute::new(AttributeKind::ThreadSyscall, self.cpu.trace, tid as u32);
        let pieces = self.pieces.get(self.cpu);
        pieces.set_text(self.slices, self.time, attribute, UNKNOWN_NUMBER, || {
            UNKNOWN.to_owned()
        });
    }

    fn softirq(&mut self, vector: i64) {
        let attribute = Attribute::new(AttributeKind::CpuSoftirq, self.cpu.trace, self.cpu.cpu);
        let text = || softirq_name(vector).map_or_else(|| vector.to_string(), str::to_owned);
        let number = (vector & 0xff) as u16;
        let pieces = self.pieces.get(self.cpu);
        pieces.set_text(self.slices, self.time, attribute, number, text);
    }

    fn switch(&mut self, input: &Input, switch: &Switch, body: &mut Body<'_, '_>) {
        let (Some(prev), Some(next)) = (switch.prev_tid.get(body), switch.next_tid.get(body))
        else {
            return;
        };
        let (prev, next) = (prev as i32, next as i32);
        let is_whole = input.recorded.is_whole_at(self.cpu.trace, self.time);
        let loses_calls = !is_whole && input.sources.tells_calls(self.cpu.trace as usize);
        self.set_cpu(AttributeKind::CpuThread, varint::code(next.into()));
        if prev != 0 {
            let state = switch.prev_state(body).map_or(ThreadState::Other, left);
            self.set_away(prev, state, is_whole);
            if !is_whole {
                self.set_thread(AttributeKind::ThreadCpu, prev, NULL);
            }
            if loses_calls {
                self.lose_call(prev);
            }
            self.known(
                prev,
                switch.prev_name.as_ref().and_then(|name| name.comm(body)),
                switch.prev_priority(body),
            );
        }
        if next != 0 {
            self.set_state(next, ThreadState::Running);
            if loses_calls {
                self.lose_call(next);
            }
            self.set_thread(
                AttributeKind::ThreadCpu,
                next,
                varint::code(self.cpu.cpu.into()),
            );
            self.known(
                next,
                switch.next_name.as_ref().and_then(|name| name.comm(body)),
                switch.next_priority(body),
            );
        }
        self.goes_over(Some(next));
    }

    fn known(&mut self, tid: i32, name: Option<Comm>, priority: Option<Priority>) {
        name.into_iter().for_each(|name| self.name(tid, name));
        if let Some(priority) = priority {
            self.set_thread(
                AttributeKind::ThreadPriority,
                tid,
                varint::code(priority.0.into()),
            );
        }
    }

    fn wakeup(&mut self, recorded: &Recorded, wakeup: &Wakeup, body: &mut Body<'_, '_>) {
        let Some(tid) = wakeup
            .tid
            .get(body)
            .map(|tid| tid as i32)
            .filter(|&tid| tid != 0)
        else {
            return;
        };
        if get(wakeup.success.as_ref(), body) == Some(0) {
            return;
        }
        let cpu = get(wakeup.cpu.as_ref(), body);
        let target = cpu.and_then(|cpu| u32::try_from(cpu).ok());
        let is_ready = wakeup.step != WakeStep::Waking;
        let tells = recorded.wake((self.cpu, self.time), || self.time, is_ready, target);
        match wakeup.step {
            // The thread may run, or start to run, on a CPU that was not recorded.
            _ if !tells.is_whole() => self.set_thread(AttributeKind::ThreadState, tid, NULL),
            WakeStep::WakeupNew => self.set_state(tid, ThreadState::Woken),
            _ => self.set_thread(AttributeKind::ThreadState, tid, WAKE),
        }
        if is_ready
            && tells.is_whole()
            && let Some(cpu) = cpu
        {
            self.set_thread(AttributeKind::ThreadCpu, tid, varint::code(cpu));
        }
    }

    fn rare(&mut self, recorded: &Recorded, event: &KernelEvent, body: &mut Body<'_, '_>) {
        match event {
            KernelEvent::Fork(fork) => self.fork(recorded, fork, body),
            KernelEvent::Exec(exec) => self.exec(exec, body),
            KernelEvent::Rename(tid, name) => {
                if let (Some(tid), Some(name)) = (tid.get(body), name.comm(body)) {
                    self.name(tid as i32, name);
                }
            }
            KernelEvent::ProcessState(state) => {
                let Some(tid) = state.tid.get(body).filter(|&tid| tid != 0) else {
                    return;
                };
                self.known(
                    tid as i32,
                    state.name.as_ref().and_then(|name| name.comm(body)),
                    None,
                );
                self.of_thread(AttributeKind::ThreadProcess, tid, state.pid.get(body));
                self.of_thread(
                    AttributeKind::ThreadParent,
                    tid,
                    get(state.ppid.as_ref(), body),
                );
            }
            KernelEvent::Migrate(migrate) => {
                if let Some(tid) = migrate.tid.get(body) {
                    let to = migrate.to.get(body);
                    if recorded.is_whole_at(self.cpu.trace, self.time) {
                        self.of_thread(AttributeKind::ThreadCpu, tid, to);
                    }
                    if let Some(cpu) = to.and_then(|cpu| u32::try_from(cpu).ok())
                        && !recorded.tells(CpuKey { cpu, ..self.cpu }, self.time)
                        && tid != 0
                    {
                        self.set_thread(AttributeKind::ThreadState, tid as i32, NULL);
                    }
                }
            }
            KernelEvent::Inherit(inherit) => {
                if let (Some(tid), Some(new)) = (inherit.tid.get(body), inherit.new.get(body)) {
                    self.of_thread(AttributeKind::ThreadPriority, tid, Some(new.0.into()));
                }
            }
            KernelEvent::ThreadEnd(end) => {
                if let Some(tid) = end.tid.get(body).filter(|&tid| tid != 0) {
                    self.gone(tid as i32);
                }
            }
            KernelEvent::Frequency(frequency) => {
                self.of_cpu(
                    AttributeKind::CpuFrequency,
                    frequency.cpu.get(body),
                    frequency.frequency.get(body),
                );
            }
            KernelEvent::CpuIdle(idle) => {
                let state = idle
                    .state
                    .get(body)
                    .filter(|&state| state as u32 != CpuIdle::AWAKE);
                self.of_cpu(AttributeKind::CpuSleep, idle.cpu.get(body), state);
            }
            _ => {}
        }
    }

    fn of_thread(&mut self, kind: AttributeKind, tid: i64, value: Option<i64>) {
        if let Some(value) = value.filter(|_| tid != 0) {
            self.set_thread(kind, tid as i32, varint::code(value));
        }
    }

    /// Sets an attribute of the CPU that an event names. Only events of that kind set it, so other
    /// events of the CPU do not interfere.
    fn of_cpu(&mut self, kind: AttributeKind, cpu: Option<i64>, value: Option<i64>) {
        if let Some(cpu) = cpu.and_then(|cpu| u32::try_from(cpu).ok()) {
            self.set(
                Attribute::new(kind, self.cpu.trace, cpu),
                value.map_or(NULL, varint::code),
            );
        }
    }

    /// A thread is created; its id may have been used before.
    fn fork(&mut self, recorded: &Recorded, fork: &Fork, body: &mut Body<'_, '_>) {
        let Some(child) = fork.child_tid.get(body).filter(|&child| child != 0) else {
            return;
        };
        let parent = get(fork.parent_pid.as_ref().or(fork.parent_tid.as_ref()), body);
        let process = get(fork.child_pid.as_ref(), body);
        let is_whole = recorded.is_whole_at(self.cpu.trace, self.time);
        self.set_away(child as i32, ThreadState::New, is_whole);
        self.set_thread(AttributeKind::ThreadSyscall, child as i32, NULL);
        self.set_thread(
            AttributeKind::ThreadParent,
            child as i32,
            parent.map_or(NULL, varint::code),
        );
        self.set_thread(
            AttributeKind::ThreadProcess,
            child as i32,
            process.map_or(NULL, varint::code),
        );
        self.known(
            child as i32,
            fork.child_name.as_ref().and_then(|name| name.comm(body)),
            None,
        );
    }

    /// A thread executes a program: its name changes, and, unless it was the first thread of its
    /// process, its id becomes that of the first.
    fn exec(&mut self, exec: &Exec, body: &mut Body<'_, '_>) {
        let path = exec.path.as_ref().and_then(|path| path.bytes(body));
        let name = path.map(Comm::of_program);
        let tid = get(exec.tid.as_ref(), body).map(|tid| tid as i32);
        if let Some((old, tid)) = taken_over(exec, body) {
            self.gone(old);
            self.set_state(tid, ThreadState::Running);
            self.set_thread(
                AttributeKind::ThreadCpu,
                tid,
                varint::code(self.cpu.cpu.into()),
            );
            self.set_cpu(AttributeKind::CpuThread, varint::code(tid.into()));
            self.goes_over(Some(tid));
        }
        if let Some(name) = name {
            // The running thread may not be known yet.
            self.pieces.get(self.cpu).forget_names();
            self.by(tid, KernelStep::Named(name));
        }
    }

    /// Unsets all attributes of a thread.
    fn gone(&mut self, tid: i32) {
        for kind in AttributeKind::KEPT
            .into_iter()
            .filter(|kind| kind.subject() == Subject::Thread)
        {
            self.set_thread(kind, tid, NULL);
        }
        self.pieces.get(self.cpu).forget_name(tid);
    }
}

fn get(field: Option<&IntField>, body: &mut Body<'_, '_>) -> Option<i64> {
    field.and_then(|field| field.get(body))
}

/// State of a thread that has left its CPU.
fn left(state: TaskState) -> ThreadState {
    match state {
        TaskState::Runnable | TaskState::Preempted => ThreadState::Preempted,
        TaskState::Ready => ThreadState::Ready,
        TaskState::Sleeping => ThreadState::Sleeping,
        TaskState::DiskSleep => ThreadState::DiskSleep,
        TaskState::Stopped | TaskState::Traced => ThreadState::Stopped,
        TaskState::Dead | TaskState::Zombie => ThreadState::Dead,
        TaskState::Parked | TaskState::Idle => ThreadState::Idle,
        TaskState::Other => ThreadState::Other,
    }
}
