//! Typed Linux kernel events, whatever tracer named them.
//!
//! In: the metadata of a trace set. Out: for each event class that tells something about threads,
//! CPUs, system calls, descriptors, interrupts, timers, block devices, the network, memory and the
//! like, what it tells and where its fields are ([`KernelModel`]), resolved once. Promise: nothing
//! above this crate compares event names; traces without kernel events give an empty model.
//!
//! Known namings: lttng-modules 2.0 to 2.14 (`sys_NAME` with `exit_syscall`,
//! `syscall_entry_NAME` with `syscall_exit_NAME`, and their `compat_` forms), and those of perf
//! and ftrace where a CTF trace has them (`sched:sched_switch`, `syscalls:sys_enter_NAME`,
//! `raw_syscalls:sys_enter`; the same without what is before the colon).
//!
//! System calls are [`Syscall`]s: every one of Linux and whatever else a trace names, with its numbers ([`Abi`]), its arguments by
//! name, what it does to files ([`Action`]) and what it is about ([`Category`]).
#![forbid(unsafe_code)]

mod action;
mod argument;
mod calls;
mod category;
mod comm;
mod context;
mod cpu;
mod drop_reason;
mod errno;
mod event;
pub mod events;
mod family;
mod fd;
mod field;
mod finder;
mod headers;
mod meaning;
mod met_calls;
mod model;
mod names;
mod numbers;
mod peer;
mod plain;
#[cfg(test)]
mod recorded_tests;
mod ring_operation;
mod rwbs;
mod signals;
mod softirq;
mod state_numbers;
mod state_sample;
mod syscall;
mod task_state;
mod trace_numbers;
mod typed;
mod waiting;

pub use action::{Action, SyscallSpec};
pub use argument::{Argument, TextArgument};
pub use category::{Category, IoClass};
pub use comm::Comm;
pub use context::Context;
pub use cpu::{Cpus, MOST_CPUS, event_cpu, head_cpu, packet_cpu};
pub use drop_reason::DropReason;
pub use errno::{errno_name, errno_of};
pub use event::KernelEvent;
pub use events::Edge;
pub use events::block::Device;
pub use events::call::{PairField, SyscallEntry, SyscallExit};
pub use events::sched::{Priority, PriorityField, Switch};
pub use events::thread::{Exec, Fork, ProcessState, StateFd};
pub use family::{family_name, tcp_state_name};
pub use fd::FdType;
pub use field::{Body, IntField, TextField};
pub use headers::{Headers, HeadersField, TcpHeader, Transport};
pub use model::{CpuSource, EventModel, KernelModel, StreamModel, TraceModel};
pub use peer::{Peer, PeerField};
pub use ring_operation::ring_operation;
pub use rwbs::{Rwbs, RwbsField};
pub use signals::signal_name;
pub use softirq::{SOFTIRQS, softirq_name};
pub use state_numbers::{RawStates, StateNumbers};
pub use syscall::{Abi, Syscall};
pub use task_state::{StateField, TaskState};
