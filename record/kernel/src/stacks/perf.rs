//! Stacks of a command without privileges: perf events of its own threads, which sample registers
//! and stacks.
//!
//! CPU time is sampled in user mode only. A wait begins with a sample at the context switch and
//! ends with the record of the switch back; unprivileged users can sample context switches only
//! where `kernel.perf_event_paranoid` is at most 1. No signal is sent and no library is loaded into
//! the command.

use std::collections::HashMap;
use std::fs;
use std::io;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::Stacks;
use super::unwinding::{CPU, Copied, WAIT};
use crate::lane::CpuQueue;
use crate::shared;

/// Size of a CPU's rings in bytes. All rings of a user have a common limit
/// (`kernel.perf_event_mlock_kb`), usually 512 KiB for each CPU.
const CLOCK_BYTES: usize = 256 << 10;
const SWITCH_BYTES: usize = 128 << 10;
/// Maximum number of stack bytes in a sample. The kernel's limit is below 64 KiB, but a ring has
/// room for few samples of that size.
const MOST_BYTES: u32 = 16 << 10;
/// Registers by their bits in `sample_regs_user`: rax to rip, r8 to r15.
const REGISTERS: u64 = 0xFF_01FF;
/// Indices of the registers in DWARF's order among those.
const ORDER: [usize; shared::REGISTERS] =
    [0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 8];

/// `PERF_RECORD_SWITCH`, and its flags.
const SWITCH: u32 = 14;
const IS_OUT: u16 = 1 << 13;
const IS_PREEMPTED: u16 = 1 << 14;

/// Bytes from the timestamp to the end of records other than samples, without and with the CPU
/// field after it.
const TIME_AT_END: usize = 8;
const TIME_BEFORE_CPU: usize = 16;

const NO_CALL: i32 = -1;
const UNKNOWN_CALL: i32 = -2;

/// Perf events of a command, by CPU.
pub(crate) struct PerfStacks {
    /// Each with the distance in bytes of the timestamp from the end of records other than samples.
    rings: Vec<(Sampler, usize)>,
    threshold_ns: u64,
    /// Number of stack bytes in a sample.
    bytes: u32,
    waits: Waits,
    names: Names,
    lost: u32,
    /// True if waits are sampled.
    has_waits: bool,
}

/// A record of a ring.
enum Found {
    Sample {
        tid: u32,
        copied: Copied,
        is_switch: bool,
    },
    Out {
        tid: u32,
        is_preempted: bool,
    },
    In {
        tid: u32,
    },
    /// A thread has been renamed, or has been created (`Made`) and inherits the name of its
    /// creator.
    Named {
        tid: u32,
        name: [u8; 16],
    },
    Made {
        tid: u32,
        by: u32,
    },
}

impl PerfStacks {
    /// Begins to sample a process and what it will start, on that number of CPUs.
    pub(crate) fn open(pid: u32, cpus: usize, stacks: &Stacks) -> io::Result<PerfStacks> {
        let bytes = sampled_bytes(stacks);
        let mut rings = Vec::new();
        let mut has_waits = stacks.threshold_ns > 0;
        for cpu in 0..cpus {
            if stacks.period_ns > 0 {
                rings.push((clock(pid, cpu, stacks.period_ns, bytes)?, TIME_AT_END));
            }
            if has_waits {
                match switches(pid, cpu, bytes) {
                    Ok(ring) => rings.push((ring, TIME_BEFORE_CPU)),
                    Err(_) => has_waits = false,
                }
            }
        }
        Ok(PerfStacks {
            rings,
            threshold_ns: stacks.threshold_ns,
            bytes,
            waits: Waits::default(),
            names: Names::of_command(pid),
            lost: 0,
            has_waits,
        })
    }

    /// True if waits are sampled, or were not requested.
    pub(crate) fn has_waits(&self) -> bool {
        self.has_waits
    }

    /// Cumulative count of samples lost because a ring was full; wraps.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Takes the samples since the last call.
    pub(crate) fn take(&mut self, lane: &mut CpuQueue) {
        let mut found = Vec::new();
        for (ring, time_at) in &mut self.rings {
            while let Some(record) = ring.next_record() {
                let (kind, misc) = (record.ty(), record.misc());
                let bytes = record.to_contiguous();
                match record.parse_record() {
                    Ok(Record::Lost(lost)) => self.lost = self.lost.wrapping_add(lost.lost as u32),
                    Ok(Record::Sample(sample)) => found.extend(of_sample(&sample)),
                    Ok(Record::Comm(comm)) => {
                        found.extend(
                            time_of(&bytes, *time_at).zip(Some(named(comm.tid, &comm.comm))),
                        );
                    }
                    Ok(Record::Fork(fork)) => {
                        let (tid, by) = (fork.tid, fork.ptid);
                        found.extend(time_of(&bytes, *time_at).zip(Some(Found::Made { tid, by })));
                    }
                    _ if kind == SWITCH => found.extend(of_switch(&bytes, misc)),
                    _ => {}
                }
            }
        }
        found.sort_by_key(|&(time, _)| time);
        for (time, found) in found {
            self.add(time, found, lane);
        }
    }

