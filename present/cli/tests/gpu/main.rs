//! Recordings of GPU programs: OpenCL on a real implementation, CUDA on stand-ins;
//! and exports of Nsight Systems.

mod clocks;
mod counted;
mod cuda;
mod harmless;
mod judged;
mod nsys;
mod opencl;
mod pipeline;
mod preloaded;
#[path = "../support/mod.rs"]
mod support;
