//! Following kernel traces: each CPU alone, and the facts that CPUs need from each other in time
//! order.
//!
//! In: a trace set, a [`Selection`] (time, CPUs, threads), and the [`Rules`] of an analysis. Out:
//! an [`Analysis`](tracebraid_engine::Analysis) ([`PerCpu`]) whose rules receive typed [`Event`]s
//! with their CPU and time. Promise: rules that build on [`Lane`]s, [`Items`], [`CallSlice`]s and
//! [`PairSlice`]s keep the law of folding.
//!
//! **Each CPU alone.** Most events on a CPU concern only the thread that runs there, from one
//! switch to the next: a *stretch*. A call that begins and ends in the same stretch is paired there
//! ([`CallStretch`]), with one slot and no lookup. A call that a stretch leaves open or ends, and
//! any event that names a thread that may be elsewhere (wake-ups, forks, requests), becomes an item
//! of a few bytes. Reports whose figures never leave a CPU, such as `memory` and `irq`, have no
//! items.
//!
//! **The beginning of a chunk.** Steps before the first boundary of a CPU wait ([`Lane`]) until the
//! chunk is joined to the previous chunk of that CPU. The running thread is learned from the
//! switches of its CPU, from its losses and from the contexts of its events, never from other CPUs:
//! otherwise the report would depend on the order in which chunks are joined.
//!
//! **Time order.** Items of all CPUs are played once all chunks before the watermark have been
//! merged: in parallel slices (`Rules::slices`; [`CallSlice`] and [`PairSlice`] are the parts that
//! analyses share), or one after the other (`Rules::settle`).
//!
//! Analyses also share:
//!
//! - `frame`: [`Input`] selects the streams and event classes to read and makes the [`Head`] of a
//!   report. [`KernelAnalysis`] and [`KernelReport`] let the program run and show any report.
//! - [`Together`]: several analyses in one pass; each event is looked up once.
//! - [`Interrupts`]: the single rule that attributes an event to the thread on a CPU, or to the
//!   activity that interrupts it. `kernel/threads` builds on it, and SQL uses it.
//! - [`Recorded`]: the CPUs that were recorded, and their times.
//! - [`People`] (names and processes of threads), [`OpenCall`] (calls that span several stretches),
//!   [`Runs`] (the threads that ran on a CPU, with times), [`Candidates`] (event records of any
//!   class, kept with the values that user-defined conditions name).
//! - [`TraceEnd`]: distinguishes a trace that its recorder ended from a trace whose recorder was
//!   killed.
//!
//! Damage within a packet is a loss of events from the time of the last event record that could be
//! decoded (`Rules::cut`).
//!
//! Values that exist for each event ([`Event`], the scanner's cursors) are passed by reference or
//! in registers. Copying 16 bytes of a value whose parts were just written makes the processor wait
//! for those parts, which had taken up to a tenth of a report's time.
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
mod named_cpus;
mod not_recorded;
mod number_index;
mod open_call;
mod pair_slice;
mod pairs;
mod people;
mod per_cpu;
mod recorded;
mod runs;
mod seen_cpus;
mod selection;
mod sight;
mod sources;
mod subjects;
mod table;
mod thread_index;
mod time;
mod together;
mod trigger_events;
mod view;

pub use extent::{Extent, GuessedEnd};
pub use frame::{Event, Head, Input, KernelAnalysis, KernelReport, Packet};
pub use people::{Host, Process, Thread};
pub use per_cpu::{PerCpu, Rules};
pub use selection::{CpuSet, Selection, ThreadFilter, Window};
pub use sources::CpuKey;
pub use together::Together;
pub use view::{Buckets, By, Groupings, Limits, NoOptions, ROWS, Ranges, View, Views};

pub use by_call::ByCall;
pub use by_cpu::ByCpu;
pub use call_slice::{CallSlice, OpenCalls, ThreadCall};
pub use calls::{
    Beginning, CallEvent, CallItem, CallStep, CallStretch, EndedCall, Ending, Entered, Exited,
};
pub use candidates::{Candidate, Candidates};
pub use chosen_calls::{CallNames, ChosenCalls};
pub use end_mark::{TraceEnd, Unended, unended};
pub use hosts::{hosts, paths_apart};
pub use interrupts::{Innermost, Interrupt, InterruptStep, Interrupts, TimerKind, VECTORS};
pub use lane::{Items, Lane};
pub use learn::{learn, learn_named_switch, learn_switch, taken_over};
pub use losses::Losses;
pub use not_recorded::{NotRecorded, not_recorded, ranges};
pub use number_index::NumberIndex;
pub use open_call::{LaterCalls, OpenCall, WholeCall};
pub use pair_slice::PairSlice;
pub use pairs::Pairs;
pub use people::{Known, People, ThreadKey};
pub use recorded::Recorded;
pub use runs::{Ended, Runs, Stretch};
pub use seen_cpus::seen_cpus;
pub use sight::{Sight, WakeTells};
pub use subjects::{Packets, Subjects};
pub use table::{KeyHasher, Table};
pub use time::{nanoseconds, share};
pub use trigger_events::TriggerEvent;
