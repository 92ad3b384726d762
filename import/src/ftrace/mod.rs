//! trace.dat: what trace-cmd writes, versions 6 and 7 of its format.
//!
//! Read here, after trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5): the libraries that there are bind
//! trace-cmd's own, in C, which must be installed where this is built.

mod file;
mod options;
mod pages;
mod version6;
mod version7;
mod writer;

use std::sync::atomic::AtomicBool;

use tracebraid_ctf::write::trace::Session;

use crate::bytes::Bytes;
use crate::error::ImportError;
use crate::input::Input;
use crate::summary::Summary;
use crate::tracepoint::read_preamble;

/// What trace.dat begins with.
const MAGIC: &[u8] = b"\x17\x08Dtracing";

/// Bytes of the beginning in which version and sizes are.
const HEAD: u64 = 4096;

/// True if a file that begins so is trace.dat.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Imports it into that session.
pub(crate) fn import(
    input: Input,
    session: &Session,
    stop: &AtomicBool,
) -> Result<Summary, ImportError> {
    let head = input.head(HEAD)?;
    let mut at = Bytes::new(&head, 0, false);
    let (version, tables) = read_preamble(&mut at)?;
    let mut summary = Summary {
        format: format!("trace.dat version {version}"),
        ..Summary::default()
    };
    let file = match version.as_str() {
        "6" => version6::read(&input, at.offset(), tables)?,
        "7" => version7::read(&input, &mut at, tables, &mut summary)?,
        _ => {
            let what = format!("version {version} of trace.dat is not read (6 and 7 are)");
            return Err(ImportError::Unsupported(what));
        }
    };
    writer::write(input, &file, session, &mut summary, stop)?;
    Ok(summary)
}
