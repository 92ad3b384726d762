//! The tables of formats in files of perf and trace-cmd, which have the same form in both.

use std::collections::HashMap;

use crate::bytes::{Bytes, text};
use crate::error::ImportError;
use crate::tracepoint::Format;

/// Formats by `common_type`.
pub(crate) type Formats = HashMap<u32, Format>;

/// Contents of the tables.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) formats: Formats,
    /// Size of a page of the ring buffer in bytes.
    pub(crate) page: u32,
    /// Size of the kernel's `long` in bytes.
    pub(crate) long: u32,
    /// Numbers are big endian.
    pub(crate) big: bool,
    /// Number of formats that cannot be parsed.
    pub(crate) unknown: u64,
}

/// First bytes of all tables.
pub(crate) const MAGIC: &[u8] = b"\x17\x08Dtracing";

/// Reads the beginning of the tables: version, byte order and sizes. The result has no formats yet.
pub(crate) fn read_preamble(bytes: &mut Bytes<'_>) -> Result<(String, Tables), ImportError> {
    let at = bytes.offset();
    if bytes.take(MAGIC.len() as u64)? != MAGIC {
        return Err(ImportError::malformed(
            at,
            "this is not a table of tracepoints",
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
        let what = format!("implausible sizes: pages of {page} bytes and a `long` of {long} bytes");
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
    /// Reads the descriptions of the ring buffer's pages and events; the first contains the size of
    /// `long`.
    pub(crate) fn read_header_info(&mut self, bytes: &mut Bytes<'_>) -> Result<(), ImportError> {
        for name in [&b"header_page"[..], b"header_event"] {
            let at = bytes.offset();
            if bytes.string()? != name {
                let what = format!("expected `{}`", String::from_utf8_lossy(name));
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

/// The field `commit` in a page's head has the size of the kernel's `long`.
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
