//! Interrupts and softirqs: numbers, durations, latency of softirqs, time that CPUs spend on them.
//!
//! All events of a handler are on one CPU: a handler ends where it began, and a softirq runs where
//! it was raised. `docs/reference/irq.md` defines each number.

mod lane;
mod options;
mod report;
mod run;
mod source;

pub use options::{GROUPINGS, IrqOptions};
use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::Edge;
use tracebraid_kernel_model::events::irq::{
    Ipi, IpiStep, Softirq, SoftirqStep, Tasklet, VectorIrq,
};
use tracebraid_kernel_model::{Body, IntField, KernelEvent};

use crate::groups;
use lane::{Ended, Frame, Handler, IrqCpu, Raised, VECTORS};
use run::{Run, Stats};
use source::{HandlerKind, Key, Sources, number_of};
use tracebraid_follow::{By, ByCpu, CpuKey, Event, Input, Packet, PerCpu, Rules, Selection};
use tracebraid_tables::{Report, View};

/// Analyses interrupts and softirqs.
pub type IrqAnalysis = PerCpu<IrqRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct IrqRules {
    selection: Selection,
    options: IrqOptions,
    /// Number of the longest handler runs kept.
    top: usize,
    /// Whether all runs are kept.
    is_logged: bool,
    /// True if durations are counted by CPU.
    is_by_cpu: bool,
}

/// State after some chunks.
///
/// The size is bounded by the number of CPUs and of sources of interrupts; with `--view log` also
/// by that of runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IrqPartial {
    sources: Sources,
    /// By index of the source.
    stats: Vec<Stats>,
    lanes: ByCpu<IrqCpu>,
    /// Runs whose raise may be in earlier chunks.
    waiting: Vec<Run>,
    log: Vec<Run>,
}

impl Rules for IrqRules {
    type Partial = IrqPartial;
    type Report = Report;

    type Options = IrqOptions;

    fn new(selection: &Selection, options: &IrqOptions) -> Self {
        IrqRules {
            selection: selection.clone(),
            options: options.clone(),
            top: options.views.top(),
            is_logged: options.views.shows(View::Log),
            is_by_cpu: options.views.groupings(GROUPINGS).contains(&By::Cpu),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            // The overview does not show when softirqs were raised.
            Softirq(softirq) if self.options.is_summary => softirq.step != SoftirqStep::Raise,
            IrqEntry(_) | IrqExit(_) | Softirq(_) | Tasklet(_) | Vector(_) | Ipi(_) => true,
            Hrtimer(timer) => timer.step.expires().is_some(),
            Timer(timer) => timer.step.expires().is_some(),
            _ => false,
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        (!has(&|event| self.wants(event))).then_some(
            "no interrupts were recorded: enable irq_handler_entry, irq_handler_exit, and irq_softirq_raise, \
             irq_softirq_entry, irq_softirq_exit",
        )
    }

    fn packet(&self, partial: &mut IrqPartial, packet: &Packet) {
        if packet.lost_before
            && !packet
                .begin
                .is_some_and(|begin| self.selection.window.is_over(begin))
        {
            partial.lane(packet.cpu).lost();
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut IrqPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        // Later event records may be missing from some streams, so none must count.
        if !self.selection.window.is_over(event.time) {
            self.step(partial, event, body);
        }
    }

    fn merge(&self, earlier: &mut IrqPartial, later: IrqPartial) {
        let places = earlier.sources.merge(later.sources);
        earlier.merge_stats(later.stats, &places, self.options.views.top());
        let moved = |run: Run| run.moved(&places);
        earlier.log.extend(later.log.into_iter().map(moved));
        for run in later.waiting.into_iter().map(moved) {
            let raised = earlier
                .lane(run.cpu)
                .raised_before(run.vector(), run.raised);
            self.count(earlier, Run { raised, ..run });
        }
        for (cpu, mut lane) in later.lanes {
            lane.moved(&places);
            let mut runs = Vec::new();
            let counts = |time| self.selection.counts(time, cpu.cpu);
            let ended = |lane: &mut IrqCpu, ended: Ended| runs.extend(self.ended(lane, cpu, ended));
            earlier.lane(cpu).merge(lane, counts, ended);
            runs.into_iter().for_each(|run| self.count(earlier, run));
        }
    }

    fn finish(&self, input: &Input, mut partial: IrqPartial) -> Report {
        for run in std::mem::take(&mut partial.waiting) {
            let raised = run.raised.time().map_or(Raised::No, Raised::At);
            self.count(&mut partial, Run { raised, ..run });
        }
        report::report(self, input, partial)
    }
}

impl IrqPartial {
    #[inline(always)]
    fn lane(&mut self, key: CpuKey) -> &mut IrqCpu {
        self.lanes.get(key)
    }

    fn stats(&mut self, place: usize) -> &mut Stats {
        if place >= self.stats.len() {
            self.stats.resize_with(place + 1, Stats::default);
        }
        &mut self.stats[place]
    }

    fn merge_stats(&mut self, later: Vec<Stats>, places: &[usize], top: usize) {
        for (stats, &place) in later.into_iter().zip(places) {
            self.stats(place).merge(stats, place, top);
        }
    }
}

/// A source in an event: kind, number, name.
type Told<'a> = (HandlerKind, i64, Option<&'a [u8]>);

impl IrqRules {
    fn step(&self, partial: &mut IrqPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        match &event.model.event {
            KernelEvent::IrqEntry(entry) => {
                let Some(irq) = entry.irq.get(body) else {
                    return;
                };
                let name = entry.name.as_ref().and_then(|name| name.bytes(body));
                self.enter(
                    partial,
                    event,
                    (HandlerKind::Irq, irq),
                    (HandlerKind::Irq, irq, name),
                );
            }
            KernelEvent::IrqExit(exit) => {
                if let Some(irq) = exit.irq.get(body) {
                    self.exit(partial, event, (HandlerKind::Irq, irq));
                }
            }
            KernelEvent::Softirq(softirq) => self.softirq(partial, event, softirq, body),
            KernelEvent::Tasklet(tasklet) => self.tasklet(partial, event, tasklet, body),
            KernelEvent::Vector(vector) => self.vector(partial, event, vector),
            KernelEvent::Ipi(ipi) => self.ipi(partial, event, ipi, body),
            KernelEvent::Hrtimer(timer) => {
                let is_entry = timer.step.expires() == Some(true);
                let fields = (&timer.timer, &timer.function);
                self.timer(
                    partial,
                    event,
                    (HandlerKind::Hrtimer, is_entry),
                    fields,
                    body,
                );
            }
            KernelEvent::Timer(timer) => {
                let is_entry = timer.step.expires() == Some(true);
                let fields = (&timer.timer, &timer.function);
                self.timer(partial, event, (HandlerKind::Timer, is_entry), fields, body);
            }
            _ => {}
        }
    }

