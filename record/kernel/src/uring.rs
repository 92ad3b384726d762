//! What the running kernel tells of requests to io_uring.

use libbpf_rs::btf::{Btf, types};

/// How the tracepoint at the end of a request tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// By what it gave and the like, as arguments of their own.
    Values,
    /// By the entry in the ring (Linux 6.17).
    Entry,
}

impl Completion {
    /// That of the running kernel; `None` if it tells in a way that nobody knows here, as those
    /// before 6.4 do, or not at all.
    pub(crate) fn of_kernel() -> Option<Completion> {
        let kernel = Btf::from_vmlinux().ok()?;
        match (
            arguments(&kernel, "io_uring_submit_req")?,
            arguments(&kernel, "io_uring_queue_async_work")?,
            arguments(&kernel, "io_uring_complete")?,
        ) {
            (1, 2, 3) => Some(Completion::Entry),
            (1, 2, 7) => Some(Completion::Values),
            _ => None,
        }
    }
}

/// How many arguments a tracepoint has.
fn arguments(kernel: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let name = format!("btf_trace_{tracepoint}");
    let function = kernel
        .type_by_name::<types::Typedef<'_>>(&name)?
        .next_type()?
        .next_type()?;
    let function = types::FuncProto::try_from(function).ok()?;
    // Before them stands whoever is told.
    function.len().checked_sub(1)
}
