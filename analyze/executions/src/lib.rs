//! Executions of tasks: where the time of each went, by calling context, across threads.
//!
//! In: the execution graph of a trace ([`tracebraid_graph::Graph`]), sampled call stacks, and
//! periods that are executions ([`tracebraid_periods::EndedPeriod`]). Out: for each execution its
//! enhanced calling context tree (ECCT), as a sparse vector over the [`Contexts`] of all of them; a
//! database of them ([`database`]); the differences of two groups of them. Promise: the times of an
//! execution's contexts add up to its duration, to the nanosecond; executions and contexts have the
//! same numbers however the trace is read.
//!
//! **One pass** (`pass`) decodes each event record once and gives it to the analyses that want it:
//! the one that delimits executions (`delimit`: periods, calls, functions, spans, processes), the
//! graph, and `counts`. Streams are grouped by CPU, as the graph wants them; streams in which
//! executions only begin or end are groups of their own, since their records are put in the order
//! of time later.
//!
//! **Executions are made while the trace is read** (`stream`), one part of its time after the
//! other. What ended in a part is cut into batches. Once what is known (`known`: the graph, what
//! was counted, stacks) reaches to the end of the part, they are made on any thread (`making`), by
//! numbers of their own for contexts, names and threads (`made`), and go to the sink ([`build`]) in
//! the order in which executions ended. What is done one after the other is to find out what these
//! numbers stand for, so contexts get theirs in one order; that takes time for different contexts,
//! not for executions. The sink has batches encoded on any thread, too.
//!
//! **An execution is what is known of it a time behind its end.** Most are known for good before:
//! what is made of them is the same in every later state. Those that are not are tried again after
//! the next parts. Time is divided into intervals as long (`grid`), which no part crosses: at the
//! beginning of the first interval behind that time, what is left is made, before anything later
//! becomes known. What ended before the first execution begins that is open, or
//! not given to the sink, is dropped. This state is no part of the partial state: only the state of
//! all that was merged has it, and executions that went to the sink do not come back.
//!
//! Stacks are found in an earlier pass (`analyze/profile`), which passes over all other events; the
//! kernel's trace is read once more only if it has many of them. Names of functions are kept from
//! run to run (`analyze/symbols`).
//!
//! `condition`, `groups`, `texts`, `statistics` and `compare` are the queries of `tracebraid
//! compare` and of the web page's server.
//!
//! After sections 3.1 and 3.3.2 of Doray and Dagenais, "Diagnosing performance variations by
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
