//! Following a CPU: what its thread does from one switch to the next, and what others have to know of it.

use tracebraid_kernel_fold::{
    CpuKey, EndedCall, Event, Exited, ThreadKey, learn, learn_named_switch, taken_over,
};
use tracebraid_kernel_model::{Body, Comm, IntField, KernelEvent, Switch};

use crate::active::Active;
use crate::calls::LongCall;
use crate::context::Source;
use crate::events;
use crate::rules::{GraphPartial, GraphRules};
use crate::step::{Begun, By, Item, RingStep, Step, What};

impl GraphRules {
    #[inline(always)]
    pub(crate) fn switch(
        &self,
        partial: &mut GraphPartial,
        event: &Event<'_>,
        switch: &Switch,
        body: &mut Body<'_, '_>,
    ) {
        let Event { cpu, time, .. } = *event;
        let near = &mut partial.near;
        let Some(((prev, next), names)) = learn_named_switch(&mut partial.people, near, event, switch, body)
        else {
            return;
        };
        self.begins(partial, cpu, time, Active::new(Some(next)));
        let [prev, next] = [prev, next].map(|tid| Some(tid).filter(|&tid| tid != 0));
        let left = events::left(switch, body);
        let switch = Item::Switch {
            prev,
            next,
            left,
            names,
        };
        partial.items.push(cpu, time, switch);
    }

