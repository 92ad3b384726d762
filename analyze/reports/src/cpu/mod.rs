//! Use of CPUs: active time by CPU, thread and process.
//!
//! A chunk contains the running thread from one switch to the next. The time before a chunk's first
//! switch belongs to the thread that runs at the end of the previous chunk of that CPU or, without
//! one, to the thread that the first switch takes off the CPU. `docs/reference/cpu.md` defines each
//! number.

mod lists;
mod options;
mod report;
mod rules;
mod sections;
mod state;
mod stretches;
mod usage;

pub use options::{CpuOptions, GROUPINGS};
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_kernel_model::events::sched::{Migrate, Priority, Switch};
use tracebraid_kernel_model::{Body, KernelEvent};

use rules::Rules;
pub use state::CpuPartial;
use state::{CpuMoment, Side};
use tracebraid_follow::{Event, Input, KernelAnalysis, Recorded, Selection};
use tracebraid_tables::Report;

/// Sums the active time of the selected threads on the selected CPUs in the selected time range.
/// The rows of CPUs count all threads.
#[derive(Debug)]
pub struct CpuAnalysis {
    input: Input,
    rules: Rules,
}

impl KernelAnalysis for CpuAnalysis {
    type Options = CpuOptions;

    fn sharing(
        set: &TraceSet,
        recorded: Option<&Arc<Recorded>>,
        selection: Selection,
        options: CpuOptions,
    ) -> Self {
        let rules = Rules::new(selection.clone(), options);
        let input = Input::sharing(set, recorded, selection, is_wanted);
        CpuAnalysis { input, rules }
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn lacks(&self) -> Option<&'static str> {
        let switches = self
            .input
            .sources
            .has(|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some("the running threads are unknown: enable sched_switch")
    }

    fn wants_event(&self, event: &KernelEvent) -> bool {
        is_wanted(event)
    }

    fn fold_event(&self, partial: &mut CpuPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        self.fold(partial, event, body);
    }
}

fn is_wanted(event: &KernelEvent) -> bool {
    use KernelEvent::*;
    matches!(
        event,
        Switch(_) | Migrate(_) | Inherit(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
    )
}

impl Analysis for CpuAnalysis {
    type Partial = CpuPartial;
    type Report = Report;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.input.groups()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.input.wants(trace, stream_class, class)
    }

    fn begin(&self, _: &Chunk) -> CpuPartial {
        CpuPartial::default()
    }

    fn packet(&self, partial: &mut CpuPartial, packet: &StreamPlace<'_>) {
        for packet in self.input.packets(packet) {
            partial.packet(&self.rules, &packet);
        }
    }

    fn cut(&self, partial: &mut CpuPartial, packet: &StreamPlace<'_>, time: Timestamp) {
        for packet in self.input.packets(packet) {
            partial.cut(&self.rules, &packet, time.0);
        }
    }

    #[inline]
    fn event(&self, partial: &mut CpuPartial, record: &mut Record<'_>) {
        self.input
            .event(record, |event, body| self.fold(partial, event, body));
    }

    fn end(&self, _: &mut CpuPartial, _: &Chunk) {}

    fn exchange(&self, partial: &mut CpuPartial, resident: &mut CpuPartial) {
        std::mem::swap(&mut partial.usage, &mut resident.usage);
        std::mem::swap(&mut partial.log, &mut resident.log);
    }

    fn merge(&self, earlier: &mut CpuPartial, later: CpuPartial) {
        earlier.merge(&self.rules, later);
    }

    fn finish(&self, partial: CpuPartial) -> Report {
        report::report(self, partial)
    }
}

impl CpuAnalysis {
    #[inline(always)]
    fn fold(&self, partial: &mut CpuPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let place = CpuMoment { cpu, time };
        match &model.event {
            KernelEvent::Switch(switch) => {
                let Some((prev, next)) = sides(place, switch, body) else {
                    return;
                };
                partial.switch(&self.rules, place, [prev, next]);
                if let Some(pid) = model.pid(body) {
                    partial.people.get(prev.thread).learn_pid(time, cpu, pid);
                }
            }
            KernelEvent::Migrate(migrate) => self.migrate(partial, place, migrate, body),
            KernelEvent::Inherit(inherit) => {
                if let (Some(tid), Some(priority)) = (inherit.tid.get(body), inherit.new.get(body))
                    && self.input.selection.counts(time, cpu.cpu)
                {
                    partial.priority(place, place.thread(tid), priority.0);
                }
            }
            KernelEvent::Exec(exec) => {
                if let (Some(tid), Some(old)) = (
                    exec.tid.as_ref().and_then(|tid| tid.get(body)),
                    exec.old_tid.as_ref().and_then(|tid| tid.get(body)),
                ) {
                    let (old, tid) = (place.thread(old), place.thread(tid));
                    partial.take_over(&self.rules, place, old, tid);
                }
                tracebraid_follow::learn(&mut partial.people, model, cpu, time, body);
            }
            _ => tracebraid_follow::learn(&mut partial.people, model, cpu, time, body),
        }
    }

    fn migrate(
        &self,
        partial: &mut CpuPartial,
        place: CpuMoment,
        migrate: &Migrate,
        body: &mut Body<'_, '_>,
    ) {
        let Some(tid) = migrate.tid.get(body) else {
            return;
        };
        if self.input.selection.counts(place.time, place.cpu.cpu) {
            let priority = migrate.priority.as_ref().and_then(|field| field.get(body));
            partial.migrate(
                place,
                place.thread(tid),
                priority.map(|priority| priority.0),
            );
        }
    }

    /// True if the traces contain migrations.
    fn knows_migrations(&self) -> bool {
        let sources = &self.input.sources;
        sources.has(|event| matches!(event, KernelEvent::Migrate(_)))
    }
}

/// The thread that a switch takes off the CPU, and the one that it puts on.
#[inline(always)]
fn sides(place: CpuMoment, switch: &Switch, body: &mut Body<'_, '_>) -> Option<(Side, Side)> {
    let (prev, next) = (switch.prev_tid.get(body)?, switch.next_tid.get(body)?);
    let number = |priority: Priority| priority.0;
    let prev = Side {
        thread: place.thread(prev),
        name: switch.prev_name.as_ref().and_then(|name| name.comm(body)),
        priority: switch.prev_priority(body).map(number),
    };
    let next = Side {
        thread: place.thread(next),
        name: switch.next_name.as_ref().and_then(|name| name.comm(body)),
        priority: switch.next_priority(body).map(number),
    };
    Some((prev, next))
}
