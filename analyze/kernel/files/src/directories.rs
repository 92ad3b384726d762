//! Working directories of processes, as far as calls tell them.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Text, Texts};

use crate::names;
use tracebraid_follow::{Table, ThreadKey};

/// Working directories of processes: absolute paths.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Directories(Table<Option<Text>>);

impl Directories {
    /// That of a process, if it is known.
    pub fn of(&self, process: ThreadKey) -> Option<Text> {
        self.0.find(process).copied().flatten()
    }

    /// True if none is known.
    pub fn is_empty(&self) -> bool {
        self.0.entries().next().is_none()
    }

    /// The paths, to be changed.
    pub(crate) fn paths(&mut self) -> impl Iterator<Item = &mut Text> {
        self.0.values().flatten()
    }

    /// Whether each process is in it once.
    pub(crate) fn is_sound(&self) -> bool {
        self.0.is_sound()
    }

    /// A process goes to another one: a path, which may be relative to where it is.
    pub fn change(&mut self, texts: &mut Texts, process: ThreadKey, path: Option<Text>) {
        let whole = path.map(|path| names::of_path(texts, path, self.of(process)));
        let is_absolute = |path: &Text| texts.get(*path).is_some_and(|path| path.starts_with('/'));
        *self.0.get(process) = whole.filter(is_absolute);
    }

    /// A process is made by another one, and is where that is.
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
