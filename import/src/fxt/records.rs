//! Records in the order of the file: 32- and 64-bit records of programs, 32-bit records of the kernel.

use super::head::{BLOCK_HEAD, Head};
use crate::bytes::{Bytes, number};
use crate::error::ImportError;
use crate::input::Input;
use crate::summary::Tally;

/// Block types (`fxt_internal.h`).
const KERNEL_32: u32 = 0x100;
const KERNEL_64: u32 = 0x101;
const USER_32: u32 = 0x200;
const USER_64: u32 = 0x201;

/// Codes of the kernel below this one have no parameters and are stored as they are (`fkt.h`).
const UNSHIFTED: u64 = 0x300;

/// Mark of the end, in place of a page's size (`fkt.h`).
const KERNEL_END: u32 = 0xfefe_fefe;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// In cycles.
    pub(super) time: u64,
    /// The thread: as libfxt stored it, in traces of the kernel its id.
    pub(super) thread: u64,
    /// Only in traces of the kernel.
    pub(super) cpu: u32,
    pub(super) code: u64,
    pub(super) params: Vec<u64>,
    /// Offset of the record in the file, in bytes.
    pub(super) offset: u64,
}

/// A position in the records of a file.
#[derive(Clone, Debug)]
pub(super) struct Records {
    is_big: bool,
    page_size: u64,
    at: u64,
    block: Option<Block>,
    /// The full time of the kernel's last record: records have only its low 32 bits.
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    kind: u32,
    end: u64,
    /// Begin of the page after this one, and end of this one's records; only in traces of the kernel.
    page: (u64, u64),
}

impl Records {
    pub(super) fn new(head: &Head) -> Records {
        Records {
            is_big: head.order.is_big,
            page_size: u64::from(head.page_size.clamp(64, 1 << 20)),
            at: head.end,
            block: None,
            last: 0,
        }
    }

    /// Time of the first record, 0 without one.
    pub(super) fn first_time(&self, input: &mut Input) -> u64 {
        let first = self.clone().next(input, &mut Tally::default());
        first.ok().flatten().map_or(0, |record| record.time)
    }

