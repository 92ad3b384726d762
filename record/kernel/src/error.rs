//! What can keep a recording from being made.

use thiserror::Error;
use tracebraid_ctf::write::WriteError;

/// Why kernel events cannot be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The kernel does not let this process load BPF programs.
    #[error(
        "recording kernel events needs CAP_BPF and CAP_PERFMON, of which this process lacks {0}: run as root, \
         or give the program both (setcap cap_bpf,cap_perfmon+ep)"
    )]
    Privilege(String),
    /// The process is in another user namespace than the initial one, so its capabilities do not
    /// suffice.
    #[error(
        "recording kernel events needs CAP_BPF and CAP_PERFMON in the initial user namespace, and this process is in \
         another one, as in a rootless container: run tracebraid outside of it, with --pid and the process id that the \
         process has there"
    )]
    UserNamespace,
    /// A process has no number in the initial PID namespace.
    #[error(
        "process {0} is not in the PID namespace of the recorder, or has ended: give the number that `ps` shows in the \
         recorder's own namespace"
    )]
    Unresolved(u32),
    /// The kernel has no BTF, or `/sys` is not mounted.
    #[error(
        "there is no /sys/kernel/btf/vmlinux: the kernel must be built with CONFIG_DEBUG_INFO_BTF, and a container or \
         chroot needs /sys (mount -t sysfs sysfs /sys)"
    )]
    NoBtf,
    /// The kernel refuses a program.
    #[error("the kernel refuses the BPF programs: {0}")]
    Load(String),
    /// A program cannot be attached.
    #[error("cannot follow the tracepoint {tracepoint}: {reason}")]
    Attach {
        /// Its name.
        tracepoint: String,
        /// What the kernel says.
        reason: String,
    },
    /// A program cannot be attached to an event that was chosen by name.
    #[error("cannot record {event}: {reason}")]
    AttachChosen {
        /// The event.
        event: String,
        /// The error of the kernel.
        reason: String,
    },
    /// A performance counter of `--context` cannot be read.
    #[error("--context {name}: {reason}")]
    Counter {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// More performance counters than event records have room for; holds the limit.
    #[error("--context: at most {0} performance counters")]
    TooManyCounters(usize),
    /// The trace cannot be written.
    #[error("the trace cannot be written: {0}")]
    Write(#[from] WriteError),
    /// The trace is not written as chunks.
    #[error("this recording is not written as chunks: start it with --rotate")]
    NoChunks,
    /// The recording thread cannot be started.
    #[error("the recording thread cannot be started: {0}{hint}", hint = hint(.0))]
    NoThread(std::io::Error),
    /// The recording thread has gone.
    #[error("the recording thread ended unexpectedly: what was written up to then can be read")]
    Thread,
    /// The kernel does not let this process sample stacks of its own programs.
    #[error(
        "call stacks cannot be sampled ({0}): without CAP_BPF and CAP_PERFMON that needs kernel.perf_event_paranoid of at \
         most 2"
    )]
    Sample(String),
}

/// The usual reason why a process can have no second thread.
fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::InvalidInput => {
            " (a process whose children get another PID namespace cannot create threads: `unshare --pid` needs --fork)"
        }
        _ => "",
    }
}
