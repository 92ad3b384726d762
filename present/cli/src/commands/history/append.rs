//! `tracebraid history append`: updates a history with its grown trace.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_history::{AppendError, Appended, History, append};

use super::{build, unreadable};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options;
use crate::output::Output;
use crate::units::{bytes, grouped, number_of};
use crate::warnings::Warnings;

/// Update a history with a trace that has grown since
///
/// Reads only the new part of the trace, and older parts that overlap it in time. The result
/// equals a history of the whole trace. Concurrent queries see the old state or the new one; an
/// interrupted append leaves the old one.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid history append TRACE.history
  while sleep 10; do tracebraid history append TRACE.history; done
  tracebraid history append TRACE.history /mnt/moved/TRACE")]
pub(crate) struct AppendArgs {
    /// The history
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Current paths of the traces, in the order in which they were given to `build`, if they have
    /// moved
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Exit with code 1 if an input is damaged
    #[arg(long)]
    strict: bool,
    /// The --sync file of `build`, if it had one
    #[arg(long, value_name = "FILE")]
    sync: Option<PathBuf>,
    #[command(flatten)]
    fold: FoldArgs,
}

pub(super) fn run(args: &AppendArgs) -> Result<ExitCode, Failure> {
    let paths = paths(args)?;
    let set = open(args, &paths)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    let options = args.fold.options(None);
    let appended = fold::watched(&args.fold, |control| {
        append(&set, &paths, &args.file, options, control)
    });
    let appended = appended.map_err(|error| failure(&error))?;
    warnings.reading(&appended.built.damage);
    appended
        .built
        .doubts
        .iter()
        .for_each(|doubt| warnings.note(doubt));
    Output::open(None)?.write(summary(args, &appended).as_bytes())?;
    Ok(warnings.finish(args.strict))
}

/// Paths of the traces: those given, or those in the history.
fn paths(args: &AppendArgs) -> Result<Vec<PathBuf>, Failure> {
    let history = History::open(&args.file).map_err(|error| unreadable(&error))?;
    if !args.paths.is_empty() {
        return Ok(build::absolute(&args.paths));
    }
    let paths = history.meta().paths.clone();
    match paths.iter().find(|path| !path.exists()) {
        Some(path) => Err(Failure::nothing_readable(format!(
            "{}: the trace does not exist; if it has moved: tracebraid history append {} PATH",
            path.display(),
            args.file.display()
        ))),
        None => Ok(paths),
    }
}

fn open(args: &AppendArgs, paths: &[PathBuf]) -> Result<TraceSet, Failure> {
    let mut set = options::open_paths(paths)?;
    if let Some(from) = &args.sync {
        if crate::sync::is_auto(from) {
            return Err(Failure::usage(
                "--sync auto: the new packets may lead to other clock offsets, which would change earlier times: give the --sync \
                 file of `history build` (written by tracebraid sync -o), or build the history again"
                    .to_owned(),
            ));
        }
        crate::sync::apply(from, &mut set)?;
    }
    Ok(set)
}

/// Failure if nothing could be appended.
fn failure(error: &AppendError) -> Failure {
    let message = error.to_string();
    match error {
        AppendError::Build(error) => build::failure(error),
        // The history may have been built without a wrong index, which would give other packets
        // now.
        AppendError::Other { .. } => Failure::usage(format!(
            "{message}; if `history build` used --sync FILE, `history append` needs the same file"
        ))
        .restarting(),
        AppendError::Analysis { .. } => Failure::usage(message),
        AppendError::Old { .. } => Failure::nothing_readable(message),
        AppendError::Busy { .. } => Failure::output(message),
    }
}

fn summary(args: &AppendArgs, appended: &Appended) -> String {
    let file = args.file.display();
    if appended.packets == 0 {
        return format!("{file}: nothing is new\n");
    }
    format!(
        "{file}: {} new, {} of packets read; {} ({} bytes)\n",
        number_of(appended.packets, "packet", "packets"),
        bytes(appended.read),
        bytes(appended.built.bytes),
        grouped(appended.built.bytes),
    )
}
