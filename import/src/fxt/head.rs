//! The blocks before the records: machine, clock, process and symbols.

use std::collections::HashMap;

use crate::bytes::{Bytes, number, text};
use crate::error::ImportError;
use crate::input::Input;

/// Block types (`fxt_internal.h`).
const INFOS: u32 = 1;
const TIME: u32 = 0x10;
const UNAME: u32 = 0x11;
const SYMBOLS: u32 = 0x13;

/// Size of a block's own head: size, type, subtype.
pub(super) const BLOCK_HEAD: u64 = 16;

/// Value of `space` for programs.
const USER_SPACE: u32 = 1;

/// Limit for the number of CPUs, and for the length of a symbol: those of the format are far lower.
const MOST_CPUS: u32 = 1 << 14;
const MOST_NAME: u32 = 1 << 16;

/// Byte order of a file, by the architecture in its first four bytes, which are big endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) is_big: bool,
}

impl Order {
    /// `None` if the architecture is unknown.
    pub(super) fn of(bytes: &[u8]) -> Option<Order> {
        let arch = number(bytes.get(..4)?, true);
        match arch {
            // Little-endian architectures are numbered from 0, big-endian ones in steps of 0x10000.
            0..=9 | 255 => Some(Order { is_big: false }),
            0xff_0000 => Some(Order { is_big: true }),
            _ if arch & 0xffff == 0 && arch <= 0xf_0000 => Some(Order { is_big: true }),
            _ => None,
        }
    }

    /// True if the first block is that of the head.
    pub(super) fn is_head(self, bytes: &[u8]) -> bool {
        let field = |from: usize, to: usize| bytes.get(from..to).map(|of| number(of, self.is_big));
        let size = field(4, 12).unwrap_or(0);
        field(12, 16) == Some(u64::from(INFOS)) && (3 * BLOCK_HEAD..1 << 32).contains(&size)
    }
}

/// The head of a file.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) order: Order,
    pub(super) is_kernel: bool,
    /// Megahertz of each CPU.
    pub(super) megahertz: Vec<u32>,
    pub(super) pid: u32,
    /// Seconds from the Epoch to the begin of the recording; 0 if unknown.
    pub(super) start: u64,
    pub(super) page_size: u32,
    /// `Linux HOST RELEASE VERSION MACHINE`.
    pub(super) uname: String,
    /// Names of functions, by address.
    pub(super) symbols: HashMap<u64, String>,
    /// Offset of the first block of records.
    pub(super) end: u64,
}

impl Head {
    pub(super) fn read(input: &Input) -> Result<Head, ImportError> {
        let first = input.head(BLOCK_HEAD + 4)?;
        let unknown = || ImportError::malformed(0, "the architecture of the FxT trace is unknown");
        let order = Order::of(&first).ok_or_else(unknown)?;
        let mut bytes = Bytes::new(&first, 0, order.is_big);
        bytes.take(4)?;
        let size = bytes.u64()?;
        let body = size.saturating_sub(BLOCK_HEAD);
        let at = 4 + BLOCK_HEAD;
        let body = input.part(at, body)?;
        let mut head = Head {
            order,
            is_kernel: false,
            megahertz: Vec::new(),
            pid: 0,
            start: 0,
            page_size: 4096,
            uname: String::new(),
            symbols: HashMap::new(),
            end: 4 + size,
        };
        let mut bytes = Bytes::new(&body, at, order.is_big);
        while !bytes.rest().is_empty() {
            let begin = bytes.offset();
            let size = bytes.u64()?;
            let kind = bytes.u32()?;
            bytes.u32()?;
            let Some(size) = size.checked_sub(BLOCK_HEAD) else {
                return Err(ImportError::malformed(
                    begin,
                    "a block is smaller than its head",
                ));
            };
            let content = bytes.take(size)?;
            let content = Bytes::new(content, begin + BLOCK_HEAD, order.is_big);
            match kind {
                TIME => head.time(content)?,
                UNAME => head.uname(content)?,
                SYMBOLS => head.symbols(content)?,
                _ => {}
            }
        }
        Ok(head)
    }

    fn time(&mut self, mut bytes: Bytes<'_>) -> Result<(), ImportError> {
        self.is_kernel = bytes.u32()? != USER_SPACE;
        let at = bytes.offset();
        let cpus = bytes.u32()?;
        if cpus > MOST_CPUS {
            return Err(ImportError::malformed(
                at,
                format!("{cpus} CPUs are too many"),
            ));
        }
        self.megahertz.clear();
        for _ in 0..cpus {
            self.megahertz.push(bytes.u32()?);
        }
        let record_pid = bytes.u32()?;
        let traced_pid = bytes.u32()?;
        self.pid = if traced_pid == 0 {
            record_pid
        } else {
            traced_pid
        };
        self.start = bytes.u64()?;
        let _ = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        self.page_size = bytes.u32()?;
        Ok(())
    }

    fn uname(&mut self, mut bytes: Bytes<'_>) -> Result<(), ImportError> {
        let length = bytes.u32()?;
        self.uname = text(bytes.take(length.into())?);
        Ok(())
    }

    /// Addresses, lengths and names, up to the address 0.
    fn symbols(&mut self, mut bytes: Bytes<'_>) -> Result<(), ImportError> {
        loop {
            let address = bytes.u64()?;
            if address == 0 {
                return Ok(());
            }
            let at = bytes.offset();
            let length = bytes.u32()?;
            if length > MOST_NAME {
                return Err(ImportError::malformed(
                    at,
                    "the name of a symbol is too long",
                ));
            }
            let name = text(bytes.take(length.into())?);
            self.symbols.insert(address, name);
        }
    }

    /// Cycles of the clock in a second, if known.
    pub(super) fn frequency(&self) -> Option<u64> {
        let megahertz = self.megahertz.iter().copied().find(|of| *of > 0)?;
        Some(u64::from(megahertz) * 1_000_000)
    }

    /// A word of the machine's description, counted from 0.
    pub(super) fn word(&self, index: usize) -> Option<&str> {
        self.uname.split_whitespace().nth(index)
    }
}
