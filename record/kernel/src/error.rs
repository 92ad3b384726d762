//! Errors of recordings.

use thiserror::Error;
use tracebraid_ctf::write::WriteError;

/// Why kernel events cannot be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// This process lacks the privilege to load BPF programs.
    #[error(
        "recording kernel events needs CAP_BPF and CAP_PERFMON, and this process lacks {0}: run as root, \
         or give the program both (setcap cap_bpf,cap_perfmon+ep)"
    )]
    Privilege(String),
    /// The process is in a user namespace other than the initial one, in which its capabilities are
    /// insufficient.
    #[error(
        "recording kernel events needs CAP_BPF and CAP_PERFMON in the initial user namespace, and this process is in \
         another one, as in a rootless container: run tracebraid outside the container with --pid and the process id \
         that is valid there"
    )]
    UserNamespace,
    /// A process has no id in the initial PID namespace.
    #[error(
        "process {0} has ended, or is not in the recorder's PID namespace: use the process id that `ps` prints in the \
         recorder's own namespace"
    )]
    Unresolved(u32),
    /// The kernel has no BTF, or `/sys` is not mounted.
    #[error(
        "/sys/kernel/btf/vmlinux does not exist: the kernel must be built with CONFIG_DEBUG_INFO_BTF, and a container or \
         chroot needs /sys (mount -t sysfs sysfs /sys)"
    )]
    NoBtf,
    /// The kernel rejected a program.
    #[error("the kernel rejected the BPF programs: {0}")]
    Load(String),
    /// A program cannot be attached.
    #[error("cannot attach to the tracepoint {tracepoint}: {reason}")]
    Attach {
        /// Name of the tracepoint.
        tracepoint: String,
        /// The kernel's error.
        reason: String,
    },
    /// A program cannot be attached to an event that was chosen by name.
    #[error("cannot record {event}: {reason}")]
    AttachChosen {
        /// The event in the syntax of `--event`.
        event: String,
        /// The kernel's error.
        reason: String,
    },
    /// A performance counter of `--context` cannot be read.
    #[error("--context {name}: {reason}")]
    Counter {
        /// Name of the counter.
        name: String,
        /// Cause.
        reason: String,
    },
    /// More performance counters than event records have room for; holds the limit.
    #[error("--context: at most {0} performance counters")]
    TooManyCounters(usize),
    /// The trace cannot be written.
    #[error("cannot write the trace: {0}")]
    Write(#[from] WriteError),
    /// A new chunk was requested of a recording without chunks.
    #[error("this recording is not written as chunks: start it with --rotate")]
    NoChunks,
    /// The recording thread cannot be started.
    #[error("cannot start the recording thread: {0}{hint}", hint = hint(.0))]
    NoThread(std::io::Error),
    /// The recording thread has ended without a result.
    #[error("the recording thread ended unexpectedly: the trace contains the events up to then")]
    Thread,
    /// The kernel does not let this process sample stacks of its own programs.
    #[error(
        "cannot sample call stacks ({0}): without CAP_BPF and CAP_PERFMON this needs kernel.perf_event_paranoid of at \
         most 2"
    )]
    Sample(String),
}

/// Hints at the usual reason why a process cannot create threads.
fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::InvalidInput => {
            " (a process whose children get another PID namespace cannot create threads: `unshare --pid` needs --fork)"
        }
        _ => "",
    }
}
