//! Call stacks of a program that knows nothing of it: `libtracebraid_stacks.so`, to be preloaded.
//!
//! **In**: `LD_PRELOAD`, the session's directory in `TRACEBRAID_SESSION`, options in `TRACEBRAID_STACKS`
//! ([`options`]). **Out**: events `tracebraid:cpu_stack`, one for each period of CPU time that a thread has used, and
//! `tracebraid:syscall_stack`, one for each time that it was off the CPU in a system call or a page fault for
//! longer than a threshold, in the trace of the process that `tracebraid_probe` writes; with them the
//! modules and their build ids, so that addresses can be turned into symbols later (see `record.rs` for all fields).
//!
//! # What it promises
//! - A system call that does not block costs nothing: nothing is attached to system calls.
//! - No system call is interrupted: signals come when it has its result. (What remains is in
//!   `docs/recording-stacks.md`.)
//! - All threads, those to come too, forked children, and programs that they become.
//! - The program's own handlers, of SIGTRAP too, go on to work. Nothing of ours ends it; nothing speaks to its user, but for one line
//!   where the session's directory is not there or may not be written to, and one where options are not understood.
//! - When the recording is over, no more signals come.
//! - Handlers allocate nothing, take no lock, and need no more of the thread's stack than the kernel itself.
//!
//! # How
//! `perf` asks the kernel for signals; `handler` is what they call. [`unwind`] walks the stack by rules of one
//! word each (`rule`), which all threads share (`cache`) and which are made from the unwind tables
//! (`cfi`) of the loader's modules (`modules`). `record` names the events; `chain` is the way of the
//! program's own signals.
//!
//! **Why no library unwinds**: framehop cannot follow frames whose CFA is an expression (signal handlers, functions that
//! realign the stack), libunwind takes locks; both are slower. gimli parses what the tables point to.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod cache;
mod cfi;
mod chain;
mod elf;
mod exec;
mod expression;
mod ground;
mod handler;
mod local;
#[doc(hidden)]
pub mod measure;
mod memory;
mod modules;
pub mod options;
mod perf;
mod process;
mod record;
mod register;
mod rule;
mod sys;
pub mod unwind;

pub use handler::KERNEL_WAIT;