    fn add(&mut self, time: u64, found: Found, lane: &mut CpuQueue) {
        let lost = self.lost;
        let mut write = |kind: u16, copied: &Copied| {
            lane.add(time, Some(lost), |to| {
                copied.write(to);
                Some(kind)
            });
        };
        match found {
            Found::Sample {
                tid,
                mut copied,
                is_switch,
            } => {
                copied.comm = self.names.of(tid);
                copied.is_cut = copied.stack.len() >= self.bytes as usize;
                match is_switch {
                    true => drop(self.waits.0.insert(tid, (time, copied))),
                    false => write(CPU, &copied),
                }
            }
            Found::Named { tid, name } => drop(self.names.0.insert(tid, name)),
            Found::Made { tid, by } => drop(self.names.0.insert(tid, self.names.of(by))),
            Found::Out {
                tid,
                is_preempted: true,
            } => drop(self.waits.0.remove(&tid)),
            Found::Out { .. } => {}
            Found::In { tid } => {
                let Some((since, mut copied)) = self.waits.0.remove(&tid) else {
                    return;
                };
                copied.wait_ns = time.saturating_sub(since);
                if copied.wait_ns >= self.threshold_ns {
                    write(WAIT, &copied);
                }
            }
        }
    }
}

/// Number of stack bytes in a sample.
pub(super) fn sampled_bytes(stacks: &Stacks) -> u32 {
    stacks.copied().clamp(8, MOST_BYTES) & !7
}

/// Waiting threads, each with the begin of the wait and its stack.
#[derive(Default)]
struct Waits(HashMap<u32, (u64, Copied)>);

/// Thread names as perf events report them. `/proc` may be missing, or belong to another PID
/// namespace, in which the same id is another process.
#[derive(Default)]
struct Names(HashMap<u32, [u8; 16]>);

impl Names {
    /// The name that the command has when sampling starts.
    fn of_command(pid: u32) -> Names {
        let name =
            number_under_proc(pid).and_then(|number| fs::read(format!("/proc/{number}/comm")).ok());
        Names(name.map(|name| (pid, name_of(&name))).into_iter().collect())
    }

    fn of(&self, tid: u32) -> [u8; 16] {
        self.0.get(&tid).copied().unwrap_or_default()
    }
}

/// The id of a child of this process under `/proc`, which may belong to an outer PID namespace.
fn number_under_proc(child: u32) -> Option<u32> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    let is_child = |number: &u32| own_number(*number) == Some(child);
    children.into_iter().find(is_child)
}

/// The id of a process in its own PID namespace.
fn own_number(number: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{number}/status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// A name as in event records: at most 15 bytes, padded with zeros.
fn name_of(text: &[u8]) -> [u8; 16] {
    let mut name = [0; 16];
    let text = text
        .split(|byte| [0, b'\n'].contains(byte))
        .next()
        .unwrap_or_default();
    name.iter_mut()
        .take(15)
        .zip(text)
        .for_each(|(to, from)| *to = *from);
    name
}

fn named(tid: u32, text: &[u8]) -> Found {
    let name = name_of(text);
    Found::Named { tid, name }
}

/// The timestamp of a record other than a sample.
fn time_of(bytes: &[u8], time_at: usize) -> Option<u64> {
    let at = bytes.len().checked_sub(time_at)?;
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn base(event: Software, pid: u32, cpu: usize) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder.observe_pid(pid as i32).one_cpu(cpu).inherit(true);
    builder
        .sample(SampleFlag::TID | SampleFlag::TIME)
        .sample_id_all(true);
    builder.clockid(Clock::MONOTONIC).enabled(true);
    // Records of thread names and of thread creation.
    builder.comm(true).task(true);
    builder
}

fn clock(pid: u32, cpu: usize, period_ns: u64, bytes: u32) -> io::Result<Sampler> {
    let mut builder = base(Software::TASK_CLOCK, pid, cpu);
    builder.sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER);
    builder.sample_regs_user(REGISTERS).sample_stack_user(bytes);
    builder
        .sample_period(period_ns)
        .exclude_kernel(true)
        .exclude_hv(true);
    builder.build()?.sampled(CLOCK_BYTES)
}

fn switches(pid: u32, cpu: usize, bytes: u32) -> io::Result<Sampler> {
    let mut builder = base(Software::CONTEXT_SWITCHES, pid, cpu);
    builder.sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER);
    builder.sample_regs_user(REGISTERS).sample_stack_user(bytes);
    builder
        .sample_period(1)
        .include_kernel()
        .context_switch(true);
    // Marks these samples.
    builder.sample(SampleFlag::CPU);
    builder.build()?.sampled(SWITCH_BYTES)
}

fn of_sample(sample: &perf_event::data::Sample<'_>) -> Option<(u64, Found)> {
    let registers = sample.regs_user()?;
    let mut ordered = [0; shared::REGISTERS];
    for (register, place) in ordered.iter_mut().zip(ORDER) {
        *register = *registers.regs.get(place)?;
    }
    let [_, _, rcx, .., rip] = ordered;
    let tid = sample.tid()?;
    let copied = Copied {
        tid,
        pid: sample.pid()?,
        comm: [0; 16],
        wait_ns: 0,
        // The instruction of a system call leaves its own end in rcx; the number is not sampled.
        syscall: if rcx == rip { UNKNOWN_CALL } else { NO_CALL },
        registers: ordered,
        is_cut: false,
        stack: sample.stack_user().unwrap_or_default().to_vec(),
    };
    let is_switch = sample.cpu().is_some();
    Some((
        sample.time()?,
        Found::Sample {
            tid,
            copied,
            is_switch,
        },
    ))
}

/// A record without a payload: only the fields at the end of all records (process, thread, time,
/// CPU).
fn of_switch(bytes: &[u8], misc: u16) -> Option<(u64, Found)> {
    let end: &[u8; 24] = bytes.last_chunk()?;
    let tid = u32::from_ne_bytes(*end.get(4..)?.first_chunk()?);
    let time = u64::from_ne_bytes(*end.get(8..)?.first_chunk()?);
    let found = match misc & IS_OUT != 0 {
        true => Found::Out {
            tid,
            is_preempted: misc & IS_PREEMPTED != 0,
        },
        false => Found::In { tid },
    };
    Some((time, found))
}
