//! Addresses in recorded processes to functions, files and lines.
//!
//! In: mapped files of a process ([`Module`], [`AddressSpace`]), and addresses. Out: [`Frame`]s:
//! the function, the functions that the compiler inlined into it, with demangled C++ and Rust
//! names, and source lines if debug information contains them. Promise: a file that has changed
//! since the recording gives no names; a missing name is better than a wrong one.
//!
//! Names come from the file itself, from a file beside it (`.gnu_debuglink`), from directories by
//! build id, or from the map that a just-in-time compiler wrote (`/tmp/perf-PID.map`). They may be
//! cached for the next run ([`Symbols::keep_in`]), which affects only the run time.
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
