//! What events tell, by the part of the kernel that they are about: each a struct of the fields
//! that tracers give it, found once. Fields that some tracer or version lacks are optional.

pub mod block;
pub mod call;
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
pub mod work;

/// Beginning or end of what takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// It begins.
    Begin,
    /// It ends.
    End,
}
