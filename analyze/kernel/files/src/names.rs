//! Names of files.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Held, Interned, Text, Texts};
use tracebraid_kernel_model::FdType;

use crate::rules::FileChoice;

/// Number of a file; 0 stands for an unknown file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileId(pub u32);

impl Held for FileId {
    fn accepted(self) -> FileId {
        self
    }
}

/// Name of all files whose names were not recorded.
pub(crate) const UNKNOWN: &str = "unknown";

/// Stands for the working directory among directory descriptors, as in `fcntl.h`.
pub const AT_FDCWD: i32 = -100;

/// A file. Files with the same name and type on the same machine are the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct File {
    /// Index of the trace.
    pub trace: u32,
    /// Path or other name.
    pub name: Text,
    /// Type of the file.
    pub kind: FdType,
}

/// All known files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Files {
    files: Interned<File>,
    /// By number: whether the file is requested.
    shown: Vec<bool>,
}

impl Files {
    /// Changes the names. Different names must stay different.
    pub(crate) fn rename(&mut self, mut change: impl FnMut(&mut Text)) {
        self.files.change(|file| change(&mut file.name));
    }

    /// Whether adding files can have produced this value.
    pub(crate) fn is_sound(&self) -> bool {
        self.files.is_sound() && self.shown.len() == self.files.keys().len()
    }

    /// Number of the file, which is added if it is new. `choice` selects the
    /// files that are shown.
    pub fn file(&mut self, texts: &Texts, choice: &FileChoice, file: File) -> FileId {
        let number = self.files.number(file);
        if number as usize >= self.shown.len() {
            let name = texts.get(file.name).unwrap_or_default();
            self.shown.push(choice.contains(name, file.kind));
        }
        FileId(number + 1)
    }

    /// All files, in the order of their numbers. The first file has number 1.
    pub fn all(&self) -> &[File] {
        self.files.keys()
    }

    /// Returns the file with this number.
    #[inline]
    pub fn get(&self, file: FileId) -> Option<File> {
        let at = (file.0 as usize).checked_sub(1)?;
        self.files.keys().get(at).copied()
    }

    /// True if the file is requested.
    #[inline]
    pub fn shows(&self, file: FileId) -> bool {
        let at = (file.0 as usize).checked_sub(1);
        at.and_then(|at| self.shown.get(at))
            .is_some_and(|&shown| shown)
    }
}

/// The file that stands for all unknown files of a machine.
pub fn unknown(texts: &mut Texts, trace: u32) -> File {
    File {
        trace,
        name: texts.number(UNKNOWN),
        kind: FdType::Unknown,
    }
}

/// A file with the name from a state dump.
fn dumped(texts: &Texts, trace: u32, name: Text) -> File {
    let path = texts.get(name).unwrap_or_default();
    File {
        trace,
        name,
        kind: FdType::of_path(path.as_bytes()),
    }
}

/// The file of a descriptor in a state dump; the unknown file if it has no name there.
pub fn held(texts: &mut Texts, trace: u32, name: Text) -> File {
    match name.some() {
        Some(name) => dumped(texts, trace, name),
        None => unknown(texts, trace),
    }
}

/// Path of a file that is opened by `name`, relative to `directory` if that is known.
pub(crate) fn of_path(texts: &mut Texts, name: Text, directory: Option<Text>) -> Text {
    let path = texts.get(name).unwrap_or_default();
    let directory = directory.and_then(|directory| texts.get(directory));
    match directory.filter(|directory| directory.starts_with('/') && !path.starts_with('/')) {
        Some(directory) => {
            let whole = format!("{}/{path}", directory.trim_end_matches('/'));
            texts.number(&whole)
        }
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_language::glob::Glob;

    use super::*;

    #[test]
    fn names_are_relative_to_directories_that_are_known() {
        let mut texts = Texts::default();
        let [root, etc, socket, relative, absolute] =
            ["/", "/etc", "socket", "a/b", "/c"].map(|text| texts.number(text));
        let mut whole = |name, directory| {
            let text = of_path(&mut texts, name, directory);
            texts.get(text).map(str::to_owned).unwrap_or_default()
        };
        assert_eq!(whole(relative, Some(etc)), "/etc/a/b");
        assert_eq!(whole(relative, Some(root)), "/a/b");
        assert_eq!(whole(relative, Some(socket)), "a/b");
        assert_eq!(whole(relative, None), "a/b");
        assert_eq!(whole(absolute, Some(etc)), "/c");
    }

    #[test]
    fn files_are_told_apart_by_machine_and_type_and_chosen_by_both() {
        let (mut texts, mut files) = (Texts::default(), Files::default());
        let choice = FileChoice {
            paths: vec![Glob::new("/e*")],
            types: vec![Glob::new("file")],
        };
        let name = texts.number("/etc");
        let mut file = |trace, name, kind| files.file(&texts, &choice, File { trace, name, kind });
        let one = file(0, name, FdType::File);
        assert_eq!(one, file(0, name, FdType::File));
        assert_ne!(one, file(1, name, FdType::File));
        let pipe = file(0, name, FdType::Pipe);
        assert_ne!(one, pipe);
        let other = texts.number("/x");
        let other = files.file(
            &texts,
            &choice,
            File {
                trace: 0,
                name: other,
                kind: FdType::File,
            },
        );
        assert!(files.shows(one) && !files.shows(other) && !files.shows(pipe));
        assert!(!files.shows(FileId::default()));
        assert_eq!(files.get(FileId::default()), None);
    }
}
