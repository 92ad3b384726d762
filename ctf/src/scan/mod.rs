//! Scanning packets for the event records of chosen classes, as fast as memory gives them.
//!
//! Most event records have a header whose id and timestamp lie at constant offsets. For those an
//! event record costs a load or two, one look into a table by id, and an addition; those of
//! variable size also a few steps. What is unusual takes the general way: a header walk and a skip
//! program. The records of chosen classes come out as [`Hit`]s; the fields of the others are never
//! touched.

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
