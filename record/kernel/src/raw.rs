//! Records as BPF programs write them.

use crate::shared;

/// What all records begin with: `struct head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) time: u64,
    /// What was lost on the CPU before it, in all; wraps.
    pub(crate) lost: u32,
    pub(crate) kind: u16,
    /// A number that some kinds have use for.
    pub(crate) more: u16,
}

/// Kinds that are no event class of `events.tsdl`: system calls, without and with parts.
pub(crate) const ENTRY: u16 = shared::KIND_SYSCALL_ENTRY as u16;
pub(crate) const EXIT: u16 = shared::KIND_SYSCALL_EXIT as u16;
pub(crate) const ENTRY_WITH_PARTS: u16 = shared::KIND_SYSCALL_ENTRY_PARTS as u16;
pub(crate) const EXIT_WITH_PARTS: u16 = shared::KIND_SYSCALL_EXIT_PARTS as u16;

impl Head {
    /// The head of a record and what is behind it.
    pub(crate) fn split(record: &[u8]) -> Option<(Head, &[u8])> {
        let (head, rest) = record.split_first_chunk::<{ shared::HEAD_SIZE }>()?;
        let head = Head {
            time: u64_at(head, 0)?,
            lost: u32::from_le_bytes(*head.get(8..)?.first_chunk()?),
            kind: u16::from_le_bytes(*head.get(12..)?.first_chunk()?),
            more: u16::from_le_bytes(*head.get(14..)?.first_chunk()?),
        };
        Some((head, rest))
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A system call, entered or left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCall<'r> {
    pub(crate) is_exit: bool,
    /// 0 at the entry.
    pub(crate) result: i64,
    /// Zeros where the record has none.
    pub(crate) arguments: [u64; 6],
    /// Each behind two bytes that say how many it has.
    pub(crate) parts: &'r [u8],
}

impl<'r> RawCall<'r> {
    /// Of a record of one of the four kinds.
    pub(crate) fn new(kind: u16, record: &'r [u8]) -> Option<RawCall<'r>> {
        let result = |at| u64_at(record, at).map(|result| result as i64);
        let arguments = |at| {
            let mut arguments = [0; 6];
            for (place, argument) in arguments.iter_mut().enumerate() {
                *argument = u64_at(record, at + 8 * place)?;
            }
            Some(arguments)
        };
        let parts = record.get(56..).unwrap_or_default();
        Some(match kind {
            ENTRY => RawCall {
                is_exit: false,
                result: 0,
                arguments: arguments(0)?,
                parts: &[],
            },
            EXIT => RawCall {
                is_exit: true,
                result: result(0)?,
                arguments: [0; 6],
                parts: &[],
            },
            ENTRY_WITH_PARTS => RawCall {
                is_exit: false,
                result: 0,
                arguments: arguments(8)?,
                parts,
            },
            EXIT_WITH_PARTS => RawCall {
                is_exit: true,
                result: result(0)?,
                arguments: arguments(8)?,
                parts,
            },
            _ => return None,
        })
    }

    /// The next part; empty if there is none.
    pub(crate) fn next_part(&mut self) -> &'r [u8] {
        let Some((size, rest)) = self.parts.split_first_chunk() else {
            return &[];
        };
        let size = usize::from(u16::from_le_bytes(*size)).min(rest.len());
        let (part, rest) = rest.split_at(size);
        self.parts = rest;
        part
    }
}
