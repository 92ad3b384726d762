//! The execution graph of kernel traces, and the critical path through it.
//!
//! In: event records of the scheduler, of interrupts, timers, block devices, the network and system
//! calls, of one or several machines. Out: a [`Graph`], in which each thread has a time line and
//! each wait refers to its cause; for a thread and two times the critical path ([`Path`]): its own
//! work and, while it waited, the work of the thread that it waited for. Promise: the segments of a
//! path follow each other from the first time to the second, without gaps (asserted, and tested on
//! random graphs); the graph is the same for every number of threads and every chunk size.
//!
//! **Making the graph.** Each CPU is followed alone (`cpu_follower`, `cpu_stretch`); items are
//! played in the order of time by `graph_machine`, which makes a time line for each thread
//! (`time_line`) from its state (`thread_life`, with the rules of `kernel/threads`). A stretch of a
//! time line is 24 bytes; a wait holds its cause, so edges need no memory of their own. Requests to
//! disks (`requests`), segments that ended waits (`packets`), work of queues (`works`) and requests
//! to io_uring (`rings`) lie in lists beside the time lines. A reused thread id stands for another
//! thread (`holders`). Idle threads have no time line, but the thread that had a CPU is kept, since
//! it is the reason why others waited for that CPU. Windows only shrink along a path, so if paths
//! begin at a given time or later, earlier parts of the graph are dropped while it is made;
//! otherwise the graph grows with the trace.
//!
//! **In slices of time** (`slice`). A slice is played on any thread, without the state that
//! precedes it, with its own numbers for threads, requests, segments and futexes. Composing replays
//! the items that depended on unknown state, maps the numbers to those of the graph, and queues the
//! additions to the time line of each thread (`later`). The time lines grow at the end, in parallel
//! over all threads, or when a growing graph is queried. A thread that is created in a slice is
//! appended as a whole (`slice/born`). Numbers that depend on slices are replaced at the end
//! (`numbers`). Traces without all switches, and those with io_uring from its first event on, are
//! played item by item.
//!
//! **Paths** (`path`) are followed forwards: a wait is replaced by the activity of the thread that
//! ended it within the window of the wait. Path length is bounded; the cost is linear in the length
//! of the path and logarithmic in the size of the graph. Unlike the bounded algorithm, a path
//! leaves the time line of a kernel thread at the point where the thread received the work in
//! question (`cuts`): earlier it may have done other work, or waited for other work. On the
//! recording with known causes, this raises the explained time of slow disks from nine tenths to
//! all of it. `handover` finds paths of executions that end in another thread than they begin in;
//! `service` divides the time of a disk between the threads that it served.
//!
//! **User-level threads** of super-traces are threads. One that is ready waits for an LWP: the path
//! shows who used it (`lwp_use`).
//!
//! **Querying a graph while it grows** ([`Growing`]): it is composed up to a time, queried for
//! paths, and composed further. A path is final once each thread on it has since changed its state;
//! a [`Question`] names the open condition. Data that no later path needs is dropped (`dropping`),
//! at about every doubling of the graph, so the total cost is linear; indexes of requests and
//! segments stay valid (`kept`). Names arrive as items in the order of time, so the graph of a time
//! does not depend on the order in which chunks are read.
//!
//! **Devices** (`device_times`), such as GPUs: waits of threads for their commands are divided by the
//! activity of the device, where a path visits them. The path of a command follows the thread up to
//! the enqueuing, and then the command.
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
mod device_times;
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
mod lwp_use;
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
pub use device_times::{CommandState, DeviceActivity, DeviceCommand, DeviceTimes, DeviceWait};
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
