//! Executions of tasks: where the time of each went, by calling context, across threads.
//!
//! In: the execution graph of a trace ([`tracebraid_graph::Graph`]), call stacks that were sampled, and periods
//! that are executions ([`tracebraid_periods::EndedPeriod`]). Out: for each execution its enhanced calling context tree (ECCT), as a sparse vector over the
//! [`Contexts`] of all of them. Promise: the times of an execution's contexts add up to its duration, to the nanosecond.
//!
//! After sections 3.1 and 3.3.2 of Doray and Dagenais, "Diagnosing performance variations by comparing multi-level
//! execution traces" (2016).
#![forbid(unsafe_code)]

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
mod groups;
mod metrics;
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

pub use build::{BuildError, BuildRules, Built, Finished, Sink, Union, build};
pub use compare::{Difference, SURE, Times, compare, ranked};
pub use condition::{Dimension, chosen, quantity, time_within};
pub use contexts::{ContextId, Contexts, Frame, FrameKind};
pub use counts::{CountAnalysis, CountLines, CountPartial, ExtraMetric, Quantities};
pub use delimit::{DelimitedAnalysis, DelimitedPartial, FunctionNames};
pub use ecct::{Builder, Ecct, Step};
pub use execution::{Execution, executions, with_threads};
pub use groups::{Apart, Group, Separation, group, separations, times, typical_and_slow};
pub use metrics::{Metric, all_metrics, metrics};
pub use names::{NameId, Names};
pub use sampled::Sampled;
pub use stacks::{StackId, Stacks, ThreadStacks};
pub use statistics::{Spread, Test, chance_of_more};
pub use texts::TextSeparation;
pub use values::{Named, Values, named};
