//! States of threads: who runs, what interrupts a CPU, who wakes whom, who ended a wait and why.
//!
//! In: what analyses read of event records, each CPU alone ([`ThreadActs`], [`CpuContext`]), and what CPUs must know of each other
//! in the order of time ([`ParkedThread`], [`WakerFacts`]). Out: stretches of time in which a thread does the same
//! ([`PastStretch`]), with one list of reasons ([`WaitReason`]). Promise: an analysis that follows threads by [`ThreadCell`]
//! agrees with all others on what each thread did when, and why. Slices of time are played beside each other by [`SliceCell`],
//! with what a [`ThreadDirectory`] has of threads from before them, and agree with a plain pass.
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
pub use thread_cell::{EndedCallOf, Parking, Past, PastStretch, ThreadCell, ThreadState, WakeEffect, Wakeup};
pub use thread_directory::{ThreadDirectory, ThreadFacts, ThreadMove, ThreadNews};
pub use wait_reason::WaitReason;
pub use waker_facts::{WakerFacts, WakingThread};
