//! Conversion of copied registers and stacks to events with return addresses.

use tracebraid_unwind::{End, Registers, StackCopy, Unwinder};

use super::processes::Processes;
use super::python;
use crate::raw::{u32_at, u64_at};
use crate::shared::{self, kinds};

/// Kinds of records with copies.
pub(crate) const CPU: u16 = shared::KIND_COPIED_CPU_STACK as u16;
pub(crate) const WAIT: u16 = shared::KIND_COPIED_SYSCALL_STACK as u16;

/// True if a record contains a copy of a stack.
pub(crate) fn is_copy(kind: u16) -> bool {
    kind == CPU || kind == WAIT
}

/// Offsets in a record (`struct stack`), after its head.
const PID: usize = 4;
const CALL: usize = 32;
const KERNEL_COUNT: usize = 36;
const KERNEL: usize = 40;
const STATE: usize = KERNEL + 8 * shared::MOST_KERNEL_FRAMES;
const BYTES: usize = STATE + 4;
const REGISTERS: usize = BYTES + 4;
const INTERRUPTED: usize = REGISTERS + 8 * shared::REGISTERS;
const INTERRUPTED_BYTES: usize = INTERRUPTED + 8;
const PYTHON_COUNT: usize = INTERRUPTED_BYTES + 8;
const COPY: usize = PYTHON_COUNT + 8;
const STACK_POINTER: usize = 7;
const INSTRUCTION_POINTER: usize = 16;

/// `execve` and `execveat` (x86-64).
const EXECS: [u32; 2] = [59, 322];

/// `status` of an event.
const WHOLE: u32 = 0;
const CUT: u32 = 1;
const BROKEN: u32 = 2;
/// The copied part of the stack was too short.
const SHORT: u32 = 3;

/// A copy made by perf events, without the kernel's part.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) comm: [u8; 16],
    pub(crate) wait_ns: u64,
    pub(crate) syscall: i32,
    /// In the order of DWARF.
    pub(crate) registers: [u64; shared::REGISTERS],
    /// True if the copy has the maximum size.
    pub(crate) is_cut: bool,
    pub(crate) stack: Vec<u8>,
}

impl Copied {
    /// Encodes like BPF (`struct stack`, after its head).
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend_from_slice(&self.tid.to_le_bytes());
        to.extend_from_slice(&self.pid.to_le_bytes());
        to.extend_from_slice(&self.comm);
        to.extend_from_slice(&self.wait_ns.to_le_bytes());
        to.extend_from_slice(&self.syscall.to_le_bytes());
        to.resize(begin + STATE, 0);
        let state = if self.is_cut {
            shared::COPY_IS_CUT as u32
        } else {
            0
        };
        to.extend_from_slice(&state.to_le_bytes());
        to.extend_from_slice(&(self.stack.len() as u32).to_le_bytes());
        self.registers
            .iter()
            .for_each(|register| to.extend_from_slice(&register.to_le_bytes()));
        to.resize(begin + COPY, 0);
        to.extend_from_slice(&self.stack);
    }
}

/// Unwinds copies.
#[derive(Debug)]
pub(crate) struct Unwinding {
    pub(crate) processes: Processes,
    unwinder: Unwinder,
    depth: usize,
    frames: Vec<u64>,
}

impl Unwinding {
    /// Records at most `depth` frames of a program.
    pub(crate) fn new(depth: u32) -> Unwinding {
        Unwinding {
            processes: Processes::default(),
            unwinder: Unwinder::default(),
            depth: depth as usize,
            frames: Vec::new(),
        }
    }

    /// Writes the payload of the event for a record at a time; returns the id of its class, or
    /// `None` if the record is malformed.
    pub(crate) fn event(
        &mut self,
        time: u64,
        kind: u16,
        record: &[u8],
        to: &mut Vec<u8>,
    ) -> Option<u16> {
        let kernel = u32_at(record, KERNEL_COUNT)? as usize;
        let kernel = record.get(..KERNEL + 8 * kernel.min(shared::MOST_KERNEL_FRAMES))?;
        let status = self.unwind(time, record)?;
        to.extend_from_slice(kernel);
        to.extend_from_slice(&status.to_le_bytes());
        to.extend_from_slice(&(self.frames.len() as u32).to_le_bytes());
        self.frames
            .iter()
            .for_each(|frame| to.extend_from_slice(&frame.to_le_bytes()));
        Some(match kind {
            CPU => kinds::TRACEBRAID_CPU_STACK,
            _ => kinds::TRACEBRAID_SYSCALL_STACK,
        })
    }

