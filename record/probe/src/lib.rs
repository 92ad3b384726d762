//! The user-space tracer: typed probes in a program become event records in CTF streams.
//!
//! **In**: probes (the C header `tracebraid/probe.h`, the macro [`probe!`]) and the session's
//! directory in the environment variable `TRACEBRAID_SESSION`, with its options in `probe.conf`
//! (`src/config.rs`). **Out**: a CTF 1.8 trace per process in `ust/pid/NAME-PID-DATETIME/` below it, as
//! LTTng names them. [`control`] switches event classes on and off from another process,
//! [`finish`] puts the files in their last shape when the program has ended, however it ended.
//!
//! # What it promises
//! - Without a session a probe is a load of a byte and a branch, and nothing else ever happens.
//! - An enabled probe takes no lock and makes no system call, except when a packet is full or the probe was
//!   interrupted while it took room. It may be
//!   interrupted anywhere by a signal handler that traces, jumps away (`siglongjmp`), switches
//!   to another user-level thread or forks. Nothing here calls `malloc` of the host.
//! - Whatever kills the process at whatever moment, the files of the modes *grow* and *discard* are a valid
//!   trace with every event record that was written; those of mode *ring* become one by [`finish`].
//! - What is lost is counted exactly, in `events_discarded` of the stream that lost it.
//! - Failures (a full disk, no permission, limits) switch tracing off or lose events; they never
//!   stop the program.
//!
//! # How
//! **Buffers** (`src/thread.rs`) belong to one thread at a time and are mapped from files. *The open packet spans
//! to the end of its file*, whatever lies behind its content being padding. Opening the next one is to write its
//! head into that padding and then to shrink the packet before, by one store (`src/packet.rs`): a file has its final
//! length from the beginning, blocks and all (a full disk is found when it is made), and is valid after each
//! single store. Files get their names when their first packet is complete; modes that grow go on in
//! another file of the same stream. This is why no file is ever lengthened (the design had
//! asked for that): a file that grows and the size in its last packet cannot change together.
//!
//! **Reservation** (`src/restart.rs`): a record gets the head of a record of the class `tracebraid:unfinished`, which
//! carries its length, and the time, behind the packet's content; one store of the content's new length *publishes*
//! it. The kernel takes a thread that is interrupted before that store out of the sequence (rseq), and the slow path
//! begins anew. So records lie in the order of time and the published part never has holes.
//! **Commit** is one store: the true class's id over that of
//! `unfinished`. So there is no depth to be counted, nothing to be recovered when a handler never comes back,
//! and no need to know which thread commits. A record that was abandoned, or cut short by SIGKILL,
//! stays as `tracebraid:unfinished` and tells of itself.
//!
//! **Where there are no such sequences** (an old C library, other processors; `src/reserve.rs`) the word `state` of a thread holds where its last record begins and ends; one
//! compare-exchange (without a lock prefix: only signal handlers of the same thread compete) takes room
//! behind it, with the time taken just before, so that records lie in the order of time. The reserved room
//! gets the head of a record of the class `tracebraid:unfinished`, which carries its length, and is
//! *published then*, by the packet's `content_size`. Whoever comes between the reservation and its
//! publishing does the latter for the interrupted one ("helps"), so the published part never has holes.
//!
//! **fork**: everything that a thread and the process know of their buffers lies in pages that the kernel wipes in
//! a child (`MADV_WIPEONFORK`), by whatever call it was made; a wiped thread finds no room, and the slow path
//! then begins a trace of the child's own. No process id is compared, and children of `vfork` and `posix_spawn`, which
//! share the memory, cost nothing. The mapped files themselves are *not* kept from the child
//! (`MADV_DONTFORK`), because a child forked in the middle of a probe still finishes that probe: a handler of
//! `pthread_atfork` puts private memory at that address (`src/fork.rs`).
//!
//! **Users**: a forked child that gives up root makes its trace as the user that it has become (`src/parents.rs`); a process
//! that gives up root, and may not write into its trace any more, leaves it and begins another one. One that cannot
//! has its events counted as lost where it was forked.
//!
//! **Time** (`src/clock.rs`) is CLOCK_MONOTONIC in nanoseconds, by the cycle counter where the kernel itself
//! trusts that: any reader shows right times, beside those of kernel tracers.
//!
//! **Rings** live in files with a leading dot, which readers of CTF pass over, until [`finish`] writes their packets
//! in order. A packet with an unfinished record is not overwritten, since its writer may come back.
//!
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
mod word;

/// Nothing is recorded in this process and its children, whatever the environment said when this library was loaded.
#[doc(hidden)]
pub fn forget_session() {
    kept::SESSION.forget();
}

#[doc(hidden)]
pub use process::has_ended;
#[doc(hidden)]
pub use site::{Description, Field, Record, Site};
