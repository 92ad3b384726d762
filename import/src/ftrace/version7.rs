//! Version 7: sections, to which options point.

use std::collections::HashSet;

use super::file::{Names, TraceDat};
use super::options::{Options, number};
use crate::bytes::{Bytes, text};
use crate::compression::Algorithm;
use crate::error::ImportError;
use crate::input::Input;
use crate::summary::Summary;
use crate::tracepoint::{Tables, read_event_formats, read_ftrace_formats};

/// Size of a section's head in bytes.
const HEAD: u64 = 16;

/// Limit for the decompressed size of a section: 128 MiB. Larger sections are rejected.
const MOST_DECOMPRESSED: u64 = 1 << 27;

const COMPRESSED: u16 = 1;

/// Reads the sections; `at` is after the preamble.
pub(super) fn read(
    input: &Input,
    at: &mut Bytes<'_>,
    mut tables: Tables,
    summary: &mut Summary,
) -> Result<TraceDat, ImportError> {
    let name = text(at.string()?);
    at.string()?;
    let Some(compression) = Algorithm::by_name(&name) else {
        let what = format!(
            "the file is compressed by `{name}`, which is not supported (supported: zstd and zlib)"
        );
        return Err(ImportError::Unsupported(what));
    };
    let sections = Sections {
        input,
        compression,
        big: tables.big,
    };
    let options = sections.options(at.u64()?, summary)?;
    for wanted in [
        number::HEADER_INFO,
        number::FTRACE_EVENTS,
        number::EVENT_FORMATS,
    ] {
        for section in of(&options, wanted) {
            let content = sections.content(section, wanted)?;
            let mut at = Bytes::new(&content, section, tables.big);
            match wanted {
                number::HEADER_INFO => tables.read_header_info(&mut at)?,
                number::FTRACE_EVENTS => read_ftrace_formats(&mut tables, &mut at)?,
                _ => read_event_formats(&mut tables, &mut at)?,
            }
        }
    }
    let mut names = Names::default();
    if let Some(section) = of(&options, number::CMDLINES).next() {
        match names_of(&sections, section) {
            Ok(found) => names = found,
            Err(error) => summary
                .damage
                .push(format!("{error}: names of threads are missing")),
        }
    }
    let mut buffers = Vec::new();
    for option in &options.buffers {
        let mut buffer = option.buffer.clone();
        let (_, flags, _) = sections.head(option.section)?;
        buffer.is_compressed = flags & COMPRESSED != 0;
        buffers.push(buffer);
    }
    Ok(TraceDat {
        tables,
        options,
        names,
        buffers,
        compression,
    })
}

fn of(options: &Options, wanted: u16) -> impl Iterator<Item = u64> {
    let sections = options.sections.iter();
    sections
        .filter(move |(option, _)| *option == wanted)
        .map(|(_, section)| *section)
}

fn names_of(sections: &Sections<'_>, section: u64) -> Result<Names, ImportError> {
    let content = sections.content(section, number::CMDLINES)?;
    let mut at = Bytes::new(&content, section, sections.big);
    let size = at.u64()?;
    Ok(Names::parse(at.take(size)?))
}

struct Sections<'a> {
    input: &'a Input,
    compression: Algorithm,
    big: bool,
}

impl Sections<'_> {
    /// Id, flags and size of a section.
    fn head(&self, offset: u64) -> Result<(u16, u16, u64), ImportError> {
        let head = self.input.part(offset, HEAD)?;
        let mut at = Bytes::new(&head, offset, self.big);
        let (id, flags) = (at.u16()?, at.u16()?);
        at.u32()?;
        Ok((id, flags, at.u64()?))
    }

    /// The content of the section, whose id must be `wanted`.
    fn content(&self, offset: u64, wanted: u16) -> Result<Vec<u8>, ImportError> {
        let (id, flags, size) = self.head(offset)?;
        if id != wanted {
            let what = format!("expected a section of kind {wanted}, found a section of kind {id}");
            return Err(ImportError::malformed(offset, what));
        }
        let bytes = self.input.part(offset.saturating_add(HEAD), size)?;
        if flags & COMPRESSED == 0 {
            return Ok(bytes);
        }
        let mut at = Bytes::new(&bytes, offset + HEAD, self.big);
        let (compressed, size) = (u64::from(at.u32()?), u64::from(at.u32()?));
        if size > MOST_DECOMPRESSED {
            let what = format!("a section of {size} bytes is too large");
            return Err(ImportError::malformed(offset, what));
        }
        let content = self.compression.all(at.take(compressed)?, size);
        content.map_err(|what| {
            ImportError::malformed(offset + HEAD, format!("a compressed section: {what}"))
        })
    }

    /// Reads all options. Each section of options contains the offset of the next.
    fn options(&self, first: u64, summary: &mut Summary) -> Result<Options, ImportError> {
        let mut options = Options::default();
        let mut seen = HashSet::new();
        let mut next = first;
        while next != 0 {
            if !seen.insert(next) {
                let what = "the sections of options form a cycle";
                return Err(ImportError::malformed(next, what));
            }
            // The last sections contain the positions of the events. In a truncated file they are
            // missing.
            match self.content(next, number::DONE) {
                Ok(content) => next = read_options(&content, next, self.big, &mut options)?,
                Err(error) if next != first => {
                    summary
                        .damage
                        .push(format!("{error}: all later options are missing"));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(options)
    }
}

/// Reads the options of a section; returns the offset of the next section, 0 for the last section.
fn read_options(
    content: &[u8],
    offset: u64,
    big: bool,
    options: &mut Options,
) -> Result<u64, ImportError> {
    let mut at = Bytes::new(content, offset + HEAD, big);
    loop {
        let (option, size) = (at.u16()?, at.u32()?);
        let begin = at.offset();
        let mut data = Bytes::new(at.take(size.into())?, begin, big);
        if option == number::DONE {
            return Ok(data.u64().unwrap_or(0));
        }
        options.take(option, &mut data, true)?;
    }
}
