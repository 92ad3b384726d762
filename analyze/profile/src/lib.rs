//! Call stacks of a trace: which functions used the CPU, and which waited.
//!
//! In: a trace set with stacks. They come from `record/kernel` (`tracebraid_cpu_stack` and so on,
//! `tracebraid_map_load`, `tracebraid_kernel_symbol`), from programs that took their own stacks
//! with earlier versions (`tracebraid:cpu_stack`, `tracebraid:syscall_stack`, with modules as
//! LTTng-UST records them), or from an imported perf.data with call chains (`perf_callchain`,
//! `perf_mmap2`, `perf_build_id`). Out: a [`Profile`]: stacks by the names of their functions, how
//! often and how long each was met, and the same by function. Promise: a stack counts where its
//! sample was taken; frames that could not be unwound or named are never guessed.
//!
//! Each process is read by itself, in the order of time, since a module may be loaded where another
//! one was before. A mapped file that differs from the one that was recorded gives no names
//! (`mapped`). The events of stacks are found in one pass (`kinds`); they are kept while they are
//! few, else the trace is read again (`few`). One thread processes them in the order of time and
//! names their frames; its CPU time is counted as serial ([`Control::serially`]).
//!
//! [`Control::serially`]: tracebraid_engine::Control::serially
#![forbid(unsafe_code)]

mod addresses;
mod events;
mod few;
mod fields;
mod how;
mod kinds;
mod mapped;
mod nameless;
mod naming;
mod perf;
mod process;
mod profile;
mod quality;
mod samples;
mod system;

pub use addresses::{Addresses, Named};
pub use nameless::{MissingFiles, NamelessFile, NamelessFrames};
pub use profile::{Function, Met, Missing, Process, Profile, Stack, Sums};
pub use quality::{BrokenProcess, Completeness, Limits, Quality, Remedy, StackDefect};
pub use samples::{SampledStack, Samples};
