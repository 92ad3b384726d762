//! What the reports on kernel traces share: their frame, which stream is which CPU, the time range,
//! and who the threads are.

mod extent;
mod frame;
mod learn;
mod people;
mod selection;
mod sources;
mod table;
mod time;

pub use extent::Extent;
pub use frame::{Head, Input, KernelAnalysis, KernelReport};
pub use people::{Host, Process, Thread};
pub use selection::{CpuSet, Selection, ThreadFilter, Window};
pub use sources::CpuKey;

pub(crate) use frame::{Event, Packet};
pub(crate) use learn::learn;
pub(crate) use people::{People, ThreadKey};
pub(crate) use table::Table;
pub(crate) use time::{nanoseconds, share};
