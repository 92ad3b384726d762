//! Who used the CPUs: active time by CPU, thread and process.
//!
//! Of each CPU the chunks know who ran from one switch to the next. What runs into a chunk, or
//! out of it, is joined when the chunks of that CPU are merged. `docs/reports-cpu.md` defines
//! each number.

mod report;
mod state;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::kernel::{CpuKey, CpuSet, Extent, Host, Sources, ThreadFilter, ThreadKey, Window};
pub use report::{CpuReport, CpuRow, CpuTotal, FirstSwitch, ProcessRow, ThreadRow};
pub use state::CpuPartial;

/// What part of the trace is asked for.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// Time: what lies outside is cut off.
    pub window: Window,
    /// CPUs: what ran on others is not counted.
    pub cpus: CpuSet,
    /// Threads to show; the rows of CPUs count all.
    pub threads: ThreadFilter,
}

/// The analysis.
#[derive(Debug)]
pub struct CpuAnalysis {
    sources: Sources,
    options: CpuOptions,
    extent: Option<Extent>,
    hosts: Vec<Host>,
}

impl CpuAnalysis {
    /// For those traces.
    pub fn new(set: &TraceSet, options: CpuOptions) -> CpuAnalysis {
        let sources = Sources::new(set, |event| {
            use KernelEvent::*;
            matches!(
                event,
                Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
            )
        });
        let extent = Extent::of(set, |trace| sources.reads(trace));
        let hosts = sources.hosts().into_iter().enumerate();
        let hosts = hosts.filter(|(trace, _)| sources.reads(*trace));
        let hosts = hosts
            .map(|(trace, name)| Host {
                trace: trace as u32,
                name,
            })
            .collect();
        CpuAnalysis {
            sources,
            options,
            extent,
            hosts,
        }
    }

    /// Packets that begin at or after this time need not be read.
    pub fn until(&self) -> Option<Timestamp> {
        self.options.window.to
    }
}

impl Analysis for CpuAnalysis {
    type Partial = CpuPartial;
    type Report = CpuReport;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.sources.groups()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.sources.wants(trace, stream_class, class)
    }

    fn begin(&self, _: &Chunk) -> CpuPartial {
        CpuPartial::default()
    }

    fn packet(&self, partial: &mut CpuPartial, packet: &StreamPlace<'_>) {
        let Some(source) = self
            .sources
            .source(packet.stream)
            .filter(|source| source.tells_switches)
        else {
            return;
        };
        // Where events of several CPUs share a stream, losses show by switches that do not fit.
        let Some(cpu) = source.cpu else { return };
        let end = source.time(packet.head.end).or(packet.begin.map(|begin| begin.0));
        let key = CpuKey {
            trace: packet.stream.trace,
            cpu,
        };
        partial.packet(&self.scope(), key, packet.lost_before, end);
    }

    #[inline]
    fn event(&self, partial: &mut CpuPartial, record: &mut Record<'_>) {
        let Some(source) = self.sources.source(record.stream) else {
            return;
        };
        let Some(model) = self.sources.event(record.stream, source, record.class) else {
            return;
        };
        let (trace, time) = (record.stream.trace, record.time.0);
        let body = &mut Body::new(record.body, record.slots);
        let cpu = match source.cpu {
            Some(cpu) => cpu,
            None => model.cpu(body),
        };
        let key = CpuKey { trace, cpu };
        let thread = |tid: i64| ThreadKey {
            trace,
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
                partial.switch(&self.scope(), key, time, prev, next, prev_name, next_name);
                if let Some(pid) = model.pid(body) {
                    partial.people.get(prev).learn_pid(time, key, pid);
                }
            }
            KernelEvent::Exec(exec) => {
                if let (Some(tid), Some(old)) = (
                    exec.tid.as_ref().and_then(|tid| tid.get(body)),
                    exec.old_tid.as_ref().and_then(|tid| tid.get(body)),
                ) {
                    partial.take_over(&self.scope(), key, time, thread(old), thread(tid));
                }
                crate::kernel::learn(&mut partial.people, model, key, time, body);
            }
            _ => crate::kernel::learn(&mut partial.people, model, key, time, body),
        }
    }

    fn end(&self, _: &mut CpuPartial, _: &Chunk) {}

    fn merge(&self, earlier: &mut CpuPartial, later: CpuPartial) {
        earlier.merge(&self.scope(), later);
    }

    fn finish(&self, partial: CpuPartial) -> CpuReport {
        report::report(self, partial)
    }
}

impl CpuAnalysis {
    fn scope(&self) -> state::Scope<'_> {
        state::Scope {
            window: self.options.window,
            cpus: &self.options.cpus,
        }
    }
}
