//! Packets of a stream file: found by its index, or by reading the head of each packet.
//!
//! Finding and resynchronising are separate: [`by_heads`] follows the chain of packets as long as
//! heads are valid, `resync` searches for the next packet where the chain breaks, and `hidden` for
//! packets within a packet whose size is too large. Whatever the heads contain, every packet found
//! lies within the file and after the previous packet.

mod by_heads;
mod by_index;
mod contradiction;
mod file_scan;
mod find;
mod first_record;
mod foreign;
mod hidden;
mod packet_finder;
mod reconcile;
mod resync;

pub(crate) use file_scan::FileScan;
pub(crate) use find::find;
pub(crate) use packet_finder::MOST_FAULTS;
pub(crate) use reconcile::reconcile_with_head;
