//! The scheduler: from wake-ups to switches, why threads leave their CPUs, who waits for a CPU, and
//! who goes to another one.
//!
//! `docs/reports-sched.md` defines each number.

mod cpus;
mod freq;
mod life;
mod partial;
mod queue;
mod report;
mod stats;
mod tables;
mod waker;

use tracebraid_kernel_model::events::irq::{Softirq, SoftirqStep};
use tracebraid_kernel_model::events::sched::{EndStep, Migrate, WakeStep, Wakeup};
use tracebraid_kernel_model::{Body, Exec, KernelEvent, Switch};

use crate::kernel::{CpuKey, Event, InOrder, Input, Packet, Rules, Running, Selection, Tasks};
use crate::report::{Report, View};
use cpus::Current;
use freq::{Bounds, Freq};
use life::{Step, Woken};
pub use partial::SchedPartial;
use stats::Latency;
use waker::{Active, Runs, Waker};

/// The analysis.
pub type SchedAnalysis = InOrder<SchedRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct SchedRules {
    selection: Selection,
    /// In a second pass: the bounds of latencies.
    bounds: Option<Bounds>,
}

impl Rules for SchedRules {
    type Partial = SchedPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        SchedRules {
            selection: selection.clone(),
            bounds: selection.ranges.as_ref().map(freq::bounds),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            Wakeup(_) | Migrate(_) | IrqEntry(_) | IrqExit(_) => true,
            Softirq(softirq) => softirq.step != SoftirqStep::Raise,
            ThreadEnd(end) => end.step == EndStep::Free,
            event => Tasks::<()>::wants(event),
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        if !has(&|event| matches!(event, KernelEvent::Switch(_))) {
            return Some("sched_switch was not recorded: without it nothing is known of the scheduler");
        }
        let wakes = has(&|event| matches!(event, KernelEvent::Wakeup(_)));
        (!wakes).then_some(
            "no wake-ups were recorded: enable sched_waking, sched_wakeup and sched_wakeup_new for latencies",
        )
    }

    fn packet(&self, partial: &mut SchedPartial, packet: &Packet) {
        partial.tasks.packet(packet);
        // Without switches in the stream none was lost.
        if packet.lost_before && packet.tells_switches {
            partial.lost(packet.cpu);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut SchedPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        self.clock(partial, event.time);
        match &event.model.event {
            KernelEvent::Switch(switch) => self.switch(partial, event, switch, body),
            KernelEvent::Wakeup(wakeup) => self.wakeup(partial, event, wakeup, body),
            KernelEvent::Softirq(softirq) => Self::softirq(partial, event, softirq, body),
            KernelEvent::IrqEntry(entry) => {
                let irq = entry.irq.get(body).unwrap_or(0);
                partial.cpus.get(event.cpu).irq = Active::Number(irq as u32);
            }
            KernelEvent::IrqExit(_) => partial.cpus.get(event.cpu).irq = Active::Nothing,
            KernelEvent::Migrate(migrate) => self.migrate(partial, event, migrate, body),
            KernelEvent::ThreadEnd(end) => {
                if let Some(tid) = end.tid.get(body) {
                    let place = partial.tasks.place(event.cpu.trace, tid as i32);
                    partial.step(self, place, Step::Gone);
                }
            }
            _ => self.thread(partial, event, body),
        }
    }

    fn merge(&self, earlier: &mut SchedPartial, later: SchedPartial) {
        earlier.merge(self, later);
    }

    fn finish(&self, input: &Input, mut partial: SchedPartial) -> Report {
        partial.end(self);
        match &self.bounds {
            Some(bounds) => report::frequencies(input, &partial, bounds),
            None => report::report(self, input, partial),
        }
    }
}

impl SchedRules {
    /// The range begins or ends.
    #[inline(always)]
    fn clock(&self, partial: &mut SchedPartial, time: i64) {
        let window = &self.selection.window;
        if partial.open.is_none() && window.from.is_none_or(|from| from.0 <= time) {
            partial.open = Some(partial.mark());
        }
        if partial.close.is_none() && window.is_over(time) {
            partial.close = Some(partial.mark());
        }
    }

    #[inline(always)]
    fn switch(
        &self,
        partial: &mut SchedPartial,
        event: &Event<'_>,
        switch: &Switch,
        body: &mut Body<'_, '_>,
    ) {
        let Some((prev, next)) = partial.tasks.event(event, body) else {
            return;
        };
        let Event { cpu, time, .. } = *event;
        let is_idle = [prev, next].map(|place| partial.tasks.is_idle(place));
        let of = partial.cpus.get(cpu);
        // No thread is switched from or to in an interrupt.
        (of.irq, of.softirq) = (Active::Nothing, Active::Nothing);
        let current = if is_idle[1] {
            Current::Nobody
        } else {
            Current::Thread(next)
        };
        match std::mem::replace(&mut of.current, current) {
            Current::Before => {
                let mark = partial.mark();
                partial.cpus.get(cpu).first = Some((mark, prev));
            }
            Current::Thread(place) if place != prev => partial.step(self, place, Step::Left(cpu)),
            _ => {}
        }
        // Who runs next leaves the queue before the other one enters it: they change places.
        if !is_idle[1] {
            let priority = switch.next_priority(body).map(|priority| priority.0);
            let step = Step::In { time, cpu, priority };
            partial.step(self, next, step);
        }
        if !is_idle[0] && prev != next {
            let state = switch.prev_state(body);
            if self.counts(time, cpu.cpu) {
                partial.thread(prev).counts.switches[stats::reason(state)] += 1;
            }
            let waits = state.is_some_and(|state| state.is_runnable());
            partial.step(self, prev, Step::Out { time, cpu, waits });
        }
    }

