//! Working directories of processes, as far as recorded calls show them.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Text, Texts};

use crate::names;
use tracebraid_follow::{Table, ThreadKey};

/// Working directories of processes, as absolute paths.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Directories(Table<Option<Text>>);

impl Directories {
    /// Working directory of a process, if known.
    pub fn of(&self, process: ThreadKey) -> Option<Text> {
        self.0.find(process).copied().flatten()
    }

    /// True if no working directory is known.
    pub fn is_empty(&self) -> bool {
        self.0.entries().next().is_none()
    }

    /// All paths, mutable.
    pub(crate) fn paths(&mut self) -> impl Iterator<Item = &mut Text> {
        self.0.values().flatten()
    }

    /// Whether each process occurs once.
    pub(crate) fn is_sound(&self) -> bool {
        self.0.is_sound()
    }

    /// Changes the working directory of a process to `path`, which may be relative to the old
    /// directory.
    pub fn change(&mut self, texts: &mut Texts, process: ThreadKey, path: Option<Text>) {
        let whole = path.map(|path| names::of_path(texts, path, self.of(process)));
        let is_absolute = |path: &Text| texts.get(*path).is_some_and(|path| path.starts_with('/'));
        *self.0.get(process) = whole.filter(is_absolute);
    }

    /// Creates a process, which inherits the working directory of its parent.
    pub fn fork(&mut self, parent: ThreadKey, child: ThreadKey) {
        let directory = self.of(parent);
        if directory.is_some() || self.0.find(child).is_some() {
            *self.0.get(child) = directory;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_known_from_an_absolute_path_on() {
        let (mut texts, mut directories) = (Texts::default(), Directories::default());
        let [parent, child] = [7, 8].map(|tid| ThreadKey { trace: 0, tid });
        let [sub, srv] = ["sub", "/srv"].map(|path| texts.number(path));
        directories.change(&mut texts, parent, Some(sub));
        assert_eq!(directories.of(parent), None);
        directories.change(&mut texts, parent, Some(srv));
        directories.fork(parent, child);
        directories.change(&mut texts, parent, Some(sub));
        let path = |process| directories.of(process).and_then(|path| texts.get(path));
        assert_eq!(
            (path(parent), path(child)),
            (Some("/srv/sub"), Some("/srv"))
        );
        directories.change(&mut texts, parent, None);
        directories.fork(parent, child);
        assert_eq!(directories.of(child), None);
    }
}
