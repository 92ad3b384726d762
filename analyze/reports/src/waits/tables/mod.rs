//! The tables of the report.

mod calls;
mod futexes;
mod sockets;
mod waits;

use tracebraid_tables::{Column, Unit};

pub use calls::reason_names;
pub(super) use calls::{
    by_thread, of_calls, of_calls_and_reasons, of_processes, of_threads, of_threads_and_reasons,
    reasons,
};
pub(super) use futexes::of_futexes;
pub(super) use sockets::of_sockets;
pub(super) use waits::list;

pub(super) const WHY: Column = Column::new("why", "Reason", Unit::Text);
const THREAD: Column = Column::new("thread", "Thread", Unit::Thread);
const PROCESS: Column = Column::new("process", "Process", Unit::Process);
const SYSCALL: Column = Column::new("syscall", "System call", Unit::Syscall);
