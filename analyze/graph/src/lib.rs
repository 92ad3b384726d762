//! The execution graph of kernel traces, and the critical path through it.
//!
//! In: event records of the scheduler, of interrupts, timers, block devices, the network and system calls, of one or
//! several machines. Out: a [`Graph`], in which each thread has a time line and each wait knows what ended it; and
//! for a thread and two times the critical path (`path`): what it did itself, and, while it waited, what whoever
//! it waited for did. Promise: the segments of a path follow each other from the first time to the second one,
//! without gaps; the graph is the same for every number of threads and every size of chunks.
//!
//! `docs/critical-path.md` defines each reason.
#![forbid(unsafe_code)]

mod calls;
mod cause;
mod cpu_follower;
mod cpu_stretch;
mod cuts;
mod dropping;
mod finish;
mod graph;
mod graph_events;
mod graph_machine;
mod graph_step;
mod growing;
mod handover;
mod hashed;
mod holders;
mod kept;
mod lacks;
mod names;
mod origin;
mod packets;
mod path;
mod reason;
mod report;
mod requests;
mod rings;
mod rules;
mod service;
mod sorted;
mod summary;
mod thread_life;
mod time_line;
mod tree;
mod works;

pub use calls::LongCall;
pub use cause::{ActorId, Interrupt, VECTORS, Wake};
pub use graph::{
    Actor, Graph, NO_OBJECT, Occupant, Occupied, Packet, Queue, Request, RingRequest, State, Stretch, Work,
};
pub use growing::{Growing, Question};
pub use handover::Passed;
pub use holders::Holders;
pub use kept::Kept;
pub use lacks::NO_SWITCHES;
pub use path::{Hop, Kind, Link, Path, Role, Segment};
pub use report::{Asked, PathReport, PathRow, SegmentRow};
pub use rules::{GraphOptions, GraphPartial, GraphRules};
pub use service::Served;
pub use summary::{Competitor, ReasonSum, Summary, ThreadSum};
use tracebraid_follow::PerCpu;
pub use tracebraid_threads::WaitReason;
pub use tree::{Node, Part};

/// The analysis that makes the graph.
pub type GraphAnalysis = PerCpu<GraphRules>;
