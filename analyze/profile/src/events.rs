//! The events that tell of stacks and of what their addresses mean.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;

use crate::Process;
use crate::fields::Fields;
use crate::naming::{NameId, Naming};
use crate::quality::{Runtime, StackShape};

/// Kinds of events that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EventRole {
    /// In the trace of a process that takes its own stacks.
    Load,
    BuildId,
    Unload,
    OwnState,
    OwnCpu,
    OwnWait,
    /// In that of a kernel.
    State,
    Cpu,
    Wait,
    Symbol,
    MapLoad,
    MapFile,
    MapFork,
    MapExec,
    /// A function that an interpreter runs.
    Interpreted,
    /// In one of perf: a sample with a call chain, and the CPU time that it stands for.
    PerfSample(Weight),
    /// A `sched_switch` with a call chain.
    PerfSwitch,
    /// perf's own record of a thread that leaves or comes.
    PerfTask,
    PerfMap,
    PerfFork,
    PerfComm,
    PerfBuildId,
}

/// The CPU time that a sample of perf stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Weight {
    /// Its period, which is in nanoseconds.
    Period,
    /// A fixed number of nanoseconds.
    Fixed(u64),
    Unknown,
}

impl EventRole {
    /// Of an event class of that name.
    pub(crate) fn named(name: &str) -> Option<EventRole> {
        Some(match name {
            // Of what was there when recording began, and what came and went then; `lttng_ust_dl`
            // tells as `_lib` does.
            "lttng_ust_lib:load" | "lttng_ust_statedump:bin_info" | "lttng_ust_dl:dlopen" => {
                EventRole::Load
            }
            "lttng_ust_lib:build_id" | "lttng_ust_statedump:build_id" | "lttng_ust_dl:build_id" => {
                EventRole::BuildId
            }
            "lttng_ust_lib:unload" | "lttng_ust_dl:dlclose" => EventRole::Unload,
            "tracebraid:stacks_state" => EventRole::OwnState,
            "tracebraid:cpu_stack" => EventRole::OwnCpu,
            "tracebraid:syscall_stack" => EventRole::OwnWait,
            "tracebraid_stacks_state" => EventRole::State,
            "tracebraid_cpu_stack" => EventRole::Cpu,
            "tracebraid_syscall_stack" => EventRole::Wait,
            "tracebraid_kernel_symbol" => EventRole::Symbol,
            "tracebraid_map_load" => EventRole::MapLoad,
            "tracebraid_map_file" => EventRole::MapFile,
            "tracebraid_map_fork" => EventRole::MapFork,
            "tracebraid_map_exec" => EventRole::MapExec,
            "tracebraid_code_symbol" => EventRole::Interpreted,
            "perf_switch" => EventRole::PerfTask,
            "perf_mmap" | "perf_mmap2" => EventRole::PerfMap,
            "perf_fork" => EventRole::PerfFork,
            "perf_comm" => EventRole::PerfComm,
            "perf_build_id" => EventRole::PerfBuildId,
            _ => return None,
        })
    }

    /// Whether it is a stack of a process that takes its own.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, EventRole::OwnCpu | EventRole::OwnWait)
    }

    /// Whether it is a stack that the kernel took.
    pub(crate) fn is_kernels(self) -> bool {
        matches!(self, EventRole::Cpu | EventRole::Wait)
    }

    /// True for records of perf with a call chain.
    pub(crate) fn is_perfs(self) -> bool {
        matches!(self, EventRole::PerfSample(_) | EventRole::PerfSwitch)
    }
}

/// Where an event was met.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct EventOrigin {
    #[serde(with = "nanoseconds")]
    pub(crate) time: Timestamp,
    /// The CPU, or that on which the packet was begun.
    pub(crate) cpu: Option<u64>,
    /// The thread whose packet it is in.
    pub(crate) tid: Option<i64>,
}

/// Serializes times as nanoseconds from the origin.
mod nanoseconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use tracebraid_ctf::clock::Timestamp;

    pub(super) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(time.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(from).map(Timestamp)
    }
}

/// Makes stacks of the events of a machine. All events are passed twice, each time in the order of
/// time.
pub(crate) trait StackSource {
    /// First pass: learns facts that hold for all of the trace; `None` if the event is malformed.
    fn learn(&mut self, kind: EventRole, fields: &Fields) -> Option<()>;

    /// Second pass: returns the stack of an event.
    fn event(
        &mut self,
        place: &EventOrigin,
        kind: EventRole,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Option<Sample>;
}

/// A stack that was met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The thread.
    pub(crate) tid: Option<i64>,
    pub(crate) process: Process,
    /// The innermost first.
    pub(crate) functions: Vec<NameId>,
    /// Functions of the kernel among them: the first ones.
    pub(crate) kernel: usize,
    /// It is of a wait of so many nanoseconds; else of one more period of CPU time.
    pub(crate) wait_ns: Option<u64>,
    /// That period in nanoseconds.
    pub(crate) period_ns: u64,
    /// How far it reaches, if the tracer records that, and the program's runtime.
    pub(crate) shape: Option<(StackShape, Runtime)>,
}
