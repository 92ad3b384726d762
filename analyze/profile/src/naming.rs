//! Names of functions, each stored once, because there are many more stacks than functions.

use std::collections::HashMap;

use tracebraid_symbols::Symbols;

use crate::nameless::NamelessCounts;

/// Index of a name.
pub(crate) type NameId = u32;

/// Resolves addresses to functions and interns their names.
pub(crate) struct Naming<'s> {
    pub(crate) symbols: &'s mut Symbols,
    ids: HashMap<String, NameId>,
    names: Vec<String>,
    pub(crate) nameless: NamelessCounts,
}

impl<'s> Naming<'s> {
    pub(crate) fn new(symbols: &'s mut Symbols) -> Naming<'s> {
        Naming {
            symbols,
            ids: HashMap::new(),
            names: Vec::new(),
            nameless: NamelessCounts::default(),
        }
    }

    pub(crate) fn id(&mut self, name: String) -> NameId {
        if let Some(&id) = self.ids.get(&name) {
            return id;
        }
        let id = self.names.len() as NameId;
        self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    /// Returns the counts of frames without names so far, and resets them.
    pub(crate) fn take_nameless(&mut self) -> NamelessCounts {
        std::mem::take(&mut self.nameless)
    }

    /// All names, indexed by [`NameId`].
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    pub(crate) fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", String::as_str)
    }
}
