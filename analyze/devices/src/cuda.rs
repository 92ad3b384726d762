//! CUDA and the other APIs beside OpenCL: meaning of their event classes, and CUDA's commands.
//!
//! Calls have the classes of THAPI, `lttng_ust_API:FUNCTION_entry` and `_exit`, whichever tracer
//! recorded them.
//!
//! A record of a CUDA command has all facts about it, and the number of its call (`correlation`),
//! which entries of calls also have. The call only adds a bound for the clock of the device. Several commands
//! may have the number of one call (a graph), and none (a call while a graph is captured); so calls are
//! remembered for a time, and not until their command is complete.

use serde::{Deserialize, Serialize};
use tracebraid_engine::Record;

use crate::classes::{Class, Meaning, Role};
use crate::item::{Completed, Enqueued, Entered, Handle, ThreadId, Times};
use crate::kind::Kind;

/// Providers of calls, and the result besides 0 that is no error.
const PROVIDERS: [(&str, Option<i32>); 12] = [
    ("lttng_ust_cuda", Some(600)),
    ("lttng_ust_cuda_exports", Some(600)),
    ("lttng_ust_cudart", Some(600)),
    ("lttng_ust_hip", Some(600)),
    ("lttng_ust_ze", Some(1)),
    ("lttng_ust_zet", Some(1)),
    ("lttng_ust_zes", Some(1)),
    ("lttng_ust_zel", Some(1)),
    ("lttng_ust_zer", Some(1)),
    ("lttng_ust_zex", Some(1)),
    ("lttng_ust_mpi", None),
    ("lttng_ust_opencl", None),
];

/// Index of the provider of OpenCL, whose errors are below 0.
const OPENCL: usize = PROVIDERS.len() - 1;

/// Names of the results of calls.
pub(crate) const RESULTS: [&str; 6] = [
    "errcode_ret_val",
    "cuResult",
    "cudaResult",
    "hipResult",
    "zeResult",
    "mpiResult",
];

/// Parts of names of CUDA's functions that enqueue commands.
const LAUNCHING: [&str; 4] = ["Launch", "Memcpy", "Memset", "Prefetch"];

/// Longest time in nanoseconds from the begin of a call to the record of a command that is matched
/// with it; no further command of the call is expected after that. Bounds the number of calls that
/// are remembered.
pub(crate) const LONGEST: i64 = 10_000_000_000;

/// Stands for the beginning of unknown calls.
pub(crate) const UNKNOWN: i64 = i64::MIN;

/// An API, by the index of its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Api(usize);

impl Api {
    /// The API that OpenCL's calls and the classes without calls have.
    pub(crate) const OPENCL: Api = Api(OPENCL);

    /// A result as OpenCL has it: errors are below 0.
    pub(crate) fn status(self, result: i32) -> i32 {
        match PROVIDERS.get(self.0) {
            Some((_, no_error)) if self != Api::OPENCL => {
                let is_error = result != 0 && Some(result) != *no_error;
                -i32::from(is_error)
            }
            _ => result,
        }
    }

    /// True for the driver API of CUDA.
    pub(crate) fn is_cuda_driver(self) -> bool {
        PROVIDERS
            .get(self.0)
            .is_some_and(|of| of.0 == "lttng_ust_cuda")
    }

    /// True if a function of the API may enqueue commands of CUDA.
    pub(crate) fn launches(self, function: &str) -> bool {
        let provider = PROVIDERS.get(self.0).map_or("", |of| of.0);
        provider.starts_with("lttng_ust_cuda")
            && LAUNCHING.iter().any(|part| function.contains(part))
    }
}

/// Meaning of an event class: of calls with their API and function.
pub(crate) fn meaning(name: &str) -> Option<(Meaning, Api, &str)> {
    let (provider, event) = name.split_once(':')?;
    if let Some(api) = PROVIDERS.iter().position(|of| of.0 == provider) {
        return match event.rsplit_once('_')? {
            (function, "entry") => Some((Meaning::Entry, Api(api), function)),
            (function, "exit") => Some((Meaning::Exit, Api(api), function)),
            _ => None,
        };
    }
    let meaning = match name {
        "tracebraid_cuda:kernel" => Meaning::Command(Kind::Kernel),
        "tracebraid_cuda:memcpy" => Meaning::Command(Kind::Copy),
        "tracebraid_cuda:memset" => Meaning::Command(Kind::Fill),
        "tracebraid_cuda:kernel_name" => Meaning::Kernel,
        "tracebraid_cuda:stream" => Meaning::Queue,
        "tracebraid_cuda:device" => Meaning::DeviceName,
        _ => return None,
    };
    Some((meaning, Api::OPENCL, ""))
}

