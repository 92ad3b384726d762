//! States of threads: who runs, what interrupts a CPU, who wakes whom, who ended a wait and why.
//!
//! In: event records of each CPU alone ([`ThreadActs`], [`CpuContext`]), and what CPUs must know of
//! each other in the order of time ([`ParkedThread`], [`WakerFacts`]). Out: for each thread
//! stretches of time with one activity each ([`PastStretch`]) and one list of reasons to wait
//! ([`WaitReason`]). Promise: all analyses that follow threads by [`ThreadCell`] agree on the
//! activity of a thread at any time, and on its cause.
//!
//! Everything that decides about a thread lies in its cell, in the losses of its trace and in the
//! facts of a wake-up, so that threads can be followed apart from each other. A change of state
//! returns the stretch that it ends; sums by call, or a time line, are up to the analysis. Slices
//! of time are played beside each other by [`SliceCell`], with what a [`ThreadDirectory`] has of
//! threads from before them, and agree with a plain pass.
//!
//! `docs/reference/waits.md` has the rules for reasons as a table.
#![forbid(unsafe_code)]

mod call_class;
mod cell_news;
mod cpu_activity;
mod cpu_context;
mod cpu_threads;
mod device_class;
mod early_wakes;
mod slice_cell;
mod task_events;
mod thread_acts;
mod thread_cell;
mod thread_directory;
mod wait_reason;
mod waker_facts;

pub use call_class::{CallClass, CallClasses};
pub use cell_news::CellNews;
pub use cpu_activity::{CpuActivity, Waker};
pub use cpu_context::{ContextStep, CpuContext, WakeSource};
pub use cpu_threads::CpuThreads;
pub use device_class::{DeviceClass, Handlers};
pub use slice_cell::{Arrival, ParkUse, SliceCell};
pub use task_events::{LeftAs, MigrateEvent, WakeEvent, exit_of};
pub use thread_acts::{BegunCall, ParkedThread, ThreadActs};
pub use thread_cell::{
    EndedCallOf, Parking, Past, PastStretch, ThreadCell, ThreadState, WakeEffect, Wakeup,
};
pub use thread_directory::{ThreadDirectory, ThreadFacts, ThreadMove, ThreadNews};
pub use wait_reason::WaitReason;
pub use waker_facts::{WakerFacts, WakingThread};
