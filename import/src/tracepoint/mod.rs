//! The tables of tracepoints in files of perf and trace-cmd.

mod tables;

pub(crate) use tables::{Tables, read_event_formats, read_ftrace_formats, read_preamble};
pub(crate) use tracebraid_tracepoint::Format;
