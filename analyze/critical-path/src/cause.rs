//! What ends a wait, and what interrupts a thread.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::irq::Vector;

/// A thread of the graph: an index into its time lines. A thread id that is used again is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ActorId(pub u32);

/// What takes a CPU from its thread without a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Interrupt {
    /// The handler of the hard interrupt of that number.
    Irq(u16),
    /// The softirq of that vector; see [`tracebraid_kernel_model::softirq_name`].
    Softirq(u8),
    /// An interrupt of the processor: its place among [`VECTORS`].
    Vector(u8),
}

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

/// Interrupts of the processor, in the order of [`Interrupt::Vector`].
pub const VECTORS: [Vector; 11] = [
    Vector::LocalTimer,
    Vector::Reschedule,
    Vector::CallFunction,
    Vector::CallFunctionSingle,
    Vector::IrqWork,
    Vector::PlatformIpi,
    Vector::ErrorApic,
    Vector::SpuriousApic,
    Vector::ThermalApic,
    Vector::ThresholdApic,
    Vector::DeferredErrorApic,
];

/// What interrupts between processors on machines that are not x86 stand as.
const RESCHEDULE: Interrupt = Interrupt::Vector(1);

impl Interrupt {
    /// The interrupt of that vector.
    pub(crate) fn of_vector(vector: Vector) -> Interrupt {
        let place = VECTORS.iter().position(|other| *other == vector);
        place.map_or(RESCHEDULE, |place| Interrupt::Vector(place as u8))
    }

    /// An interrupt from another processor.
    pub(crate) fn ipi() -> Interrupt {
        RESCHEDULE
    }

    /// The vector of an interrupt of the processor.
    pub fn vector(self) -> Option<Vector> {
        match self {
            Interrupt::Vector(place) => VECTORS.get(usize::from(place)).copied(),
            _ => None,
        }
    }
}
