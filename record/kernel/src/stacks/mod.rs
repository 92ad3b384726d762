//! Call stacks from the kernel: what is wanted, and what is needed to know what their addresses mean.
//!
//! BPF programs (`bpf/stacks.h`, `bpf/waits.h`) take stacks of programs that have frame pointers, and send a signal
//! after long waits to those that take their own stacks (`record/stacks`).

mod clock;
mod files;
mod mapped_files;
mod mappings;
mod meanings;
mod symbols;

use std::path::PathBuf;

pub(crate) use clock::{cpu_clocks, readiness};
pub(crate) use files::dump;
pub(crate) use mapped_files::FilesBefore;
use mapped_files::MappedFiles;
use mappings::Mappings;
pub(crate) use meanings::Meanings;
use symbols::KernelSymbols;

use crate::state::Payload;

/// Which call stacks are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacks {
    /// Nanoseconds of a CPU's time from one sample to the next; 0 for none.
    pub period_ns: u64,
    /// Waits of that many nanoseconds and more; 0 for none.
    pub threshold_ns: u64,
    /// Frames of a program at most, up to 127.
    pub depth: u32,
    /// Those of all processes that are recorded, by frame pointers. Processes that take their own are passed over.
    pub takes_stacks: bool,
    /// The library with which processes take their own (`libtracebraid_stacks.so`): they are told of long waits.
    pub library: Option<PathBuf>,
    /// Uses what the newest kernels have; else, and where they do not have it, stacks are taken whenever a thread
    /// begins to wait, and processes are told nothing.
    pub resumes: bool,
}

impl Default for Stacks {
    fn default() -> Self {
        Stacks {
            period_ns: 1_000_000,
            threshold_ns: 100_000,
            depth: 127,
            takes_stacks: false,
            library: None,
            resumes: true,
        }
    }
}

/// Frames of a program that BPF programs have room for.
const MOST_DEPTH: u32 = 127;

impl Stacks {
    /// `struct stack_options`.
    pub(crate) fn encode(&self, can_resume: bool) -> [u8; 16] {
        let mut bytes = [0; 16];
        let fields = [
            &self.threshold_ns.to_ne_bytes()[..],
            &self.depth.clamp(1, MOST_DEPTH).to_ne_bytes(),
            &[u8::from(self.takes_stacks), u8::from(can_resume)],
        ];
        bytes
            .iter_mut()
            .zip(fields.concat())
            .for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// The event that says how stacks are taken.
    pub(crate) fn state(&self) -> Vec<u8> {
        let times = Payload::default().long(self.period_ns).long(self.threshold_ns);
        times.int(self.depth.clamp(1, MOST_DEPTH) as i32).bytes_of()
    }
}

/// A part of a file that a process has mapped to execute it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) pid: u32,
    pub(crate) begin: u64,
    pub(crate) bytes: u64,
    /// In the file.
    pub(crate) offset: u64,
    pub(crate) path: Vec<u8>,
    /// Empty if there is none.
    pub(crate) build_id: Vec<u8>,
}

impl Mapping {
    /// The payload of `tracebraid_map_load`.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let id = self.build_id.get(..self.build_id.len().min(usize::from(u8::MAX)));
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
