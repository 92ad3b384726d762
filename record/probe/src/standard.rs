//! Event classes that reports know.
//!
//! | class | fields | meaning |
//! |---|---|---|
//! | `tracebraid:prof_in`, `tracebraid:prof_out` | `name` | a function is entered, left |
//! | `tracebraid:span_begin` | `id`, `name` | a span begins; it may end on another thread |
//! | `tracebraid:span_end` | `id` | the span ends |
//! | `tracebraid:counter` | `name`, `value` | the value of a counter from now on |
//! | `tracebraid:ult_create` | `ult`, `name` | a user-level thread is created, and is ready |
//! | `tracebraid:ult_switch` | `prev_ult`, `next_ult` | this LWP switches from one user-level thread to another; 0 stands for none; the previous one stays ready unless it was blocked or has ended |
//! | `tracebraid:ult_block` | `ult`, `reason` | a user-level thread waits: recorded before the switch from it, or after it by a scheduler that decides late |
//! | `tracebraid:ult_wake` | `ult` | a user-level thread is ready; between its block and the switch from it, it stays ready |
//! | `tracebraid:ult_exit` | `ult` | a user-level thread ends; its LWP then switches from it |
//! | `tracebraid:ult_name` | `ult`, `name` | a new name |
//! | `tracebraid:ult_state` | `ult`, `lwp`, `state`, `name`, `reason` | state of a user-level thread that exists already: [`UltState`] |
//! | `tracebraid:ult_call_begin`, `tracebraid:ult_call_end` | `ult` | a user-level thread enters, leaves a system call; it stays on its LWP |
//! | `tracebraid:lwp_begin` | `runtime` | this thread becomes an LWP of a runtime |
//! | `tracebraid:lwp_end` | | it is one no longer |
//! | `tracebraid:lwp_processor` | `processor` | the runtime's processor that this LWP holds from now on; -1 stands for none |
//! | `lttng_ust_cyg_profile:func_entry`, `func_exit` | `addr`, `call_site` | calls by `-finstrument-functions`; enabled only by patterns that name them |
//!
//! An LWP is a kernel thread that runs user-level threads; a runtime is the scheduler of user-level
//! threads. "This LWP" is the thread that records. Ids of user-level threads are above 0, below
//! 2⁶⁴-1, and unique among the live user-level threads of the process.
//!
//! Texts are made only if they are recorded: those of C are measured and checked for UTF-8, which
//! would cost more than the rest of a disabled probe.

use crate::probe;

/// Records the entry into a function.
pub fn prof_in(name: impl AsRef<str>) {
    probe!(tracebraid, prof_in, name: &str = name.as_ref());
}

/// Records the exit from a function.
pub fn prof_out(name: impl AsRef<str>) {
    probe!(tracebraid, prof_out, name: &str = name.as_ref());
}

/// Records the beginning of a span. Its id must be unique among the open spans of the process.
pub fn span_begin(id: u64, name: impl AsRef<str>) {
    probe!(tracebraid, span_begin, id: u64 = id, name: &str = name.as_ref());
}

/// Records the end of a span.
pub fn span_end(id: u64) {
    probe!(tracebraid, span_end, id: u64 = id);
}

/// Records the value of a counter.
pub fn counter(name: impl AsRef<str>, value: i64) {
    probe!(tracebraid, counter, name: &str = name.as_ref(), value: i64 = value);
}

/// Records the creation of a user-level thread, which is ready.
pub fn ult_create(ult: u64, name: impl AsRef<str>) {
    probe!(tracebraid, ult_create, ult: u64 = ult, name: &str = name.as_ref());
}

/// Records a switch of this LWP between user-level threads; 0 stands for none.
pub fn ult_switch(prev_ult: u64, next_ult: u64) {
    probe!(tracebraid, ult_switch, prev_ult: u64 = prev_ult, next_ult: u64 = next_ult);
}

/// Records that a user-level thread waits. The reason is the runtime's word in lower case: `mutex`,
/// `condition`, `channel`, `sleep`, `network`, `join`, ...
pub fn ult_block(ult: u64, reason: impl AsRef<str>) {
    probe!(tracebraid, ult_block, ult: u64 = ult, reason: &str = reason.as_ref());
}

/// Records that a user-level thread is ready, woken by the one that runs on this LWP, or by the
/// scheduler if none runs.
pub fn ult_wake(ult: u64) {
    probe!(tracebraid, ult_wake, ult: u64 = ult);
}

/// Records the end of a user-level thread.
pub fn ult_exit(ult: u64) {
    probe!(tracebraid, ult_exit, ult: u64 = ult);
}

/// Records a new name of a user-level thread.
pub fn ult_name(ult: u64, name: impl AsRef<str>) {
    probe!(tracebraid, ult_name, ult: u64 = ult, name: &str = name.as_ref());
}

/// State of a user-level thread that exists already; its number is the field `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UltState {
    /// Waits for an LWP.
    Ready = 0,
    /// Runs on an LWP.
    Running = 1,
    /// Waits for an event: a lock, a message, a time.
    Blocked = 2,
    /// In a system call on an LWP.
    Calling = 3,
}

/// Records the state of a user-level thread that exists already. `lwp` is the thread id of its
/// LWP, -1 without one; `name` and `reason` may be empty.
pub fn ult_state(
    ult: u64,
    lwp: i32,
    state: UltState,
    name: impl AsRef<str>,
    reason: impl AsRef<str>,
) {
    ult_state_number(ult, lwp, state as u8, name, reason);
}

pub(crate) fn ult_state_number(
    ult: u64,
    lwp: i32,
    state: u8,
    name: impl AsRef<str>,
    reason: impl AsRef<str>,
) {
    probe!(
        tracebraid,
        ult_state,
        ult: u64 = ult,
        lwp: i32 = lwp,
        state: u8 = state,
        name: &str = name.as_ref(),
        reason: &str = reason.as_ref()
    );
}

/// Records that a user-level thread enters a system call.
pub fn ult_call_begin(ult: u64) {
    probe!(tracebraid, ult_call_begin, ult: u64 = ult);
}

/// Records that a user-level thread leaves a system call.
pub fn ult_call_end(ult: u64) {
    probe!(tracebraid, ult_call_end, ult: u64 = ult);
}

/// Records that this thread becomes an LWP of a runtime (`go`, `openmp`, `boost.fiber`, ...).
pub fn lwp_begin(runtime: impl AsRef<str>) {
    probe!(tracebraid, lwp_begin, runtime: &str = runtime.as_ref());
}

/// Records that this thread is no longer an LWP.
pub fn lwp_end() {
    probe!(tracebraid, lwp_end);
}

/// Records the runtime's processor that this LWP holds from now on; -1 stands for none.
pub fn lwp_processor(processor: i32) {
    probe!(tracebraid, lwp_processor, processor: i32 = processor);
}
