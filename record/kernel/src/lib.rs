//! Records kernel events with eBPF as a CTF trace.
//!
//! In: a choice of events ([`Options`]). Out: a trace directory with the layout, names and metadata
//! of lttng-modules 2.13, so that every reader of its traces reads this one. A test compares all
//! classes with the metadata of a trace that lttng-modules recorded, field by field.
//!
//! Promises:
//!
//! - Each CPU has a ring between the kernel and this process. Events without room there are counted
//!   for each CPU, and reported where they were lost, as discarded events.
//! - Events of a CPU are in the order of time.
//! - The kernel needs BTF and tracepoints, and this process CAP_BPF and CAP_PERFMON; no module, no
//!   daemon.
//! - The trace can be read whenever a packet has been written, and is complete when the recording
//!   has been stopped. The event `tracebraid_end` (`end_mark`) ends a complete trace; a lock on the
//!   directory marks a trace that is being written.
//!
//! **From tracepoint to trace.** `bpf/` has a program for each tracepoint. Its records have the
//! layout of the events that they become, except for text, which has slots of constant size
//! (`recipe`). `events.tsdl` defines the event classes in the language of the trace: the build
//! derives the kinds of records from it, and the program its schema. A system call is one kind of
//! record at entry and one at exit; `calls.txt` (for 32-bit programs `compat.txt`) lists the
//! arguments that are decoded, `plan` the memory that BPF copies. `bpf/shared.h` has the numbers
//! that both sides need. A thread empties the rings every few milliseconds (`recorder_thread`,
//! `drain`); BPF never wakes it, since that would cost more than all other work. `lane` sorts the
//! events of a CPU, since an interrupt may overtake the event that it interrupts, and `streams`
//! writes them, to files or to memory (`memory`). BPF decides which processes are recorded
//! (`bpf/targets.h`), and follows their forks.
//!
//! **More of each event.** Contexts (`contexts`, `bpf/contexts.h`) lie between the first word and
//! the head of a record, at offsets that are constants to the verifier. Conditions on durations and
//! results (`conditions`, `bpf/where.h`) are decided at the exit of a call. Its entry is sent from
//! the CPU of the entry, at the next switch, clock tick or exit, so that `lane` can still sort it;
//! undecided entries wait in `lane`. Call stacks are in `stacks`, events chosen by name in
//! `chosen`.
//!
//! **Longer recordings.** `chunks` and `drain/rotating.rs` divide a recording into complete traces.
//! `triggers` decides when a recording in memory is written: its conditions are evaluated at the
//! end of each batch of released events, since events of one CPU are in order and those of several
//! are not, and a thread may change its CPU within a call.
//!
//! `unsafe` is confined to `ring` and `trial`; BPF programs are C, which the kernel's verifier
//! checks.

mod bpf;
mod calls;
mod chosen;
mod chunks;
mod conditions;
mod contexts;
mod drain;
mod encoder;
mod end_mark;
mod error;
mod groups;
mod lane;
mod machine;
mod memory;
mod options;
mod output;
mod part;
mod plan;
mod privilege;
mod process_numbers;
mod raw;
mod recipe;
mod recorded;
mod recorder;
mod recorder_thread;
mod reserve;
mod ring;
mod schema;
mod shapes;
mod shared;
mod stacks;
mod state;
mod streams;
mod tasks;
mod thread_priority;
mod trial;
mod triggers;
mod uring;

pub use chosen::{ChosenEvents, EventSpec};
pub use chunks::{CHUNK, Rotation};
pub use conditions::{Bounds, Conditions, ThreadName};
pub use contexts::{Context, Counter, ThreadContext};
pub use end_mark::EndReason;
pub use error::RecordError;
pub use groups::{GROUPS, Group, USUAL};
pub use machine::clock_offset;
pub use options::Options;
pub use plan::Syscalls;
pub use privilege::is_in_user_namespace;
pub use privilege::missing as missing_privileges;
pub use process_numbers::Processes;
pub use recorded::NotRecorded;
pub use recorder::{Progress, Recording, RefusedEvent, Summary};
pub use stacks::{MOST_COPY, MOST_DEPTH, Stacks, vdso_image};
pub use triggers::{Condition, Held, MOST_CONDITIONS, Triggering, Watched};

use tracebraid_ctf::schema::TraceClass;

/// The schema of all recordings, without the properties of machine and clock.
pub fn trace_class() -> TraceClass {
    schema::schema(&calls::calls())
}
