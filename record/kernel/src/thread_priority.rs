//! Priorities (nice values) of the threads of a recording.

/// That of the thread that empties rings, which overflow if it is late.
pub(crate) const FIRST: i32 = -20;
/// That of the thread that looks at what is there.
pub(crate) const USUAL: i32 = 0;

/// Sets this thread's priority; without the privilege it stays.
pub(crate) fn hurry(nice: i32) {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), nice);
}