    fn softirq(
        &self,
        partial: &mut IrqPartial,
        event: &Event<'_>,
        softirq: &Softirq,
        body: &mut Body<'_, '_>,
    ) {
        let Some(number) = softirq.vector.get(body) else {
            return;
        };
        // The kernel keeps raised vectors in a word.
        let Some(vector) = usize::try_from(number)
            .ok()
            .filter(|&vector| vector < VECTORS)
        else {
            return;
        };
        let (handler, told) = (
            (HandlerKind::Softirq, number),
            (HandlerKind::Softirq, number, None),
        );
        match softirq.step {
            SoftirqStep::Raise => {
                self.raise(partial, event, told);
                partial.lane(event.cpu).raise(vector, event.time);
            }
            SoftirqStep::Entry => {
                let raised = match self.options.is_summary {
                    true => Raised::No,
                    false => partial.lane(event.cpu).take(vector),
                };
                self.enter_raised(partial, event, handler, told, raised);
            }
            SoftirqStep::Exit => self.exit(partial, event, handler),
        }
    }

    fn tasklet(
        &self,
        partial: &mut IrqPartial,
        event: &Event<'_>,
        tasklet: &Tasklet,
        body: &mut Body<'_, '_>,
    ) {
        let mut get = |field: &Option<IntField>| field.as_ref().and_then(|field| field.get(body));
        let (function, address) = (get(&tasklet.function), get(&tasklet.tasklet));
        let handler = (HandlerKind::Tasklet, address.or(function).unwrap_or(0));
        let number = function.or(address).unwrap_or(0);
        match tasklet.edge {
            Edge::Begin => self.enter(
                partial,
                event,
                handler,
                (HandlerKind::Tasklet, number, None),
            ),
            Edge::End => self.exit(partial, event, handler),
        }
    }

    fn vector(&self, partial: &mut IrqPartial, event: &Event<'_>, vector: &VectorIrq) {
        let name = vector.vector.name().as_bytes();
        let number = number_of(name);
        let handler = (HandlerKind::Vector, number);
        match vector.edge {
            Edge::Begin => self.enter(
                partial,
                event,
                handler,
                (HandlerKind::Vector, number, Some(name)),
            ),
            Edge::End => self.exit(partial, event, handler),
        }
    }

