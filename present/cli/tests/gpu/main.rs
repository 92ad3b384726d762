//! Recordings of OpenCL programs on a real implementation.

mod opencl;
#[path = "../support/mod.rs"]
mod support;
