//! Event classes that programs and reports agree on.
//!
//! | class | fields | meaning |
//! |---|---|---|
//! | `tracebraid:prof_in`, `tracebraid:prof_out` | `name` | a function is entered, left |
//! | `tracebraid:span_begin` | `id`, `name` | a piece of work begins; on whatever thread it ends |
//! | `tracebraid:span_end` | `id` | it ends |
//! | `tracebraid:counter` | `name`, `value` | a quantity has that value from now on |
//! | `tracebraid:ult_create` | `ult`, `name` | a user-level thread comes into being |
//! | `tracebraid:ult_switch` | `prev_ult`, `next_ult` | this thread leaves one and runs another; 0 for none |
//! | `tracebraid:ult_exit` | `ult` | a user-level thread ends |
//! | `lttng_ust_cyg_profile:func_entry`, `func_exit` | `addr`, `call_site` | what `-finstrument-functions` calls; on only if named by a pattern |

use crate::probe;

/// A function is entered.
pub fn prof_in(name: &str) {
    probe!(tracebraid, prof_in, name: &str = name);
}

/// A function is left.
pub fn prof_out(name: &str) {
    probe!(tracebraid, prof_out, name: &str = name);
}

/// A span begins. Its id is unique in the process among those that are open.
pub fn span_begin(id: u64, name: &str) {
    probe!(tracebraid, span_begin, id: u64 = id, name: &str = name);
}

/// A span ends.
pub fn span_end(id: u64) {
    probe!(tracebraid, span_end, id: u64 = id);
}

/// A counter has a value.
pub fn counter(name: &str, value: i64) {
    probe!(tracebraid, counter, name: &str = name, value: i64 = value);
}

/// A user-level thread comes into being. Its id is above 0 and unique in the process among those
/// that live.
pub fn ult_create(ult: u64, name: &str) {
    probe!(tracebraid, ult_create, ult: u64 = ult, name: &str = name);
}

/// The running thread leaves a user-level thread and goes on with another; 0 stands for none.
pub fn ult_switch(prev_ult: u64, next_ult: u64) {
    probe!(tracebraid, ult_switch, prev_ult: u64 = prev_ult, next_ult: u64 = next_ult);
}

/// A user-level thread ends.
pub fn ult_exit(ult: u64) {
    probe!(tracebraid, ult_exit, ult: u64 = ult);
}
