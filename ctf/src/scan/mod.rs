//! Scans packets for the event records of chosen classes, at memory bandwidth.
//!
//! Most event records have a header whose id and timestamp are at constant offsets. On this fast
//! path, an event record costs a load or two, a table lookup by id, and an addition; records of
//! variable size also cost a few steps. All other records take the general path: a header walk and
//! a skip program. The records of chosen classes are returned as [`Hit`]s; the fields of all other
//! records are never read.

mod batch;
mod fast;
mod guess;
mod header;
mod hit;
mod lanes;
mod scanner;
mod sink;
mod steps;
mod table;
mod tail;

pub use batch::Batch;
pub use hit::{Counted, Hit, Progress};
pub use lanes::LANES;
pub use scanner::Scanner;
pub use sink::Counts;
pub use table::ScanTable;
