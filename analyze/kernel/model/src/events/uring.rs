//! io_uring.

use crate::field::IntField;
use crate::finder::Finder;

/// Step of an io_uring request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UringStep {
    /// A ring is created; its descriptor is in `fd`.
    Create,
    /// The request is submitted.
    Submit,
    /// The request is passed to a worker thread.
    QueueAsync,
    /// The request waits until a descriptor is ready.
    PollArm,
    /// The request waits for another request.
    Defer,
    /// The request has failed.
    Fail,
    /// The request is completed.
    Complete,
    /// A thread waits for completions.
    CqWait,
}

/// A request to an io_uring.
#[derive(Clone, Debug)]
pub struct Uring {
    /// Step of the request.
    pub step: UringStep,
    /// Address of the ring.
    pub ring: Option<IntField>,
    /// Address of the request.
    pub request: Option<IntField>,
    /// Identifier that the program gave to the request.
    pub user_data: Option<IntField>,
    /// Operation code.
    pub opcode: Option<IntField>,
    /// Result of the request.
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
