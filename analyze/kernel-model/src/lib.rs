//! Typed Linux kernel events, whatever tracer named them.
//!
//! In: the metadata of a trace set. Out: for each event class that tells something about threads,
//! CPUs, system calls or file descriptors, what it tells and where its fields are
//! ([`KernelModel`]), resolved once. Promise: nothing above this crate compares event names;
//! traces without kernel events give an empty model.
//!
//! Known namings: lttng-modules 2.0 to 2.14 (`sys_NAME` with `exit_syscall`,
//! `syscall_entry_NAME` with `syscall_exit_NAME`, and their `compat_` forms), and those of perf
//! and ftrace where a CTF trace has them (`sched:sched_switch`, `syscalls:sys_enter_NAME`,
//! `raw_syscalls:sys_enter`; the same without what is before the colon).
#![forbid(unsafe_code)]

mod comm;
mod errno;
mod family;
mod fd;
mod field;
mod finder;
mod model;
mod names;
mod numbers;
mod rwbs;
mod signals;
mod softirq;
mod syscall;
mod task_state;

pub use comm::Comm;
pub use errno::{errno_name, errno_of};
pub use family::{family_name, tcp_state_name};
pub use fd::FdType;
pub use field::{Body, IntField, TextField};
pub use model::{
    Context, CpuSource, EventModel, Exec, Fork, KernelEvent, KernelModel, PairField, ProcessState, StateFd,
    StreamModel, Switch, SyscallEntry, SyscallExit, TraceModel,
};
pub use rwbs::{Rwbs, RwbsField};
pub use signals::signal_name;
pub use softirq::{SOFTIRQS, softirq_name};
pub use syscall::{Action, Syscall, SyscallSpec};
pub use task_state::{StateField, StateNumbers, TaskState};
