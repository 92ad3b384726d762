//! Building a damaged history again from its trace.

use std::path::Path;

use tracebraid_engine::Options;
use tracebraid_history::{Asked, Definition, History, HistoryError, Meta, build};

use super::build::failure;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options;
use crate::output::say;

/// Does something with a history. If that fails since the history is damaged, and its trace is
/// still there, the history is built again, and it is done once more.
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

/// What is wrong with a history, and what it is of: if something is, and the trace is there.
fn damage(file: &Path) -> Option<(HistoryError, Meta)> {
    let (error, meta) = match History::open(file) {
        Ok(history) => (history.verify().err()?, history.meta().clone()),
        Err(error) => (error, tracebraid_history::origin(file)?),
    };
    let is_damaged = matches!(error, HistoryError::Damaged { .. });
    let is_there = !meta.paths.is_empty() && meta.paths.iter().all(|path| path.exists());
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
            "{}: not built again: {paths} is not the trace that it was built from, or not at the same times ({why}); if that is \
             what is wanted, perhaps with --sync: tracebraid history build {paths} -o {0}",
            file.display()
        ))
        .restarting()
    })?;
    say!("tracebraid: building it again from {paths}");
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
