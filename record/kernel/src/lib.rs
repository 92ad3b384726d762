//! Records what the kernel does, by eBPF, as one CTF trace.
//!
//! In goes a choice of events ([`Options`]); out comes a trace directory which is laid out, named and
//! described as lttng-modules 2.13 would have done it, so that whatever reads those traces reads this one.
//!
//! Promises:
//! - Each CPU has a ring between the kernel and this process. What finds no room there is counted, CPU by CPU,
//!   and told of where it happened, as discarded events.
//! - Events of a CPU are in the order of time.
//! - The kernel needs BTF and tracepoints, and this process CAP_BPF and CAP_PERFMON; no module, no daemon.
//! - The trace can be read whenever a packet has been written, and is whole when the recording has been stopped.
//!
//! How: `bpf/` has a program for each tracepoint, whose records have the layout of the events that they
//! become (`events.tsdl`), but for text. System calls are decoded here, by the table `calls.txt`. A thread empties
//! the rings every few milliseconds: waking it up would cost more than everything else.

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

/// The schema of all recordings, but for what each says of its machine and its clock.
pub fn trace_class() -> TraceClass {
    schema::schema(&calls::calls())
}
