//! Version 6: all tables in sequence, then the pages of the CPUs.

use super::file::{Buffer, CpuData, Names, TraceDat, chosen_clock};
use super::options::{Options, number};
use crate::bytes::Bytes;
use crate::compression::Algorithm;
use crate::error::ImportError;
use crate::input::{Input, MOST_BYTES};
use crate::tracepoint::{Tables, read_event_formats, read_ftrace_formats};

/// Limit for the bytes before the pages: the tables take a few megabytes, the kernel's symbols a
/// few more.
const MOST_HEAD: u64 = MOST_BYTES / 4;

/// Reads all tables before the pages.
pub(super) fn read(
    input: &Input,
    offset: u64,
    mut tables: Tables,
) -> Result<TraceDat, ImportError> {
    let content = input.head(MOST_HEAD)?;
    let content = content.get(offset as usize..).unwrap_or_default();
    let mut at = Bytes::new(content, offset, tables.big);
    tables.read_header_info(&mut at)?;
    read_ftrace_formats(&mut tables, &mut at)?;
    read_event_formats(&mut tables, &mut at)?;
    // The kernel's symbols, and the format strings of trace_printk.
    for _ in 0..2 {
        let size = at.u32()?;
        at.take(size.into())?;
    }
    let size = at.u64()?;
    let names = Names::parse(at.take(size)?);
    let cpus = at.u32()?;
    let mut options = Options::default();
    let mut kind = at.take(10)?;
    if kind.starts_with(b"options  ") {
        read_options(&mut at, &mut options)?;
        kind = at.take(10)?;
    }
    if !kind.starts_with(b"flyrecord") {
        let what = "this is a latency trace, which is text and is not supported";
        return Err(ImportError::Unsupported(what.to_owned()));
    }
    let mut buffers = Vec::new();
    if cpus > 0 {
        let clock = clock_behind(at, cpus)?;
        buffers.push(buffer(&mut at, cpus, String::new(), clock, tables.page)?);
    }
    for option in &options.buffers {
        // A list of the same form, elsewhere in the head.
        let inner = option
            .section
            .checked_sub(offset)
            .and_then(|at| content.get(at as usize..));
        let mut at = Bytes::new(inner.unwrap_or_default(), option.section, tables.big);
        let name = option.buffer.name.clone();
        buffers.push(buffer(&mut at, cpus, name, None, tables.page)?);
    }
    Ok(TraceDat {
        tables,
        options,
        names,
        buffers,
        compression: Algorithm::None,
    })
}

fn read_options(at: &mut Bytes<'_>, options: &mut Options) -> Result<(), ImportError> {
    loop {
        let option = at.u16()?;
        if option == number::DONE {
            return Ok(());
        }
        let size = u64::from(at.u32()?);
        let offset = at.offset();
        let mut data = Bytes::new(at.take(size)?, offset, at.is_big());
        options.take(option, &mut data, false)?;
    }
}

/// The list of clocks, which follows the list of CPUs in newer files.
fn clock_behind(mut at: Bytes<'_>, cpus: u32) -> Result<Option<String>, ImportError> {
    at.take(u64::from(cpus) * 16)?;
    let Ok(size) = at.u64() else { return Ok(None) };
    let list = at.take(size.min(4096)).ok();
    Ok(list.and_then(|list| chosen_clock(&crate::bytes::text(list))))
}

fn buffer(
    at: &mut Bytes<'_>,
    cpus: u32,
    name: String,
    clock: Option<String>,
    page: u32,
) -> Result<Buffer, ImportError> {
    let mut all = Vec::new();
    for cpu in 0..cpus {
        let (offset, size) = (at.u64()?, at.u64()?);
        all.push(CpuData { cpu, offset, size });
    }
    Ok(Buffer {
        name,
        clock: clock.unwrap_or_default(),
        page,
        cpus: all,
        is_compressed: false,
    })
}
