//! Ids of threads, and the causes that end waits.

use serde::{Deserialize, Serialize};
pub use tracebraid_follow::{Interrupt, VECTORS};

/// A thread of the graph: an index into its time lines. A thread id that is used again is another
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ActorId(pub u32);

/// What ends a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wake {
    /// Not recorded, or not yet.
    #[default]
    Unknown,
    /// Nothing, up to where the trace was read.
    StillWaiting,
    /// That thread, by what it did.
    Thread(ActorId),
    /// The function of a timer.
    Timer,
    /// An interrupt of which nothing else is known.
    Interrupt(Interrupt),
    /// The completion of a block request: its place among the graph's.
    Request(u32),
    /// What came in by the network: its place among the graph's packets.
    Packet(u32),
}
