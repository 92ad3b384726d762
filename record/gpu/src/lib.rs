//! `libtracebraid_gpu.so`: all that `record --gpu` adds to a program, in one file.
//!
//! **In**: `LD_PRELOAD`, `OPENCL_LAYERS` for loaders of OpenCL that know layers, and
//! `CUDA_INJECTION64_PATH`. **Out**: the events of `tracebraid_opencl` and `tracebraid_cuda`, beside
//! those of `tracebraid_modules` and of the probes in the program. One file, because they must share a
//! copy of `tracebraid_probe`: each copy would write a separate trace.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use tracebraid_cuda as _;
use tracebraid_modules as _;
use tracebraid_opencl as _;
