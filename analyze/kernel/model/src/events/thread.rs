//! Threads and processes: their beginnings, ends, names, and the state dump of them.

use crate::field::{IntField, TextField};

/// A thread is made.
#[derive(Clone, Debug)]
pub struct Fork {
    /// Thread that makes it.
    pub parent_tid: Option<IntField>,
    /// Its process.
    pub parent_pid: Option<IntField>,
    /// The new thread.
    pub child_tid: IntField,
    /// Its process: its own tid for a new process. Not with every tracer.
    pub child_pid: Option<IntField>,
    /// Its name.
    pub child_name: Option<TextField>,
}

/// A process executes a program.
#[derive(Clone, Debug)]
pub struct Exec {
    /// The program's path.
    pub path: Option<TextField>,
    /// Thread: the process's first from now on.
    pub tid: Option<IntField>,
    /// Thread that called; another one than `tid` if it was not the process's first.
    pub old_tid: Option<IntField>,
}

/// A thread that is there.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// Thread.
    pub tid: IntField,
    /// Its process.
    pub pid: IntField,
    /// Its name.
    pub name: Option<TextField>,
    /// Process that it is a child of; 0 is the kernel.
    pub ppid: Option<IntField>,
    /// Address of its table of descriptors, which [`StateFd`]s then name.
    pub table: Option<IntField>,
}

/// A descriptor that is open.
#[derive(Clone, Debug)]
pub struct StateFd {
    /// Process, with tracers that give it.
    pub pid: Option<IntField>,
    /// Else the address of the table.
    pub table: Option<IntField>,
    /// The descriptor.
    pub fd: IntField,
    /// Flags as of `open`.
    pub flags: Option<IntField>,
    /// Path or kind.
    pub path: Option<TextField>,
}
