//! Follows a CPU: the activity of its thread from one switch to the next, and the items for playing
//! over all CPUs.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Body, IntField, KernelEvent, Peer, Switch};
use tracebraid_threads::{BegunCall, CpuContext, LeftAs, ThreadActs, WakeSource, WakerFacts};

use crate::waits::ended_call::concerns_others;
use crate::waits::wait_step::{Act, CpuStep, WaitItem};
use crate::waits::{WaitPartial, WaitRules};
use tracebraid_follow::{
    CpuKey, EndedCall, Event, Exited, ThreadKey, learn, learn_switch, taken_over,
};

/// Activity on a CPU from one switch to the next: the thread and its interrupts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CpuStretch {
    acts: ThreadActs,
    /// Peer of the open call.
    peer: Option<Box<Peer>>,
    context: CpuContext,
}

impl CpuStretch {
    /// The stretch of a thread, if known.
    fn new(tid: Option<i32>) -> CpuStretch {
        CpuStretch {
            acts: ThreadActs::new(tid),
            ..CpuStretch::default()
        }
    }

    /// The stretch of a thread that proves to run instead; interrupts stay the same.
    fn of_another(&self, tid: Option<i32>) -> CpuStretch {
        CpuStretch {
            context: self.context,
            ..CpuStretch::new(tid)
        }
    }
}

impl WaitRules {
    /// Records the peer of the call that has begun or is about to end.
    #[inline(always)]
    pub(super) fn peer(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        peer: Option<Peer>,
        body: &mut Body<'_, '_>,
    ) {
        if let Some(peer) = peer {
            let act = Act::Peer(Box::new(peer));
            let tid = event.model.tid(body);
            self.rare(partial, event.cpu, event.time, CpuStep { tid, act });
        }
    }

    /// Processes a rare event, out of line.
    #[cold]
    pub(super) fn rare(&self, partial: &mut WaitPartial, cpu: CpuKey, time: i64, step: CpuStep) {
        self.step(partial, cpu, time, step);
    }

    /// Processes events of threads.
    pub(super) fn task(
        &self,
        partial: &mut WaitPartial,
        event: &Event<'_>,
        body: &mut Body<'_, '_>,
    ) {
        let Event {
            model, cpu, time, ..
        } = *event;
        learn(&mut partial.people, model, cpu, time, body);
        let mut put = |act: Act| self.rare(partial, cpu, time, CpuStep { tid: None, act });
        match &model.event {
            // A new thread is in no call, even if its id had another owner.
            KernelEvent::Fork(fork) => {
                let Some(child) = fork.child_tid.get(body).map(|tid| tid as i32) else {
                    return;
                };
                put(Act::Tell(WaitItem::Made(child)));
                let mut get = |field: &Option<IntField>| Some(field.as_ref()?.get(body)? as i32);
                if let (Some(tid), Some(pid)) = (get(&fork.parent_tid), get(&fork.parent_pid)) {
                    put(Act::Tell(WaitItem::Belongs { tid, pid }));
                }
                if let Some(pid) = get(&fork.child_pid) {
                    put(Act::Tell(WaitItem::Belongs { tid: child, pid }));
                }
            }
            // The thread takes over the id of its process's first thread.
            KernelEvent::Exec(exec) => {
                if let Some((old, tid)) = taken_over(exec, body) {
                    Self::begins(partial, cpu, time, CpuStretch::new(Some(tid)));
                    partial.push(cpu, time, WaitItem::TakeOver(tid, old));
                }
            }
            KernelEvent::ProcessState(state) => {
                if let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) {
                    let (tid, pid) = (tid as i32, pid as i32);
                    put(Act::Tell(WaitItem::Belongs { tid, pid }));
                }
            }
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    put(Act::Die(tid as i32));
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
        let Some((prev, next)) = learn_switch(&mut partial.people, near, event, switch, body)
        else {
            return;
        };
        Self::begins(partial, cpu, time, CpuStretch::new(Some(next)));
        let [prev, next] = [prev, next].map(|tid| Some(tid).filter(|&tid| tid != 0));
        let left = LeftAs::of(switch, body);
        partial.push(cpu, time, WaitItem::Switch { prev, next, left });
    }

    /// Another thread runs from now on, or an unknown one.
    pub(super) fn begins(partial: &mut WaitPartial, cpu: CpuKey, time: i64, active: CpuStretch) {
        if let Some(ended) = partial.lanes.get(cpu).goes_over(time, active) {
            Self::parks(partial, cpu, time, ended);
        }
    }

    #[inline]
    pub(super) fn parks(partial: &mut WaitPartial, cpu: CpuKey, time: i64, active: CpuStretch) {
        let Some(parked) = active.acts.parked() else {
            return;
        };
        partial.push(cpu, time, WaitItem::Park(parked));
        if let (Some(_), Some(peer)) = (parked.open, active.peer) {
            partial.push(cpu, time, WaitItem::Peer(parked.tid, peer));
        }
    }

