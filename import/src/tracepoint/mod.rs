//! Tracepoints as the kernel describes them: in `format` files, which perf and trace-cmd copy.

mod field;
mod format;
mod payload;
mod tables;

pub(crate) use format::Format;
pub(crate) use tables::{Tables, read_event_formats, read_ftrace_formats, read_preamble};
