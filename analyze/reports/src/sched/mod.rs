//! The scheduler: time from wake-ups to switches, reasons for which threads leave their CPUs,
//! threads that wait for a CPU, and migrations.
//!
//! Activity on each CPU is followed there; changes of threads are played in the order of time over
//! all CPUs (`machine`). `docs/reference/sched.md` defines each number.

mod cpus;
mod freq;
mod life;
mod machine;
mod options;
mod report;
mod slice;
mod stats;
mod step;
mod sums;
mod tables;

use std::sync::Arc;

pub use options::{GROUPINGS, SchedOptions};
use serde::{Deserialize, Serialize};
use tracebraid_engine::Slice;
use tracebraid_kernel_model::events::sched::{EndStep, Migrate, WakeStep};
use tracebraid_kernel_model::{Body, IntField, KernelEvent, Switch};
use tracebraid_threads::CpuActivity;

use freq::Bounds;
use machine::{Player, SchedMachine};
use slice::{SchedSlice, SlicePlayer};
use stats::Latency;
use step::{SchedItem, SchedStep, Switched, Wakeup};
use sums::Sums;
use tracebraid_follow::{
    ByCpu, CpuKey, Event, Input, InterruptStep, Items, Lane, Packet, People, PerCpu, Recorded,
    Rules, Selection, learn, learn_switch, taken_over,
};
use tracebraid_tables::{Report, View};

/// Analyses scheduling.
pub type SchedAnalysis = PerCpu<SchedRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct SchedRules {
    selection: Selection,
    options: SchedOptions,
    /// Bounds of the histograms, in a second pass.
    bounds: Option<Bounds>,
    /// Number of the longest latencies kept.
    top: usize,
    /// Whether all latencies are kept.
    is_logged: bool,
    /// The recorded CPUs.
    recorded: Arc<Recorded>,
}

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of pairs of CPUs, of
/// threads, and of pairs of threads of which one woke or preempted the other; with `--view log`
/// also by that of wake-ups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedPartial {
    people: People,
    lanes: ByCpu<Lane<CpuActivity, SchedStep>>,
    items: Items<SchedItem>,
    sums: Sums,
    /// State at the end of the played slices.
    machine: SchedMachine,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Index in `people` of the last thread that was switched to.
    #[serde(skip)]
    near: usize,
}

impl Rules for SchedRules {
    type Partial = SchedPartial;
    type Report = Report;

    type Options = SchedOptions;

    fn new(selection: &Selection, options: &SchedOptions) -> Self {
        SchedRules {
            selection: selection.clone(),
            options: options.clone(),
            bounds: options.views.ranges.as_ref().map(freq::bounds),
            top: options.views.top(),
            is_logged: options.views.shows(View::Log),
            recorded: Arc::default(),
        }
    }

