//! What analyses of kernel traces share: they follow each CPU alone, and play what CPUs must know of each other in the
//! order of time.
//!
//! In: a trace set, a [`Selection`] of what is asked for, and the [`Rules`] of an analysis. Out: typed [`Event`]s with their CPU and
//! time, for chunks of one CPU each; who the threads are ([`People`]); which calls begin and end ([`OpenCall`]). Promise: what is
//! made of [`Lane`]s and [`Items`] keeps the law of folding, whatever a chunk cannot know.
#![forbid(unsafe_code)]

mod by_call;
mod by_cpu;
mod call_slice;
mod calls;
mod candidates;
mod chosen_calls;
mod end_mark;
mod extent;
mod frame;
mod hosts;
mod interrupts;
mod lane;
mod learn;
mod losses;
mod open_call;
mod pair_slice;
mod pairs;
mod people;
mod per_cpu;
mod recorded;
mod runs;
mod seen_cpus;
mod selection;
mod sources;
mod subjects;
mod table;
mod time;
mod together;
mod trigger_events;
mod view;

pub use extent::Extent;
pub use frame::{Event, Head, Input, KernelAnalysis, KernelReport, Packet};
pub use people::{Host, Process, Thread};
pub use per_cpu::{PerCpu, Rules};
pub use selection::{CpuSet, Selection, ThreadFilter, Window};
pub use sources::CpuKey;
pub use together::Together;
pub use view::{Limits, NoOptions, ROWS, Ranges, View, Views};

pub use by_call::ByCall;
pub use by_cpu::ByCpu;
pub use call_slice::{CallSlice, OpenCalls, ThreadCall};
pub use calls::{Beginning, CallEvent, CallItem, CallStep, CallStretch, EndedCall, Ending, Entered, Exited};
pub use candidates::{Candidate, Candidates};
pub use chosen_calls::{CallNames, ChosenCalls};
pub use end_mark::{TraceEnd, Unended, unended};
pub use hosts::{hosts, paths_apart};
pub use interrupts::{Innermost, Interrupt, InterruptStep, Interrupts, TimerKind, VECTORS};
pub use lane::{Items, Lane};
pub use learn::{learn, learn_named_switch, learn_switch, taken_over};
pub use losses::Losses;
pub use open_call::{OpenCall, WholeCall};
pub use pair_slice::PairSlice;
pub use pairs::Pairs;
pub use people::{Known, People, ThreadKey};
pub use recorded::{NotRecorded, Recorded, Sight, WakeTells, not_recorded, ranges};
pub use runs::{Ended, Runs, Stretch};
pub use seen_cpus::seen_cpus;
pub use subjects::{Packets, Subjects};
pub use table::{KeyHasher, Table};
pub use time::{nanoseconds, share};
pub use trigger_events::TriggerEvent;
