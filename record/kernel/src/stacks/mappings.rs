//! Executable mappings of processes, reported by the kernel during the recording (by perf events
//! without a counter).

use std::io;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::Mapping;

/// Size of the ring of a CPU: some thousand mappings.
const RING_BYTES: usize = 512 << 10;
/// The same without privileges, where all rings of a user have a common limit.
const UNPRIVILEGED_BYTES: usize = 64 << 10;
/// `PERF_RECORD_MISC_COMM_EXEC`.
const IS_EXEC: u16 = 1 << 13;

/// A change of a process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A file was mapped.
    Load(Mapping),
    /// The process has a copy of its parent's mappings.
    Fork { parent: u32, pid: u32 },
    /// The process executes another program: all mappings are gone.
    Exec { pid: u32 },
    /// A thread has ended; `is_first` for the main thread of its process.
    Exit { pid: u32, is_first: bool },
}

pub(crate) struct Mappings {
    rings: Vec<Sampler>,
}

impl Mappings {
    /// Starts listening on `cpus` CPUs, to all processes or to one process and its descendants.
    pub(crate) fn open(cpus: usize, pid: Option<u32>) -> io::Result<Mappings> {
        let mut rings = Vec::new();
        let mut error = None;
        for cpu in 0..cpus {
            match ring(cpu, pid) {
                Ok(ring) => rings.push(ring),
                // The CPU is offline.
                Err(source) => error = Some(source),
            }
        }
        match error {
            Some(error) if rings.is_empty() => Err(error),
            _ => Ok(Mappings { rings }),
        }
    }

    /// Passes the changes since the last call to `to`, with the time in nanoseconds of
    /// CLOCK_MONOTONIC.
    pub(crate) fn take(&mut self, mut to: impl FnMut(u64, Change)) {
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                let bytes = record.to_contiguous();
                // `sample_id_all` puts the time at the end.
                let time = bytes.last_chunk().map(|time| u64::from_ne_bytes(*time));
                let is_exec = record.misc() & IS_EXEC != 0;
                if let (Some(time), Ok(record)) = (time, record.parse_record())
                    && let Some(change) = change(&record, is_exec)
                {
                    to(time, change);
                }
            }
        }
    }
}

fn ring(cpu: usize, pid: Option<u32>) -> io::Result<Sampler> {
    let mut builder = Builder::new(Software::DUMMY);
    let bytes = match pid {
        Some(pid) => {
            builder
                .observe_pid(pid as i32)
                .inherit(true)
                .exclude_kernel(true)
                .exclude_hv(true);
            UNPRIVILEGED_BYTES
        }
        None => {
            builder.any_pid().include_kernel();
            RING_BYTES
        }
    };
    builder.one_cpu(cpu);
    // Build ids are not requested: if one listener requests them, the kernel also marks the records
    // of all other listeners as containing build ids, which aborts perf ("assertion failed at
    // util/build-id.c").
    builder.mmap(true).mmap2(true);
    builder.comm(true).comm_exec(true).task(true);
    builder.sample(SampleFlag::TIME).sample_id_all(true);
    builder.clockid(Clock::MONOTONIC).enabled(true);
    builder.build()?.sampled(bytes)
}

fn change(record: &Record<'_>, is_exec: bool) -> Option<Change> {
    match record {
        Record::Mmap2(mapped) => Some(Change::Load(Mapping {
            pid: mapped.pid,
            number: mapped.pid,
            begin: mapped.addr,
            bytes: mapped.len,
            offset: mapped.pgoff,
            path: mapped.filename.split(|&byte| byte == 0).next()?.to_vec(),
            build_id: Vec::new(),
            inode: mapped.ino().unwrap_or(0),
        })),
        // Threads share the memory of their process.
        Record::Fork(fork) => (fork.pid != fork.ppid).then_some(Change::Fork {
            parent: fork.ppid,
            pid: fork.pid,
        }),
        Record::Comm(comm) => is_exec.then_some(Change::Exec { pid: comm.pid }),
        Record::Exit(exit) => Some(Change::Exit {
            pid: exit.pid,
            is_first: exit.pid == exit.tid,
        }),
        _ => None,
    }
}