    fn knows(&mut self, recorded: &Arc<Recorded>) {
        self.recorded = recorded.clone();
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            Wakeup(_) | Migrate(_) => true,
            // Once freed, a thread no longer waits.
            ThreadEnd(end) => end.step == EndStep::Free,
            Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_) => true,
            // The overview does not show wakers.
            interrupt => !self.options.is_summary && InterruptStep::is_told_by(interrupt),
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        if !has(&|event| matches!(event, KernelEvent::Switch(_))) {
            return Some("no switches were recorded: enable sched_switch");
        }
        let wakes = has(&|event| matches!(event, KernelEvent::Wakeup(_)));
        (!wakes).then_some(
            "no wake-ups were recorded: enable sched_waking, sched_wakeup and sched_wakeup_new for latencies",
        )
    }

    fn first(&self) -> SchedPartial {
        SchedPartial {
            is_first: true,
            ..SchedPartial::default()
        }
    }

    fn packet(&self, partial: &mut SchedPartial, packet: &Packet) {
        // Without switches in the stream, no switch was lost.
        if packet.lost_before && packet.tells_switches {
            let time = packet.begin.unwrap_or(i64::MIN);
            // The active interrupts are unknown; after the next switch none is active.
            partial
                .lanes
                .get(packet.cpu)
                .goes_over(time, CpuActivity::default());
            partial.items.push(packet.cpu, time, SchedItem::Lost);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut SchedPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let step = match &event.model.event {
            KernelEvent::Switch(switch) => return Self::switch(partial, event, switch, body),
            other => match InterruptStep::of(other, body) {
                Some(step) => SchedStep::Interrupt(step),
                None => {
                    learn(
                        &mut partial.people,
                        event.model,
                        event.cpu,
                        event.time,
                        body,
                    );
                    match task(event, body) {
                        Some(step) => step,
                        None => return,
                    }
                }
            },
        };
        Self::step(partial, event.cpu, event.time, step);
    }

    fn exchange(&self, partial: &mut SchedPartial, resident: &mut SchedPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut SchedPartial, later: SchedPartial) {
        earlier.people.merge(later.people);
        let begin = |earlier: &mut SchedPartial, cpu, time, active| {
            earlier.lanes.get(cpu).goes_over(time, active);
        };
        later.lanes.join(earlier, Self::step, begin);
        earlier.items.append(later.items);
        earlier.sums.merge(later.sums, self.top);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut SchedPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, SchedPartial>> {
        let items = partial.items.cut(watermark);
        // The numbers of waiting threads count from the start of the range, so they must be known
        // then.
        let is_before_range = self.selection.window.from.is_some() && !partial.machine.in_range;
        match items.is_empty() {
            true => Vec::new(),
            false if is_before_range => vec![self.whole(items)],
            false => vec![self.slice(items)],
        }
    }

    fn finish(&self, input: &Input, mut partial: SchedPartial) -> Report {
        let items = std::mem::take(&mut partial.items);
        self.play(&mut partial, items);
        partial.machine.end(self);
        match &self.bounds {
            Some(bounds) => report::frequencies(input, &partial, bounds),
            None => report::report(self, input, partial),
        }
    }
}

impl SchedRules {
    /// Plays items in the order of time.
    fn play(&self, partial: &mut SchedPartial, mut items: Items<SchedItem>) {
        let mut player = Player {
            rules: self,
            machine: &mut partial.machine,
            sums: &mut partial.sums,
        };
        items.play(None, |cpu, time, item| player.play(cpu, time, item));
    }

    /// A slice that is played without the state of threads before it.
    fn slice<'a>(&'a self, mut items: Items<SchedItem>) -> Slice<'a, SchedPartial> {
        Box::new(move |resident| {
            let mut slice = SchedSlice::default();
            let mut player = SlicePlayer {
                rules: self,
                slice: &mut slice,
                sums: &mut resident.sums,
            };
            items.play(None, |cpu, time, item| player.play(cpu, time, item));
            Box::new(move |partial| slice.compose(self, &mut partial.machine, &mut partial.sums))
        })
    }

    /// A slice that is played once the state before it is known.
    fn whole<'a>(&'a self, items: Items<SchedItem>) -> Slice<'a, SchedPartial> {
        Box::new(move |_| Box::new(move |partial| self.play(partial, items)))
    }

    #[inline(always)]
    fn switch(
        partial: &mut SchedPartial,
        event: &Event<'_>,
        switch: &Switch,
        body: &mut Body<'_, '_>,
    ) {
        let Event { cpu, time, .. } = *event;
        let near = &mut partial.near;
        let Some((prev, next)) = learn_switch(&mut partial.people, near, event, switch, body)
        else {
            return;
        };
        let state = switch.prev_state(body);
        let switched = Switched {
            prev,
            next,
            reason: stats::reason(state),
            waits: state.is_some_and(|state| state.is_runnable()),
            priority: switch.next_priority(body).map(|priority| priority.0),
        };
        // No thread is switched from or to in an interrupt.
        partial
            .lanes
            .get(cpu)
            .goes_over(time, CpuActivity::of(next));
        partial.items.push(cpu, time, SchedItem::Switch(switched));
    }

    /// Processes an event on a CPU.
    #[inline(always)]
    fn step(partial: &mut SchedPartial, cpu: CpuKey, time: i64, step: SchedStep) {
        let lane = partial.lanes.get(cpu);
        // No interrupt is active when a trace begins.
        let Some(active) = lane.now_or_first(partial.is_first, time) else {
            return lane.wait(time, step);
        };
        let item = match step {
            SchedStep::Interrupt(step) => return active.interrupt(step),
            SchedStep::Wake(wakeup, tid) => SchedItem::Wake(wakeup, active.waker(tid)),
            SchedStep::Item(item) => {
                if let SchedItem::Becomes { tid, .. } = item {
                    active.tid = Some(tid);
                }
                item
            }
        };
        partial.items.push(cpu, time, item);
    }

    /// True if threads may have been on unrecorded CPUs.
    #[inline]
    fn is_partial(&self, cpu: CpuKey, time: i64) -> bool {
        !self.recorded.is_whole_at(cpu.trace, time)
    }

    /// True if events at that time and CPU are selected.
    #[inline(always)]
    fn counts(&self, time: i64, cpu: u32) -> bool {
        self.selection.counts(time, cpu)
    }

    /// True if a latency that ends at `time` is selected.
    #[inline(always)]
    fn chooses(&self, latency: &Latency, time: i64) -> bool {
        let priorities = &self.options.priorities;
        self.counts(time, latency.cpu.cpu)
            && self.options.views.limits.contain(latency.duration)
            && (priorities.is_empty()
                || latency
                    .priority
                    .is_some_and(|own| priorities.contains(&own)))
    }
}

