//! Event classes that reports know.
//!
//! | class | fields | meaning |
//! |---|---|---|
//! | `tracebraid:prof_in`, `tracebraid:prof_out` | `name` | a function is entered, left |
//! | `tracebraid:span_begin` | `id`, `name` | a span begins; it may end on another thread |
//! | `tracebraid:span_end` | `id` | the span ends |
//! | `tracebraid:counter` | `name`, `value` | the value of a counter from now on |
//! | `tracebraid:ult_create` | `ult`, `name` | a user-level thread is created |
//! | `tracebraid:ult_switch` | `prev_ult`, `next_ult` | this thread switches from one user-level thread to another; 0 stands for none |
//! | `tracebraid:ult_exit` | `ult` | a user-level thread ends |
//! | `lttng_ust_cyg_profile:func_entry`, `func_exit` | `addr`, `call_site` | calls by `-finstrument-functions`; enabled only by patterns that name them |

use crate::probe;

/// Records the entry into a function.
pub fn prof_in(name: &str) {
    probe!(tracebraid, prof_in, name: &str = name);
}

/// Records the exit from a function.
pub fn prof_out(name: &str) {
    probe!(tracebraid, prof_out, name: &str = name);
}

/// Records the beginning of a span. Its id must be unique among the open spans of the process.
pub fn span_begin(id: u64, name: &str) {
    probe!(tracebraid, span_begin, id: u64 = id, name: &str = name);
}

/// Records the end of a span.
pub fn span_end(id: u64) {
    probe!(tracebraid, span_end, id: u64 = id);
}

/// Records the value of a counter.
pub fn counter(name: &str, value: i64) {
    probe!(tracebraid, counter, name: &str = name, value: i64 = value);
}

/// Records the creation of a user-level thread. Its id is above 0 and unique among the live
/// user-level threads of the process.
pub fn ult_create(ult: u64, name: &str) {
    probe!(tracebraid, ult_create, ult: u64 = ult, name: &str = name);
}

/// Records a switch of the running thread between user-level threads; 0 stands for none.
pub fn ult_switch(prev_ult: u64, next_ult: u64) {
    probe!(tracebraid, ult_switch, prev_ult: u64 = prev_ult, next_ult: u64 = next_ult);
}

/// Records the end of a user-level thread.
pub fn ult_exit(ult: u64) {
    probe!(tracebraid, ult_exit, ult: u64 = ult);
}
