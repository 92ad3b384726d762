//! Texts, each kept once.

use std::collections::HashMap;

/// Stands for a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// Texts, each kept once, in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub struct Names {
    ids: HashMap<String, NameId>,
    texts: Vec<String>,
}

impl Names {
    /// The number of a text.
    pub fn id(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = NameId(self.texts.len() as u32);
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    /// The text of a number that this gave.
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }

    /// All, in the order of their numbers.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}
