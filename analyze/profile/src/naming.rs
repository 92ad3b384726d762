//! Names of functions, each kept once: there are many more stacks than functions.

use std::collections::HashMap;

use tracebraid_symbols::Symbols;

use crate::nameless::NamelessCounts;

/// Stands for a name.
pub(crate) type NameId = u32;

/// Finds functions, and gives their names numbers.
pub(crate) struct Naming<'s> {
    pub(crate) symbols: &'s mut Symbols,
    ids: HashMap<String, NameId>,
    names: Vec<String>,
    pub(crate) nameless: NamelessCounts,
}

impl<'s> Naming<'s> {
    /// No names yet.
    pub(crate) fn new(symbols: &'s mut Symbols) -> Naming<'s> {
        Naming {
            symbols,
            ids: HashMap::new(),
            names: Vec::new(),
            nameless: NamelessCounts::default(),
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

    /// Frames without names so far.
    pub(crate) fn take_nameless(&mut self) -> NamelessCounts {
        std::mem::take(&mut self.nameless)
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
