//! Rebuilds a damaged history from its trace.

use std::path::Path;

use tracebraid_engine::Options;
use tracebraid_history::{Asked, Definition, History, HistoryError, Meta, build};

use super::build::failure;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::imported;
use crate::options;
use crate::output::say;

/// Runs `work` on a history. If it fails because the history is damaged, and the trace still
/// exists, rebuilds the history and runs `work` again.
pub(super) fn mending<T>(
    file: &Path,
    mut work: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let refused = match work() {
        Err(refused) => refused,
        done => return done,
    };
    let Some((error, meta)) = damage(file) else {
        return Err(refused);
    };
    say!("tracebraid: {error}");
    again(file, &meta)?;
    work()
}

/// The damage of a history and its description, if it is damaged and its trace exists.
fn damage(file: &Path) -> Option<(HistoryError, Meta)> {
    let (error, meta) = match History::open(file) {
        Ok(history) => (history.verify().err()?, history.meta().clone()),
        Err(error) => (error, tracebraid_history::origin(file)?),
    };
    let is_damaged = matches!(error, HistoryError::Damaged { .. });
    let is_there = !meta.paths.is_empty() && meta.paths.iter().all(|path| imported::exists(path));
    (is_damaged && is_there).then_some((error, meta))
}

fn again(file: &Path, meta: &Meta) -> Result<(), Failure> {
    let set = options::open_paths(&meta.paths)?;
    let paths: Vec<String> = meta
        .paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let paths = paths.join(" ");
    meta.check(&set).map_err(|why| {
        Failure::nothing_readable(format!(
            "{}: not rebuilt: {paths} is not the trace that it was built from, or has other times ({why}); to build it from this \
             trace anyway (with --sync if needed): tracebraid history build {paths} -o {0}",
            file.display()
        ))
        .restarting()
    })?;
    say!("tracebraid: rebuilding it from {paths}");
    let definition = meta
        .analysis
        .as_ref()
        .map(|analysis| Definition::parse(&analysis.text));
    let definition = definition
        .transpose()
        .map_err(|error| Failure::usage(error.to_string()))?;
    let asked = Asked {
        definition,
        files: meta.files,
    };
    let built = fold::watched(&FoldArgs::default(), |control| {
        build(&set, &meta.paths, asked, file, Options::default(), control)
    });
    built.map(drop).map_err(|error| failure(&error))
}
