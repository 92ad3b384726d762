//! Directories without a CTF trace: their perf and trace-cmd recordings, and their archives.

use std::fs;
use std::path::{Path, PathBuf};

use tracebraid_import::is_importable;

use crate::archives;
use crate::units::first_of;

/// Depth to which directories are searched, as for traces.
const DEPTH: usize = 16;

/// Maximum number of files whose first bytes are read. Larger directories are not searched.
const MOST_FILES: usize = 10_000;

/// The files in a directory and below it.
#[derive(Debug, Default)]
pub(crate) struct WithoutTrace {
    /// Recordings of perf and trace-cmd.
    importable: Vec<PathBuf>,
    archives: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

impl WithoutTrace {
    /// The files below a directory; `None` for a file, or if the directory contains a trace.
    pub(crate) fn of(directory: &Path) -> Option<WithoutTrace> {
        let mut found = WithoutTrace::default();
        let is_searched = directory.is_dir() && found.look(directory, DEPTH).is_some();
        is_searched.then_some(found)
    }

    /// Adds the files of a directory; `None` if there is a trace or too much.
    fn look(&mut self, directory: &Path, depth: usize) -> Option<()> {
        if directory.join("metadata").exists() {
            return None;
        }
        let entries = fs::read_dir(directory).ok()?.flatten();
        let entries =
            entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            // Links are not followed, since they could form a cycle.
            let about = fs::symlink_metadata(&path).ok()?;
            match depth {
                _ if about.is_file() => self.add(path)?,
                0 => {}
                _ if about.is_dir() => self.look(&path, depth - 1)?,
                _ => {}
            }
        }
        Some(())
    }

    fn add(&mut self, path: PathBuf) -> Option<()> {
        match () {
            () if is_importable(&path) => self.importable.push(path),
            () if archives::is_packed(&path) => self.archives.push(path),
            () => self.others.push(path),
        }
        (self.importable.len() + self.archives.len() + self.others.len() < MOST_FILES).then_some(())
    }

    /// The recording of another tool, if there is exactly one.
    pub(crate) fn single(&self) -> Option<&Path> {
        match self.importable.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The paths to give instead of the directory, as the end of a sentence; `None` if it contains
    /// no readable file.
    pub(crate) fn advice(&self) -> Option<String> {
        let shown = |path: &PathBuf| path.display().to_string();
        self.choice(shown, "give the path")
    }

    /// Why an archive, which was unpacked into `directory`, contains no trace, as the end of a
    /// sentence.
    pub(crate) fn lack(&self, directory: &Path) -> String {
        let shown = |path: &PathBuf| {
            path.strip_prefix(directory)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        if let Some(choice) = self.choice(shown, "unpack it and give the path") {
            return choice;
        }
        match self.others.is_empty() {
            true => "it is empty".to_owned(),
            false => format!(
                "it contains neither a directory with a file named `metadata` nor a recording of perf, \
                 trace-cmd or Nsight Systems, but {}",
                listed(&self.others, shown)
            ),
        }
    }

    fn choice(&self, shown: impl Fn(&PathBuf) -> String, give: &str) -> Option<String> {
        let (count, what, files) = match (self.importable.len(), self.archives.len()) {
            (0, 0) => return None,
            (0, 1) => (1, "an archive".to_owned(), &self.archives),
            (0, count) => (count, format!("{count} archives"), &self.archives),
            (count, _) => (
                count,
                format!("{count} recordings of other tools"),
                &self.importable,
            ),
        };
        let of = if count == 1 { "" } else { " of one" };
        Some(format!(
            "it contains {what}; {give}{of}: {}",
            listed(files, shown)
        ))
    }
}

fn listed(paths: &[PathBuf], shown: impl Fn(&PathBuf) -> String) -> String {
    first_of(paths.iter().map(shown), "other", "others")
}