    /// Finds the frames; returns their status.
    fn unwind(&mut self, time: u64, record: &[u8]) -> Option<u32> {
        let mut registers = Registers([0; shared::REGISTERS]);
        for (number, register) in registers.0.iter_mut().enumerate() {
            *register = u64_at(record, REGISTERS + 8 * number)?;
        }
        self.frames.clear();
        // Kernel threads have no user-space stack.
        if registers.0[INSTRUCTION_POINTER] == 0 {
            return Some(WHOLE);
        }
        let bytes = u32_at(record, BYTES)? as usize;
        let copy = record.get(COPY..COPY.checked_add(bytes)?)?;
        let interrupted = usize::try_from(u64_at(record, INTERRUPTED_BYTES)?).ok()?;
        let (copy, interrupted) = copy.split_at_checked(bytes.checked_sub(interrupted)?)?;
        let stack = StackCopy::new(registers.0[STACK_POINTER], copy);
        let stack = stack.with_interrupted(u64_at(record, INTERRUPTED)?, interrupted);
        let pid = u32_at(record, PID)?;
        let code = self.processes.code(pid, time);
        let end = self
            .unwinder
            .walk(registers, &stack, self.depth, code, &mut self.frames);
        if let Some(evaluates) = self.processes.evaluates(pid) {
            let functions = python_functions(record, bytes)?;
            python::merge(&mut self.frames, &functions, evaluates);
            self.frames.truncate(self.depth);
        }
        let state = u32_at(record, STATE)?;
        let is_cut = state & shared::COPY_IS_CUT as u32 != 0;
        // A return address of 0 marks the outermost function, or a page that was not in memory. In
        // the middle of `execve` the stack of the calling program is gone, but its registers are
        // still there.
        let is_cut_off = matches!(end, End::Copy | End::Lost | End::Zero);
        let is_exec = EXECS.contains(&u32_at(record, CALL)?)
            || self.frames.is_empty() && are_cleared(&registers);
        if is_cut_off && is_exec {
            self.frames.clear();
            return Some(WHOLE);
        }
        let has_gaps = state & shared::COPY_FAILED as u32 != 0;
        Some(match end {
            End::Zero if has_gaps => BROKEN,
            End::Complete | End::Zero => WHOLE,
            End::Depth => CUT,
            End::Copy if is_cut => SHORT,
            End::Copy | End::Lost => BROKEN,
        })
    }
}

/// Near the end of `execve` the kernel clears the registers, including the system call number, and
/// then sets the address of the new program's first instruction.
fn are_cleared(registers: &Registers) -> bool {
    let others = registers.0.iter().enumerate();
    others
        .filter(|(number, _)| ![STACK_POINTER, INSTRUCTION_POINTER].contains(number))
        .all(|(_, register)| *register == 0)
}

/// Python functions after a copy of `bytes` bytes.
fn python_functions(record: &[u8], bytes: usize) -> Option<Vec<u64>> {
    let count = usize::try_from(u64_at(record, PYTHON_COUNT)?).ok()?;
    let places = (0..count.min(shared::MOST_PYTHON_FRAMES)).map(|place| COPY + bytes + 8 * place);
    places.map(|place| u64_at(record, place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_records_give_no_event() {
        let mut unwinding = Unwinding::new(8);
        let mut record = vec![0; COPY];
        let mut to = Vec::new();
        assert_eq!(
            unwinding.event(1, CPU, &record, &mut to),
            Some(kinds::TRACEBRAID_CPU_STACK)
        );
        assert_eq!(to, [0; KERNEL + 8]);
        // More bytes than the record has.
        record[BYTES] = 1;
        record[REGISTERS + 8 * INSTRUCTION_POINTER] = 1;
        assert_eq!(unwinding.event(1, WAIT, &record, &mut to), None);
        for short in [0, KERNEL, COPY - 1] {
            assert_eq!(
                unwinding.event(1, WAIT, &record[..short], &mut to),
                None,
                "{short}"
            );
        }
        // A process that does not exist.
        record.push(0);
        record[PID..PID + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        to.clear();
        assert_eq!(
            unwinding.event(1, WAIT, &record, &mut to),
            Some(kinds::TRACEBRAID_SYSCALL_STACK)
        );
        // All registers are zero, as in the middle of `execve`.
        assert_eq!(to[KERNEL..], [0; 8]);
        record[REGISTERS] = 1;
        to.clear();
        unwinding.event(1, WAIT, &record, &mut to);
        assert_eq!(to[KERNEL..], [[2, 0, 0, 0], [0; 4]].concat());
    }
}
