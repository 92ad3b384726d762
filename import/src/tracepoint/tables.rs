//! The tables of formats in files of perf and trace-cmd, which have the same form in both.

use std::collections::HashMap;

use crate::bytes::{Bytes, text};
use crate::error::ImportError;
use crate::tracepoint::Format;

/// Formats by `common_type`.
pub(crate) type Formats = HashMap<u32, Format>;

/// What the tables tell.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) formats: Formats,
    /// Bytes of a page of the ring buffer.
    pub(crate) page: u32,
    /// Bytes of the kernel's `long`.
    pub(crate) long: u32,
    /// Numbers are big endian.
    pub(crate) big: bool,
    /// Formats that cannot be understood.
    pub(crate) unknown: u64,
}

/// What all such files begin with.
pub(crate) const MAGIC: &[u8] = b"\x17\x08Dtracing";

/// Reads the beginning: version, byte order, sizes. No formats yet.
pub(crate) fn read_preamble(bytes: &mut Bytes<'_>) -> Result<(String, Tables), ImportError> {
    let at = bytes.offset();
    if bytes.take(MAGIC.len() as u64)? != MAGIC {
        return Err(ImportError::malformed(
            at,
            "these are no tables of tracepoints",
        ));
    }
    let version = text(bytes.string()?);
    let big = bytes.u8()? != 0;
    let long = u32::from(bytes.u8()?);
    *bytes = Bytes::new(bytes.rest(), bytes.offset(), big);
    let at = bytes.offset();
    let page = bytes.u32()?;
    let is_page = (64..=1 << 20).contains(&page);
    if !is_page || !matches!(long, 4 | 8) {
        let what = format!("no machine has pages of {page} bytes and a `long` of {long}");
        return Err(ImportError::malformed(at, what));
    }
    let tables = Tables {
        formats: Formats::new(),
        page,
        long,
        big,
        unknown: 0,
    };
    Ok((version, tables))
}

impl Tables {
    /// Reads the descriptions of the ring buffer's pages and events; the first tells the size of
    /// `long`.
    pub(crate) fn read_header_info(&mut self, bytes: &mut Bytes<'_>) -> Result<(), ImportError> {
        for name in [&b"header_page"[..], b"header_event"] {
            let at = bytes.offset();
            if bytes.string()? != name {
                let what = format!("`{}` should be here", String::from_utf8_lossy(name));
                return Err(ImportError::malformed(at, what));
            }
            let size = bytes.u64()?;
            let content = bytes.take(size)?;
            if name == b"header_page" {
                self.long = kernel_long(&text(content)).unwrap_or(self.long);
            }
        }
        Ok(())
    }

    fn add(&mut self, system: &str, content: &[u8]) {
        match Format::parse(system, &text(content), self.long) {
            Some(format) => drop(self.formats.insert(format.id, format)),
            None => self.unknown += 1,
        }
    }
}

/// Reads ftrace's own formats.
pub(crate) fn read_ftrace_formats(
    tables: &mut Tables,
    bytes: &mut Bytes<'_>,
) -> Result<(), ImportError> {
    for _ in 0..bytes.u32()? {
        let size = bytes.u64()?;
        tables.add("ftrace", bytes.take(size)?);
    }
    Ok(())
}

/// Reads the formats of all systems.
pub(crate) fn read_event_formats(
    tables: &mut Tables,
    bytes: &mut Bytes<'_>,
) -> Result<(), ImportError> {
    for _ in 0..bytes.u32()? {
        let system = text(bytes.string()?);
        for _ in 0..bytes.u32()? {
            let size = bytes.u64()?;
            tables.add(&system, bytes.take(size)?);
        }
    }
    Ok(())
}

/// The size of `commit` in a page's head is that of the kernel's `long`.
fn kernel_long(header_page: &str) -> Option<u32> {
    let line = header_page.lines().find(|line| line.contains(" commit;"))?;
    let size = line
        .split(';')
        .find_map(|part| part.trim().strip_prefix("size:"))?;
    size.trim()
        .parse()
        .ok()
        .filter(|size| matches!(size, 4 | 8))
}
