//! What events are to the machine.

use tracebraid_kernel_model::events::Edge;
use tracebraid_kernel_model::events::block::{BioStep, BlockStep, RequestStep};
use tracebraid_kernel_model::events::irq::{SoftirqStep, Vector, VectorIrq};
use tracebraid_kernel_model::events::sched::{WakeStep, Wakeup};
use tracebraid_kernel_model::events::timer::TimerStep;
use tracebraid_kernel_model::{
    Body, Fork, IntField, KernelEvent, Peer, ProcessState, Switch, Syscall, SyscallEntry, SyscallExit,
    TaskState,
};

use crate::kernel::Event;
use crate::waits::context::Context;
use crate::waits::item::{Left, What};
use crate::waits::kind::Kind;
use crate::waits::{Doer, WaitPartial, WaitRules};

/// Whether a function begins or ends, if it does either.
pub(super) fn expires(step: TimerStep) -> Option<bool> {
    match step {
        TimerStep::ExpireEntry => Some(true),
        TimerStep::ExpireExit => Some(false),
        _ => None,
    }
}

pub(super) fn is_made(step: BlockStep) -> bool {
    use BlockStep::{Bio, Request};
    matches!(
        step,
        Request(RequestStep::Insert | RequestStep::Issue) | Bio(BioStep::Queue)
    )
}

pub(super) fn is_done(step: BlockStep) -> bool {
    matches!(step, BlockStep::Request(RequestStep::Complete))
}

impl WaitRules {
    pub(super) fn enter(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        entry: &SyscallEntry,
        body: &mut Body<'_, '_>,
    ) {
        let Event { cpu, time, .. } = *event;
        partial.contexts.at(cpu).thread();
        let doer = partial.doer(event, body);
        let call = entry.call(body);
        let (mut argument, mut operation) = (0, 0);
        match self.kinds.of(call) {
            Kind::Futex => {
                argument = entry.wide_argument(call, 0, body).unwrap_or(0);
                operation = entry.argument(call, 1, body).unwrap_or(0) as i32;
            }
            kind => {
                if let Some(place) = kind.descriptor() {
                    argument = entry.argument(call, place, body).unwrap_or(-1);
                }
            }
        }
        let what = What::Enter {
            call,
            operation,
            argument,
        };
        self.put(partial, time, cpu, doer, what);
        self.peer(partial, event, doer, entry.peer(body));
    }

    pub(super) fn peer(&self, partial: &mut WaitPartial, event: &Event<'_>, doer: Doer, peer: Option<Peer>) {
        if let Some(peer) = peer {
            self.put(partial, event.time, event.cpu, doer, What::Peer(Box::new(peer)));
        }
    }

    pub(super) fn exit(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        exit: &SyscallExit,
        body: &mut Body<'_, '_>,
    ) {
        partial.contexts.at(event.cpu).thread();
        let doer = partial.doer(event, body);
        let peer = exit.peer.as_ref().and_then(|peer| peer.get(body));
        self.peer(partial, event, doer, peer);
        // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
        let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
        let result = exit.result.get(body).unwrap_or(0);
        self.put(partial, event.time, event.cpu, doer, What::Exit { call, result });
    }

    pub(super) fn switch(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        switch: &Switch,
        body: &mut Body<'_, '_>,
    ) {
        partial.contexts.at(event.cpu).thread();
        let Some((prev, next)) = partial.tasks.event(event, body) else {
            return;
        };
        let left = match switch.prev_state(body) {
            Some(TaskState::Runnable | TaskState::Preempted) => Left::Runnable,
            Some(TaskState::DiskSleep) => Left::DiskSleep,
            _ => Left::Blocked,
        };
        let (prev, next) = (partial.busy(prev), partial.busy(next));
        let what = What::Switch { next, left };
        self.put(partial, event.time, event.cpu, Doer::Thread(prev), what);
    }

