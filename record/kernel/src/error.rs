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
    /// The kernel cannot do it.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux): it must be built with CONFIG_DEBUG_INFO_BTF")]
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
    /// The trace cannot be written.
    #[error("the trace cannot be written: {0}")]
    Write(#[from] WriteError),
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
