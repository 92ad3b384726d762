//! Interned texts.

use std::collections::HashMap;

/// Number of an interned text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// Interned texts, numbered in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Names {
    ids: HashMap<String, NameId>,
    texts: Vec<String>,
}

impl Names {
    /// Number of a text; adds a new text.
    pub fn id(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = NameId(self.texts.len() as u32);
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    /// The text of a number from [`Names::id`].
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }

    /// All texts, in the order of their numbers.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}