    /// The next record. Damage ends the records.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
        tally: &mut Tally,
    ) -> Result<Option<Record>, ImportError> {
        loop {
            let Some(block) = self.block else {
                if !self.enter(input, tally)? {
                    return Ok(None);
                }
                continue;
            };
            let is_kernel = block.kind == KERNEL_32;
            if is_kernel && self.at >= block.page.1 {
                if !self.turn_page(block, input, tally)? {
                    self.at = block.end;
                    self.block = None;
                }
                continue;
            }
            if self.at >= block.end {
                self.block = None;
                continue;
            }
            let end = if is_kernel { block.page.1 } else { block.end };
            let record = self.record(block.kind, end, input)?;
            if record.is_none() {
                tally.count("the records end in the middle of one", self.at);
                self.at = input.length();
                self.block = None;
            }
            if record.is_some() {
                return Ok(record);
            }
        }
    }

    /// Enters the next block of records; false at the end of the file.
    fn enter(&mut self, input: &mut Input, tally: &mut Tally) -> Result<bool, ImportError> {
        let begin = self.at;
        if begin >= input.length() {
            return Ok(false);
        }
        let bytes = input.at(begin, BLOCK_HEAD as usize)?;
        let mut head = Bytes::new(bytes, begin, self.is_big);
        let (Ok(size), Ok(kind)) = (head.u64(), head.u32()) else {
            tally.count("the head of a block is incomplete", begin);
            self.at = input.length();
            return Ok(false);
        };
        // A block of size 0 was not ended: it extends to the end of the file.
        let end = match size {
            0 => input.length(),
            _ => begin.saturating_add(size.max(BLOCK_HEAD)),
        };
        if end > input.length() {
            tally.count("the file ends within a block of records", input.length());
        }
        let end = end.min(input.length());
        self.at = begin + BLOCK_HEAD;
        match kind {
            USER_32 | USER_64 => {}
            KERNEL_32 => {
                let bytes = input.at(self.at, 8)?;
                let offset = number(bytes, self.is_big);
                self.at = self.at.saturating_add(8).saturating_add(offset).min(end);
            }
            KERNEL_64 => {
                let what =
                    "64-bit traces of the kernel are not supported: libfxt does not read them";
                return Err(ImportError::Unsupported(what.to_owned()));
            }
            _ => {
                tally.count("a block of an unknown type was skipped", begin);
                self.at = end;
                return Ok(self.at < input.length());
            }
        }
        let page = (self.at, self.at);
        self.block = Some(Block { kind, end, page });
        Ok(true)
    }

    /// Enters the next page of a block of the kernel; false after the last one.
    fn turn_page(
        &mut self,
        block: Block,
        input: &mut Input,
        tally: &mut Tally,
    ) -> Result<bool, ImportError> {
        let begin = block.page.0;
        if begin.saturating_add(4) > block.end {
            return Ok(false);
        }
        let used = number(input.at(begin, 4)?, self.is_big) as u32;
        if used == KERNEL_END {
            return Ok(false);
        }
        if !(4..=self.page_size).contains(&u64::from(used)) {
            tally.count("the size of a page is invalid", begin);
            return Ok(false);
        }
        self.at = begin + 4;
        let next = begin.saturating_add(self.page_size);
        let end = begin.saturating_add(used.into()).min(block.end);
        self.block = Some(Block {
            page: (next, end),
            ..block
        });
        Ok(true)
    }

    /// Reads a record; `None` if it does not end before `end`.
    fn record(
        &mut self,
        kind: u32,
        end: u64,
        input: &mut Input,
    ) -> Result<Option<Record>, ImportError> {
        let offset = self.at;
        let (head, word) = match kind {
            USER_64 => (24, 8),
            USER_32 => (16, 4),
            _ => (12, 4),
        };
        let bytes = input.at(offset, head as usize)?;
        let mut bytes = Bytes::new(bytes, offset, self.is_big);
        if end - offset < head {
            return Ok(None);
        }
        let (time, thread, cpu, code) = match kind {
            USER_64 => (bytes.u64()?, bytes.u64()?, 0, bytes.u64()?),
            USER_32 => (bytes.u64()?, bytes.u32()?.into(), 0, bytes.u32()?.into()),
            _ => {
                let time = self.kernel_time(bytes.u32()?);
                let (pid, cpu) = (bytes.u16()?, bytes.u16()?);
                (time, pid.into(), cpu.into(), u64::from(bytes.u32()?))
            }
        };
        // The lowest byte: the number of parameters, plus 1 in programs, in bytes in the kernel.
        let count = match kind {
            USER_64 | USER_32 => (code & 0xff).saturating_sub(1),
            _ if code < UNSHIFTED => 0,
            _ => (code & 0xff) / 4,
        };
        let is_shifted = kind != KERNEL_32 || code >= UNSHIFTED;
        let code = if is_shifted { code >> 8 } else { code };
        if end - offset - head < count * word {
            return Ok(None);
        }
        let bytes = input.at(offset + head, (count * word) as usize)?;
        let params = bytes.chunks_exact(word as usize);
        let params = params.map(|of| number(of, self.is_big)).collect();
        self.at = offset + head + count * word;
        Ok(Some(Record {
            time,
            thread,
            cpu,
            code,
            params,
            offset,
        }))
    }

    /// The time with these low 32 bits that is nearest to the last one. CPUs are a few records apart.
    fn kernel_time(&mut self, low: u32) -> u64 {
        let distance = low.wrapping_sub(self.last as u32) as i32;
        let time = match self.last {
            0 => u64::from(low),
            last => last.saturating_add_signed(distance.into()),
        };
        self.last = time;
        time
    }
}