/// Events other than switches and interrupts.
fn task(event: &Event<'_>, body: &mut Body<'_, '_>) -> Option<SchedStep> {
    let get = |field: &IntField, body: &mut Body<'_, '_>| field.get(body).map(|tid| tid as i32);
    let item = match &event.model.event {
        KernelEvent::Wakeup(wakeup) => {
            let was_awake = wakeup
                .success
                .as_ref()
                .and_then(|success| success.get(body))
                == Some(0);
            let tid = get(&wakeup.tid, body).filter(|&tid| tid != 0 && !was_awake)?;
            let target = wakeup
                .cpu
                .as_ref()
                .and_then(|cpu| cpu.get(body))
                .and_then(cpu_number);
            let is_ready = wakeup.step != WakeStep::Waking && target.is_some();
            let wakeup = Wakeup {
                tid,
                target,
                is_ready,
                is_new: wakeup.step == WakeStep::WakeupNew,
            };
            return Some(SchedStep::Wake(wakeup, event.model.tid(body)));
        }
        KernelEvent::Migrate(migrate) => migrated(migrate, body)?,
        KernelEvent::ThreadEnd(end) => SchedItem::Gone(get(&end.tid, body)?),
        KernelEvent::Fork(fork) => SchedItem::Made(get(&fork.child_tid, body)?),
        KernelEvent::Exec(exec) => {
            let (old, tid) = taken_over(exec, body)?;
            SchedItem::Becomes { old, tid }
        }
        _ => return None,
    };
    Some(SchedStep::Item(item))
}

fn migrated(migrate: &Migrate, body: &mut Body<'_, '_>) -> Option<SchedItem> {
    Some(SchedItem::Migrate {
        tid: migrate.tid.get(body)? as i32,
        from: migrate.from.get(body).and_then(cpu_number)?,
        to: migrate.to.get(body).and_then(cpu_number)?,
    })
}

/// A CPU number; `None` for values that no machine has, so that damaged event records make no rows.
fn cpu_number(number: i64) -> Option<u32> {
    u32::try_from(number)
        .ok()
        .filter(|&number| number < 1 << 14)
}
