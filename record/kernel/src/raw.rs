//! Records as written by BPF programs.

use crate::shared;

/// The head of all records: `struct head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) time: u64,
    /// Cumulative count of events lost on the CPU before this record; wraps.
    pub(crate) lost: u32,
    pub(crate) kind: u16,
    /// Additional value whose meaning depends on the kind.
    pub(crate) more: u16,
}

/// Kinds without an event class in `events.tsdl`: system calls, without and with parts.
pub(crate) const ENTRY: u16 = shared::KIND_SYSCALL_ENTRY as u16;
pub(crate) const EXIT: u16 = shared::KIND_SYSCALL_EXIT as u16;
pub(crate) const ENTRY_WITH_PARTS: u16 = shared::KIND_SYSCALL_ENTRY_PARTS as u16;
pub(crate) const EXIT_WITH_PARTS: u16 = shared::KIND_SYSCALL_EXIT_PARTS as u16;
/// Entries of calls whose exits decide whether they are recorded.
pub(crate) const UNDECIDED: u16 = shared::KIND_SYSCALL_UNDECIDED as u16;
pub(crate) const UNDECIDED_WITH_PARTS: u16 = shared::KIND_SYSCALL_UNDECIDED_PARTS as u16;
/// A decision about such an entry.
pub(crate) const DECISION: u16 = shared::KIND_CALL_DECISION as u16;

/// States whether the entry recorded at that time on that CPU is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) entered: u64,
    pub(crate) cpu: u32,
    pub(crate) is_wanted: bool,
}

impl Decision {
    /// Parses a record of kind [`DECISION`].
    pub(crate) fn new(record: &[u8]) -> Option<Decision> {
        Some(Decision {
            entered: u64_at(record, 0)?,
            cpu: u32_at(record, 8)?,
            is_wanted: u32_at(record, 12)? != 0,
        })
    }
}

impl Head {
    /// True if a [`Decision`] may remove the event.
    pub(crate) fn is_undecided(&self) -> bool {
        [UNDECIDED, UNDECIDED_WITH_PARTS].contains(&self.kind)
    }

    /// Splits a record into its head and the remaining bytes.
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

/// The entry or exit of a system call. Borrows from the record: copies that are used at once would
/// stall the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCall<'r> {
    pub(crate) is_exit: bool,
    /// 0 at the entry.
    pub(crate) result: i64,
    /// Empty if the record has none.
    arguments: &'r [[u8; 8]],
    /// Each part follows its two-byte size.
    parts: &'r [u8],
}

/// Size of the arguments of a call.
const ARGUMENTS: usize = 8 * shared::ARGUMENTS;

impl<'r> RawCall<'r> {
    /// Parses a record of one of these kinds.
    #[inline]
    pub(crate) fn new(kind: u16, record: &'r [u8]) -> Option<RawCall<'r>> {
        let (is_exit, has_result, has_arguments) = match kind {
            ENTRY | UNDECIDED => (false, false, true),
            EXIT => (true, true, false),
            ENTRY_WITH_PARTS | UNDECIDED_WITH_PARTS => (false, true, true),
            EXIT_WITH_PARTS => (true, true, true),
            _ => return None,
        };
        let (result, rest) = match has_result {
            true => record
                .split_first_chunk()
                .map(|(result, rest)| (i64::from_le_bytes(*result), rest))?,
            false => (0, record),
        };
        let (arguments, parts) = match has_arguments {
            true => rest.split_at_checked(ARGUMENTS)?,
            false => (&[][..], &[][..]),
        };
        Some(RawCall {
            is_exit,
            result,
            arguments: arguments.as_chunks().0,
            parts,
        })
    }

    /// The argument with that index; 0 if the record does not have it.
    #[inline]
    pub(crate) fn argument(&self, number: usize) -> u64 {
        self.arguments
            .get(number)
            .map_or(0, |argument| u64::from_le_bytes(*argument))
    }

    /// The next part; empty after the last.
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
