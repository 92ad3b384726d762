//! Prints event records as text (in babeltrace2's format), as JSON and as CSV.

pub(crate) mod buffer;
mod compiler;
pub(crate) mod csv;
mod digits;
mod escape;
pub(crate) mod event_ranges;
mod float;
mod hidden;
pub(crate) mod line;
mod program;
pub(crate) mod select;
mod slot;
pub(crate) mod stamp;
pub(crate) mod style;
pub(crate) mod symbols;
mod visitor;
