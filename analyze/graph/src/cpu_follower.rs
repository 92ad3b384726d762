//! Follows a CPU: the activity of its thread from one switch to the next, and the items that other
//! CPUs need.

use tracebraid_follow::{
    CpuKey, EndedCall, Event, Exited, ThreadKey, learn, learn_named_switch, taken_over,
};
use tracebraid_kernel_model::{Body, Comm, IntField, KernelEvent, Switch};
use tracebraid_threads::LeftAs;

use crate::calls::LongCall;
use crate::cpu_stretch::CpuStretch;
use crate::graph_step::{Act, CpuStep, GraphItem, RingStep};
use crate::rules::{GraphPartial, GraphRules};

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
        let Some(((prev, next), names)) =
            learn_named_switch(&mut partial.people, near, event, switch, body)
        else {
            return;
        };
        self.begins(partial, cpu, time, CpuStretch::new(Some(next)));
        let [prev, next] = [prev, next].map(|tid| Some(tid).filter(|&tid| tid != 0));
        let left = LeftAs::of(switch, body);
        let switch = GraphItem::Switch {
            prev,
            next,
            left,
            names,
        };
        partial.push(cpu, time, switch);
    }

    /// Handles events that describe threads: creation, execution of programs, names.
    #[cold]
    pub(crate) fn task(
        &self,
        partial: &mut GraphPartial,
        event: &Event<'_>,
        body: &mut Body<'_, '_>,
    ) {
        let Event {
            model, cpu, time, ..
        } = *event;
        learn(&mut partial.people, model, cpu, time, body);
        let mut items = Vec::new();
        match &model.event {
            KernelEvent::Fork(fork) => {
                let Some(child) = fork.child_tid.get(body).map(|tid| tid as i32) else {
                    return;
                };
                let mut get = |field: &Option<IntField>| Some(field.as_ref()?.get(body)? as i32);
                let parent = get(&fork.parent_tid);
                let belongs = |(tid, pid)| GraphItem::Belongs { tid, pid };
                items.extend(parent.zip(get(&fork.parent_pid)).map(belongs));
                items.push(GraphItem::Made(child, parent));
                items.extend(get(&fork.child_pid).map(|pid| belongs((child, pid))));
                let name = fork.child_name.as_ref().and_then(|name| name.comm(body));
                items.extend(name.map(|name| GraphItem::Named(child, name)));
            }
            KernelEvent::Exec(exec) => {
                if let Some((old, tid)) = taken_over(exec, body) {
                    self.begins(partial, cpu, time, CpuStretch::new(Some(tid)));
                    partial.push(cpu, time, GraphItem::TakeOver(tid, old));
                }
                let tid = exec.tid.as_ref().and_then(|tid| tid.get(body));
                let path = exec.path.as_ref().and_then(|path| path.bytes(body));
                let named = |(tid, path)| GraphItem::Named(tid as i32, Comm::of_program(path));
                items.extend(tid.zip(path).map(named));
            }
            KernelEvent::Rename(tid, name) => {
                let named = |(tid, name)| GraphItem::Named(tid as i32, name);
                items.extend(tid.get(body).zip(name.comm(body)).map(named));
            }
            KernelEvent::ProcessState(state) => {
                let Some(tid) = state.tid.get(body).map(|tid| tid as i32) else {
                    return;
                };
                let pid = state.pid.get(body).map(|pid| pid as i32);
                items.extend(pid.map(|pid| GraphItem::Belongs { tid, pid }));
                let name = state.name.as_ref().and_then(|name| name.comm(body));
                items.extend(name.map(|name| GraphItem::Named(tid, name)));
            }
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    let (tid, act) = (None, Act::Die(tid as i32));
                    self.step(partial, cpu, time, CpuStep { tid, act });
                }
            }
            _ => {}
        }
        for item in items.into_iter().filter(|item| !is_of_idle(item)) {
            let (tid, act) = (None, Act::Tell(item));
            self.step(partial, cpu, time, CpuStep { tid, act });
        }
    }

    /// Another thread runs on the CPU from now on; which one may be unknown.
    pub(crate) fn begins(
        &self,
        partial: &mut GraphPartial,
        cpu: CpuKey,
        time: i64,
        active: CpuStretch,
    ) {
        if let Some(ended) = partial.lanes.get(cpu).goes_over(time, active) {
            self.parks(partial, cpu, time, &ended);
        }
    }

    #[inline]
    pub(crate) fn parks(
        &self,
        partial: &mut GraphPartial,
        cpu: CpuKey,
        time: i64,
        active: &CpuStretch,
    ) {
        if let Some(parked) = active.acts.parked() {
            partial.push(cpu, time, GraphItem::Park(parked));
        }
    }

    /// Applies a step of a CPU.
    #[inline]
    pub(crate) fn step(&self, partial: &mut GraphPartial, cpu: CpuKey, time: i64, step: CpuStep) {
        let is_first = Self::is_first(partial);
        let Some(mut active) = partial.lanes.get(cpu).now_or_first(is_first, time) else {
            return partial.lanes.get(cpu).wait(time, step);
        };
        if active.acts.calls.is_left(step.tid) {
            let next = active.of_another(step.tid);
            self.begins(partial, cpu, time, next);
            match partial.lanes.get(cpu).now() {
                Some(now) => active = now,
                None => return,
            }
        }
        let item = match step.act {
            Act::Interrupt(step, device) => {
                let interrupted = active.interrupt(time, step, device);
                match interrupted.zip(active.acts.calls.caller()) {
                    Some(((begin, by), tid)) => GraphItem::Interrupted(tid, begin, by),
                    None => return,
                }
            }
            Act::Enter(begun) => match (active.enter(begun), active.acts.calls.caller()) {
                (true, Some(tid)) => GraphItem::Enter(tid),
                _ => return,
            },
            Act::Exit(call, result) => {
                return self.exit(partial, cpu, Exited { call, result, time });
            }
            Act::Wake(wake) => GraphItem::Wake(wake, active.origin_of(&wake)),
            seldom => return self.seldom(partial, cpu, time, seldom),
        };
        partial.push(cpu, time, item);
    }

    /// Applies a rare step within the current stretch.
    fn seldom(&self, partial: &mut GraphPartial, cpu: CpuKey, time: i64, act: Act) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let worker = active.worker();
        let item = match act {
            Act::Complete(request) => {
                active.completes_request();
                GraphItem::Complete(request)
            }
            Act::Request if worker.is_some() => return active.acts.request(),
            Act::Issue(request, issued) => {
                if worker.is_some() {
                    active.acts.request();
                }
                GraphItem::Issue(request, worker, issued)
            }
            Act::Send(segment) => GraphItem::Send(segment, active.sends(&segment)),
            Act::Receive(segment) => return active.receives(segment),
            Act::Queue(work, queue) => {
                let origin = active.origin();
                GraphItem::Queue {
                    work,
                    queue,
                    origin,
                }
            }
            Act::Execute(work) => match worker {
                Some(tid) => GraphItem::Execute(tid, work),
                None => return,
            },
            Act::Ring(event) => {
                let Some(tid) = worker else { return };
                if event.step == RingStep::Complete {
                    active.acts.linger();
                }
                GraphItem::Ring(event, tid)
            }
            Act::Die(tid) => {
                if active.acts.calls.tid() == Some(tid) {
                    active.acts.die();
                }
                GraphItem::Die(tid)
            }
            Act::Lose { of_calls } => return self.loses(partial, cpu, time, of_calls),
            Act::Tell(item) => item,
            _ => return,
        };
        partial.push(cpu, time, item);
    }

    /// Records the loss of events other than scheduling events.
    #[cold]
    fn loses(&self, partial: &mut GraphPartial, cpu: CpuKey, time: i64, of_calls: bool) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let (tid, caller) = (active.acts.calls.tid(), active.acts.calls.caller());
        if of_calls {
            active.acts.calls.lose();
        }
        self.begins(partial, cpu, time, CpuStretch::new(tid));
        partial.push(cpu, time, GraphItem::Lose);
        if let (Some(tid), Some(active)) =
            (caller.filter(|_| of_calls), partial.lanes.get(cpu).now())
        {
            active.acts.calls.lose();
            partial.push(cpu, time, GraphItem::Enter(tid));
        }
    }

    /// Ends a system call.
    #[inline(always)]
    fn exit(&self, partial: &mut GraphPartial, cpu: CpuKey, exited: Exited) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let ended = active.exit(&exited, &self.classes);
        let Some(tid) = active.acts.calls.caller() else {
            return;
        };
        let Exited { result, time, .. } = exited;
        match ended {
            EndedCall::Call(begun) => {
                let trace = cpu.trace;
                let call = LongCall {
                    call: begun.call,
                    thread: ThreadKey { trace, tid },
                    begin: begun.time,
                    end: time,
                };
                self.keep_call(&mut partial.calls, call);
            }
            EndedCall::Elsewhere => {
                let arrives = GraphItem::Arrive(tid, exited.call, result);
                partial.push(cpu, time, arrives);
            }
            EndedCall::Nothing => {}
        }
    }
}

/// Items of idle threads are dropped, since idle threads have no time line.
fn is_of_idle(item: &GraphItem) -> bool {
    matches!(
        item,
        GraphItem::Made(0, _) | GraphItem::Belongs { tid: 0, .. } | GraphItem::Named(0, _)
    )
}
