//! THAPI's records of device commands beside OpenCL's: which call enqueued what, and results.
//!
//! A call that enqueues a command contains a record of the event that times it (`event_profiling`), on
//! the same thread; the results follow when the event is reset or destroyed. Level Zero's results have
//! the begin and the end in cycles (`level_zero`), CUDA's only the duration. THAPI times no commands
//! of HIP.
//!
//! Source: <https://github.com/argonne-lcf/THAPI>, `backends/ze/ze_model.rb`,
//! `backends/cuda/cuda_model.rb`, `backends/*/*_events.yaml`.

use tracebraid_engine::Record;

use crate::classes::{Class, Meaning, Role};
use crate::cuda::Api;
use crate::item::{Completed, Times};
use crate::kind::Kind;

/// `CUDA_ERROR_NOT_READY`, and the same of Level Zero: the command is not complete.
const NOT_READY: [u64; 2] = [600, 1];

/// Effect of a call on later commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// A new list of commands; true for an immediate one.
    CreatesList(bool),
    /// The commands of lists are queued.
    Executes,
    /// A list has no commands any more.
    Resets,
    /// A kernel has a name.
    Names,
}

/// The effect of a function.
pub(crate) fn effect(name: &str) -> Effect {
    match name {
        "zeCommandListCreate" => Effect::CreatesList(false),
        "zeCommandListCreateImmediate" => Effect::CreatesList(true),
        "zeCommandQueueExecuteCommandLists" => Effect::Executes,
        "zeCommandListReset" | "zeCommandListDestroy" => Effect::Resets,
        "zeKernelCreate" | "cuModuleGetFunction" | "cuLibraryGetKernel" => Effect::Names,
        _ => Effect::None,
    }
}

/// Parts of names of functions after `zeCommandListAppend` or `cu`, and the kinds of their commands;
/// the first match counts.
const KINDS: &[(&str, Kind)] = &[
    ("LaunchHostFunc", Kind::Other),
    ("Launch", Kind::Kernel),
    ("MemoryRangesBarrier", Kind::Barrier),
    ("Barrier", Kind::Barrier),
    ("SignalEvent", Kind::Barrier),
    ("MemoryFill", Kind::Fill),
    ("Copy", Kind::Copy),
    ("MemPrefetch", Kind::Migrate),
    ("Memset", Kind::Fill),
    ("HtoD", Kind::Write),
    ("HtoA", Kind::Write),
    ("DtoH", Kind::Read),
    ("AtoH", Kind::Read),
    ("Memcpy", Kind::Copy),
];

/// Kind of the commands that a function enqueues, `None` for functions whose commands THAPI does not
/// time.
pub(crate) fn kind(api: Api, name: &str) -> Option<Kind> {
    let find = |of: &str| {
        let found = KINDS.iter().find(|(part, _)| of.contains(part));
        found.map(|(_, kind)| *kind)
    };
    if let Some(command) = name.strip_prefix("zeCommandListAppend") {
        let is_timed = !["EventReset", "WaitOnEvents"].contains(&command);
        return is_timed.then(|| find(command).unwrap_or(Kind::Other));
    }
    let is_timed = ["cuLaunch", "cuMemcpy", "cuMemset", "cuMemPrefetchAsync"];
    let is_timed = is_timed.iter().any(|prefix| name.starts_with(prefix));
    (api.is_cuda_driver() && is_timed).then(|| find(name))?
}

/// Meaning of an event class.
pub(crate) fn meaning(name: &str) -> Option<Meaning> {
    Some(match name {
        "lttng_ust_opencl_profiling:event_profiling"
        | "lttng_ust_ze_profiling:event_profiling"
        | "lttng_ust_cuda_profiling:event_profiling" => Meaning::Profiles,
        "lttng_ust_ze_profiling:event_profiling_results" => Meaning::Cycles,
        "lttng_ust_cuda_profiling:event_profiling_results" => Meaning::Duration,
        "lttng_ust_ze_properties:device" | "lttng_ust_ze_properties:subdevice" => {
            Meaning::Properties
        }
        "lttng_ust_ze_properties:device_timer" => Meaning::Reading,
        "lttng_ust_cuda_properties:device" => Meaning::DeviceName,
        _ => return None,
    })
}

/// Fields of the classes of THAPI.
pub(crate) fn fields(meaning: Meaning) -> &'static [(Role, &'static [&'static str])] {
    match meaning {
        Meaning::Profiles => &[
            (Role::Event, &["event", "hEvent", "hStart"]),
            (Role::Status, &["status"]),
        ],
        Meaning::Cycles => &[
            (Role::Event, &["hEvent"]),
            (Role::Status, &["status"]),
            (Role::Profiled, &["timestampStatus"]),
            (Role::Start, &["globalStart"]),
            (Role::End, &["globalEnd"]),
        ],
        Meaning::Duration => &[
            (Role::Event, &["hStart"]),
            (Role::Status, &["status"]),
            (Role::Profiled, &["stopStatus"]),
            (Role::End, &["milliseconds"]),
        ],
        Meaning::Properties => &[
            (Role::Device, &["hSubDevice", "hDevice"]),
            (Role::Parent, &["hDevice"]),
            (Role::Name, &["pDeviceProperties_val"]),
        ],
        Meaning::Reading => &[
            (Role::Device, &["hDevice"]),
            (Role::Start, &["deviceTimestamp"]),
        ],
        _ => &[],
    }
}

