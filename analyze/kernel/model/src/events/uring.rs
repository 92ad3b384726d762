//! io_uring.

use crate::field::IntField;
use crate::finder::Finder;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UringStep {
    /// A ring is made; its descriptor is in `fd`.
    Create,
    /// It is handed in.
    Submit,
    /// It goes to a worker thread.
    QueueAsync,
    /// It waits for a descriptor to be ready.
    PollArm,
    /// It waits for another one.
    Defer,
    /// It has failed.
    Fail,
    /// It is done.
    Complete,
    /// Somebody waits for requests to be done.
    CqWait,
}

/// A request of io_uring.
#[derive(Clone, Debug)]
pub struct Uring {
    /// What happens to it.
    pub step: UringStep,
    /// Address of the ring.
    pub ring: Option<IntField>,
    /// Address of the request.
    pub request: Option<IntField>,
    /// What the program calls it.
    pub user_data: Option<IntField>,
    /// What it does.
    pub opcode: Option<IntField>,
    /// What it gave.
    pub result: Option<IntField>,
    /// Descriptor of a new ring.
    pub fd: Option<IntField>,
}

impl Uring {
    pub(crate) fn find(finder: &Finder<'_>, step: UringStep) -> Option<Box<Uring>> {
        Some(Box::new(Uring {
            step,
            ring: finder.int(&["ctx"]),
            request: finder.int(&["req"]),
            user_data: finder.int(&["user_data"]),
            opcode: finder.int(&["opcode"]),
            result: finder.int(&["res"]),
            fd: finder.int(&["fd"]),
        }))
    }
}
