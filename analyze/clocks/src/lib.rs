//! Relations between clocks, from messages that cannot arrive before they were sent.
//!
//! In: pairs of times, one by each of two clocks, of which one cannot be later than the other
//! ([`Timeline`]); for machines, the TCP packets in kernel traces ([`PacketAnalysis`]). Out: the
//! conversion of one clock's time to the other's ([`Path`]), with bounds; for several machines,
//! corrections of all to the time of one ([`Synchronization`]), as a small file
//! ([`Transformations`]) that is applied when traces are opened. Promise: no message is received
//! before it was sent, to the nanosecond (over some years), unless the result states that no line
//! fits; no number overflows; memory is bounded.
//!
//! A message is a point, an inequality between the two clocks. `hull` keeps the corners that
//! matter, `relation` finds all possible lines, `timeline` keeps hulls for pieces of time in
//! bounded memory, and `path` makes one line of them, or as few as fit. Hulls, timelines and
//! packets can be joined in any order with the same result, which is all that the law of folding
//! needs.
//!
//! Lines are fractions of integers, rounded once to the nearest nanosecond, at the end. A relation
//! that holds for exact lines and whole nanoseconds still holds after rounding, so "received after
//! sent" is exact. Times are below 2⁶², so that no cross product overflows.
//!
//! `packets` finds the TCP packets of all hosts in one pass, `matches` pairs them (not by time:
//! clocks may be years apart), `tree` finds for each host the best chain of relations to the
//! reference. The corrections of a chain are applied one after the other and not composed, because
//! rounding after each keeps the order.
#![forbid(unsafe_code)]

mod file;
mod fixed;
mod hull;
mod machines;
mod matches;
mod packets;
mod path;
mod relation;
mod sync;
mod timeline;
mod tree;

pub use file::{FileError, Transformation, Transformations};
pub use fixed::Fixed;
pub use hull::{Hull, LIMIT, Point, Slope};
pub use machines::{Machine, Machines};
pub use matches::{Matches, Message};
pub use packets::{PacketAnalysis, PacketRules, Packets, Sighting};
pub use path::{Path, Stretch};
pub use relation::{Accuracy, Contradiction, Fit, Relation};
pub use sync::{MachineReport, PairReport, SyncError, Synchronization};
pub use timeline::Timeline;
