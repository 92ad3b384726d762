//! The kernel's descriptions of tracepoints: `format` files below `/sys/kernel/tracing/events`,
//! which perf and trace-cmd copy into their own files.
//!
//! In: the text of such a file ([`Format::parse`]). Out: the fields of an event class
//! ([`Format::add_to`]), and the values of records, for a writer ([`Format::give`]) or as the
//! payload of an event ([`Format::encode`]). Promise: no text and no record makes the crate panic;
//! all data that a record refers to lies within the record.

mod field;
mod format;
mod payload;

pub use field::{Element, Field, FieldContent, Number, OffsetBase};
pub use format::Format;
