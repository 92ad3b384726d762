//! Recordings of GPU programs: OpenCL on a real implementation, CUDA on stand-ins;
//! and exports of Nsight Systems.

mod cuda;
mod nsys;
mod opencl;
mod pipeline;
#[path = "../support/mod.rs"]
mod support;
