//! A call from its beginning to its end, as futexes and sockets count it.

use tracebraid_kernel_model::Peer;
use tracebraid_threads::BegunCall;

use tracebraid_follow::ThreadKey;

/// Whose descriptors: a trace and a process, or, where that is not known, less than 0, a thread.
pub(super) type Owner = (u32, i64);

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedCall {
    pub(super) thread: ThreadKey,
    pub(super) owner: Owner,
    pub(super) begun: BegunCall,
    pub(super) peer: Option<Peer>,
    pub(super) time: i64,
    pub(super) result: i64,
    /// It is to be counted.
    pub(super) counts: bool,
}

/// True if it matters to others that a call of the class ended with that result: it did something
/// to a futex or a socket.
#[inline(always)]
pub(super) fn concerns_others(class: tracebraid_threads::CallClass, result: i64) -> bool {
    use tracebraid_threads::CallClass::*;
    match class {
        Futex | Connect | Close => true,
        Socket | Accept => result >= 0,
        Send | Receive | Write | Read | Copy => result > 0,
        _ => false,
    }
}
