//! What each file descriptor of each process is at any time, and which thread has which.
//!
//! In: what calls change ([`Change`], made of an entry and an exit, [`Open`] and [`Exit`]), and what decides which threads
//! share descriptors ([`Act`]: forks, programs that are executed, threads that end, state dumps), in the order of time. Out: what a
//! descriptor was at a time, in terms of the analysis ([`Held`]). Promise: what is not known stays so, and is never taken for
//! closed.
#![forbid(unsafe_code)]

mod belongings;
mod call;
mod change;
mod contents;
mod descriptors;
mod interned;
mod late;
mod shared;
mod sliced;
mod values;

pub use belongings::{Act, Holder};
pub use call::{Deed, Exit, NO_FD, O_CLOEXEC, Open, descriptor};
pub use change::{Change, Sharing};
pub use contents::{Answer, Held, Turn};
pub use descriptors::Descriptors;
pub use interned::{Dictionaries, Interned, Text, Texts};
pub use late::LateChange;
pub use shared::Shared;
pub use sliced::{Ahead, Moment, OfBefore, Sliced, SlicedAnswer};
pub use values::{LateCall, Resolved, ValueId};
