//! What happens, as the machine takes it: small, and about threads by their places.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};

use crate::kernel::CpuKey;
use crate::waits::context::Context;

/// Something happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) time: i64,
    pub(super) cpu: CpuKey,
    /// Place of the thread that does it, or in whose context it happens; none if it is not known,
    /// or the idle thread's.
    pub(super) who: Option<u32>,
    pub(super) what: What,
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// A call begins. `argument` is a futex's address or a descriptor.
    Enter {
        call: Syscall,
        operation: i32,
        argument: i64,
    },
    /// A call ends: that one, or whatever call is open.
    Exit { call: Option<Syscall>, result: i64 },
    /// The call that has begun, or is about to end, has to do with that peer.
    Peer(Box<Peer>),
    /// The thread leaves its CPU, to that one.
    Switch { next: Option<u32>, left: Left },
    /// A thread is woken. `is_ready`: it can run from now on; the waker may have been told before.
    Wake {
        woken: u32,
        context: Context,
        is_ready: bool,
    },
    /// A block request is made.
    Request,
    /// A thread is made.
    Born { child: u32 },
    /// A thread dies: it makes no more calls.
    Dies { thread: u32 },
    /// A thread belongs to that process.
    Belongs { thread: u32, pid: i32 },
    /// Events were lost on the CPU.
    Lost,
}

/// How a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Left {
    /// It could run on.
    Runnable,
    /// It waits.
    Blocked,
    /// It waits where signals do not wake it.
    DiskSleep,
}

impl Item {
    /// With the threads' places in another list.
    pub(super) fn moved(mut self, places: &[usize]) -> Item {
        let moved = |place: u32| places.get(place as usize).map_or(place, |&place| place as u32);
        self.who = self.who.map(moved);
        match &mut self.what {
            What::Switch { next, .. } => *next = next.map(moved),
            What::Wake { woken, .. } => *woken = moved(*woken),
            What::Born { child } => *child = moved(*child),
            What::Dies { thread } | What::Belongs { thread, .. } => *thread = moved(*thread),
            _ => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_small() {
        assert!(size_of::<Item>() <= 48, "{}", size_of::<Item>());
    }
}
