//! Typed events by part of the kernel. Each event is a struct of its fields, which are found once,
//! whatever names the tracer uses. Fields that some tracer or version lacks are optional.

pub mod block;
pub mod call;
pub mod gpu;
pub mod irq;
pub mod memory;
pub mod network;
pub mod power;
pub mod sched;
pub mod signal;
pub mod state;
pub mod thread;
pub mod timer;
pub mod uring;
pub mod user_level;
pub mod work;

/// Beginning or end of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// The activity begins.
    Begin,
    /// The activity ends.
    End,
}
