//! Typed Linux kernel events, whatever tracer recorded them.
//!
//! In: the metadata of a trace set. Out: for each event class about threads, CPUs, system calls,
//! descriptors, interrupts, timers, block devices, the network or memory, its meaning and the
//! location of its fields ([`KernelModel`]), resolved once. Promise: no code above this crate
//! compares names of kernel events; a trace without kernel events yields an empty model.
//!
//! `names` and `plain` map names of event classes to meanings; `finder` locates the fields of each
//! meaning under the names that tracers use. [`KernelEvent`] is the enum of typed events that
//! reports match on, one struct each in [`events`], by part of the kernel. A report selects event
//! classes by meaning; other classes are never read. Events with many fields are boxed, so that the
//! events of the usual reports stay small (a test checks the size).
//!
//! Known naming schemes: lttng-modules 2.0 to 2.14 (`sys_NAME` with `exit_syscall`,
//! `syscall_entry_NAME` with `syscall_exit_NAME`, and their `compat_` forms), and those of perf and
//! ftrace in CTF traces (`sched:sched_switch`, `syscalls:sys_enter_NAME`, `raw_syscalls:sys_enter`;
//! the same without the part up to the colon).
//!
//! **System calls.** `calls` is the table of all system calls with their numbers and arguments,
//! generated from the kernel's headers by `scripts/syscall-table.py`. A [`Syscall`] is an index
//! into the table: first the calls with an effect on files ([`Action`]; their order is part of the
//! format of partial states), then all others by name. Names are those of the kernel's functions
//! (`newstat`), which all tracers use. A call that the table lacks has its name from the trace, or
//! its number (`met_calls`). [`Abi`] selects the numbers and [`Category`] is the subject. Arguments
//! that an [`Action`] does not need are resolved when a report requests them
//! (`StreamModel::argument`): with a thousand event classes, finding all arguments would cost more
//! than reading a small trace.
//!
//! **Numbers whose meaning varies** are translated only here: `prev_state`, by kernel, tracer and,
//! if uncertain, the first recorded states (`state_numbers`, `state_sample`); priorities, by tracer
//! ([`events::sched::Priority`]); the field that contains the CPU of an event (`cpu`), for this
//! model, filters, `count` and `print`.
#![forbid(unsafe_code)]

mod action;
mod argument;
mod call_role;
mod calls;
mod category;
mod comm;
mod context;
mod cpu;
mod drop_reason;
#[cfg(test)]
mod elsewhere_tests;
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
mod thread_news;
mod trace_numbers;
mod typed;
mod waiting;

pub use action::{Action, SyscallSpec};
pub use argument::{Argument, TextArgument};
pub use call_role::{CallRole, FutexCall, NameBase};
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
pub use events::sched::{Priority, PriorityField, Switch, UserWake};
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
pub use state_sample::state_numbers;
pub use syscall::{Abi, Syscall};
pub use task_state::{StateField, TaskState};
pub use thread_news::{ThreadNews, is_switch};
