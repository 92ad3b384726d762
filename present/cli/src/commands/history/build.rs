//! `tracebraid history build`: builds a history from traces.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tracebraid_history::{Asked, BuildError, Built, Definition, HistoryError, build};

use crate::failure::Failure;
use crate::file_kind::FileKind;
use crate::fold::{self, FoldArgs};
use crate::options::{self, InputArgs};
use crate::output::{Output, say};
use crate::spare;
use crate::units::{bytes, grouped, number_of};
use crate::warnings::Warnings;

/// Build the history of a kernel trace
///
/// The file gets its name only when it is complete; an interrupted build leaves no file. Its
/// contents do not depend on the number of threads.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid history build TRACE -o TRACE.history
  tracebraid history build server/kernel client/kernel -o both.history
  tracebraid history build TRACE --files -o TRACE.history
  tracebraid history build TRACE --analysis requests.toml -o requests.history")]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    /// File to write
    #[arg(long, short = 'o', value_name = "FILE")]
    output: PathBuf,
    /// Add the attributes of a user-defined analysis: a TOML file, or XML of Trace Compass
    /// (docs/reference/user-analyses.md)
    #[arg(long, value_name = "FILE")]
    analysis: Option<PathBuf>,
    /// Add the descriptors of processes, and bytes read and written: takes about twice as long
    #[arg(long)]
    files: bool,
    #[command(flatten)]
    fold: FoldArgs,
}

pub(super) fn run(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let definition = args.analysis.as_deref().map(definition).transpose()?;
    let set = options::open(&args.input, &args.fold)?;
    let read: Vec<PathBuf> = args
        .input
        .read()
        .into_iter()
        .chain(args.analysis.clone())
        .collect();
    spare::check(&args.output, &set, &read)?;
    FileKind::History.check_target(&args.output)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    warnings.nothing_yet(&set);
    let options = args.fold.options(None);
    let paths = absolute(&args.input.paths);
    let asked = Asked {
        definition,
        files: args.files,
    };
    let built = fold::watched(&args.fold, |control| {
        build(&set, &paths, asked, &args.output, options, control)
    });
    let built = built.map_err(|error| failure(&error))?;
    warnings.reading(&built.damage);
    built.doubts.iter().for_each(|doubt| warnings.note(doubt));
    if built.meta.losses > 0 {
        let times = number_of(built.meta.losses, "time", "times");
        warnings.note(&format!(
            "events were lost {times}: values that depend on lost events are unknown"
        ));
    }
    Output::open(None)?.write(summary(args, &built).as_bytes())?;
    Ok(warnings.finish(args.input.strict))
}

/// Absolute paths, so that the history can be rebuilt from any working directory.
pub(super) fn absolute(paths: &[PathBuf]) -> Vec<PathBuf> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    paths.iter().map(absolute).collect()
}

/// Reads the definition of an analysis.
fn definition(path: &Path) -> Result<Definition, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let wrong = |error| Failure::usage(format!("{}: {error}", path.display()));
    let definition = Definition::parse(&text).map_err(wrong)?;
    if let Some(note) = definition.old_forms.note() {
        say!("note: {}: {note}", path.display());
    }
    Ok(definition)
}

/// Failure if no history could be built.
pub(super) fn failure(error: &BuildError) -> Failure {
    match error {
        BuildError::File(error @ HistoryError::Io { .. }) => Failure::output(error.to_string()),
        BuildError::File(error) => super::unreadable(error),
        BuildError::Fold(error) => error.clone().into(),
        BuildError::Definition(error) => Failure::usage(error.clone()),
        BuildError::Nothing => Failure::nothing_readable(error.to_string()),
    }
}

fn summary(args: &BuildArgs, built: &Built) -> String {
    let share = built.bytes as f64 * 100.0 / built.meta.bytes.max(1) as f64;
    let own = match &built.meta.analysis {
        Some(analysis) => format!(
            "; {}: {}",
            analysis.name,
            number_of(built.meta.custom.len() as u64, "attribute", "attributes")
        ),
        None => String::new(),
    };
    format!(
        "{}: {} ({} bytes), {share:.1} % of {} of packets{own}\n",
        args.output.display(),
        bytes(built.bytes),
        grouped(built.bytes),
        bytes(built.meta.bytes),
    )
}