/// Sizes of grid and blocks of a kernel of CUDA.
pub(crate) const SIZES: [&str; 6] = [
    "gridDimX",
    "gridDimY",
    "gridDimZ",
    "blockDimX",
    "blockDimY",
    "blockDimZ",
];

/// Times of a complete command of Level Zero; `None` if it is not complete.
pub(crate) fn cycles(class: &Class, record: &mut Record<'_>) -> Option<Completed> {
    let results = [Role::Status, Role::Profiled].map(|role| class.number(role, record));
    let times = [Role::Start, Role::End].map(|role| class.number(role, record));
    (results[0] != NOT_READY[1]).then_some(Completed {
        status: -i32::from(results != [0, 0]),
        is_profiled: results == [0, 0],
        times: [0, 0, times[0], times[1]],
        kind: Times::Cycles,
    })
}

/// Duration of a complete command of CUDA; `None` if it is not complete.
pub(crate) fn duration(class: &Class, record: &mut Record<'_>) -> Option<Completed> {
    let results = [Role::Status, Role::Profiled].map(|role| class.number(role, record));
    let milliseconds = class.float(Role::End, record);
    (!results.contains(&NOT_READY[0])).then_some(Completed {
        status: -i32::from(results != [0, 0]),
        is_profiled: results == [0, 0],
        times: [0, 0, 0, (milliseconds * 1e6) as u64],
        kind: Times::Duration,
    })
}

/// Bytes of a copy of CUDA in two or three dimensions, from its description (`CUDA_MEMCPY2D`, and so
/// on): the sizes are its last members. Older structures have numbers of 32 bits and are left out.
pub(crate) fn copied(function: &str, description: &[u8]) -> u64 {
    let (dimensions, is_known) = match function.contains("3D") {
        true => (3, function.contains("_v2") || function.contains("Peer")),
        false => (2, function.contains("_v2")),
    };
    let first = description.len().saturating_sub(8 * dimensions);
    let sizes = description.get(first..).unwrap_or_default();
    if !is_known || sizes.len() < 8 * dimensions {
        return 0;
    }
    let numbers = sizes.chunks_exact(8).map(|bytes| {
        let bytes = bytes.try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    });
    numbers.fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_enqueue_commands_of_their_kind() {
        for (function, expected) in [
            ("zeCommandListAppendLaunchKernel", Some(Kind::Kernel)),
            (
                "zeCommandListAppendLaunchCooperativeKernel",
                Some(Kind::Kernel),
            ),
            ("zeCommandListAppendMemoryCopy", Some(Kind::Copy)),
            ("zeCommandListAppendMemoryFill", Some(Kind::Fill)),
            (
                "zeCommandListAppendMemoryRangesBarrier",
                Some(Kind::Barrier),
            ),
            ("zeCommandListAppendImageCopyToMemory", Some(Kind::Copy)),
            (
                "zeCommandListAppendQueryKernelTimestamps",
                Some(Kind::Other),
            ),
            ("zeCommandListAppendEventReset", None),
            ("zeCommandQueueExecuteCommandLists", None),
            ("cuLaunchKernel_ptsz", Some(Kind::Kernel)),
            ("cuLaunchHostFunc", Some(Kind::Other)),
            ("cuMemcpyHtoDAsync_v2", Some(Kind::Write)),
            ("cuMemcpyDtoH_v2", Some(Kind::Read)),
            ("cuMemcpyAsync", Some(Kind::Copy)),
            ("cuMemsetD32_v2", Some(Kind::Fill)),
            ("cuMemPrefetchAsync", Some(Kind::Migrate)),
            ("cuMemAlloc_v2", None),
        ] {
            let provider = match function.starts_with("ze") {
                true => "lttng_ust_ze",
                false => "lttng_ust_cuda",
            };
            let name = format!("{provider}:{function}_entry");
            let (_, api, name) = crate::cuda::meaning(&name).expect("a call");
            assert_eq!(kind(api, name), expected, "{function}");
        }
    }

    #[test]
    fn bytes_of_copies_are_the_product_of_the_last_members() {
        let mut of_2d = [0; 128];
        of_2d[112] = 10;
        of_2d[120] = 3;
        assert_eq!(copied("cuMemcpy2DAsync_v2", &of_2d), 30);
        assert_eq!(copied("cuMemcpy2D", &of_2d), 0);
        assert_eq!(copied("cuMemcpy3DPeer", &of_2d[112..]), 0);
    }
}
