//! Recordings of OpenCL programs on a real implementation.

mod opencl;
mod pipeline;
#[path = "../support/mod.rs"]
mod support;
