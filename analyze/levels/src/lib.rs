//! The merge of kernel scheduling and user-level scheduling: a *super-trace*, in which every event
//! record has its user-level thread, its LWP and its CPU.
//!
//! In: a trace set with a kernel trace and traces of user programs whose runtimes record the steps
//! of user-level scheduling (`vocabulary`). Out: a CTF trace on disk with one stream per CPU
//! ([`merge`]), and a summary of all records and traces that were moved or left out ([`Merged`]). Promise: every
//! event record of the input is in the super-trace once, or counted as left out; no record of a
//! user program lies outside the intervals in which its thread ran; the super-trace is the same,
//! byte for byte, for every number of threads and every chunk size.
//!
//! **User-level threads become threads.** The steps of a runtime are also written as the kernel's
//! own events (a switch, a wake-up, a fork, an exit), about threads with ids beyond those of Linux.
//! All analyses then show user-level threads without knowing of them. The alternative, a second
//! kind of thread in each analysis, was rejected: eleven analyses would have to learn about it.
//! docs/reference/super-trace.md describes the format.
//!
//! **Two passes.** The time is cut into windows that depend only on the packets of the traces
//! ([`slice_times`](tracebraid_engine::slice_times)). The first pass (`survey`) reads switches of
//! both levels and yields the state at the beginning of each window (`states`). The second pass
//! (`merge`) holds one window in memory (`window`), places the user records on the CPUs (`place`,
//! `intervals`), replays the steps of user-level scheduling in the order of time (`replay`) and
//! encodes the streams (`encode`). Windows are independent of each other. Only the place of a
//! window in the files is decided in order; any thread then writes it there. So one thread never
//! waits for another, and the serial share does not grow with the trace.
//!
//! **Hundreds of thousands of threads.** Most user-level threads are short-lived: hash maps by
//! thread and window took 28 % of the merge of 327,670 threads. The survey appends facts to lists
//! instead (`ult_facts`), with a paged index by id (`by_number`). The lists of all workers are
//! joined into shards of user-level threads in parallel (`ults`, `course`).
//!
//! **Why windows and not chunks**: packets of the output end where windows end, so windows must not
//! depend on options. Why not one pass: a window would have to leave its initial state open, and
//! with it the thread ids in most of its records.
//!
//! **Bytes are copied.** If no field of an event class depends on its position, a record is copied
//! as bytes, in which only thread ids and names are replaced. Otherwise it is written field by
//! field (`catalogue` decides, `encode` copies).
//!
//! [`exported`] reads a super-trace again, for the formats of other tools.
#![forbid(unsafe_code)]

mod by_number;
mod catalogue;
mod changed_fields;
mod course;
mod derived_classes;
mod encode;
pub mod exported;
mod intake;
mod intervals;
mod joined_classes;
mod late_blocks;
mod lwp_changes;
mod merge;
mod names;
mod place;
mod recent;
mod replay;
mod run;
mod slabs;
mod sources;
mod states;
mod summary;
mod survey;
mod ult_facts;
mod ults;
mod vocabulary;
mod window;
mod words;

pub use replay::ViolationKind;
pub use run::{MergeError, Options, merge};
pub use sources::is_super_trace;
pub use summary::{Counts, Merged};
