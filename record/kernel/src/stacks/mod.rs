//! Call stacks from the kernel: how they are recorded, and the facts needed to interpret their
//! addresses.
//!
//! BPF programs (`bpf/stacks.h`, `bpf/waits.h`) copy registers and the used part of a stack.
//! `unwinding` converts the copies to return addresses (`record/unwind`) when their events are
//! written: by then all mappings up to that time are known (`processes`). Programs receive no
//! signal and load no library.
//!
//! Waits are found at `sched_switch`. The user-space part of the stack can only be read while the
//! program runs, so a task work copies it in the thread itself. Python functions are read from the
//! interpreter (`python`, `bpf/python.h`). Without privileges perf events make the same copies
//! (`perf`).
//!
//! The trace also contains the meaning of addresses (`meanings`): mappings, which the kernel
//! reports by perf events, and functions of the kernel and of Python before their first use. For a
//! mapped file without a build id it contains size, time and hash (`mapped_files`), so that no
//! names are later taken from another file.

mod clock;
mod files;
mod mapped_files;
mod mappings;
mod meanings;
mod modules;
mod perf;
mod processes;
mod python;
mod symbols;
mod unwinding;
mod vdso;

pub(crate) use clock::{cpu_clocks, readiness};
use files::BuildIds;
pub(crate) use files::dump;
pub(crate) use mapped_files::FilesBefore;
use mapped_files::MappedFiles;
use mappings::Mappings;
pub(crate) use meanings::Meanings;
pub(crate) use perf::PerfStacks;
use symbols::KernelSymbols;
pub(crate) use unwinding::is_copy;
pub use vdso::image as vdso_image;

use crate::shared;
use crate::state::Payload;

/// Selection of call stacks, and how they are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacks {
    /// CPU time of a CPU from one sample to the next, in nanoseconds; 0 for no samples.
    pub period_ns: u64,
    /// Minimum duration of recorded waits in nanoseconds; 0 for no waits.
    pub threshold_ns: u64,
    /// Maximum number of frames of a program, up to [`MOST_DEPTH`]; 127 with frame pointers.
    pub depth: u32,
    /// Maximum number of bytes of a program's stack that are copied for unwinding, up to
    /// [`MOST_COPY`]; 0: the kernel follows frame pointers. On other machines than x86-64 it always
    /// does.
    pub copy_bytes: u32,
    /// Use task work of the newest kernels to take the stack of a wait when the thread returns to
    /// its program. If false, or unsupported, the stack is taken when the thread leaves its system
    /// call.
    pub resumes: bool,
}

impl Default for Stacks {
    fn default() -> Self {
        Stacks {
            period_ns: 1_000_000,
            threshold_ns: 100_000,
            depth: 256,
            copy_bytes: shared::USUAL_COPY as u32,
            resumes: true,
        }
    }
}

/// Maximum number of frames of a program.
pub const MOST_DEPTH: u32 = 1024;

/// Maximum number of bytes of a stack that are copied.
pub const MOST_COPY: u32 = shared::MOST_COPY as u32;

/// Maximum number of frames that the kernel follows.
const MOST_FOLLOWED: u32 = shared::MOST_USER_FRAMES as u32;

impl Stacks {
    /// Encodes as `struct stack_options`.
    pub(crate) fn encode(&self, can_resume: bool) -> [u8; 32] {
        let mut bytes = [0; 32];
        let fields = [
            &self.threshold_ns.to_ne_bytes()[..],
            &self.depth.clamp(1, MOST_FOLLOWED).to_ne_bytes(),
            &self.copied().to_ne_bytes(),
            &(shared::USUAL_COPY as u32 + self.longer()).to_ne_bytes(),
            &self.heap_bytes().to_ne_bytes(),
            &[u8::from(can_resume)],
        ];
        bytes
            .iter_mut()
            .zip(fields.concat())
            .for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// Number of bytes that are copied on this machine.
    pub(crate) fn copied(&self) -> u32 {
        let copies = cfg!(target_arch = "x86_64");
        if copies {
            self.copy_bytes.min(MOST_COPY)
        } else {
            0
        }
    }

    /// Maximum number of bytes that are copied of a mapping too large to be a stack: a fixed share
    /// of the bytes of a stack, so that the option `stack_bytes` changes both.
    fn heap_bytes(&self) -> u32 {
        const PART: u32 = (shared::USUAL_COPY / shared::USUAL_HEAP_COPY) as u32;
        (self.copied() / PART).max(shared::USUAL_HEAP_COPY as u32)
    }

    /// Bytes by which a copy may exceed the usual maximum.
    pub(crate) fn longer(&self) -> u32 {
        self.copied().saturating_sub(shared::USUAL_COPY as u32)
    }

    /// Maximum number of frames of a program with the method used on this machine.
    pub(crate) fn most_frames(&self) -> u32 {
        let most = if self.copied() > 0 {
            MOST_DEPTH
        } else {
            MOST_FOLLOWED
        };
        self.depth.clamp(1, most)
    }

    /// The payload of `tracebraid_stacks_state`; `by_perf` if perf events sample the stacks.
    pub(crate) fn state(&self, by_perf: bool) -> Vec<u8> {
        let bytes = if by_perf {
            perf::sampled_bytes(self)
        } else {
            self.copied()
        };
        let times = Payload::default()
            .long(self.period_ns)
            .long(self.threshold_ns);
        times
            .int(self.most_frames() as i32)
            .int(bytes as i32)
            .bytes_of()
    }
}

/// An executable mapping of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) pid: u32,
    /// Id of the process under `/proc`.
    pub(crate) number: u32,
    pub(crate) begin: u64,
    pub(crate) bytes: u64,
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) path: Vec<u8>,
    /// Empty if the file has none.
    pub(crate) build_id: Vec<u8>,
    /// Inode of the file; 0 if unknown.
    pub(crate) inode: u64,
}

impl Mapping {
    /// True for a file; false for anonymous memory (`//anon`) and the kernel's mappings (`[vdso]`).
    pub(crate) fn is_of_file(&self) -> bool {
        self.path.starts_with(b"/") && !self.path.starts_with(b"//anon")
    }

    /// The payload of `tracebraid_map_load`.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let id = self
            .build_id
            .get(..self.build_id.len().min(usize::from(u8::MAX)));
        let id = id.unwrap_or_default();
        let payload = Payload::default()
            .int(self.pid as i32)
            .long(self.begin)
            .long(self.bytes)
            .long(self.offset);
        payload
            .text(&self.path)
            .bytes(&[id.len() as u8])
            .bytes(id)
            .bytes_of()
    }
}
