//! Generated kernel traces: threads that migrate in the middle of system calls, files that come and
//! go, and events that get lost.
//!
//! `thread_script` simulates the threads; `tracer` decides which of their events are recorded, and
//! encodes them.

mod random;
mod shape;
mod thread_script;
mod tracer;

pub use random::Random;
pub use shape::Shape;
pub use thread_script::{trace, trace_with_cpus};
pub use tracer::{CpuPlace, Scripted, scripted};