    #[inline(always)]
    fn wakeup(
        &self,
        partial: &mut SchedPartial,
        event: &Event<'_>,
        wakeup: &Wakeup,
        body: &mut Body<'_, '_>,
    ) {
        let Event { cpu, time, .. } = *event;
        let was_awake = wakeup.success.as_ref().and_then(|success| success.get(body)) == Some(0);
        let Some(tid) = wakeup.tid.get(body).filter(|&tid| tid != 0 && !was_awake) else {
            return;
        };
        let runs = match partial.tasks.actor(event, body) {
            Running::Before => Runs::Untold(partial.tasks.wait(cpu, time, ())),
            Running::Unknown => Runs::Unknown,
            Running::Thread(place) => Runs::Thread(place),
        };
        let of = partial.cpus.get(cpu);
        let waker = Waker {
            cpu,
            irq: of.irq,
            softirq: of.softirq,
            runs,
        };
        let target = wakeup.cpu.as_ref().and_then(|cpu| cpu.get(body));
        let target = target.and_then(|target| on(cpu, target));
        let place = partial.tasks.place(cpu.trace, tid as i32);
        let step = Step::Wake {
            woken: Woken { time, waker },
            cpu: target,
            is_ready: wakeup.step != WakeStep::Waking && target.is_some(),
        };
        partial.step(self, place, step);
    }

    fn softirq(partial: &mut SchedPartial, event: &Event<'_>, softirq: &Softirq, body: &mut Body<'_, '_>) {
        let cpu = partial.cpus.get(event.cpu);
        cpu.softirq = match softirq.step {
            SoftirqStep::Entry => Active::Number(softirq.vector.get(body).unwrap_or(0) as u32),
            _ => Active::Nothing,
        };
    }

    fn migrate(
        &self,
        partial: &mut SchedPartial,
        event: &Event<'_>,
        migrate: &Migrate,
        body: &mut Body<'_, '_>,
    ) {
        let Event { cpu, time, .. } = *event;
        let get = |field: &tracebraid_kernel_model::IntField, body: &mut Body<'_, '_>| field.get(body);
        let (Some(tid), Some(from), Some(to)) = (
            get(&migrate.tid, body),
            get(&migrate.from, body).and_then(|from| on(cpu, from)),
            get(&migrate.to, body).and_then(|to| on(cpu, to)),
        ) else {
            return;
        };
        let place = partial.tasks.place(cpu.trace, tid as i32);
        if self.counts(time, from.cpu) || self.counts(time, to.cpu) {
            partial.thread(place).counts.migrations += 1;
            partial.migrated(from, to, 1);
        }
        partial.step(self, place, Step::Migrate { time, cpu: to });
    }

    /// Threads that are made, or take over another's id.
    fn thread(&self, partial: &mut SchedPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        partial.tasks.event(event, body);
        let Event { cpu, time, .. } = *event;
        match &event.model.event {
            KernelEvent::Fork(fork) => {
                if let Some(child) = fork.child_tid.get(body) {
                    let place = partial.tasks.place(cpu.trace, child as i32);
                    partial.step(self, place, Step::Made { time, cpu });
                }
            }
            KernelEvent::Exec(exec) => self.exec(partial, cpu, exec, body),
            _ => {}
        }
    }

    fn exec(&self, partial: &mut SchedPartial, cpu: CpuKey, exec: &Exec, body: &mut Body<'_, '_>) {
        let tid = exec.tid.as_ref().and_then(|tid| tid.get(body));
        let old = exec.old_tid.as_ref().and_then(|tid| tid.get(body));
        if let (Some(tid), Some(old)) = (tid, old)
            && tid != old
        {
            let [place, old] = [tid, old].map(|tid| partial.tasks.place(cpu.trace, tid as i32));
            partial.step(self, old, Step::Gone);
            partial.step(self, place, Step::Becomes(cpu));
            partial.cpus.get(cpu).current = Current::Thread(place);
        }
    }

    /// True if what happens at that time and place is asked for.
    #[inline(always)]
    fn counts(&self, time: i64, cpu: u32) -> bool {
        self.selection.counts(time, cpu)
    }

    /// True if a latency that ends then is asked for.
    #[inline(always)]
    fn chooses(&self, latency: &Latency, time: i64) -> bool {
        let priorities = &self.selection.priorities;
        self.counts(time, latency.cpu.cpu)
            && self.selection.limits.contain(latency.duration)
            && (priorities.is_empty() || latency.priority.is_some_and(|own| priorities.contains(&own)))
    }

    #[inline]
    fn count(&self, partial: &mut SchedPartial, latency: Latency) {
        if let Some(bounds) = &self.bounds {
            if let Some(key) = partial.tasks.key(latency.place) {
                let Latency {
                    priority, duration, ..
                } = latency;
                partial.freq.add(bounds, key, priority, duration);
            }
            return;
        }
        if self.selection.shows(View::Log) {
            partial.log.push(latency);
        }
        let top = self.selection.top();
        partial.thread(latency.place).counts.latency(latency, top);
    }
}

/// A CPU of the same machine.
fn on(cpu: CpuKey, number: i64) -> Option<CpuKey> {
    // No machine has that many: of what is damaged no rows are made.
    let cpu_number = u32::try_from(number).ok().filter(|&number| number < 1 << 14)?;
    Some(CpuKey {
        cpu: cpu_number,
        ..cpu
    })
}
