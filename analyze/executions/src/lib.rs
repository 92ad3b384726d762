//! Executions of tasks: where the time of each one went, by calling context, across threads.
//!
//! In: the execution graph of a trace ([`tracebraid_graph::Graph`]), sampled call stacks, and
//! periods that are executions ([`tracebraid_periods::EndedPeriod`]). Out: for each execution an
//! enhanced calling context tree (ECCT), as a sparse vector over the [`Contexts`] of all
//! executions; a database of executions ([`database`]); the differences between two groups of
//! executions. Promise: the times of an execution's contexts add up to its duration, to the
//! nanosecond; the numbers of executions and contexts do not depend on chunks or threads.
//!
//! **One pass** (`pass`) decodes each event record once and gives it to the analyses that want it:
//! the one that delimits executions (`delimit`: periods, calls, functions, spans, processes), the
//! graph, and `counts`. Streams are grouped by CPU, as the graph requires. Streams in which
//! executions only begin or end form groups of their own, because their records are sorted by time
//! later.
//!
//! **Executions are made while the trace is read** (`stream`), one part of the trace's time after
//! another. The executions that ended in a part are cut into batches. Once the state (`known`: the
//! graph, counts, stacks) reaches the end of the part, any thread can make a batch (`making`). A
//! batch numbers its contexts, names and threads locally (`made`). Batches go to the sink
//! ([`build`]) in the order in which executions ended. Only the translation of local into global
//! numbers is serial, so that contexts are numbered in one order; its cost grows with the number of
//! distinct contexts, not of executions. The sink may have batches encoded on any thread, too.
//!
//! **An execution is final a fixed time after its end.** Most executions are final earlier, because
//! no later state can change them. The others are tried again after the following parts. Time is
//! divided into intervals of at least that length (`grid`), which no part crosses. At the beginning
//! of the first interval after that time the remaining executions are made, before any later event
//! becomes known. State from before the beginning of the earliest execution that is open, or not
//! yet given to the sink, is dropped. All this is not part of the partial state: only the state of
//! all merged chunks has it, and executions that went to the sink do not come back.
//!
//! An earlier pass (`analyze/profile`) finds the stacks and skips all other events; the kernel's
//! trace is read again only if it contains many stacks. Names of functions are kept from run to run
//! (`analyze/symbols`).
//!
//! `condition`, `groups`, `texts`, `statistics` and `compare` are the queries of `tracebraid
//! compare` and of the web page's server.
//!
//! Sources: sections 3.1 and 3.3.2 of Doray and Dagenais, "Diagnosing performance variations by
//! comparing multi-level execution traces" (2016).
#![forbid(unsafe_code)]

#[cfg(test)]
mod bounds;
mod build;
mod compare;
mod condition;
mod contexts;
mod counts;
pub mod database;
mod delimit;
mod ecct;
mod execution;
pub mod gate;
mod grid;
mod groups;
mod known;
mod made;
mod making;
mod metrics;
mod multiple_testing;
mod names;
mod pass;
mod permutation;
mod sampled;
mod stacks;
mod statistics;
mod stream;
mod sums;
mod texts;
mod turns;
mod values;

pub use build::{BuildError, BuildRules, Built, Finished, Sink, SinkDone, SinkJob, Union, build};
pub use compare::{Difference, SURE, Times, compare, ranked, worth_showing};
pub use condition::{Dimension, chosen, quantity, time_within};
pub use contexts::{ContextId, Contexts, Frame, FrameKind};
pub use counts::{CountAnalysis, CountPartial, CountSeries, ExtraMetric, Quantities};
pub use delimit::{DelimitedAnalysis, DelimitedPartial, FunctionNames};
pub use ecct::{Builder, Ecct, ExecutionStep};
pub use execution::{Execution, executions, with_threads};
pub use groups::{Apart, Group, Separation, group, separations, times, typical_and_slow};
pub use made::{KindMade, Made};
pub use metrics::{Metric, all_metrics, metrics};
pub use names::{NameId, Names};
pub use sampled::Sampled;
pub use stacks::{StackId, Stacks, ThreadStacks};
pub use statistics::{Spread, Test, chance_of_more};
pub use texts::TextSeparation;
pub use values::{Named, Values, named};
