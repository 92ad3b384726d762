//! Relations between clocks, from messages that cannot arrive before they were sent.
//!
//! In: pairs of times, one by each of two clocks, of which one cannot be later than the other ([`Timeline`]); for
//! machines, the TCP packets that kernel traces tell of ([`PacketAnalysis`]). Out: how one clock's time becomes the
//! other's ([`Path`]), with bounds; for several machines, how all get the time of one ([`Synchronization`]), as a
//! small file ([`Transformations`]) that corrects traces when they are opened. Promise: what was sent is never received
//! before, to the nanosecond (over some years), unless it is said that no line fits; no number overflows; memory is bounded.
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
