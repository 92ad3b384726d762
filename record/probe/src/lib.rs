//! The user-space tracer: typed probes in a program become event records in CTF streams.
//!
//! **In**: probes (the C header `tracebraid/probe.h`, the macro [`probe!`]) and the session's
//! directory in the environment variable `TRACEBRAID_SESSION`, with its options in `probe.conf`
//! (`src/config.rs`). **Out**: a CTF 1.8 trace of each process in `ust/pid/NAME-PID-DATETIME/`
//! below it, named as LTTng does. [`control`] switches event classes on and off from another
//! process; [`finish`] completes the files after the program has ended, however it ended.
//!
//! # Promise
//! - Without a session a probe is a load of a byte and a branch, and the library has no other
//!   effect.
//! - An enabled probe takes no lock and makes no system call, except when a packet is full or the
//!   probe was interrupted while it reserved a record. It may be interrupted anywhere by a signal
//!   handler that traces, jumps away (`siglongjmp`), switches to another user-level thread or
//!   forks. The library never calls the program's `malloc`.
//! - However and whenever the process is killed, the files of the modes *grow* and *discard* are a
//!   valid trace with every event record that was written; those of mode *ring* become a trace by
//!   [`finish`].
//! - Lost events are counted exactly, in `events_discarded` of the stream that lost them.
//! - Failures (a full disk, no permission, limits) disable tracing or lose events; they never stop
//!   the program.
//!
//! # How
//! **Buffers** (`src/thread.rs`) belong to one thread at a time and are mapped from files. *The
//! open packet extends to the end of its file*; the bytes after its content are padding. The next
//! packet is opened by writing its head into that padding and then shrinking its predecessor, by
//! one store (`src/packet.rs`). So a file has its final length from the beginning, including its
//! disk blocks (a full disk is detected when the file is created), and is valid after each single
//! store. Files are renamed to their final names when their first packet is complete; the mode
//! *grow* continues in another file of the same stream. No file is ever lengthened, because the
//! length of a file and the size in its last packet cannot change together.
//!
//! **Reservation** (`src/restart.rs`): after the packet's content a record gets the time and the
//! head of the class `tracebraid:unfinished`, which contains the record's length; one store of the
//! new length of the content *publishes* the record. If a thread is interrupted before that store,
//! the kernel aborts the sequence (rseq), and the slow path starts again. So records are in the
//! order of time, and the published part never has holes. **Commit** is one store: the class's id
//! replaces that of `unfinished`. The protocol needs no nesting depth, no recovery after a handler
//! that never returns, and no check of the thread that commits. A record that was abandoned, or cut
//! short by SIGKILL, stays `tracebraid:unfinished`.
//!
//! **Without restartable sequences** (an old C library, other processors; `src/reserve.rs`) the
//! word `state` of a thread contains the begin and the end of its last record. One compare-exchange
//! (without a lock prefix, since only signal handlers of the same thread compete) reserves memory
//! after that record, with a time taken immediately before, so that records are in the order of
//! time. The memory gets the head of `tracebraid:unfinished` and is then published by the packet's
//! `content_size`. Code that runs between a reservation and its publishing publishes the
//! interrupted record first ("helps"), so the published part never has holes.
//!
//! **fork**: all private state of buffers is in pages that the kernel wipes in a child
//! (`MADV_WIPEONFORK`), whatever call creates the child. A wiped thread finds no room, and the slow
//! path then begins a separate trace for the child. No process id is compared, and children of
//! `vfork` and `posix_spawn`, which share the memory, cost nothing. The mapped files themselves are
//! *not* hidden from the child (`MADV_DONTFORK`), because a child forked in the middle of a probe
//! still finishes that probe: a handler of `pthread_atfork` maps private memory at that address
//! (`src/fork.rs`).
//!
//! **Users**: a forked child that gives up root creates its trace as its new user
//! (`src/parents.rs`). A process that gives up root, and may no longer write to its trace, leaves
//! it and begins another trace; if it cannot, its events are counted as lost in the trace of the
//! process from which it was forked.
//!
//! **Time** (`src/clock.rs`) is CLOCK_MONOTONIC in nanoseconds, derived from the cycle counter if
//! the kernel itself trusts the counter, so that it agrees with the time of kernel tracers.
//!
//! **Rings** are files with a leading dot, which readers of CTF ignore, until [`finish`] writes
//! their packets in order. A packet with an unfinished record is not overwritten, since its writer
//! may return.
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

/// True if the environment named a session when this library was loaded.
#[doc(hidden)]
pub fn has_session() -> bool {
    kept::SESSION.value().is_some()
}

#[doc(hidden)]
pub use process::has_ended;
#[doc(hidden)]
pub use site::{Description, Field, Record, Site};