    /// Processes an event on a CPU.
    #[inline(always)]
    pub(super) fn step(&self, partial: &mut WaitPartial, cpu: CpuKey, time: i64, step: CpuStep) {
        let Some(mut active) = partial.lanes.get(cpu).now_or_first(partial.is_first, time) else {
            return partial.lanes.get(cpu).wait(time, step);
        };
        if active.acts.calls.is_left(step.tid) {
            let next = active.of_another(step.tid);
            Self::begins(partial, cpu, time, next);
            match partial.lanes.get(cpu).now() {
                Some(now) => active = now,
                None => return,
            }
        }
        match step.act {
            Act::Context(change) => active.context.step(change),
            Act::Enter(begun) => {
                active.context = CpuContext::default();
                let Some(tid) = active.acts.calls.caller() else {
                    return partial.nobodys += 1;
                };
                active.peer = None;
                if active.acts.enter(begun) {
                    partial.push(cpu, time, WaitItem::Enter(tid));
                }
            }
            Act::Exit(call, result) => self.exit(partial, cpu, Exited { call, result, time }),
            Act::Wake(wake) => {
                let source = match wake.user {
                    Some(by) => WakeSource::User(by),
                    None if wake.for_device => WakeSource::Command,
                    None => active.context.source(),
                };
                let by = match source {
                    WakeSource::Thread | WakeSource::User(_) => active.acts.waker(),
                    _ => WakerFacts::Nobody,
                };
                partial.push(cpu, time, WaitItem::Wake(wake, source, by));
            }
            seldom => Self::seldom(partial, cpu, time, seldom),
        }
    }

    /// Processes a rare event in the current stretch.
    fn seldom(partial: &mut WaitPartial, cpu: CpuKey, time: i64, act: Act) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let acts = &mut active.acts;
        let item = match act {
            // An interrupt works on behalf of other threads.
            Act::Request | Act::Linger if active.context.interrupt().is_some() => return,
            Act::Request => return acts.request(),
            Act::Linger => return acts.linger(),
            Act::Peer(peer) => match (acts.calls.caller(), acts.calls.open()) {
                (Some(tid), None) => WaitItem::Peer(tid, peer),
                (Some(_), Some(_)) => return active.peer = Some(peer),
                (None, _) => return,
            },
            Act::Die(tid) => {
                if acts.calls.tid() == Some(tid) {
                    acts.die();
                }
                WaitItem::Die(tid)
            }
            Act::Lose { of_calls } => return Self::loses(partial, cpu, time, of_calls),
            Act::Tell(item) => item,
            Act::Enter(_) | Act::Exit(..) | Act::Wake(_) | Act::Context(_) => return,
        };
        partial.push(cpu, time, item);
    }

    /// Events were lost, but no switches.
    fn loses(partial: &mut WaitPartial, cpu: CpuKey, time: i64, of_calls: bool) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        let (tid, caller) = (active.acts.calls.tid(), active.acts.calls.caller());
        if of_calls {
            active.acts.calls.lose();
        }
        Self::begins(partial, cpu, time, CpuStretch::new(tid));
        partial.push(cpu, time, WaitItem::Lose);
        if let (Some(tid), Some(active)) =
            (caller.filter(|_| of_calls), partial.lanes.get(cpu).now())
        {
            active.acts.calls.lose();
            partial.push(cpu, time, WaitItem::Enter(tid));
        }
    }

    /// A call ends.
    #[inline(always)]
    fn exit(&self, partial: &mut WaitPartial, cpu: CpuKey, exited: Exited) {
        let Some(active) = partial.lanes.get(cpu).now() else {
            return;
        };
        active.context = CpuContext::default();
        let Some(tid) = active.acts.calls.caller() else {
            return partial.nobodys += 1;
        };
        let Exited { result, time, .. } = exited;
        match active.acts.exit(&exited, &self.classes) {
            EndedCall::Call(begun) => {
                if concerns_others(begun.class, result) {
                    Self::concerns(partial, (cpu, time), (tid, begun, result));
                }
                self.ran(partial, cpu, tid, begun, time);
            }
            EndedCall::Elsewhere => {
                let arrives = WaitItem::Arrive(tid, exited.call, result);
                partial.push(cpu, time, arrives);
            }
            EndedCall::Nothing => {}
        }
    }

    /// A call has ended in the stretch in which it began, with a result that affects other threads.
    #[inline]
    fn concerns(
        partial: &mut WaitPartial,
        (cpu, time): (CpuKey, i64),
        (tid, begun, result): (i32, BegunCall, i64),
    ) {
        let active = partial.lanes.get(cpu).now();
        if let Some(peer) = active.and_then(|active| active.peer.take()) {
            partial.push(cpu, time, WaitItem::Peer(tid, peer));
        }
        partial.push(cpu, time, WaitItem::Call(tid, begun, result));
    }

    /// Counts a call during which the thread ran all the time.
    #[inline(always)]
    fn ran(&self, partial: &mut WaitPartial, cpu: CpuKey, tid: i32, begun: BegunCall, time: i64) {
        let duration = begun.time.abs_diff(time);
        if self.counts_plain(begun.call, time, cpu, duration) {
            let trace = cpu.trace;
            let thread = ThreadKey { trace, tid };
            let sums = partial.sums.threads.get_near(thread, &mut partial.near.1);
            self.count(sums, begun.call, duration, None);
        }
    }
}
