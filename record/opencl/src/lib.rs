//! Records what OpenCL programs do: every call with its arguments, and every device command with its
//! four times.
//!
//! **In**: calls of programs, on one of two paths. As a *layer* (`OPENCL_LAYERS`), the loader of
//! OpenCL passes every call through this library. Where a loader knows no layers, the *preloaded*
//! library has functions of the same names as the loader's. Both are one file; where both work, the
//! layer records. Functions that programs get by name (`clGetExtensionFunctionAddress*`) are wrapped
//! as well. **Out**: events of `tracebraid_probe`, with the names of THAPI:
//!
//! | class | fields |
//! |---|---|
//! | `lttng_ust_opencl:FUNCTION_entry` | arguments: values, texts, and arrays as `NAME_vals` |
//! | `lttng_ust_opencl:FUNCTION_exit` | `errcode_ret_val` or the new handle; written values as `NAME_val`, `NAME_vals` |
//! | `lttng_ust_opencl_profiling:event_profiling_results` | a completed command: `event`, and `queued`, `submit`, `start`, `end` in nanoseconds of the device's clock |
//! | `lttng_ust_opencl_profiling:event_profiling` | `event`, `status`: the completion of a command cannot be observed |
//! | `lttng_ust_opencl_arguments:kernel_info` | `kernel`, `function_name`: before the first use of a kernel |
//! | `lttng_ust_opencl_devices:device_name` | `device`, `name` |
//! | `lttng_ust_opencl_devices:device_timer` | `device`, `device_timestamp`, `host_timestamp`: one moment on two clocks |
//! | `tracebraid_opencl:device` | `device`, `platform`, `parent`, `of_type`, `resolution_ns`, `platform_name`, `uuid`, `pci` |
//! | `tracebraid_opencl:queue` | `queue`, `context`, `device`, `properties`, `is_profiled`: before the first use of a queue |
//!
//! The wrappers are generated (`build.rs`) from `functions.txt`, which `distil.py` makes from the
//! registry of Khronos, and from `vendors.txt`, which has functions that the registry lacks.
//!
//! **Commands** (`commands`). A call that returns an event gets an event of this library's own if
//! the program wants none. A callback reads the times when the command is complete; after a blocking
//! call they are read at once.
//!
//! **Promise**: no result of a call changes. Profiling of queues is switched on only while commands
//! are recorded, and hidden from the program's queries (`special`), as is the reference by which an
//! event is kept until its callback. The library takes no lock, and allocates nothing. Without a
//! session it is no layer, and a preloaded function costs a load, a branch and a jump.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod commands;
mod extensions;
mod functions;
mod handles;
mod identity;
mod layer;
mod libraries;
mod next;
mod queries;
mod special;
mod status;
mod told;
mod values;
