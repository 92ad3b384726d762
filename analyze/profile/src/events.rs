//! Events with stacks, and events that give their addresses a meaning.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;

use crate::Process;
use crate::fields::Fields;
use crate::naming::{NameId, Naming};
use crate::quality::{Runtime, StackShape};

/// The role of an event in making stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EventRole {
    /// In the trace of a process that takes its own stacks.
    Load,
    BuildId,
    Unload,
    OwnState,
    OwnCpu,
    OwnWait,
    /// In the trace of a kernel.
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
    /// In an imported perf.data: a sample with a call chain, and the CPU time that it stands for.
    PerfSample(Weight),
    /// A `sched_switch` with a call chain.
    PerfSwitch,
    /// perf's own record of a thread that leaves or gets a CPU.
    PerfTask,
    PerfMap,
    PerfFork,
    PerfComm,
    PerfBuildId,
    /// In an execution trace of Go: the functions of a stack, a sample, a wait that ends, and the
    /// stack at a moment.
    GoFrames,
    GoSample,
    GoWait,
    GoMoment,
}

/// The CPU time that a sample of perf stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Weight {
    /// The sample's period, in nanoseconds.
    Period,
    /// A fixed number of nanoseconds.
    Fixed(u64),
    Unknown,
}

impl EventRole {
    /// The role of the event class with this name.
    pub(crate) fn named(name: &str) -> Option<EventRole> {
        Some(match name {
            // Loaded before recording began (`statedump`), and loaded or unloaded since;
            // `lttng_ust_dl` has the same fields as `lttng_ust_lib`.
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
            "go:stack_frames" => EventRole::GoFrames,
            "go:cpu_sample" => EventRole::GoSample,
            "go:wait_stack" => EventRole::GoWait,
            "go:stack" => EventRole::GoMoment,
            _ => return None,
        })
    }

    /// True for a stack taken by the process itself.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, EventRole::OwnCpu | EventRole::OwnWait)
    }

    /// True for a stack taken by the kernel.
    pub(crate) fn is_kernels(self) -> bool {
        matches!(self, EventRole::Cpu | EventRole::Wait)
    }

    /// True for records of perf with a call chain.
    pub(crate) fn is_perfs(self) -> bool {
        matches!(self, EventRole::PerfSample(_) | EventRole::PerfSwitch)
    }

    /// True for records of Go with a stack.
    pub(crate) fn is_gos(self) -> bool {
        matches!(
            self,
            EventRole::GoSample | EventRole::GoWait | EventRole::GoMoment
        )
    }
}

/// Time, CPU and thread of an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct EventOrigin {
    #[serde(with = "nanoseconds")]
    pub(crate) time: Timestamp,
    /// The CPU; in user-space traces, the CPU on which the packet was begun.
    pub(crate) cpu: Option<u64>,
    /// The thread that wrote the packet.
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

/// Makes stacks from the events of a machine or process. All events are passed twice, each time in
/// the order of time.
pub(crate) trait StackSource {
    /// First pass: learns facts that hold for the whole trace; `None` if the event is malformed.
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

/// A recorded stack.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) tid: Option<i64>,
    pub(crate) process: Process,
    /// The innermost first.
    pub(crate) functions: Vec<NameId>,
    /// Number of leading functions that are functions of the kernel.
    pub(crate) kernel: usize,
    /// Duration of the wait, 0 if the stack is that of a moment; `None` for a sample of CPU time.
    pub(crate) wait_ns: Option<u64>,
    /// CPU time that the sample stands for, in nanoseconds.
    pub(crate) period_ns: u64,
    /// Completeness, if the tracer records it, and the program's runtime.
    pub(crate) shape: Option<(StackShape, Runtime)>,
}
