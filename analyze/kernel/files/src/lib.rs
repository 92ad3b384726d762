//! Files: which file each call of each thread uses, and what each descriptor is called, at any
//! time.
//!
//! In: events of calls, forks, programs that are executed, threads that end, and state dumps. Out:
//! for each chunk [`FileItem`]s in the order of time ([`Seen`], filled by [`FileRules`]); by
//! playing them one after the other ([`FileMachine`]), each call with the files that it uses
//! ([`CallSink`]). [`FileFollower`] does both for analyses that want the news of descriptors alone.
//! Promise: a file that the trace does not name is unknown, and is never taken for another one;
//! what is played is the same however the trace was cut.
//!
//! The report on files plays the same items in slices of time beside each other, and uses the
//! machine where slices are joined.
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
pub use rules::{CallFilter, FileRules};
pub use seen::Seen;
