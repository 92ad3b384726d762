//! Reading and writing: bytes, calls, errors and latency by process, thread, system call and type
//! of descriptor.
//!
//! Each CPU's chunks pair entries with exits (`lane`). Calls that threads take to other CPUs, and
//! the types of descriptors, are resolved in slices of time in parallel (`slice`), which are then
//! appended to the state before them (`compose`); or, where that is impossible, by one `machine` in
//! the order of time. `docs/reference/io.md` defines each number.

mod cache;
mod call;
mod compose;
mod cut;
mod group;
mod item;
mod items;
mod lane;
mod machine;
mod options;
mod pack;
mod parking;
mod partial;
mod report;
mod sections;
mod sink;
mod slice;
#[cfg(test)]
mod slice_tests;
mod span;
mod stretch;
mod sums;
mod tell;
mod totals;

pub use options::IoOptions;
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, Slice, StreamPlace, StreamRef};
use tracebraid_kernel_model::{Body, KernelEvent};

pub use partial::IoPartial;
use tracebraid_follow::{Event, Input, KernelAnalysis, Recorded, Selection};
use tracebraid_tables::Report;

/// The selection and the options.
#[derive(Debug, Default)]
struct IoRules {
    selection: Selection,
    options: IoOptions,
}

/// Analyses reading and writing. A call counts at the CPU and the time of its end.
#[derive(Debug)]
pub struct IoAnalysis {
    input: Input,
    rules: IoRules,
    /// By trace: true if the running threads are unknown.
    anonymous: Vec<bool>,
}

impl KernelAnalysis for IoAnalysis {
    type Options = IoOptions;

    fn sharing(
        set: &TraceSet,
        recorded: Option<&Arc<Recorded>>,
        selection: Selection,
        options: IoOptions,
    ) -> Self {
        let rules = IoRules {
            selection: selection.clone(),
            options,
        };
        let input = Input::sharing(set, recorded, selection, KernelEvent::is_of_files);
        let tells = (0..set.traces.len()).map(|trace| input.sources.tells_threads(trace));
        let anonymous = tells.map(|tells| !tells).collect();
        IoAnalysis {
            input,
            rules,
            anonymous,
        }
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn lacks(&self) -> Option<&'static str> {
        let calls = self.input.sources.has(|event| match event {
            KernelEvent::Exit(exit) if event.is_of_files() => {
                exit.fixed().is_none_or(|call| call.action().is_io())
            }
            _ => false,
        });
        (!calls).then_some("no reads or writes were recorded: enable system calls")
    }

    fn wants_event(&self, event: &KernelEvent) -> bool {
        event.is_of_files()
    }

    fn fold_event(&self, partial: &mut IoPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        partial.event(self, event, body);
    }
}

impl IoAnalysis {
    fn is_anonymous(&self, trace: u32) -> bool {
        self.anonymous.get(trace as usize).copied().unwrap_or(true)
    }
}

impl Analysis for IoAnalysis {
    type Partial = IoPartial;
    type Report = Report;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.input.groups()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.input.wants(trace, stream_class, class)
    }

    fn begin(&self, _: &Chunk) -> IoPartial {
        IoPartial::default()
    }

    fn packet(&self, partial: &mut IoPartial, packet: &StreamPlace<'_>) {
        for packet in self.input.any_packets(packet) {
            partial.packet(self, &packet);
        }
    }

    fn cut(&self, partial: &mut IoPartial, packet: &StreamPlace<'_>, time: Timestamp) {
        for packet in self.input.any_packets(packet) {
            partial.packet(self, &packet.cut(time.0));
        }
    }

    #[inline]
    fn event(&self, partial: &mut IoPartial, record: &mut Record<'_>) {
        self.input
            .event(record, |event, body| partial.event(self, event, body));
    }

    fn end(&self, partial: &mut IoPartial, _: &Chunk) {
        partial.end_of_chunk();
    }

    fn merge(&self, earlier: &mut IoPartial, later: IoPartial) {
        earlier.merge(&self.rules, later);
    }

    fn exchange(&self, partial: &mut IoPartial, resident: &mut IoPartial) {
        partial.exchange(resident);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut IoPartial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, IoPartial>> {
        let slice = partial.slice(watermark.0);
        slice.into_iter().collect()
    }

    fn follow_up<'a>(&'a self, partial: &mut IoPartial) -> Vec<Slice<'a, IoPartial>> {
        partial.follow_up(&self.rules)
    }

    fn finish(&self, partial: IoPartial) -> Report {
        report::report(self, partial)
    }
}
