//! Options of trace.dat, which have the same form in both versions.

use super::file::{Buffer, CpuData, chosen_clock, whole_text};
use crate::bytes::{Bytes, Short, text};
use crate::error::ImportError;

/// Contents of the options.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) clock: Option<String>,
    /// `uname -a`: system, host, release, machine.
    pub(super) uname: Option<String>,
    pub(super) version: Option<String>,
    /// Nanoseconds to add to all times.
    pub(super) offset: i64,
    /// The offset converts times to the time of day.
    pub(super) has_date: bool,
    /// Conversion of cycles of the processor's clock to nanoseconds.
    pub(super) cycles: Option<Cycles>,
    /// The trace is of a guest, whose times must be corrected to its host's clock.
    pub(super) is_guest: bool,
    pub(super) buffers: Vec<BufferOption>,
    /// Offsets of sections, by number of the option.
    pub(super) sections: Vec<(u16, u64)>,
}

/// Times are `(cycles * mult >> shift) - offset` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycles {
    pub(super) mult: u32,
    pub(super) shift: u32,
    pub(super) offset: u64,
}

/// An ftrace instance.
#[derive(Clone, Debug)]
pub(super) struct BufferOption {
    /// Offset of its section (version 7), or of its list of CPUs (version 6).
    pub(super) section: u64,
    /// Complete in version 7.
    pub(super) buffer: Buffer,
}

pub(super) mod number {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const DATE: u16 = 1;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const OFFSET: u16 = 7;
    pub(crate) const VERSION: u16 = 9;
    pub(crate) const TIME_SHIFT: u16 = 12;
    pub(crate) const TSC2NSEC: u16 = 14;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const CMDLINES: u16 = 21;
    pub(crate) const BUFFER_TEXT: u16 = 22;
}

impl Options {
    /// Reads an option; `is_7` if it is of version 7 of the format.
    pub(super) fn take(
        &mut self,
        option: u16,
        at: &mut Bytes<'_>,
        is_7: bool,
    ) -> Result<(), ImportError> {
        match option {
            number::DATE => {
                // In microseconds.
                self.offset = self
                    .offset
                    .wrapping_add(signed(&whole_text(at)).wrapping_mul(1000));
                self.has_date = true;
            }
            number::OFFSET => self.offset = self.offset.wrapping_add(signed(&whole_text(at))),
            number::TRACECLOCK => self.clock = chosen_clock(&whole_text(at)),
            number::UNAME => self.uname = Some(whole_text(at)),
            number::VERSION => self.version = Some(whole_text(at)),
            number::TIME_SHIFT => self.is_guest = true,
            number::TSC2NSEC => {
                let (mult, shift, offset) = (at.u32()?, at.u32()?, at.u64()?);
                self.cycles = Some(Cycles {
                    mult,
                    shift,
                    offset,
                });
            }
            number::BUFFER if is_7 => self.buffers.push(buffer(at)?),
            number::BUFFER => {
                let section = at.u64()?;
                let name = text(at.rest());
                let buffer = Buffer {
                    name,
                    ..Buffer::default()
                };
                self.buffers.push(BufferOption { section, buffer });
            }
            number::HEADER_INFO
            | number::FTRACE_EVENTS
            | number::EVENT_FORMATS
            | number::CMDLINES => {
                self.sections.push((option, at.u64()?));
            }
            number::BUFFER_TEXT => {
                let what = "latency traces, which are text, are not supported";
                return Err(ImportError::Unsupported(what.to_owned()));
            }
            _ => {}
        }
        Ok(())
    }

    /// A part of the output of `uname`, selected by `place`.
    pub(super) fn machine(
        &self,
        place: fn(&mut std::str::SplitWhitespace<'_>) -> Option<String>,
    ) -> Option<String> {
        place(&mut self.uname.as_deref()?.split_whitespace())
    }
}

fn buffer(at: &mut Bytes<'_>) -> Result<BufferOption, Short> {
    let section = at.u64()?;
    let name = text(at.string()?);
    let clock = text(at.string()?);
    let page = at.u32()?;
    let mut cpus = Vec::new();
    for _ in 0..at.u32()? {
        cpus.push(CpuData {
            cpu: at.u32()?,
            offset: at.u64()?,
            size: at.u64()?,
        });
    }
    let buffer = Buffer {
        name,
        clock,
        page,
        cpus,
        is_compressed: false,
    };
    Ok(BufferOption { section, buffer })
}

/// A number in C syntax: decimal or hexadecimal, possibly negative.
fn signed(text: &str) -> i64 {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let value = value.unwrap_or(0) as i64;
    if is_negative {
        value.wrapping_neg()
    } else {
        value
    }
}
