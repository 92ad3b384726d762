//! Lines of a super-trace for export: what each CPU, LWP and user-level thread did.
//!
//! In: a super-trace. Out: [`Item`]s in the order of time, given to a [`Sink`]: formats know items and
//! nothing of traces. An item is forgotten once it is given, so that the memory depends on the number
//! of CPUs and threads, not on the length of the trace. Promise: the same items for the same trace.
//!
//! Exports are written in the order of time, which makes them serial, as printing is: the pass over
//! the trace is [`tracebraid_ctf::reader::MergedReader`]'s. A parallel pass would only move the wait
//! to the file.

mod follow;
mod items;
mod record;

pub use follow::{Followed, export};
pub use items::{Item, Kind, Line, LineId, LinkKind, Sink, State};
pub use record::{Record, UNKNOWN_THREAD, Value, each};
