//! Recordings of GPU programs: OpenCL on a real implementation, CUDA on stand-ins.

mod cuda;
mod opencl;
mod pipeline;
#[path = "../support/mod.rs"]
mod support;
