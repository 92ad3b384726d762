//! Priorities (nice values) of the threads of a recording.

/// Priority of the thread that empties the rings, which overflow if it is late.
pub(crate) const FIRST: i32 = -20;
/// Priority of the thread that writes the state dump.
pub(crate) const USUAL: i32 = 0;

/// Sets this thread's priority; without the privilege, the priority does not change.
pub(crate) fn hurry(nice: i32) {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), nice);
}
