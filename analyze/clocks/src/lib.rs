//! Relations between the clocks of hosts, inferred from the messages they exchanged.
//!
//! In: pairs of times by two clocks where the first cannot be later than the second ([`Timeline`]);
//! for machines, the TCP packets in their kernel traces ([`PacketAnalysis`]). Out: the conversion
//! of one clock's time to another's ([`Path`]), with bounds; for several machines, the corrections
//! of all clocks to the time of a reference ([`Synchronization`]), stored in a small file
//! ([`Transformations`]) that is applied when traces are opened. Promise: after correction no
//! message is received before it was sent, to the nanosecond (over some years), unless the result
//! states that no line fits; no number overflows; memory is bounded.
//!
//! A message is a point: an inequality between the two clocks. `hull` keeps the corners that
//! matter, `relation` finds all possible lines, `timeline` keeps hulls for intervals of time in
//! bounded memory, and `path` fits one line, or as few lines as possible. Hulls, timelines and
//! packets can be merged in any order with the same result, as the law of folding requires.
//!
//! Lines are fractions of integers, rounded once at the end to the nearest nanosecond. An
//! inequality between whole nanoseconds that holds for the exact line still holds after rounding,
//! so "received after sent" is exact. Times are below 2⁶², so that no cross product overflows.
//!
//! `packets` finds the TCP packets of all hosts in one pass. `matches` pairs them by content, not
//! by time, because clocks may be years apart. `tree` finds the best chain of relations from each
//! host to the reference. The corrections of a chain are applied in sequence instead of being
//! composed into one, because rounding after each step preserves the order of messages.
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