    /// Something that tells about threads.
    #[cold]
    pub(crate) fn task(&self, partial: &mut GraphPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event { model, cpu, time, .. } = *event;
        learn(&mut partial.people, model, cpu, time, body);
        let mut items = Vec::new();
        match &model.event {
            KernelEvent::Fork(fork) => {
                let Some(child) = fork.child_tid.get(body).map(|tid| tid as i32) else {
                    return;
                };
                let mut get = |field: &Option<IntField>| Some(field.as_ref()?.get(body)? as i32);
                let parent = get(&fork.parent_tid);
                let belongs = |(tid, pid)| Item::Belongs { tid, pid };
                items.extend(parent.zip(get(&fork.parent_pid)).map(belongs));
                items.push(Item::Born(child, parent));
                items.extend(get(&fork.child_pid).map(|pid| belongs((child, pid))));
                let name = fork.child_name.as_ref().and_then(|name| name.comm(body));
                items.extend(name.map(|name| Item::Named(child, name)));
            }
            KernelEvent::Exec(exec) => {
                if let Some((old, tid)) = taken_over(exec, body) {
                    self.begins(partial, cpu, time, Active::new(Some(tid)));
                    partial.items.push(cpu, time, Item::TakesOver(tid, old));
                }
                let tid = exec.tid.as_ref().and_then(|tid| tid.get(body));
                let path = exec.path.as_ref().and_then(|path| path.bytes(body));
                let named = |(tid, path)| Item::Named(tid as i32, Comm::of_program(path));
                items.extend(tid.zip(path).map(named));
            }
            KernelEvent::Rename(tid, name) => {
                let named = |(tid, name)| Item::Named(tid as i32, name);
                items.extend(tid.get(body).zip(name.comm(body)).map(named));
            }
            KernelEvent::ProcessState(state) => {
                let Some(tid) = state.tid.get(body).map(|tid| tid as i32) else {
                    return;
                };
                let pid = state.pid.get(body).map(|pid| pid as i32);
                items.extend(pid.map(|pid| Item::Belongs { tid, pid }));
                let name = state.name.as_ref().and_then(|name| name.comm(body));
                items.extend(name.map(|name| Item::Named(tid, name)));
            }
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    let (tid, what) = (None, What::Dies(tid as i32));
                    self.step(partial, cpu, time, Step { tid, what });
                }
            }
            _ => {}
        }
        for item in items.into_iter().filter(|item| !is_of_idle(item)) {
            let (tid, what) = (None, What::Item(item));
            self.step(partial, cpu, time, Step { tid, what });
        }
    }

    /// Another thread runs there from now on, or it is not known who.
    pub(crate) fn begins(&self, partial: &mut GraphPartial, cpu: CpuKey, time: i64, active: Active) {
        if let Some(ended) = partial.lanes.get(cpu).goes_over(time, active) {
            self.parks(partial, cpu, time, &ended);
        }
    }

    #[inline]
    pub(crate) fn parks(&self, partial: &mut GraphPartial, cpu: CpuKey, time: i64, active: &Active) {
        if let Some(parked) = active.parked() {
            partial.items.push(cpu, time, Item::Parks(parked));
        }
    }

    /// Something happens on a CPU.
    #[inline]
    pub(crate) fn step(&self, partial: &mut GraphPartial, cpu: CpuKey, time: i64, step: Step) {
        let is_first = Self::is_first(partial);
        let Some(mut active) = partial.lanes.get(cpu).now_or_first(is_first, time) else {
            return partial.lanes.get(cpu).wait(time, step);
        };
        if active.calls.is_left(step.tid) {
            let next = active.of_another(step.tid);
            self.begins(partial, cpu, time, next);
            match partial.lanes.get(cpu).now() {
                Some(now) => active = now,
                None => return,
            }
        }
        let item = match step.what {
            What::Interrupt(change) => {
                let interrupted = active.context.change(time, change);
                match interrupted.zip(active.calls.caller()) {
                    Some(((begin, by), tid)) => Item::Interrupted(tid, begin, by),
                    None => return,
                }
            }
            What::Enter(call, argument) => {
                let begun = Begun { call, time, argument };
                match (active.enter(begun), active.calls.caller()) {
                    (true, Some(tid)) => Item::Enters(tid),
                    _ => return,
                }
            }
            What::Exit(call, result) => {
                return self.exit(partial, cpu, Exited { call, result, time });
            }
            What::Wake { woken, is_ready, cpu } => wake(active, woken, is_ready, cpu),
            What::Complete(request) => {
                active.context.completes(request);
                Item::Complete(request)
            }
            What::Issue(request, issued) => Item::Issue(request, active.worker(), issued),
            What::Send(segment) => Item::Send(segment, active.sends(&segment)),
            What::Receive(segment) => return active.receives(segment),
            What::Queue(work, queue) => {
                let (source, by) = who(active);
                Item::Queue {
                    work,
                    queue,
                    source,
                    by,
                }
            }
            What::Execute(work) => match active.worker() {
                Some(tid) => Item::Executes(tid, work),
                None => return,
            },
            What::Ring(event) => {
                let Some(tid) = active.worker() else { return };
                if event.step == RingStep::Complete {
                    active.completes();
                }
                Item::Ring(event, tid)
            }
            seldom => return self.seldom(partial, cpu, time, seldom),
        };
        partial.items.push(cpu, time, item);
    }

    /// Something else happens in the present stretch.
    #[cold]
    fn seldom(&self, partial: &mut GraphPartial, cpu: CpuKey, time: i64, what: What) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let item = match what {
            What::Dies(tid) => {
                if active.calls.tid() == Some(tid) {
                    active.dies();
                }
                Item::Dies(tid)
            }
            What::Lost { of_calls } => {
                let (tid, caller) = (active.calls.tid(), active.calls.caller());
                if of_calls {
                    active.calls.lose();
                }
                self.begins(partial, cpu, time, Active::new(tid));
                partial.items.push(cpu, time, Item::Lost);
                match (caller.filter(|_| of_calls), partial.lanes.get(cpu).now()) {
                    (Some(tid), Some(active)) => {
                        active.calls.lose();
                        Item::Enters(tid)
                    }
                    _ => return,
                }
            }
            What::Item(item) => item,
            _ => return,
        };
        partial.items.push(cpu, time, item);
    }

    /// A call ends.
    #[inline(always)]
    fn exit(&self, partial: &mut GraphPartial, cpu: CpuKey, exited: Exited) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let ended = active.exit(&exited, &self.kinds);
        let Some(tid) = active.calls.caller() else {
            return;
        };
        let Exited { result, time, .. } = exited;
        match ended {
            EndedCall::Call(begun) if self.asks_for(begun.call, begun.time) => {
                let trace = cpu.trace;
                let call = LongCall {
                    call: begun.call,
                    thread: ThreadKey { trace, tid },
                    begin: begun.time,
                    end: time,
                };
                partial.calls.add(call, &self.wanted);
            }
            EndedCall::Elsewhere => {
                let arrives = Item::Arrives(tid, exited.call, result);
                partial.items.push(cpu, time, arrives);
            }
            EndedCall::Call(_) | EndedCall::Nothing => {}
        }
    }
}

/// A thread is woken by what is active.
#[inline]
fn wake(active: &Active, woken: i32, is_ready: bool, cpu: Option<u32>) -> Item {
    let (source, by) = who(active);
    Item::Wake {
        woken,
        is_ready,
        cpu,
        source,
        by,
    }
}

/// What is active, and the thread, if it is one.
#[inline]
fn who(active: &Active) -> (Source, By) {
    let source = active.source();
    let by = match source {
        Source::Thread | Source::Sender(_) => active.by(),
        _ => By::Nobody,
    };
    (source, by)
}

/// Idle threads have no time line.
fn is_of_idle(item: &Item) -> bool {
    matches!(
        item,
        Item::Born(0, _) | Item::Belongs { tid: 0, .. } | Item::Named(0, _)
    )
}
