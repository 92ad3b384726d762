//! Threads and processes: creation, end, names, and their state dump.

use crate::field::{IntField, TextField};

/// A thread is created.
#[derive(Clone, Debug)]
pub struct Fork {
    /// Id of the creating thread.
    pub parent_tid: Option<IntField>,
    /// Process of the creating thread.
    pub parent_pid: Option<IntField>,
    /// Id of the new thread.
    pub child_tid: IntField,
    /// Process of the new thread: its own id for a new process. Absent with some tracers.
    pub child_pid: Option<IntField>,
    /// Name of the new thread.
    pub child_name: Option<TextField>,
}

/// A process executes a program.
#[derive(Clone, Debug)]
pub struct Exec {
    /// Path of the program.
    pub path: Option<TextField>,
    /// Id of the thread, the process's first thread from now on.
    pub tid: Option<IntField>,
    /// Id of the thread that made the call; differs from `tid` if it was not the process's first
    /// thread.
    pub old_tid: Option<IntField>,
}

/// An existing thread.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// Id of the thread.
    pub tid: IntField,
    /// Process of the thread.
    pub pid: IntField,
    /// Name of the thread.
    pub name: Option<TextField>,
    /// Id of the parent process; 0 is the kernel.
    pub ppid: Option<IntField>,
    /// Address of the table of descriptors, as in [`StateFd`].
    pub table: Option<IntField>,
}

/// An open descriptor.
#[derive(Clone, Debug)]
pub struct StateFd {
    /// Id of the process, if the tracer records it.
    pub pid: Option<IntField>,
    /// Address of the table, if the tracer records that instead.
    pub table: Option<IntField>,
    /// Number of the descriptor.
    pub fd: IntField,
    /// Flags as for `open`.
    pub flags: Option<IntField>,
    /// Path or kind of the file.
    pub path: Option<TextField>,
}
