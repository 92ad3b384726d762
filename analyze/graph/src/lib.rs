//! The execution graph of kernel traces, and the critical path through it.
//!
//! In: event records of the scheduler, of interrupts, timers, block devices, the network and system
//! calls, of one or several machines. Out: a [`Graph`], in which each thread has a time line and
//! each wait knows what ended it; for a thread and two times the critical path ([`Path`]): its own
//! work and, while it waited, the work of the thread that it waited for. Promise: the segments of a
//! path follow each other from the first time to the second one, without gaps (asserted, and tested
//! on random graphs); the graph is the same for every number of threads and every chunk size.
//!
//! **Making the graph.** Each CPU is followed alone (`cpu_follower`, `cpu_stretch`); items are
//! played in the order of time by `graph_machine`, which makes a time line for each thread
//! (`time_line`) from its state (`thread_life`, with the rules of `kernel/threads`). A stretch of a
//! time line is 24 bytes; a wait holds its cause, so that edges need no memory of their own.
//! Requests to disks (`requests`), segments that ended waits (`packets`), work of queues (`works`)
//! and requests to io_uring (`rings`) lie in lists beside the time lines. A thread id that is used
//! again is another thread (`holders`). Idle threads have no time line, but the thread that had a
//! CPU is kept, since it is the reason why others waited for that CPU. Windows only become smaller
//! along a path, so with a beginning of the window everything earlier is forgotten as the graph is
//! made; without one the graph grows with the trace.
//!
//! **In slices of time** (`slice`). A slice is played on any thread, without knowledge of what came
//! before it, with numbers of its own for threads, requests, segments and futexes. Composing
//! replays what depended on something unknown, finds the numbers in the graph, and notes for each
//! thread what is added to its time line (`later`). The time lines themselves grow at the end, for
//! all threads beside each other, or when a growing graph is asked. A thread that is created in a
//! slice is appended as a whole (`slice/born`). Numbers that depend on slices are replaced in the
//! end (`numbers`). Traces without all switches, and those with io_uring from its
//! first event on, are played item by item.
//!
//! **Paths** (`path`) are followed forwards: a wait is replaced by what the thread that ended it
//! did within the window of the wait. Path length is bounded; the cost depends on the length of the
//! path and on the logarithm of the size of the graph. Unlike the bounded algorithm, a path leaves
//! the time line of a kernel thread at the point where it was handed the work in question (`cuts`):
//! earlier it may have done other work, or waited for something else. On the recording with known
//! causes that is the difference between nine tenths and all of the time of slow disks. `handover`
//! finds paths of executions that end in another thread than they begin in; `service` divides the
//! time of a disk between the threads that it served.
//!
//! **Asking a graph while it grows** ([`Growing`]): it is composed up to a time, asked for paths,
//! and composed on. A path is final where each thread on it has since done something else; a
//! [`Question`] names what may still change. Data that no later path needs is dropped (`dropping`),
//! at about every doubling of the graph, so the time is proportional to what happens; places of
//! requests and segments stay valid (`kept`). Names arrive as items in the order of time, so the
//! graph of a time does not depend on the order in which chunks are read.
//!
//! `reason` gives each part of a path its [`WaitReason`], by the rules of `kernel/threads`;
//! `docs/reference/critical-path.md` defines each reason.
#![forbid(unsafe_code)]

#[cfg(test)]
mod bounds;
mod calls;
mod cause;
mod cpu_follower;
mod cpu_stretch;
mod cuts;
mod dropping;
mod finish;
mod futexes;
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
mod later;
mod names;
mod numbers;
mod origin;
mod packets;
mod path;
mod reason;
mod report;
mod requests;
mod rings;
mod rules;
mod service;
mod slice;
mod sorted;
mod summary;
mod thread_life;
mod time_line;
mod tree;
mod wakes;
mod works;

pub use calls::LongCall;
pub use cause::{ActorId, Interrupt, VECTORS, Wake};
pub use graph::{
    Actor, Graph, NO_OBJECT, Occupant, Occupied, Packet, Queue, Request, RingRequest, State,
    Stretch, Work,
};
pub use growing::{Growing, Question};
pub use handover::Passed;
pub use holders::Holders;
pub use kept::Kept;
pub use lacks::NO_SWITCHES;
pub use path::{Hop, Link, Path, Role, Segment, SegmentKind};
pub use report::{Asked, PathReport, PathRow, SegmentRow};
pub use rules::{GraphOptions, GraphPartial, GraphRules};
pub use service::Served;
pub use slice::{CutSlice, PlayedPart, RetiredSlices};
pub use summary::{Competitor, ReasonSum, Summary, ThreadSum};
use tracebraid_follow::PerCpu;
pub use tracebraid_threads::WaitReason;
pub use tree::{LargeParts, Node, Part};

/// The analysis that makes the graph.
pub type GraphAnalysis = PerCpu<GraphRules>;
