//! Protects the input of a command from being overwritten by its output.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::failure::Failure;

/// Refuses an output file that is a file of a trace, or one of the files in `read`.
///
/// # Errors
/// When it is, even by another name or through a link.
pub(crate) fn check<P: AsRef<Path>>(
    target: &Path,
    set: &TraceSet,
    read: &[P],
) -> Result<(), Failure> {
    let Some(there) = plain(target) else {
        return Ok(());
    };
    let is_it = |path: &Path| plain(path).is_some_and(|known| is_same(&known, &there));
    if let Some(trace) = set
        .traces
        .iter()
        .find(|trace| files(trace).any(|path| is_it(&path)))
    {
        let of = trace.paths.first().map(|path| path.display().to_string());
        return Err(Failure::usage(format!(
            "{}: refusing to overwrite a file of the trace {}: give the output another name",
            target.display(),
            of.unwrap_or_default()
        )));
    }
    check_read(target, read)
}

/// Refuses an output file that is one of the files in `read`.
///
/// # Errors
/// When it is, even by another name or through a link.
pub(crate) fn check_read<P: AsRef<Path>>(target: &Path, read: &[P]) -> Result<(), Failure> {
    let Some(there) = plain(target) else {
        return Ok(());
    };
    let is_it = |path: &P| plain(path.as_ref()).is_some_and(|known| is_same(&known, &there));
    match read.iter().any(is_it) {
        true => Err(Failure::usage(format!(
            "{}: refusing to overwrite an input file: give the output another name",
            target.display()
        ))),
        false => Ok(()),
    }
}

/// Metadata of an existing regular file, through links; `None` for devices and directories.
fn plain(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok().filter(Metadata::is_file)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The files of a trace: metadata, streams, indexes.
fn files(trace: &Trace) -> impl Iterator<Item = PathBuf> {
    let metadata = trace.paths.iter().map(|path| path.join("metadata"));
    let files = trace.streams.iter().flat_map(|stream| &stream.files);
    let indexes = trace
        .paths
        .iter()
        .filter_map(|path| fs::read_dir(path.join("index")).ok());
    let indexes = indexes.flatten().flatten().map(|entry| entry.path());
    metadata
        .chain(files.map(|file| file.path.clone()))
        .chain(indexes)
}
