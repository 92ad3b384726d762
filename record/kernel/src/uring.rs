//! Variants of the tracepoints for io_uring requests in different kernels.

use libbpf_rs::btf::{Btf, types};

/// The arguments of the tracepoint at the end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The result and other values as separate arguments.
    Values,
    /// An entry of the ring (Linux 6.17).
    Entry,
}

impl Completion {
    /// The variant of the running kernel; `None` if it is not supported, as in kernels before 6.4,
    /// or the kernel has no such tracepoints.
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

/// Number of arguments of a tracepoint.
fn arguments(kernel: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let name = format!("btf_trace_{tracepoint}");
    let function = kernel
        .type_by_name::<types::Typedef<'_>>(&name)?
        .next_type()?
        .next_type()?;
    let function = types::FuncProto::try_from(function).ok()?;
    // The first parameter is the context pointer of the tracepoint's subscriber.
    function.len().checked_sub(1)
}
