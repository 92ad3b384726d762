//! trace.dat, the output of trace-cmd, in versions 6 and 7 of its format.
//!
//! Implemented here after trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5): the existing libraries are
//! bindings to trace-cmd's own C library, which would have to be installed on the build machine.

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

/// The first bytes of trace.dat.
const MAGIC: &[u8] = b"\x17\x08Dtracing";

/// Number of bytes at the beginning that contain version and sizes.
const HEAD: u64 = 4096;

/// True if a file with these first bytes is trace.dat.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Imports the file into the session.
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
            let what = format!("trace.dat version {version} is not supported (supported: 6 and 7)");
            return Err(ImportError::Unsupported(what));
        }
    };
    writer::write(input, &file, session, &mut summary, stop)?;
    Ok(summary)
}
