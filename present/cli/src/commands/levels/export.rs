//! `tracebraid levels export`: a super-trace in the formats of other tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{ArgGroup, Args};
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_export::levels::{FxtWriter, Otf2Writer, PajeWriter, PerfettoWriter};
use tracebraid_levels::exported::{Followed, Item, Sink, each, export};

use crate::failure::Failure;
use crate::fold::FoldArgs;
use crate::merged;
use crate::options::{self, InputArgs};
use crate::output::{self, cannot_be_written, say};
use crate::spare;
use crate::units::number_of;
use crate::warnings::Warnings;

/// Write user-level threads, LWPs and CPUs for Perfetto, Pajé, OTF2, FxT
///
/// Lines of CPUs, LWPs and user-level threads with their states (running, preempted, ready, blocked
/// and why), wake-ups, migrations at both levels, functions and events of programs. FxT contains
/// all event records. Traces that are no super-trace are merged first, into a temporary directory.
/// docs/reference/levels-export.md describes the formats.
#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("formats").required(true).multiple(true),
    after_help = "Examples:
  tracebraid levels export --perfetto out.perfetto-trace my-recording
  tracebraid levels export --paje out.paje SUPER && vite out.paje
  tracebraid levels export --otf2 OUT SUPER && otf2-print OUT/traces.otf2
  tracebraid levels export --fxt out.fxt SUPER && fxt_print -f out.fxt"
)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Write a Perfetto trace (ui.perfetto.dev)
    #[arg(long, value_name = "FILE", group = "formats")]
    perfetto: Option<PathBuf>,
    /// Write a Pajé trace (ViTE, pj_dump)
    #[arg(long, value_name = "FILE", group = "formats")]
    paje: Option<PathBuf>,
    /// Write an FxT trace of all event records (fxt_print)
    #[arg(long, value_name = "FILE", group = "formats")]
    fxt: Option<PathBuf>,
    /// Write an OTF2 archive into a directory, which must not exist (otf2-print)
    #[arg(long, value_name = "DIR", group = "formats")]
    otf2: Option<PathBuf>,
}

pub(super) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let set = options::open(&args.input, &FoldArgs::default())?;
    let set = merged::in_place_of(set, &args.input.paths, &FoldArgs::default())?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    warnings.nothing_yet(&set);
    let files = [&args.perfetto, &args.paje, &args.fxt];
    for target in files.into_iter().chain([&args.otf2]).flatten() {
        spare::check(target, &set, &args.input.read())?;
    }
    if set.traces.len() > 1 {
        return Err(several(&set));
    }
    // Every format reads the whole super-trace, and so finds the same damage.
    let mut damage = Vec::new();
    if let Some(file) = &args.perfetto {
        damage = write(&set, file, "open it in ui.perfetto.dev", |out| {
            Ok(Box::new(PerfettoWriter::new(out)))
        })?;
    }
    if let Some(file) = &args.paje {
        damage = write(&set, file, "open it in ViTE", |out| {
            Ok(Box::new(PajeWriter::new(out)?))
        })?;
    }
    if let Some(file) = &args.fxt {
        damage = write_fxt(&set, file)?;
    }
    if let Some(directory) = &args.otf2 {
        damage = write_otf2(&set, directory)?;
    }
    warnings.reading(&damage);
    Ok(warnings.finish(args.input.strict))
}

/// The formats have no place for a second recording: ids of its threads may be those of the first.
fn several(set: &TraceSet) -> Failure {
    Failure::usage(format!(
        "the traces are of {} recordings or hosts: export one super-trace at a time; \
         `tracebraid levels merge TRACE... -o DIR` writes one for each host",
        set.traces.len()
    ))
}

fn said(followed: &Followed, target: &Path, advice: &str) {
    say!(
        "wrote {}: {}, {}; {advice}",
        target.display(),
        number_of(followed.threads, "user-level thread", "user-level threads"),
        number_of(followed.records, "event record", "event records"),
    );
}

/// Writes a file, which gets its name when it is complete.
fn write<'s>(
    set: &TraceSet,
    file: &Path,
    advice: &str,
    make: impl for<'o> FnOnce(&'o mut output::Pieces) -> std::io::Result<Box<dyn Sink + 'o>> + 's,
) -> Result<Vec<Damage>, Failure> {
    let mut followed = Followed::default();
    output::replace_with(file, |out| {
        let written = make(out).and_then(|mut sink| export(set, &mut *sink));
        followed = written.map_err(|error| cannot_be_written(file, &error))?;
        Ok(())
    })?;
    said(&followed, file, advice);
    Ok(followed.damage)
}

fn write_fxt(set: &TraceSet, file: &Path) -> Result<Vec<Damage>, Failure> {
    let failed = |error: std::io::Error| cannot_be_written(file, &error);
    let first = set.traces.first();
    let host = first.and_then(|trace| trace.layout.class.env_str("hostname"));
    let mut damage = Vec::new();
    output::replace_with(file, |out| {
        let spool = tempfile::tempfile().map_err(failed)?;
        let mut writer = FxtWriter::new(spool, host.unwrap_or_default());
        let stop = output::interruption();
        let added = each(set, |record| match stop.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("interrupted")),
            false => writer.record(record),
        });
        damage = added.map_err(failed)?;
        writer.finish(out).map_err(failed)
    })?;
    say!("wrote {}: print it by fxt_print", file.display());
    Ok(damage)
}

/// Writes a directory, which gets its name when it is complete.
fn write_otf2(set: &TraceSet, directory: &Path) -> Result<Vec<Damage>, Failure> {
    let failed = |error: std::io::Error| cannot_be_written(directory, &error);
    if directory.exists() {
        let what = format!(
            "{}: exists already: give the archive another name",
            directory.display()
        );
        return Err(Failure::usage(what));
    }
    let above = directory
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    // The temporary directory is private, the archive below it has the permissions of other files.
    let place = tempfile::Builder::new()
        .prefix(".otf2-")
        .tempdir_in(above)
        .map_err(failed)?;
    let part = place.path().join("archive");
    fs::create_dir(&part).map_err(failed)?;
    let stop = output::interruption();
    let exported = Otf2Writer::new(&part).and_then(|writer| {
        let mut writer = Interruptible {
            writer,
            stop: &stop,
        };
        export(set, &mut writer)
    });
    output::end_at_once();
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted());
    }
    let followed = exported.map_err(failed)?;
    fs::rename(&part, directory).map_err(failed)?;
    said(&followed, directory, "print it by otf2-print");
    Ok(followed.damage)
}

/// A writer that ends when the user interrupts the program.
struct Interruptible<'s> {
    writer: Otf2Writer,
    stop: &'s std::sync::atomic::AtomicBool,
}

impl Sink for Interruptible<'_> {
    fn item(&mut self, item: &Item<'_>) -> std::io::Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("interrupted")),
            false => self.writer.item(item),
        }
    }

    fn finish(&mut self, end: i64) -> std::io::Result<()> {
        self.writer.finish(end)
    }
}
