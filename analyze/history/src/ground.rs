//! Facts of a trace set that a history depends on, known before event records are read.

use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{FoldError, StreamRef};
use tracebraid_follow::{Extent, Head, Input, NotRecorded, Recorded, Selection};
use tracebraid_kernel_model::KernelEvent;

use crate::file::{HistoryError, Meta};
use crate::files::Files;
use crate::kernel::wants;
use crate::levels::{self, Levels};
use crate::user::{self, Definition, Follows, Plan};

/// Optional contents, besides the states of CPUs, threads and disks.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Attributes of a user analysis.
    pub definition: Option<Definition>,
    /// Descriptors of processes, and the bytes read and written.
    pub files: bool,
}

/// Errors of building a history.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] HistoryError),
    /// The fold was cancelled.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The definition of an analysis exceeds a limit.
    #[error("{0}")]
    Definition(String),
    /// No event changes an attribute.
    #[error(
        "no event of the trace changes an attribute: a history needs kernel events of threads, CPUs or disks (above all \
         sched_switch; also wake-ups, system calls, interrupts, block requests), tracebraid's probes, or an analysis \
         of other events (--analysis)"
    )]
    Nothing,
}

/// Facts of a trace set that are known before its events are read.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) input: Input,
    /// The plan of a user analysis.
    pub(crate) plan: Option<Plan>,
    /// Follows descriptors, if requested.
    pub(crate) files: Option<Files>,
    begin: i64,
    end: i64,
    bytes: u64,
    /// Grid of the finest coarse level, in nanoseconds.
    pub(crate) grid: i64,
}

impl Ground {
    /// CPUs that were not recorded, or not from the beginning.
    pub(crate) fn not_recorded(&self) -> Vec<NotRecorded> {
        self.input.recorded.missing()
    }

    /// Whether the traces contain switches, but no system calls.
    pub(crate) fn lacks_calls(&self) -> bool {
        let is_call =
            |event: &KernelEvent| matches!(event, KernelEvent::Entry(_) | KernelEvent::Exit(_));
        let is_switch = |event: &KernelEvent| matches!(event, KernelEvent::Switch(_));
        self.input.sources.has(is_switch) && !self.input.sources.has(is_call)
    }

    /// Reads the facts of a trace set. `times`: nanoseconds from the origin, at which the state of
    /// descriptors is kept.
    pub(crate) fn of(
        set: &TraceSet,
        recorded: &Arc<Recorded>,
        asked: Asked,
        times: &[i64],
    ) -> Result<Ground, BuildError> {
        let plan =
            user::with_probes(set, asked.definition).map(|definition| Plan::new(set, definition));
        let plan = plan.transpose().map_err(BuildError::Definition)?;
        let files = asked.files.then(|| Files::new(times));
        let of_files = |event: &KernelEvent| files.as_ref().is_some_and(|files| files.wants(event));
        let input = Input::sharing(set, Some(recorded), Selection::default(), |event| {
            wants(event) || of_files(event)
        });
        let (begin, end) = extent(set, &input.head(), plan.as_ref()).ok_or(BuildError::Nothing)?;
        let streams = set.traces.iter().flat_map(|trace| &trace.streams);
        let packets = streams.flat_map(|stream| stream.packets.iter());
        let bytes: u64 = packets.map(|packet| packet.bytes).sum();
        let grid = levels::finest(end.0.abs_diff(begin.0), bytes);
        Ok(Ground {
            input,
            plan,
            files,
            begin: begin.0,
            end: end.0,
            bytes,
            grid,
        })
    }

    /// Whether descriptors are followed.
    pub(crate) fn follows_files(&self) -> bool {
        self.files.is_some()
    }

    /// Properties of the traces on which the state of a user analysis depends.
    pub(crate) fn follows(&self) -> Follows {
        self.plan.as_ref().map(Plan::follows).unwrap_or_default()
    }

    /// Whether the state at a time consists of more than the values of attributes.
    pub(crate) fn needs_checkpoints(&self) -> bool {
        self.plan.is_some() || self.files.is_some()
    }

    /// Empty coarse levels.
    pub(crate) fn levels(&self) -> Levels {
        Levels::new(self.grid, self.end.abs_diff(self.begin))
    }

    /// The end of each trace of a machine; empty if all end together.
    fn ends(&self, traces: usize) -> Vec<Option<i64>> {
        let traces = (0..).take(traces);
        let ends: Vec<Option<i64>> = traces
            .map(|trace| self.input.known_until_of(trace))
            .collect();
        match ends.iter().flatten().any(|&end| end < self.end) {
            true => ends,
            false => Vec::new(),
        }
    }

    /// Adds these facts to the metadata of a history.
    pub(crate) fn describe(&self, set: &TraceSet, meta: Meta) -> Meta {
        let head = self.input.head();
        let cpus = self.input.sources.cpus();
        let mut cpus: Vec<(u32, u32)> = cpus.map(|cpu| (cpu.trace, cpu.cpu)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        Meta {
            program: concat!("tracebraid ", env!("CARGO_PKG_VERSION")).to_owned(),
            hosts: (0..set.traces.len())
                .map(|trace| name_of_host(&head, trace))
                .collect(),
            cpus,
            begin: self.begin,
            end: self.end,
            ends: self.ends(set.traces.len()),
            without_calls: (0..set.traces.len() as u32)
                .filter(|&trace| !self.input.sources.tells_calls(trace as usize))
                .collect(),
            not_recorded: self.not_recorded(),
            bytes: self.bytes,
            ..meta
        }
    }
}

/// From the first to the last event record of the traces that are read.
fn extent(set: &TraceSet, head: &Head, plan: Option<&Plan>) -> Option<(Timestamp, Timestamp)> {
    let of_kernel = head.begin.zip(head.end);
    let of_kernel = of_kernel.map(|(first, last)| Extent { first, last });
    let reads = |trace: usize| {
        let mut streams = StreamRef::all(set).filter(|stream| stream.trace as usize == trace);
        plan.is_some_and(|plan| streams.any(|stream| plan.reads(stream)))
    };
    let of_user = Extent::of(set, reads);
    let extent = of_kernel.into_iter().chain(of_user).reduce(Extent::join)?;
    Some((extent.first, extent.last))
}

fn name_of_host(head: &tracebraid_follow::Head, trace: usize) -> Option<String> {
    let host = head
        .hosts
        .iter()
        .find(|host| host.trace as usize == trace)?;
    Some(
        host.name
            .clone()
            .unwrap_or_else(|| format!("trace-{trace}")),
    )
}
