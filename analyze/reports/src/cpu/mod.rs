//! Who used the CPUs: active time by CPU, thread and process.
//!
//! Of each CPU the chunks know who ran from one switch to the next. What runs into a chunk, or
//! out of it, is joined when the chunks of that CPU are merged. `docs/reports-cpu.md` defines
//! each number.

mod report;
mod sections;
mod state;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::kernel::{Event, Input, KernelAnalysis, Selection, ThreadKey};
pub use report::{CpuProcess, CpuReport, CpuRow, CpuThread, CpuTotal, CpuUsage, FirstSwitch};
pub use state::CpuPartial;

/// The analysis. Of the time that is asked for it counts what ran on the CPUs that are asked for;
/// the rows of CPUs count all threads.
#[derive(Debug)]
pub struct CpuAnalysis {
    input: Input,
}

impl KernelAnalysis for CpuAnalysis {
    fn new(set: &TraceSet, selection: Selection) -> CpuAnalysis {
        let input = Input::new(set, selection, |event| {
            use KernelEvent::*;
            matches!(
                event,
                Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
            )
        });
        CpuAnalysis { input }
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn lacks(&self) -> Option<&'static str> {
        let switches = self
            .input
            .sources
            .has(|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some("no event here tells who runs on which CPU: sched_switch was not recorded")
    }
}

impl Analysis for CpuAnalysis {
    type Partial = CpuPartial;
    type Report = CpuReport;

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
        if let Some(packet) = self.input.packet(packet) {
            partial.packet(&self.input.selection, &packet);
        }
    }

    #[inline]
    fn event(&self, partial: &mut CpuPartial, record: &mut Record<'_>) {
        self.input
            .event(record, |event, body| self.fold(partial, event, body));
    }

    fn end(&self, _: &mut CpuPartial, _: &Chunk) {}

    fn merge(&self, earlier: &mut CpuPartial, later: CpuPartial) {
        earlier.merge(&self.input.selection, later);
    }

    fn finish(&self, partial: CpuPartial) -> CpuReport {
        report::report(self, partial)
    }
}

impl CpuAnalysis {
    #[inline(always)]
    fn fold(&self, partial: &mut CpuPartial, event: Event<'_>, body: &mut Body<'_, '_>) {
        let Event { model, cpu, time } = event;
        let thread = |tid: i64| ThreadKey {
            trace: cpu.trace,
            tid: tid as i32,
        };
        match &model.event {
            KernelEvent::Switch(switch) => {
                let (Some(prev), Some(next)) = (switch.prev_tid.get(body), switch.next_tid.get(body)) else {
                    return;
                };
                let (prev, next) = (thread(prev), thread(next));
                let prev_name = switch.prev_name.as_ref().and_then(|name| name.comm(body));
                let next_name = switch.next_name.as_ref().and_then(|name| name.comm(body));
                let names = (prev_name, next_name);
                partial.switch(&self.input.selection, cpu, time, (prev, next), names);
                if let Some(pid) = model.pid(body) {
                    partial.people.get(prev).learn_pid(time, cpu, pid);
                }
            }
            KernelEvent::Exec(exec) => {
                if let (Some(tid), Some(old)) = (
                    exec.tid.as_ref().and_then(|tid| tid.get(body)),
                    exec.old_tid.as_ref().and_then(|tid| tid.get(body)),
                ) {
                    partial.take_over(&self.input.selection, cpu, time, thread(old), thread(tid));
                }
                crate::kernel::learn(&mut partial.people, model, cpu, time, body);
            }
            _ => crate::kernel::learn(&mut partial.people, model, cpu, time, body),
        }
    }
}
