//! Ids of threads, and the causes that end waits.

use serde::{Deserialize, Serialize};
pub use tracebraid_follow::{Interrupt, VECTORS};

use crate::device_times::DeviceActivity;

/// A thread of the graph: an index into its time lines. A reused thread id stands for another
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ActorId(pub u32);

/// The cause that ends a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wake {
    /// Not recorded, or not yet.
    #[default]
    Unknown,
    /// No cause up to the end of the trace or of the part that was read.
    StillWaiting,
    /// An action of that thread.
    Thread(ActorId),
    /// The function of a timer.
    Timer,
    /// An interrupt without a more specific cause.
    Interrupt(Interrupt),
    /// Completion of a block request: its index in [`Graph::requests`](crate::Graph::requests).
    Request(u32),
    /// Arrival of a segment: its index in [`Graph::packets`](crate::Graph::packets).
    Packet(u32),
    /// A device, such as a GPU, by its activity; only on paths, not in time lines.
    Command(DeviceActivity),
}