    fn ipi(&self, partial: &mut IrqPartial, event: &Event<'_>, ipi: &Ipi, body: &mut Body<'_, '_>) {
        let reason = ipi.reason.as_ref().and_then(|reason| reason.bytes(body));
        let reason = reason.unwrap_or(b"ipi");
        let number = number_of(reason);
        let told = (HandlerKind::Ipi, number, Some(reason));
        match ipi.step {
            IpiStep::Raise => self.raise(partial, event, told),
            IpiStep::Entry => self.enter(partial, event, (HandlerKind::Ipi, number), told),
            IpiStep::Exit => self.exit(partial, event, (HandlerKind::Ipi, number)),
        }
    }

    fn timer(
        &self,
        partial: &mut IrqPartial,
        event: &Event<'_>,
        (kind, is_entry): (HandlerKind, bool),
        (timer, function): (&IntField, &Option<IntField>),
        body: &mut Body<'_, '_>,
    ) {
        let Some(timer) = timer.get(body) else { return };
        if is_entry {
            let function = function.as_ref().and_then(|function| function.get(body));
            self.enter(
                partial,
                event,
                (kind, timer),
                (kind, function.unwrap_or(0), None),
            );
        } else {
            self.exit(partial, event, (kind, timer));
        }
    }

    fn place(partial: &mut IrqPartial, event: &Event<'_>, (kind, number, name): Told<'_>) -> usize {
        let trace = event.cpu.trace;
        partial.sources.place(
            Key {
                trace,
                kind,
                number,
            },
            name,
        )
    }

    fn raise(&self, partial: &mut IrqPartial, event: &Event<'_>, told: Told<'_>) {
        let place = Self::place(partial, event, told);
        let counts = self.selection.counts(event.time, event.cpu.cpu);
        partial.stats(place).raises += u64::from(counts);
    }

    fn enter(&self, partial: &mut IrqPartial, event: &Event<'_>, handler: Handler, told: Told<'_>) {
        self.enter_raised(partial, event, handler, told, Raised::No);
    }

    fn enter_raised(
        &self,
        partial: &mut IrqPartial,
        event: &Event<'_>,
        handler: Handler,
        told: Told<'_>,
        raised: Raised,
    ) {
        let place = Self::place(partial, event, told);
        partial.lane(event.cpu).enter(Frame {
            handler,
            place,
            begin: event.time,
            interrupted: 0,
            raised,
        });
    }

    fn exit(&self, partial: &mut IrqPartial, event: &Event<'_>, handler: Handler) {
        let counts = self.selection.counts(event.time, event.cpu.cpu);
        let lane = partial.lane(event.cpu);
        let Some(ended) = lane.exit(handler, event.time, counts) else {
            return;
        };
        if let Some(run) = self.ended(lane, event.cpu, ended) {
            self.count(partial, run);
        }
    }

    /// A handler has ended: its time counts for its CPU, and not for the interrupted handler.
    /// Returns the run if it is selected, which depends on the CPU and the time of its end.
    fn ended(&self, lane: &mut IrqCpu, cpu: CpuKey, Ended { frame, end }: Ended) -> Option<Run> {
        let (kind, _) = frame.handler;
        let in_range = self.selection.window.clip(frame.begin, end);
        lane.interrupt(if kind.is_hard() {
            in_range
        } else {
            frame.interrupted
        });
        if !self.selection.counts(end, cpu.cpu) {
            return None;
        }
        let usage = match kind {
            HandlerKind::Softirq => Some(&mut lane.soft),
            kind => kind.is_hard().then_some(&mut lane.hard),
        };
        if let Some(usage) = usage {
            usage.count += 1;
            usage.time += in_range.saturating_sub(frame.interrupted);
        }
        let run = Run::new(&frame, cpu, end);
        self.options
            .views
            .limits
            .contain(run.duration)
            .then_some(run)
    }

    fn count(&self, partial: &mut IrqPartial, run: Run) {
        if let Raised::Before(_) = run.raised {
            partial.waiting.push(run);
            return;
        }
        if let Some(ranges) = &self.options.views.ranges {
            let key = partial.sources.at(run.place).map(|source| source.key);
            partial
                .stats(run.place)
                .bin(&run, |what| ranges.get(&key?.group(what)).copied());
            return;
        }
        let stats = partial.stats(run.place);
        if self.is_by_cpu {
            groups::of_cpu(&mut stats.cpus, run.cpu).add(run.duration);
        }
        match self.options.is_summary {
            true => stats.list(run, self.top),
            false => stats.count(run, self.top),
        }
        if self.is_logged {
            partial.log.push(run);
        }
    }
}
