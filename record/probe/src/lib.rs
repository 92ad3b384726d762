//! The user-space tracer: typed probes in a program become event records in CTF streams.
//!
//! **In**: probes (the C header `tracebraid/probe.h`, the macro [`probe!`]) and the session's
//! directory in the environment variable `TRACEBRAID_SESSION`, with its options in `probe.conf`
//! (`src/config.rs`). **Out**: a CTF 1.8 trace of each process in `ust/pid/NAME-PID-DATETIME/`
//! below it, named as LTTng does. [`control`] switches event classes on and off from another
//! process; [`finish`] completes the files after the program has ended, however it ended.
//!
//! # Promise
//! - Without a session a probe is a load of a byte and a branch, and nothing else ever happens.
//! - An enabled probe takes no lock and makes no system call, except when a packet is full or the
//!   probe was interrupted while it took room. It may be interrupted anywhere by a signal handler
//!   that traces, jumps away (`siglongjmp`), switches to another user-level thread or forks.
//!   Nothing here calls `malloc` of the host.
//! - Whatever kills the process at whatever moment, the files of the modes *grow* and *discard* are
//!   a valid trace with every event record that was written; those of mode *ring* become one by
//!   [`finish`].
//! - Lost events are counted exactly, in `events_discarded` of the stream that lost them.
//! - Failures (a full disk, no permission, limits) switch tracing off or lose events; they never
//!   stop the program.
//!
//! # How
//! **Buffers** (`src/thread.rs`) belong to one thread at a time and are mapped from files. *The
//! open packet extends to the end of its file*; whatever follows its content is padding. The next
//! packet is opened by writing its head into that padding and then shrinking the packet before it,
//! by one store (`src/packet.rs`). So a file has its final length from the beginning, blocks
//! included (a full disk is found when the file is made), and is valid after each single store.
//! Files get their names when their first packet is complete; modes that grow continue in another
//! file of the same stream. No file is ever lengthened, because the length of a file and the size
//! in its last packet cannot change together.
//!
//! **Reservation** (`src/restart.rs`): after the packet's content a record gets the time and the
//! head of the class `tracebraid:unfinished`, which carries its length; one store of the new length
//! of the content *publishes* it. If a thread is interrupted before that store, the kernel takes it
//! out of the sequence (rseq), and the slow path begins anew. So records are in the order of time
//! and the published part never has holes. **Commit** is one store: the true class's id over that
//! of `unfinished`. There is no depth to count, nothing to recover when a handler never comes back,
//! and no need to know which thread commits. A record that was abandoned, or cut short by SIGKILL,
//! stays `tracebraid:unfinished`.
//!
//! **Without such sequences** (an old C library, other processors; `src/reserve.rs`) the word
//! `state` of a thread holds the begin and the end of its last record. One compare-exchange
//! (without a lock prefix, since only signal handlers of the same thread compete) takes room after
//! it, with the time taken just before, so that records are in the order of time. The room gets the
//! head of `tracebraid:unfinished` and is then published by the packet's `content_size`. Code that
//! runs between a reservation and its publishing publishes for the interrupted record ("helps"), so
//! the published part never has holes.
//!
//! **fork**: all state that a thread and the process have of their buffers lies in pages that the
//! kernel wipes in a child (`MADV_WIPEONFORK`), whatever call made it. A wiped thread finds no
//! room, and the slow path then begins a trace of the child's own. No process id is compared, and
//! children of `vfork` and `posix_spawn`, which share the memory, cost nothing. The mapped files
//! themselves are *not* kept from the child (`MADV_DONTFORK`), because a child forked in the middle
//! of a probe still finishes that probe: a handler of `pthread_atfork` puts private memory at that
//! address (`src/fork.rs`).
//!
//! **Users**: a forked child that gives up root makes its trace as its new user (`src/parents.rs`).
//! A process that gives up root, and may no longer write into its trace, leaves it and begins
//! another one; if it cannot, its events are counted as lost where it was forked.
//!
//! **Time** (`src/clock.rs`) is CLOCK_MONOTONIC in nanoseconds, by the cycle counter where the
//! kernel itself trusts that, so that it agrees with the time of kernel tracers.
//!
//! **Rings** are files with a leading dot, which readers of CTF ignore, until [`finish`] writes
//! their packets in order. A packet with an unfinished record is not overwritten, since its writer
//! may come back.
#![cfg(target_os = "linux")]

mod class;
mod clock;
mod config;
pub mod control;
mod description;
#[cfg_attr(not(target_arch = "x86_64"), path = "fast/without.rs")]
mod fast;
pub mod finish;
mod fork;
pub mod functions;
mod glob;
mod guarded;
mod kept;
mod packet;
pub mod parents;
mod reserve;
#[cfg_attr(not(target_arch = "x86_64"), path = "restart/without.rs")]
mod restart;
pub mod site;
pub mod standard;
mod thread;
mod thread_state;

mod capi;
mod correlation;
mod emit;
mod futex;
mod metadata;
mod process;
mod segment;
mod sys;
mod text;
mod tls;
mod trace_directory;
mod word;

/// Disables recording in this process and its children, even if the environment named a session
/// when this library was loaded.
#[doc(hidden)]
pub fn forget_session() {
    kept::SESSION.forget();
}

#[doc(hidden)]
pub use process::has_ended;
#[doc(hidden)]
pub use site::{Description, Field, Record, Site};
