//! The event classes, and nothing else that knows how they are recorded.
//!
//! | class | fields | meaning |
//! |---|---|---|
//! | `tracebraid:cpu_stack` | `syscall`, `status`, `callstack_user` | this thread has used one more period of CPU time |
//! | `tracebraid:syscall_stack` | `wait_ns`, `syscall`, `status`, `callstack_user` | it comes back after that long off the CPU |
//! | `tracebraid:stacks_state` | `period_ns`, `threshold_ns`, `depth`, `cpu_error`, `wait_error`, `kernel_time` | how stacks are taken |
//! | `lttng_ust_lib:load` | `baddr`, `memsz`, `path` | a module is mapped there |
//! | `lttng_ust_lib:build_id` | `baddr`, `build_id` | its build id |
//! | `lttng_ust_lib:unload` | `baddr` | it is gone |
//!
//! `cpu_stack` and `syscall_stack` are the names of the TraceCompare paper; `callstack_user` is LTTng's for the return
//! addresses of user space; modules are told of as LTTng-UST does. `syscall` is the number of the system call that the
//! thread was in, -1 for none, -2 if it is not known; `status` is [`crate::unwind::End`]; errors are numbers of
//! `errno`, 0 for none, -1 for what was not asked for.

use tracebraid_probe::probe;

use crate::unwind::End;

/// A stack.
pub(crate) struct Sample<'a> {
    pub(crate) syscall: i32,
    pub(crate) end: End,
    /// Innermost first.
    pub(crate) frames: &'a [u64],
}

/// How stacks are taken.
#[derive(Clone, Copy)]
pub(crate) struct State {
    pub(crate) period_ns: u64,
    pub(crate) threshold_ns: u64,
    pub(crate) depth: u32,
    pub(crate) cpu_error: i32,
    pub(crate) wait_error: i32,
    pub(crate) kernel_time: bool,
}

pub(crate) fn cpu_stack(sample: &Sample<'_>) {
    probe!(
        tracebraid,
        cpu_stack,
        syscall: i32 = sample.syscall,
        status: u8 = sample.end as u8,
        callstack_user: &[u64] = sample.frames,
    );
}

pub(crate) fn syscall_stack(wait_ns: u64, sample: &Sample<'_>) {
    probe!(
        tracebraid,
        syscall_stack,
        wait_ns: u64 = wait_ns,
        syscall: i32 = sample.syscall,
        status: u8 = sample.end as u8,
        callstack_user: &[u64] = sample.frames,
    );
}

pub(crate) fn state(state: State) {
    probe!(
        tracebraid,
        stacks_state,
        period_ns: u64 = state.period_ns,
        threshold_ns: u64 = state.threshold_ns,
        depth: u32 = state.depth,
        cpu_error: i32 = state.cpu_error,
        wait_error: i32 = state.wait_error,
        kernel_time: bool = state.kernel_time,
    );
}

pub(crate) fn module_load(range: [u64; 2], path: &str, build_id: &[u8]) {
    let [first, end] = range;
    probe!(
        lttng_ust_lib,
        load,
        baddr: u64 = first,
        memsz: u64 = end.wrapping_sub(first),
        path: &str = path,
        has_build_id: bool = !build_id.is_empty(),
        has_debug_link: bool = false,
    );
    if !build_id.is_empty() {
        probe!(lttng_ust_lib, build_id, baddr: u64 = first, build_id: &[u8] = build_id);
    }
}

pub(crate) fn module_unload(first: u64) {
    probe!(lttng_ust_lib, unload, baddr: u64 = first);
}
