//! Ended calls, as input for the sums of futexes and sockets.

use tracebraid_kernel_model::Peer;
use tracebraid_threads::BegunCall;

use tracebraid_follow::ThreadKey;

/// Owner of descriptors: the trace, and a process id or, if unknown, a negative number for a
/// thread.
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
    /// True if the call is selected.
    pub(super) counts: bool,
}

/// True if the end of a call with that class and result matters to other threads: it affected a
/// futex or a socket.
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
