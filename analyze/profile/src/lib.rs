//! Call stacks of a trace: the functions that used the CPU, and those that waited.
//!
//! In: a trace set with stacks. They come from `record/kernel` (`tracebraid_cpu_stack` and so on,
//! `tracebraid_map_load`, `tracebraid_kernel_symbol`), from programs that took their own stacks
//! with earlier versions (`tracebraid:cpu_stack`, `tracebraid:syscall_stack`, with modules as
//! LTTng-UST records them), from an imported perf.data with call chains (`perf_callchain`,
//! `perf_mmap2`, `perf_build_id`), or from an execution trace of Go (`go:stack_frames` and so on). Out: a [`Profile`]: count and duration of each distinct stack
//! and of each function. Promise: a stack counts where its sample was taken; frames that could not
//! be unwound or named are never guessed.
//!
//! Each process is read separately in the order of time, because modules may be loaded at addresses
//! that other modules occupied earlier. A mapped file that differs from the recorded file gives no
//! names (`mapped`). One pass finds the events (`kinds`); they are buffered while they are few,
//! else the trace is read again (`few`). One thread processes them in the order of time and names
//! their frames; its CPU time is counted as serial ([`Control::serially`]).
//!
//! [`Control::serially`]: tracebraid_engine::Control::serially
#![forbid(unsafe_code)]

mod addresses;
mod events;
mod few;
mod fields;
mod go_stacks;
mod how;
mod kinds;
mod mapped;
mod nameless;
mod naming;
mod own;
mod perf;
mod process;
mod profile;
mod quality;
mod samples;
mod system;

/// End of the names of kernel functions.
pub const KERNEL_SUFFIX: &str = "_[k]";

pub use addresses::{Addresses, Named};
pub use nameless::{MissingFiles, NamelessFile, NamelessFrames};
pub use profile::{Function, Met, Missing, Process, Profile, Stack, Sums};
pub use quality::{BrokenProcess, Completeness, Limits, Quality, Remedy, StackDefect};
pub use samples::{SampledStack, Samples};
