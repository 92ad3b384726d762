//! What the reports on kernel traces share: which stream is which CPU, the time range, and who
//! the threads are.

mod extent;
mod learn;
mod people;
mod selection;
mod sources;
mod time;

pub use extent::Extent;
pub use people::{Host, Thread};
pub use selection::{CpuSet, ThreadFilter, Window};
pub use sources::CpuKey;

pub(crate) use learn::learn;
pub(crate) use people::{People, Table, ThreadKey};
pub(crate) use sources::{Source, Sources};
pub(crate) use time::{nanoseconds, share};
