//! Kinds of device commands.

use serde::{Deserialize, Serialize};

/// Kind of a device command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A kernel.
    Kernel,
    /// A command buffer, which contains other commands.
    CommandBuffer,
    /// A transfer from the device to the host.
    Read,
    /// A transfer from the host to the device.
    Write,
    /// A copy within the device or between devices.
    Copy,
    /// A pattern written to memory of the device.
    Fill,
    /// Memory of the device made accessible to the host.
    Map,
    /// The end of a mapping.
    Unmap,
    /// Memory moved to another device.
    Migrate,
    /// A marker, a barrier, or another command without work.
    Barrier,
    /// Another command.
    Other,
}

/// Parts of names of functions, and the kinds of their commands; the first match counts.
const KINDS: &[(&str, Kind)] = &[
    ("CommandBuffer", Kind::CommandBuffer),
    ("Kernel", Kind::Kernel),
    ("Task", Kind::Kernel),
    ("Unmap", Kind::Unmap),
    ("Migrate", Kind::Migrate),
    ("Map", Kind::Map),
    ("Read", Kind::Read),
    ("Write", Kind::Write),
    ("Fill", Kind::Fill),
    ("Memset", Kind::Fill),
    ("Memfill", Kind::Fill),
    ("Copy", Kind::Copy),
    ("Memcpy", Kind::Copy),
    ("Marker", Kind::Barrier),
    ("Barrier", Kind::Barrier),
    ("WaitForEvents", Kind::Barrier),
    ("Semaphores", Kind::Barrier),
];

/// Parts of names of functions that may wait until commands are complete: some always, others by
/// an argument.
const WAITING: &[&str] = &[
    "Finish",
    "WaitForEvents",
    "Synchronize",
    "EnqueueRead",
    "EnqueueWrite",
    "EnqueueMap",
    "EnqueueSVM",
];

/// True if a function may wait until commands are complete.
pub(crate) fn may_wait(function: &str) -> bool {
    let copies = function.contains("Memcpy") && !function.contains("Async");
    copies || WAITING.iter().any(|part| function.contains(part))
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 11] = [
        Kind::Kernel,
        Kind::CommandBuffer,
        Kind::Read,
        Kind::Write,
        Kind::Copy,
        Kind::Fill,
        Kind::Map,
        Kind::Unmap,
        Kind::Migrate,
        Kind::Barrier,
        Kind::Other,
    ];

    /// Kind of the commands that a function enqueues, `None` for other functions.
    pub fn of_function(name: &str) -> Option<Kind> {
        let command = name.strip_prefix("clEnqueue")?;
        let found = KINDS.iter().find(|(part, _)| command.contains(part));
        Some(found.map_or(Kind::Other, |(_, kind)| *kind))
    }

    /// Number among all kinds.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// The kind with a number.
    pub(crate) fn with_number(number: u8) -> Kind {
        let kind = Kind::ALL.get(usize::from(number));
        kind.copied().unwrap_or(Kind::Other)
    }

    /// A command of this kind that has no kernel, in a list of kernels.
    pub(crate) fn without_name(self) -> &'static str {
        match self {
            Kind::CommandBuffer => "command buffer",
            _ => "native kernel",
        }
    }

    /// Name in output.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::CommandBuffer => "command-buffer",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Copy => "copy",
            Kind::Fill => "fill",
            Kind::Map => "map",
            Kind::Unmap => "unmap",
            Kind::Migrate => "migrate",
            Kind::Barrier => "barrier",
            Kind::Other => "other",
        }
    }

    /// True if the command moves bytes between host and device, or within the device.
    pub fn is_transfer(self) -> bool {
        !matches!(
            self,
            Kind::Kernel | Kind::CommandBuffer | Kind::Barrier | Kind::Other
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_numbers() {
        for kind in Kind::ALL {
            assert_eq!(Kind::with_number(kind.number()), kind);
        }
    }

    #[test]
    fn functions_enqueue_commands_of_their_kind() {
        for (function, expected) in [
            ("clEnqueueNDRangeKernel", Some(Kind::Kernel)),
            ("clEnqueueTask", Some(Kind::Kernel)),
            ("clEnqueueNativeKernel", Some(Kind::Kernel)),
            ("clEnqueueCommandBufferKHR", Some(Kind::CommandBuffer)),
            ("clEnqueueReadBufferRect", Some(Kind::Read)),
            ("clEnqueueWriteImage", Some(Kind::Write)),
            ("clEnqueueCopyBufferToImage", Some(Kind::Copy)),
            ("clEnqueueSVMMemcpy", Some(Kind::Copy)),
            ("clEnqueueSVMMemFill", Some(Kind::Fill)),
            ("clEnqueueMemFillINTEL", Some(Kind::Fill)),
            ("clEnqueueMapBuffer", Some(Kind::Map)),
            ("clEnqueueSVMMap", Some(Kind::Map)),
            ("clEnqueueUnmapMemObject", Some(Kind::Unmap)),
            ("clEnqueueMigrateMemObjects", Some(Kind::Migrate)),
            ("clEnqueueMarkerWithWaitList", Some(Kind::Barrier)),
            ("clEnqueueBarrier", Some(Kind::Barrier)),
            ("clEnqueueSignalSemaphoresKHR", Some(Kind::Barrier)),
            ("clEnqueueAcquireGLObjects", Some(Kind::Other)),
            ("clFinish", None),
        ] {
            assert_eq!(Kind::of_function(function), expected, "{function}");
        }
    }
}
