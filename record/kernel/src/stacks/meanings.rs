//! The meaning of addresses in stacks, as events of the trace: mappings of programs, and functions
//! of the kernel.

use std::cell::RefCell;

use super::mappings::Change;
use super::python::{Functions, Python};
use super::unwinding::{Unwinding, is_copy};
use super::{BuildIds, KernelSymbols, MappedFiles, Mapping, Mappings, Stacks};
use crate::error::RecordError;
use crate::lane::CpuQueue;
use crate::machine::now;
use crate::raw::{Head, u64_at};
use crate::shared::{self, kinds};
use crate::state::Payload;

/// Writes the events that explain addresses while stacks are recorded.
pub(crate) struct Meanings {
    state: Vec<u8>,
    symbols: RefCell<KernelSymbols>,
    mappings: RefCell<Mappings>,
    unwinding: RefCell<Unwinding>,
    functions: RefCell<Functions>,
    ids: RefCell<BuildIds>,
    files: RefCell<MappedFiles>,
}

impl Meanings {
    /// Starts listening on `cpus` CPUs, to all processes or to one process and its descendants.
    /// First adds the event that describes how stacks are recorded.
    pub(crate) fn begin(
        stacks: &Stacks,
        cpus: usize,
        pid: Option<u32>,
        time: u64,
        lane: &mut CpuQueue,
    ) -> Result<Meanings, RecordError> {
        let failed = |error| RecordError::Load(format!("cannot listen to mappings: {error}"));
        let mappings = Mappings::open(cpus, pid).map_err(failed)?;
        let state = stacks.state(pid.is_some());
        add(lane, time, kinds::TRACEBRAID_STACKS_STATE, &state);
        Ok(Meanings {
            state,
            symbols: RefCell::new(KernelSymbols::read()),
            mappings: RefCell::new(mappings),
            unwinding: RefCell::new(Unwinding::new(stacks.most_frames())),
            functions: RefCell::default(),
            ids: RefCell::default(),
            files: RefCell::new(MappedFiles::new()),
        })
    }

    /// Adds the events that a record's addresses need: functions of the kernel that are new in its
    /// stack, and functions of Python.
    pub(crate) fn symbols(&self, head: &Head, record: &[u8], lane: &mut CpuQueue) {
        if usize::from(head.kind) == shared::KIND_PYTHON_FUNCTION {
            if let Some(payload) = self.functions.borrow_mut().add(record) {
                add(lane, head.time, kinds::TRACEBRAID_CODE_SYMBOL, &payload);
            }
            return;
        }
        let is_stack =
            [kinds::TRACEBRAID_CPU_STACK, kinds::TRACEBRAID_SYSCALL_STACK].contains(&head.kind);
        if !is_stack && !is_copy(head.kind) {
            return;
        }
        let mut symbols = self.symbols.borrow_mut();
        for address in kernel_frames(record) {
            if let Some(payload) = symbols.tell(address) {
                add(lane, head.time, kinds::TRACEBRAID_KERNEL_SYMBOL, &payload);
            }
        }
    }

    /// Registers the ids of processes under `/proc`: see [`crate::Processes::numbers`].
    pub(crate) fn know(&self, numbers: &[[u32; 3]]) {
        let processes = &mut self.unwinding.borrow_mut().processes;
        numbers
            .iter()
            .for_each(|&[pid, number, _]| processes.know(pid, number));
    }

    /// Reads the mappings of a process that will be recorded, before it can change them: a command
    /// has executed another program by the time its first stack is unwound.
    pub(crate) fn read(&self, pid: u32) {
        self.unwinding.borrow_mut().processes.read(pid);
    }