    pub(super) fn wake(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        wakeup: &Wakeup,
        body: &mut Body<'_, '_>,
    ) {
        let was_awake = wakeup.success.as_ref().and_then(|success| success.get(body)) == Some(0);
        let Some(tid) = wakeup.tid.get(body).filter(|_| !was_awake) else {
            return;
        };
        let doer = partial.doer(event, body);
        let woken = partial.tasks.place(event.cpu.trace, tid as i32) as u32;
        let context = *partial.contexts.at(event.cpu);
        let what = What::Wake {
            woken,
            context,
            is_ready: wakeup.step != WakeStep::Waking,
        };
        self.put(partial, event.time, event.cpu, doer, what);
    }

    /// A new thread is in no call, whoever had its id before.
    pub(super) fn fork(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        fork: &Fork,
        body: &mut Body<'_, '_>,
    ) {
        let Some(child) = fork.child_tid.get(body) else {
            return;
        };
        let child = partial.tasks.place(event.cpu.trace, child as i32) as u32;
        self.tell(partial, event, What::Born { child });
        let mut pid = |field: &Option<IntField>| field.as_ref().and_then(|field| field.get(body));
        let parent = pid(&fork.parent_tid).zip(pid(&fork.parent_pid));
        let child_pid = pid(&fork.child_pid);
        if let Some((parent, pid)) = parent {
            let thread = partial.tasks.place(event.cpu.trace, parent as i32) as u32;
            let pid = pid as i32;
            self.tell(partial, event, What::Belongs { thread, pid });
        }
        if let Some(pid) = child_pid {
            let (thread, pid) = (child, pid as i32);
            self.tell(partial, event, What::Belongs { thread, pid });
        }
    }

    pub(super) fn dies(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        tid: &IntField,
        body: &mut Body<'_, '_>,
    ) {
        if let Some(tid) = tid.get(body) {
            let thread = partial.tasks.place(event.cpu.trace, tid as i32) as u32;
            self.tell(partial, event, What::Dies { thread });
        }
    }

    pub(super) fn belongs(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        state: &ProcessState,
        body: &mut Body<'_, '_>,
    ) {
        if let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) {
            let thread = partial.tasks.place(event.cpu.trace, tid as i32) as u32;
            let pid = pid as i32;
            self.tell(partial, event, What::Belongs { thread, pid });
        }
    }

    pub(super) fn tell(&self, partial: &mut WaitPartial, event: &Event<'_>, what: What) {
        self.put(partial, event.time, event.cpu, Doer::NOBODY, what);
    }

    /// What interrupts threads, and all else.
    #[inline]
    pub(super) fn interrupt(&self, partial: &mut WaitPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let context = partial.contexts.at(event.cpu);
        match &event.model.event {
            KernelEvent::IrqEntry(entry) => context.enter_irq(entry.irq.get(body).unwrap_or(0)),
            KernelEvent::IrqExit(_) => context.leave_irq(),
            KernelEvent::Softirq(softirq) => match softirq.step {
                SoftirqStep::Entry => context.enter_softirq(softirq.vector.get(body).unwrap_or(0)),
                SoftirqStep::Exit => context.thread(),
                SoftirqStep::Raise => {}
            },
            KernelEvent::Vector(vector) => of_vector(context, vector),
            KernelEvent::Hrtimer(timer) => expires(timer.step)
                .into_iter()
                .for_each(|runs| context.timer(runs)),
            KernelEvent::Timer(timer) => expires(timer.step)
                .into_iter()
                .for_each(|runs| context.timer(runs)),
            KernelEvent::Block(block) if is_done(block.step) => context.completes(),
            KernelEvent::Block(_) => self.request(partial, event, body),
            _ => {
                partial.tasks.event(event, body);
            }
        }
    }

    /// A block request is made, as far as is known by the thread that runs.
    pub(super) fn request(&self, partial: &mut WaitPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let doer = partial.doer(event, body);
        self.put(partial, event.time, event.cpu, doer, What::Request);
    }
}

fn of_vector(context: &mut Context, vector: &VectorIrq) {
    match vector.edge {
        Edge::Begin => {
            context.enter_irq(0);
            context.timer(vector.vector == Vector::LocalTimer);
        }
        Edge::End => context.leave_irq(),
    }
}
