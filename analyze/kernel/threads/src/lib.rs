//! States of threads: current threads, active interrupts, wakers, and why each wait ended.
//!
//! In: event records of each CPU alone ([`ThreadActs`], [`CpuContext`]), and the facts that CPUs
//! need from each other in time order ([`ParkedThread`], [`WakerFacts`]). Out: for each thread,
//! stretches of time with one activity each ([`PastStretch`]), and one list of wait reasons
//! ([`WaitReason`]). Promise: all analyses that follow threads with [`ThreadCell`] agree on the
//! activity of a thread at any time, and on its cause.
//!
//! The state of a thread depends only on its cell, on the losses of its trace and on the facts of a
//! wake-up, so threads can be followed independently. A change of state returns the stretch that it
//! ends; the analysis turns stretches into sums by call or a time line. Slices of time are played
//! in parallel by [`SliceCell`], with the facts about earlier threads from a [`ThreadDirectory`],
//! and agree with a plain pass.
//!
//! `docs/reference/waits.md` lists the rules for wait reasons in a table.
#![forbid(unsafe_code)]

mod call_class;
mod cell_news;
mod cpu_activity;
mod cpu_context;
mod cpu_threads;
mod device_calls;
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
pub use device_calls::DeviceCalls;
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
