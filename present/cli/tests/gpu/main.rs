//! Recordings of GPU programs: OpenCL on a real implementation, CUDA on stand-ins.

mod counted;
mod cuda;
mod harmless;
mod opencl;
mod pipeline;
mod preloaded;
#[path = "../support/mod.rs"]
mod support;
