//! A call from its beginning to its end, as others have to know of it.

use tracebraid_kernel_model::Peer;

use crate::kernel::ThreadKey;
use crate::waits::kind::Kind;
use crate::waits::step::Details;

/// Whose descriptors: a trace and a process, or, where that is not known, less than 0, a thread.
pub(super) type Owner = (u32, i64);

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) thread: ThreadKey,
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) details: Details,
    pub(super) peer: Option<Peer>,
    pub(super) begin: i64,
    pub(super) time: i64,
    pub(super) result: i64,
    /// It is to be counted.
    pub(super) counts: bool,
}
