//! Declarations of the OMPT interface: OpenMP 5.1, sections 4.2 to 4.6. Enumerations are integers,
//! because a newer runtime may pass values that are not listed here.

use core::ffi::{c_char, c_int, c_void};

/// `ompt_data_t`: a word of the tool in each thread, task and region.
#[repr(C)]
pub(crate) struct Data {
    pub(crate) pointer: *mut c_void,
}

/// `ompt_start_tool_result_t`.
#[repr(C)]
pub(crate) struct StartToolResult {
    pub(crate) initialize: extern "C" fn(Lookup, c_int, *mut Data) -> c_int,
    pub(crate) finalize: extern "C" fn(*mut Data),
    pub(crate) tool_data: Data,
}

/// Any function of the interface; cast before it is called.
pub(crate) type AnyFunction = unsafe extern "C" fn();
/// `ompt_function_lookup_t`.
pub(crate) type Lookup = unsafe extern "C" fn(*const c_char) -> Option<AnyFunction>;
/// `ompt_set_callback_t`.
pub(crate) type SetCallback = unsafe extern "C" fn(c_int, *const c_void) -> c_int;

/// `ompt_callbacks_t`: numbers of callbacks.
pub(crate) mod callback {
    pub(crate) const THREAD_BEGIN: i32 = 1;
    pub(crate) const THREAD_END: i32 = 2;
    pub(crate) const PARALLEL_BEGIN: i32 = 3;
    pub(crate) const PARALLEL_END: i32 = 4;
    pub(crate) const TASK_CREATE: i32 = 5;
    pub(crate) const TASK_SCHEDULE: i32 = 6;
    pub(crate) const IMPLICIT_TASK: i32 = 7;
    pub(crate) const SYNC_REGION_WAIT: i32 = 16;
    pub(crate) const MUTEX_RELEASED: i32 = 17;
    pub(crate) const TASK_DEPENDENCE: i32 = 19;
    pub(crate) const WORK: i32 = 20;
    pub(crate) const SYNC_REGION: i32 = 23;
    pub(crate) const MUTEX_ACQUIRE: i32 = 26;
    pub(crate) const MUTEX_ACQUIRED: i32 = 27;
    pub(crate) const CANCEL: i32 = 30;
    pub(crate) const REDUCTION: i32 = 31;
}

/// `ompt_scope_endpoint_t`.
pub(crate) mod scope {
    pub(crate) const BEGIN: i32 = 1;
    pub(crate) const END: i32 = 2;
}

/// `ompt_task_flag_t`.
pub(crate) mod task_flag {
    pub(crate) const INITIAL: i32 = 0x1;
    pub(crate) const IMPLICIT: i32 = 0x2;
    pub(crate) const TASKWAIT: i32 = 0x10;
    pub(crate) const UNDEFERRED: i32 = 0x0800_0000;
}

/// `ompt_task_status_t`.
pub(crate) mod task_status {
    pub(crate) const COMPLETE: i32 = 1;
    pub(crate) const CANCEL: i32 = 3;
    pub(crate) const DETACH: i32 = 4;
    pub(crate) const EARLY_FULFILL: i32 = 5;
    pub(crate) const LATE_FULFILL: i32 = 6;
    pub(crate) const TASKWAIT_COMPLETE: i32 = 8;
}

/// `ompt_sync_region_t`.
pub(crate) mod sync_region {
    pub(crate) const TASKWAIT: i32 = 5;
    pub(crate) const TASKGROUP: i32 = 6;
    pub(crate) const REDUCTION: i32 = 7;
    pub(crate) const BARRIER_IMPLICIT_PARALLEL: i32 = 9;
}

/// `ompt_mutex_t`.
pub(crate) mod mutex {
    pub(crate) const LOCK: i32 = 1;
    pub(crate) const TEST_LOCK: i32 = 2;
    pub(crate) const NEST_LOCK: i32 = 3;
    pub(crate) const TEST_NEST_LOCK: i32 = 4;
    pub(crate) const CRITICAL: i32 = 5;
    pub(crate) const ATOMIC: i32 = 6;
    pub(crate) const ORDERED: i32 = 7;
}

/// `ompt_work_t`.
pub(crate) mod work {
    pub(crate) const LOOP: i32 = 1;
    pub(crate) const SECTIONS: i32 = 2;
    pub(crate) const SINGLE_EXECUTOR: i32 = 3;
    pub(crate) const WORKSHARE: i32 = 5;
    pub(crate) const DISTRIBUTE: i32 = 6;
    pub(crate) const TASKLOOP: i32 = 7;
    pub(crate) const SCOPE: i32 = 8;
}
