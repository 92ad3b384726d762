//! FxT traces: of programs (FUT, libfxt 0.3) and of the kernel (FKT).
//!
//! A trace of a program becomes a trace of domain `ust` with one stream in the order of time. Records
//! of the user-level scheduler and of functions become the classes of the probe library
//! (`tracebraid:ult_switch`, `tracebraid:prof_in`); all others keep the name of their code (`fxt:…`).
//! Every record keeps its code, its parameters and the thread that libfxt stored, so that nothing
//! is lost. Times stay in cycles: the clock of the trace has the frequency of the file.
//!
//! Sources: `fxt.h` and `fut.h` of libfxt 0.3.13, and `fxt.c`, `ev.c`, `addr.c` and `fxt_internal.h` of
//! its sources (blocks, records); `pm2/profile.h` of PM2 (parameters of Marcel's codes).

mod codes;
mod head;
mod order;
mod records;
mod threads;
mod writer;

use std::sync::atomic::AtomicBool;

use tracebraid_ctf::write::trace::Session;

use crate::error::ImportError;
use crate::input::Input;
use crate::summary::{Summary, Tally};
use records::Records;
use writer::Writer;

/// True if a file with these first bytes, at least 16, is an FxT trace: its architecture is known, and
/// its first block has the type of the head and a sane size.
pub(crate) fn is_magic(bytes: &[u8]) -> bool {
    head::Order::of(bytes).is_some_and(|order| order.is_head(bytes))
}

/// Imports the file into the session.
pub(crate) fn import(
    input: Input,
    session: &Session,
    stop: &AtomicBool,
) -> Result<Summary, ImportError> {
    let mut input = input;
    let uuid = input.uuid()?;
    let head = head::Head::read(&input)?;
    let mut summary = Summary {
        format: match head.is_kernel {
            true => "FxT trace of the kernel".to_owned(),
            false => "FxT trace of a program".to_owned(),
        },
        ..Summary::default()
    };
    let mut tally = Tally::default();
    let mut records = Records::new(&head);
    let first = records.first_time(&mut input);
    let mut writer = Writer::new(session, &head, (uuid, first))?;
    while let Some(record) = records.next(&mut input, &mut tally)? {
        writer.add(record, &mut summary, &mut tally, stop)?;
    }
    writer.finish(&mut summary, &mut tally)?;
    tally.tell(&mut summary);
    if head.frequency().is_none() {
        let what = "the frequency of the clock is unknown: times are in cycles";
        summary.lacks.push(what.to_owned());
    }
    Ok(summary)
}
