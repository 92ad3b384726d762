//! Addresses in recorded processes to functions, files and lines.
//!
//! In: what was mapped where in a process ([`Module`], [`AddressSpace`]), and addresses. Out:
//! [`Frame`]s: the function, the functions that the compiler inlined into it, with C++ and Rust
//! names as their authors wrote them, and source lines where debug information has them. Promise: a
//! file that has changed since the recording gives no names; better no name than a wrong one.
//!
//! Names come from the file itself, from a file beside it (`.gnu_debuglink`), from directories by
//! build id, or from the map that a just-in-time compiler wrote (`/tmp/perf-PID.map`). They may be
//! kept for the next run ([`Symbols::keep_in`]), which changes nothing but the time that it takes.
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
