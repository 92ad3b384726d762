//! Recordings of OpenCL programs on a real implementation.

mod counted;
mod harmless;
mod opencl;
mod preloaded;
#[path = "../support/mod.rs"]
mod support;
