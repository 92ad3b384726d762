//! What was read and written: bytes, calls, errors and latency by process, thread, system call
//! and type of descriptor.
//!
//! Each CPU's chunks join entries with exits (`lane`); what threads take to other CPUs, and
//! what descriptors are, is put together behind the watermark (`settle`).
//! `docs/reports-io.md` defines each number.

mod cache;
mod call;
mod change;
mod descriptors;
mod group;
mod lane;
mod partial;
mod report;
mod settle;
mod stretch;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::kernel::{CpuSet, Extent, Host, Sources, ThreadFilter, Window};
pub use partial::IoPartial;
pub use report::{IoProcess, IoReport, IoStats, IoSyscall, IoThread, IoType};

/// What part of the trace is asked for.
#[derive(Clone, Debug, Default)]
pub struct IoOptions {
    /// Time: calls count where they end.
    pub window: Window,
    /// CPUs: calls count where they end.
    pub cpus: CpuSet,
    /// Threads that count.
    pub threads: ThreadFilter,
}

/// The analysis.
#[derive(Debug)]
pub struct IoAnalysis {
    sources: Sources,
    options: IoOptions,
    extent: Option<Extent>,
    hosts: Vec<Host>,
    /// By trace: true if nothing in it tells who runs.
    anonymous: Vec<bool>,
}

impl IoAnalysis {
    /// For those traces.
    pub fn new(set: &TraceSet, options: IoOptions) -> IoAnalysis {
        let sources = Sources::new(set, |event| match event {
            KernelEvent::Exit(exit) => exit.fixed().is_none_or(|call| !call.action().is_done_at_entry()),
            _ => true,
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
        let anonymous = (0..set.traces.len())
            .map(|trace| !sources.tells_threads(trace))
            .collect();
        IoAnalysis {
            sources,
            options,
            extent,
            hosts,
            anonymous,
        }
    }

    /// Packets that begin at or after this time need not be read.
    pub fn until(&self) -> Option<Timestamp> {
        self.options.window.to
    }

    /// False if the traces cannot tell of any reading or writing.
    pub fn has_calls(&self) -> bool {
        self.sources.has(|event| match event {
            KernelEvent::Exit(exit) => exit.fixed().is_none_or(|call| call.action().is_io()),
            _ => false,
        })
    }

    fn scope(&self) -> settle::Scope<'_> {
        settle::Scope {
            window: self.options.window,
            cpus: &self.options.cpus,
        }
    }

    fn is_anonymous(&self, trace: u32) -> bool {
        self.anonymous.get(trace as usize).copied().unwrap_or(true)
    }
}

impl Analysis for IoAnalysis {
    type Partial = IoPartial;
    type Report = IoReport;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.sources.groups()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.sources.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> IoPartial {
        IoPartial::new(chunk.index)
    }

    fn packet(&self, partial: &mut IoPartial, packet: &StreamPlace<'_>) {
        partial.packet(self, packet);
    }

    #[inline]
    fn event(&self, partial: &mut IoPartial, record: &mut Record<'_>) {
        let Some(source) = self.sources.source(record.stream) else {
            return;
        };
        let Some(model) = self.sources.event(record.stream, source, record.class) else {
            return;
        };
        let body = &mut Body::new(record.body, record.slots);
        partial.event(self, source, model, record.stream.trace, record.time.0, body);
    }

    fn end(&self, partial: &mut IoPartial, _: &Chunk) {
        partial.end_of_chunk();
    }

    fn merge(&self, earlier: &mut IoPartial, later: IoPartial) {
        earlier.merge(later);
    }

    fn settle(&self, partial: &mut IoPartial, watermark: Timestamp) {
        partial.settle(self.scope(), watermark.0);
    }

    fn finish(&self, partial: IoPartial) -> IoReport {
        report::report(self, partial)
    }
}
