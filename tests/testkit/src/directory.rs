//! Trace directories: a directory with a file `metadata`, its stream files, and their indexes.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use tracebraid_ctf::schema::TraceClass;

/// The directories at or below `root` that contain a trace, sorted.
///
/// # Errors
/// If a directory cannot be read, or none contains a trace.
pub fn find_traces(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        if directory.join("metadata").is_file() {
            found.push(directory.clone());
        }
        for entry in entries(&directory)? {
            if entry.is_dir() {
                pending.push(entry);
            }
        }
    }
    if found.is_empty() {
        bail!("no trace (no file `metadata`) in {}", root.display());
    }
    found.sort();
    Ok(found)
}

/// Paths in a directory, sorted by name.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let list =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths = Vec::new();
    for entry in list {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The stream files of a trace directory, sorted by name: all files except `metadata` and hidden
/// files.
///
/// # Errors
/// If the directory cannot be read.
pub fn stream_files(trace: &Path) -> Result<Vec<PathBuf>> {
    let is_stream = |path: &PathBuf| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        path.is_file() && name != "metadata" && !name.starts_with('.')
    };
    Ok(entries(trace)?.into_iter().filter(is_stream).collect())
}

/// The path of the index of a stream file, whether or not it exists.
pub fn index_path(stream_file: &Path) -> PathBuf {
    let name = stream_file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    stream_file
        .with_file_name("index")
        .join(format!("{name}.idx"))
}

/// Parses the metadata of a trace directory.
///
/// # Errors
/// If the file cannot be read or is invalid.
pub fn trace_class(trace: &Path) -> Result<TraceClass> {
    let path = trace.join("metadata");
    let file = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    crate::metadata::parse(&file).with_context(|| format!("in {}", path.display()))
}
