//! The entry of the tool: `ompt_start_tool`, which the runtime looks for.
//!
//! Safety: functions and words are used as OpenMP 5.1, section 4.2, prescribes.

#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;

use crate::abi::{Data, Lookup, SetCallback, StartToolResult, callback};
use crate::{dependences, lwp, mutexes, recorded, regions, scheduling, waits, work};

static mut RESULT: StartToolResult = StartToolResult {
    initialize,
    finalize,
    tool_data: Data {
        pointer: null_mut(),
    },
};

/// Called by an OpenMP runtime that starts; null if nothing is recorded, so that the runtime looks
/// for another tool.
///
/// # Safety
/// Only for runtimes.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompt_start_tool(
    _version: c_uint,
    _runtime: *const c_char,
) -> *mut StartToolResult {
    match tracebraid_probe::has_session() {
        true => &raw mut RESULT,
        false => null_mut(),
    }
}

/// Callbacks by their numbers.
fn callbacks() -> [(c_int, *const c_void); 16] {
    [
        (
            callback::THREAD_BEGIN,
            regions::thread_begin as *const c_void,
        ),
        (callback::THREAD_END, regions::thread_end as *const c_void),
        (
            callback::PARALLEL_BEGIN,
            regions::parallel_begin as *const c_void,
        ),
        (
            callback::PARALLEL_END,
            regions::parallel_end as *const c_void,
        ),
        (
            callback::IMPLICIT_TASK,
            regions::implicit_task as *const c_void,
        ),
        (
            callback::TASK_CREATE,
            scheduling::task_create as *const c_void,
        ),
        (
            callback::TASK_SCHEDULE,
            scheduling::task_schedule as *const c_void,
        ),
        (callback::CANCEL, scheduling::cancel as *const c_void),
        (
            callback::TASK_DEPENDENCE,
            dependences::task_dependence as *const c_void,
        ),
        (callback::SYNC_REGION, waits::sync_region as *const c_void),
        (
            callback::SYNC_REGION_WAIT,
            waits::sync_region_wait as *const c_void,
        ),
        (callback::REDUCTION, waits::reduction as *const c_void),
        (
            callback::MUTEX_ACQUIRE,
            mutexes::mutex_acquire as *const c_void,
        ),
        (
            callback::MUTEX_ACQUIRED,
            mutexes::mutex_acquired as *const c_void,
        ),
        (
            callback::MUTEX_RELEASED,
            mutexes::mutex_released as *const c_void,
        ),
        (callback::WORK, work::work as *const c_void),
    ]
}

extern "C" fn initialize(lookup: Lookup, _device: c_int, _data: *mut Data) -> c_int {
    // SAFETY: the runtime's function of this name has this type.
    let set = unsafe {
        lookup(c"ompt_set_callback".as_ptr())
            .map(|found| core::mem::transmute::<crate::abi::AnyFunction, SetCallback>(found))
    };
    let Some(set) = set else { return 0 };
    recorded::register();
    // SAFETY: only looks a name up.
    let python = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"Py_IsInitialized".as_ptr()) };
    lwp::choose_ids(!python.is_null());
    for (number, function) in callbacks() {
        // SAFETY: each function has the type of its callback.
        unsafe { set(number, function) };
    }
    1
}

extern "C" fn finalize(_data: *mut Data) {}
