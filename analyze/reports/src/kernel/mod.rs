//! What the reports on kernel traces share: their frame, which stream is which CPU, the time range,
//! and who the threads are.

mod by_call;
mod by_cpu;
mod calls;
mod extent;
mod frame;
mod hosts;
mod lane;
mod learn;
mod lists;
mod pairs;
mod people;
mod per_cpu;
mod runs;
mod selection;
mod sources;
mod table;
mod time;
mod together;

pub use extent::Extent;
pub use frame::{Event, Head, Input, KernelAnalysis, KernelReport, Packet};
pub use lists::Lists;
pub use people::{Host, Process, Thread};
pub use per_cpu::{PerCpu, Rules};
pub use selection::{CpuSet, Limits, ROWS, Selection, ThreadFilter, Window};
pub use sources::CpuKey;
pub use together::Together;

pub(crate) use by_call::ByCall;
pub(crate) use by_cpu::ByCpu;
pub(crate) use calls::{
    Beginning, CallEvent, CallItem, CallStep, CallStretch, EndedCall, Ending, Entered, Exited, OpenCall,
};
pub(crate) use hosts::hosts;
pub(crate) use lane::{Items, Lane};
pub(crate) use learn::{learn, learn_switch, taken_over};
pub(crate) use pairs::Pairs;
pub(crate) use people::{Known, People, ThreadKey};
pub(crate) use runs::{Ended, Runs, Stretch};
pub(crate) use selection::ChosenCalls;
pub(crate) use table::{KeyHasher, Table};
pub(crate) use time::{nanoseconds, share};