/// Fields of a record of a command.
pub(crate) const FIELDS: [(Role, &str); 13] = [
    (Role::Event, "correlation"),
    (Role::Context, "context"),
    (Role::Queue, "stream"),
    (Role::Device, "device"),
    (Role::Kernel, "kernel"),
    (Role::Bytes, "bytes"),
    (Role::CopyKind, "copy_kind"),
    (Role::Items, "grid_vals"),
    (Role::Region, "block_vals"),
    (Role::Queued, "queued"),
    (Role::Submit, "submit"),
    (Role::Start, "start"),
    (Role::End, "end"),
];

/// A call that may have enqueued commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) begin: i64,
    pub(crate) thread: ThreadId,
}

impl Launch {
    /// True if a command that is recorded at that time is matched with the call.
    pub(crate) fn is_of(&self, at: i64) -> bool {
        at.saturating_sub(self.begin) <= LONGEST
    }
}

/// A command with all that its record contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) kind: Kind,
    queue: u64,
    pub(crate) kernel: u64,
    pub(crate) device: u64,
    bytes: u64,
    items: u64,
    pub(crate) completed: Completed,
}

impl Ran {
    pub(crate) fn of(kind: Kind, class: &Class, record: &mut Record<'_>) -> Ran {
        let times = [Role::Queued, Role::Submit, Role::Start, Role::End];
        let [queued, submit, start, end] = times.map(|role| class.number(role, record));
        // Only kernels have the first two times, and only with some versions of CUPTI.
        let or_start = |time: u64| if time == 0 { start } else { time };
        let items = class.product(Role::Items, record);
        Ran {
            kind: match class.number(Role::CopyKind, record) {
                1 | 3 => Kind::Write,
                2 | 4 => Kind::Read,
                _ => kind,
            },
            queue: class.queue(record),
            kernel: class.number(Role::Kernel, record),
            device: class.number(Role::Device, record),
            bytes: class.number(Role::Bytes, record),
            items: items.saturating_mul(class.product(Role::Region, record)),
            completed: Completed {
                status: 0,
                is_profiled: start != 0 && end != 0,
                times: [or_start(queued), or_start(submit), start, end],
                kind: Times::Device,
            },
        }
    }

    /// The command as enqueued by its call, if that is known. `function` has the kind of the command;
    /// `at` is the time of the record.
    pub(crate) fn enqueued(
        &self,
        call: Handle,
        launch: Option<&Launch>,
        (function, at): (u32, i64),
    ) -> Enqueued {
        let (begin, thread) = match launch {
            Some(launch) => (launch.begin, launch.thread),
            None => (
                UNKNOWN,
                ThreadId {
                    process: call.process,
                    tid: 0,
                },
            ),
        };
        Enqueued {
            call: Entered {
                function,
                begin,
                queue: self.queue,
                kernel: self.kernel,
                device: self.device,
                bytes: self.bytes,
                items: self.items,
                ..Entered::default()
            },
            // Ends of calls are not matched; the record comes later.
            end: at,
            thread,
            is_executed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_all_apis_have_meanings() {
        for (name, expected) in [
            ("lttng_ust_cuda:cuInit_entry", Some("cuInit")),
            ("lttng_ust_cudart:cudaMalloc_exit", Some("cudaMalloc")),
            ("lttng_ust_hip:hipMalloc_exit", Some("hipMalloc")),
            ("lttng_ust_ze:zeInit_entry", Some("zeInit")),
            ("lttng_ust_mpi:MPI_Send_entry", Some("MPI_Send")),
            ("lttng_ust_opencl:clFinish_entry", Some("clFinish")),
            ("lttng_ust_ze_sampling:gpu_energy", None),
            ("lttng_ust_cuda:cuInit", None),
            ("app:x_entry", None),
        ] {
            assert_eq!(meaning(name).map(|of| of.2), expected, "{name}");
        }
    }

    #[test]
    fn errors_are_those_of_the_api() {
        for (name, result, is_error) in [
            ("lttng_ust_cuda:cuInit_exit", 0, false),
            ("lttng_ust_cuda:cuInit_exit", 2, true),
            ("lttng_ust_cuda:cuEventQuery_exit", 600, false),
            ("lttng_ust_ze:zeInit_exit", 0x7800_0001, true),
            ("lttng_ust_ze:zeEventQueryStatus_exit", 1, false),
            ("lttng_ust_mpi:MPI_Send_exit", 1, true),
            ("lttng_ust_opencl:clFinish_exit", -5, true),
            ("lttng_ust_opencl:clFinish_exit", 0, false),
        ] {
            let (_, api, _) = meaning(name).expect("a call");
            assert_eq!(api.status(result) < 0, is_error, "{name} {result}");
        }
    }
}
