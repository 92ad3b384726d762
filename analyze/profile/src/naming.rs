//! Names of functions, each kept once: there are many more stacks than functions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tracebraid_symbols::Symbols;

/// Stands for a name.
pub(crate) type NameId = u32;

/// Finds functions, and gives their names numbers.
pub(crate) struct Naming<'s> {
    pub(crate) symbols: &'s mut Symbols,
    ids: HashMap<String, NameId>,
    names: Vec<String>,
    /// Frames without names, by the file that is not the recorded one any more.
    changed: HashMap<PathBuf, u64>,
}

impl<'s> Naming<'s> {
    /// No names yet.
    pub(crate) fn new(symbols: &'s mut Symbols) -> Naming<'s> {
        Naming {
            symbols,
            ids: HashMap::new(),
            names: Vec::new(),
            changed: HashMap::new(),
        }
    }

    /// The number of a name.
    pub(crate) fn id(&mut self, name: String) -> NameId {
        if let Some(&id) = self.ids.get(&name) {
            return id;
        }
        let id = self.names.len() as NameId;
        self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    /// A frame has no name, since that file has changed.
    pub(crate) fn is_changed(&mut self, file: &Path) {
        match self.changed.get_mut(file) {
            Some(frames) => *frames += 1,
            None => _ = self.changed.insert(file.to_owned(), 1),
        }
    }

    /// Frames without names since their files have changed, by file.
    pub(crate) fn take_changed(&mut self) -> HashMap<PathBuf, u64> {
        std::mem::take(&mut self.changed)
    }

    /// All names, by their numbers.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// The name of a number that this gave.
    pub(crate) fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", String::as_str)
    }
}
