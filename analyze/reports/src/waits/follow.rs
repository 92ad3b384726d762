//! Following a CPU: what its thread does from one switch to the next, and what others have to know of it.

use tracebraid_kernel_model::{Body, IntField, KernelEvent, Peer, Switch};

use crate::kernel::{CpuKey, EndedCall, Entered, Event, Exited, ThreadKey, learn, learn_switch, taken_over};
use crate::waits::acts::Active;
use crate::waits::context::{Context, Source};
use crate::waits::step::{By, Details, Item, Step, What};
use crate::waits::{WaitPartial, WaitRules, events};

impl WaitRules {
    /// The call that has begun, or is about to end, has to do with a peer.
    #[inline(always)]
    pub(super) fn peer(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        peer: Option<Peer>,
        body: &mut Body<'_, '_>,
    ) {
        if let Some(peer) = peer {
            let what = What::Peer(Box::new(peer));
            let tid = event.model.tid(body);
            self.rare(partial, event.cpu, event.time, Step { tid, what });
        }
    }

    /// Something happens that is seldom.
    #[cold]
    pub(super) fn rare(&self, partial: &mut WaitPartial, cpu: CpuKey, time: i64, step: Step) {
        self.step(partial, cpu, time, step);
    }

    /// Something that tells about threads.
    pub(super) fn task(&self, partial: &mut WaitPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event { model, cpu, time, .. } = *event;
        learn(&mut partial.people, model, cpu, time, body);
        let mut put = |what: What| self.rare(partial, cpu, time, Step { tid: None, what });
        match &model.event {
            // A new thread is in no call, whoever had its id before.
            KernelEvent::Fork(fork) => {
                let Some(child) = fork.child_tid.get(body).map(|tid| tid as i32) else {
                    return;
                };
                put(What::Item(Item::Born(child)));
                let mut get = |field: &Option<IntField>| Some(field.as_ref()?.get(body)? as i32);
                if let (Some(tid), Some(pid)) = (get(&fork.parent_tid), get(&fork.parent_pid)) {
                    put(What::Item(Item::Belongs { tid, pid }));
                }
                if let Some(pid) = get(&fork.child_pid) {
                    put(What::Item(Item::Belongs { tid: child, pid }));
                }
            }
            // It takes over the id of its process's first thread.
            KernelEvent::Exec(exec) => {
                if let Some((old, tid)) = taken_over(exec, body) {
                    Self::begins(partial, cpu, time, Active::new(Some(tid)));
                    partial.items.push(cpu, time, Item::TakesOver(tid, old));
                }
            }
            KernelEvent::ProcessState(state) => {
                if let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) {
                    let (tid, pid) = (tid as i32, pid as i32);
                    put(What::Item(Item::Belongs { tid, pid }));
                }
            }
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    put(What::Dies(tid as i32));
                }
            }
            _ => {}
        }
    }

    #[inline(always)]
    pub(super) fn switch(
        partial: &mut WaitPartial,
        event: &Event<'_>,
        switch: &Switch,
        body: &mut Body<'_, '_>,
    ) {
        let Event { cpu, time, .. } = *event;
        let near = &mut partial.near.0;
        let Some((prev, next)) = learn_switch(&mut partial.people, near, event, switch, body) else {
            return;
        };
        Self::begins(partial, cpu, time, Active::new(Some(next)));
        let [prev, next] = [prev, next].map(|tid| Some(tid).filter(|&tid| tid != 0));
        let left = events::left(switch, body);
        partial.items.push(cpu, time, Item::Switch { prev, next, left });
    }

    /// Another thread runs there from now on, or it is not known who.
    pub(super) fn begins(partial: &mut WaitPartial, cpu: CpuKey, time: i64, active: Active) {
        if let Some(ended) = partial.lanes.get(cpu).goes_over(time, active) {
            Self::parks(partial, cpu, time, ended);
        }
    }

    #[inline]
    pub(super) fn parks(partial: &mut WaitPartial, cpu: CpuKey, time: i64, active: Active) {
        let Some(parked) = active.acts.parked() else {
            return;
        };
        partial.items.push(cpu, time, Item::Parks(parked));
        if let (Some(_), Some(peer)) = (parked.call, active.acts.peer) {
            partial.items.push(cpu, time, Item::Peer(parked.tid, peer));
        }
    }

    /// Something happens on a CPU.
    #[inline(always)]
    pub(super) fn step(&self, partial: &mut WaitPartial, cpu: CpuKey, time: i64, step: Step) {
        let Some(mut active) = partial.lanes.get(cpu).now_or_first(partial.is_first, time) else {
            return partial.lanes.get(cpu).wait(time, step);
        };
        if active.acts.calls.is_left(step.tid) {
            let context = active.context;
            let next = Active {
                context,
                ..Active::new(step.tid)
            };
            Self::begins(partial, cpu, time, next);
            match partial.lanes.get(cpu).now() {
                Some(now) => active = now,
                None => return,
            }
        }
        match step.what {
            What::Context(change) => active.context.change(change),
            What::Enter(call, details) => {
                active.context = Context::default();
                let Some(tid) = active.acts.calls.caller() else {
                    return partial.nobodys += 1;
                };
                if active.acts.enter(Entered { call, time }, details) {
                    partial.items.push(cpu, time, Item::Enters(tid));
                }
            }
            What::Exit(call, result) => self.exit(partial, cpu, Exited { call, result, time }),
            What::Wake {
                woken,
                is_ready,
                target,
            } => {
                let source = active.context.source();
                let by = match source {
                    Source::Thread => active.acts.waker(&self.kinds),
                    _ => By::Nobody,
                };
                let wake = Item::Wake {
                    woken,
                    is_ready,
                    target,
                    source,
                    by,
                };
                partial.items.push(cpu, time, wake);
            }
            seldom => Self::seldom(partial, cpu, time, seldom),
        }
    }

    /// Something else happens in the present stretch.
    fn seldom(partial: &mut WaitPartial, cpu: CpuKey, time: i64, what: What) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let item = match what {
            What::Request => return active.acts.requested = true,
            What::Peer(peer) => match (active.acts.calls.caller(), active.acts.calls.open()) {
                (Some(tid), None) => Item::Peer(tid, peer),
                (Some(_), Some(_)) => return active.acts.peer = Some(peer),
                (None, _) => return,
            },
            What::Dies(tid) => {
                if active.acts.calls.tid() == Some(tid) {
                    active.acts.dies();
                }
                Item::Dies(tid)
            }
            What::Lost { of_calls } => {
                let (tid, caller) = (active.acts.calls.tid(), active.acts.calls.caller());
                if of_calls {
                    active.acts.calls.lose();
                }
                Self::begins(partial, cpu, time, Active::new(tid));
                partial.items.push(cpu, time, Item::Lost);
                match (caller.filter(|_| of_calls), partial.lanes.get(cpu).now()) {
                    (Some(tid), Some(active)) => {
                        active.acts.calls.lose();
                        Item::Enters(tid)
                    }
                    _ => return,
                }
            }
            What::Item(item) => item,
            What::Enter(..) | What::Exit(..) | What::Wake { .. } | What::Context(_) => return,
        };
        partial.items.push(cpu, time, item);
    }

    /// A call ends.
    #[inline(always)]
    fn exit(&self, partial: &mut WaitPartial, cpu: CpuKey, exited: Exited) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        active.context = Context::default();
        let Some(tid) = active.acts.calls.caller() else {
            return partial.nobodys += 1;
        };
        let Exited { result, time, .. } = exited;
        match active.acts.exit(&exited, &self.kinds) {
            EndedCall::Call(entered) => {
                if self.kinds.of(entered.call).concerns_others(result) {
                    Self::concerns(partial, cpu, (entered, time, result));
                }
                self.ran(partial, cpu, tid, entered, time);
            }
            EndedCall::Elsewhere => {
                let arrives = Item::Arrives(tid, exited.call, result);
                partial.items.push(cpu, time, arrives);
            }
            EndedCall::Nothing => {}
        }
    }

    /// A call has ended while its thread ran, at that time and with that result, which others have to know.
    #[inline]
    fn concerns(partial: &mut WaitPartial, cpu: CpuKey, (entered, time, result): (Entered, i64, i64)) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let Some(tid) = active.acts.calls.caller() else {
            return;
        };
        let Details { argument, operation } = active.acts.details;
        if let Some(peer) = active.acts.peer.take() {
            partial.items.push(cpu, time, Item::Peer(tid, peer));
        }
        let call = Item::Call {
            tid,
            call: entered.call,
            operation,
            argument,
            begin: entered.time,
            result,
        };
        partial.items.push(cpu, time, call);
    }

    /// A thread ran from the beginning of a call to its end.
    #[inline(always)]
    fn ran(&self, partial: &mut WaitPartial, cpu: CpuKey, tid: i32, entered: Entered, time: i64) {
        let duration = entered.time.abs_diff(time);
        if self.counts(entered.call, time, cpu, duration) {
            let trace = cpu.trace;
            let thread = ThreadKey { trace, tid };
            let sums = partial.sums.get_near(thread, &mut partial.near.1);
            self.count(sums, entered.call, duration, None);
        }
    }
}
