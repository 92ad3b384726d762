//! Files: the file that each call of each thread uses, and the name of each descriptor, at any
//! time.
//!
//! In: events of system calls, forks, program executions, thread ends, and state dumps. Out: for
//! each chunk, [`FileItem`]s in time order ([`Seen`], filled by [`FileRules`]); by playing them one
//! after the other ([`FileMachine`]), each call with the files that it uses ([`CallSink`]).
//! [`FileFollower`] does both for analyses that need only changes of descriptors. Promise: a file
//! that the trace does not name is unknown, and is never mistaken for another file; the played
//! items do not depend on how the trace was cut into chunks.
//!
//! The report on files plays the same items in parallel slices of time, and uses the machine only
//! to join slices.
#![forbid(unsafe_code)]

mod call;
mod class;
mod directories;
mod events;
mod follow;
mod item;
mod kept;
mod machine;
mod names;
mod naming;
mod queue;
mod rules;
mod seen;

pub use call::{Call, Entered, Exited, Forked, Parked, Side, Stretch, bytes, connects, named_at};
pub use class::Class;
pub use directories::Directories;
pub use follow::{Descriptor, FileFollower, FollowedFiles, News};
pub use item::{FileItem, Holds, Made};
pub use kept::FilesKept;
pub use machine::{Around, CallSink, FileMachine, Passing, is_unfinished};
pub use names::{AT_FDCWD, File, FileId, Files, held, unknown};
pub use naming::{Naming, Need};
pub use queue::{Queue, TableAct};
pub use rules::{CallFilter, FileChoice, FileRules};
pub use seen::Seen;