    /// Records the mappings since the last call. Perf events have the ids of this process's PID
    /// namespace; `initial` translates them to those of event records. Changes of processes outside
    /// the namespace have no id and are left out.
    pub(crate) fn mappings(&self, lane: &mut CpuQueue, initial: impl Fn(u32) -> Option<u32>) {
        let processes = &mut self.unwinding.borrow_mut().processes;
        let numbered = |change| match change {
            Change::Load(mapping) => {
                initial(mapping.pid).map(|pid| Change::Load(Mapping { pid, ..mapping }))
            }
            Change::Fork { parent, pid } => {
                let parent = initial(parent)?;
                initial(pid).map(|pid| Change::Fork { parent, pid })
            }
            Change::Exec { pid } => initial(pid).map(|pid| Change::Exec { pid }),
            Change::Exit { pid, is_first } => {
                initial(pid).map(|pid| Change::Exit { pid, is_first })
            }
        };
        let (mut files, mut ids) = (self.files.borrow_mut(), self.ids.borrow_mut());
        self.mappings.borrow_mut().take(|time, change| {
            let Some(mut change) = numbered(change) else {
                return;
            };
            if let Change::Load(mapping) = &mut change {
                mapping.build_id = ids.of(mapping);
            }
            match &change {
                Change::Load(mapping) if mapping.path == ANONYMOUS => {}
                Change::Load(mapping) => {
                    files.meet(mapping);
                    add(lane, time, kinds::TRACEBRAID_MAP_LOAD, &mapping.payload());
                }
                Change::Fork { parent, pid } => {
                    let payload = Payload::default().int(*parent as i32).int(*pid as i32);
                    add(lane, time, kinds::TRACEBRAID_MAP_FORK, &payload.bytes_of());
                }
                Change::Exec { pid } => {
                    let payload = Payload::default().int(*pid as i32);
                    add(lane, time, kinds::TRACEBRAID_MAP_EXEC, &payload.bytes_of());
                }
                Change::Exit {
                    pid,
                    is_first: true,
                } => self.functions.borrow_mut().forget(*pid),
                Change::Exit { .. } => {}
            }
            processes.add(time, change);
        });
        files.take(|payload| add(lane, now(), kinds::TRACEBRAID_MAP_FILE, payload));
    }

    /// Adds, at the end, the files that were still being read.
    pub(crate) fn rest(&self, lane: &mut CpuQueue, initial: impl Fn(u32) -> Option<u32>) {
        self.mappings(lane, initial);
        let mut files = self.files.borrow_mut();
        files.take_rest(|payload| add(lane, now(), kinds::TRACEBRAID_MAP_FILE, payload));
    }

    /// Unwinds the copies of stacks that were taken before a time, or all copies. Earlier mappings
    /// must have been processed.
    pub(crate) fn unwind(&self, lanes: &[RefCell<CpuQueue>], until: Option<u64>) {
        let mut unwinding = self.unwinding.borrow_mut();
        unwinding.processes.advance(until);
        for lane in lanes {
            lane.borrow_mut()
                .rewrite(until, is_copy, |time, kind, record, to| {
                    unwinding.event(time, kind, record, to)
                });
        }
        unwinding.processes.forget(until.unwrap_or(u64::MAX));
    }

    /// Python interpreters found since the last call, by process.
    pub(crate) fn pythons(&self) -> Vec<(u32, Python)> {
        self.unwinding.borrow_mut().processes.take_found()
    }

    /// Repeats the events that describe how stacks are recorded, and those of functions and files,
    /// whose first copies may have been dropped.
    pub(crate) fn again(&self, time: u64, lane: &mut CpuQueue) {
        add(lane, time, kinds::TRACEBRAID_STACKS_STATE, &self.state);
        for payload in self.symbols.borrow().told() {
            add(lane, time, kinds::TRACEBRAID_KERNEL_SYMBOL, &payload);
        }
        for payload in self.functions.borrow().all() {
            add(lane, time, kinds::TRACEBRAID_CODE_SYMBOL, payload);
        }
        for payload in self.files.borrow().told() {
            add(lane, time, kinds::TRACEBRAID_MAP_FILE, payload);
        }
    }
}

/// Name of anonymous memory.
const ANONYMOUS: &[u8] = b"//anon";

fn add(lane: &mut CpuQueue, time: u64, id: u16, payload: &[u8]) {
    lane.add(time, None, |to| {
        to.extend_from_slice(payload);
        Some(id)
    });
}

/// Offset of the kernel's frames in a record (`struct stack`), after their four-byte count.
const KERNEL_COUNT: usize = 36;

fn kernel_frames(record: &[u8]) -> impl Iterator<Item = u64> {
    let count = record.get(KERNEL_COUNT..).and_then(<[u8]>::first_chunk);
    let count = count.map_or(0, |count| u32::from_le_bytes(*count) as usize);
    (0..count.min(64)).filter_map(move |place| u64_at(record, KERNEL_COUNT + 4 + 8 * place))
}
