//! File descriptors: the file that each descriptor of each process refers to at any time, and the
//! table of descriptors that each thread uses.
//!
//! In: changes by system calls ([`Change`], made of an entry and an exit, [`Open`] and [`Exit`]),
//! and events that decide which threads share a table ([`Act`]: forks, program executions, thread
//! ends, state dumps), in time order. Out: the file of a descriptor at a time, in terms of the
//! analysis ([`Held`]). Promise: an unknown descriptor stays unknown, and is never mistaken for a
//! closed one.
//!
//! [`Descriptors`] follows the whole trace. [`Sliced`] follows a slice of time without knowledge of
//! earlier slices: each descriptor is a value that becomes known only when the slice is composed
//! ([`ValueId`], [`Resolved`]).
#![forbid(unsafe_code)]

mod acting;
mod ahead;
mod belongings;
mod call;
mod change;
mod contents;
mod descriptors;
mod earlier;
mod interned;
mod late;
mod members;
mod shared;
mod slice_acts;
mod slice_end;
mod slice_history;
mod slice_install;
mod sliced;
mod text_hash;
mod values;

pub use ahead::{Ahead, ThreadAct, UnclearAct};
pub use belongings::{Act, Holder};
pub use call::{Deed, Exit, NO_FD, O_CLOEXEC, Open, descriptor};
pub use change::{Change, Sharing};
pub use contents::{Answer, Held, Turn};
pub use descriptors::Descriptors;
pub use interned::{Dictionaries, Interned, Text, Texts};
pub use late::LateChange;
pub use shared::Shared;
pub use slice_acts::{SliceActs, SlicePart};
pub use slice_history::Moment;
pub use sliced::{OfBefore, Sliced, SlicedAnswer};
pub use values::{LateCall, Resolved, ValueId};
