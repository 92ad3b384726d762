//! Records what CUDA programs do: every call of the driver API and of the runtime API with its
//! arguments, and every device command with its times.
//!
//! **In**: the driver (`libcuda.so`) loads the library that `CUDA_INJECTION64_PATH` names when a
//! program initializes it, and calls `InitializeInjection` (`injection`). This library then loads
//! NVIDIA's CUPTI (`cupti`), if there is one, which calls it before and after each call of the
//! program (`calls`) and passes records of complete commands (`buffers`, `commands`). **Out**: events
//! of `tracebraid_probe`:
//!
//! | class | fields |
//! |---|---|
//! | `lttng_ust_cuda:FUNCTION_entry`, `lttng_ust_cudart:FUNCTION_entry` | arguments: values, texts as `NAME_val`; `correlation` |
//! | `lttng_ust_cuda:FUNCTION_exit`, `lttng_ust_cudart:FUNCTION_exit` | `cuResult` or `cudaResult`; a written value as `NAME_val`; `correlation` |
//! | `tracebraid_cuda:call_entry`, `call_exit` | `function`, `correlation`, and `result`: functions newer than this library |
//! | `tracebraid_cuda:kernel` | `correlation` of the call, `kernel`, device, context, stream, `queued`, `submit`, `start`, `end`, sizes, `graph_node` |
//! | `tracebraid_cuda:kernel_name` | `kernel` (a hash of the name), `name`: before the first such kernel |
//! | `tracebraid_cuda:memcpy`, `memset` | the same for transfers: `copy_kind`, `bytes`, … |
//! | `tracebraid_cuda:synchronization` | a wait of the host, or of a stream, with its times |
//! | `tracebraid_cuda:unified_memory` | migrations and page faults of managed memory |
//! | `tracebraid_cuda:device`, `context`, `stream` | before their first command |
//! | `tracebraid_cuda:stream_created`, `stream_handle` | priority of a stream; its handle in calls |
//! | `tracebraid_cuda:records_dropped` | number of records that CUPTI had no room for |
//! | `tracebraid_cuda:recorder` | version and path of CUPTI, or why it does not record |
//!
//! Names and arguments of functions are those of NVIDIA's headers; `distil.py` keeps the facts in
//! `functions.txt` and `layouts.txt`. Classes of calls have the names of THAPI.
//!
//! **Times** of commands are of CLOCK_MONOTONIC where CUPTI lets this library choose (CUDA 11.6 and
//! later), otherwise of CLOCK_REALTIME. CUPTI converts the device's times to that clock.
//!
//! **Buffers** reach this library when they are full, ten times in a second (`flusher`), and when the
//! program ends by `exit` or by returning from `main`.
//!
//! **Promise**: without CUPTI, without a session, or if CUPTI refuses, the program runs as without
//! this library. When the recording ends, CUPTI's callbacks are disabled. No result of a call
//! changes.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod buffers;
mod calls;
mod commands;
mod cupti;
mod flusher;
mod functions;
mod injection;
mod layouts;
mod seen;

use core::ffi::{CStr, c_char};

/// A text of a program or of CUPTI; null is the empty text.
///
/// # Safety
/// `text` is null or points to a text that ends with NUL and outlives the use of the result.
#[allow(unsafe_code)]
unsafe fn text<'a>(text: *const c_char) -> &'a CStr {
    if text.is_null() {
        return c"";
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }
}
