//! Addresses in recorded processes to functions, files and lines.
//!
//! In go what was mapped where in a process ([`Module`], [`AddressSpace`]) and addresses; out come [`Frame`]s: the
//! function, and those that the compiler put into it, with C++ and Rust names as their authors wrote them, and the
//! lines of source, where debug information tells. It comes from the file itself, from a file beside it
//! (`.gnu_debuglink`), from directories by build id, or from the map that a just-in-time compiler wrote
//! (`/tmp/perf-PID.map`).
//!
//! Promise: a file that has changed since the recording names nothing; better no name than a wrong one. Names that were found
//! may be kept for the next time ([`Symbols::keep_in`]), which changes nothing but how long it takes.
#![forbid(unsafe_code)]

mod demangle;
mod kept;
mod kernel_symbols;
mod module;
mod perf_map;
mod space;
mod symbols;
mod unwind_table;

pub use kernel_symbols::KernelSymbols;
pub use module::{BuildId, Module, Placed};
pub use perf_map::PerfMap;
pub use space::AddressSpace;
pub use symbols::{Frame, Line, Symbols};
pub use tracebraid_file_identity::FileIdentity;
