//! Names of event classes and fields, as shared text.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A name. Clones share the text: the schema, the layout and all classes that use a name store it
/// once.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// Text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name(text.into())
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Name {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Recently created names. Event classes repeat the names of their fields thousands of times.
#[derive(Debug)]
pub(crate) struct Names {
    /// The last name for each hash.
    recent: Vec<Option<Name>>,
}

/// Number of recent names that are stored: a power of two.
const RECENT: usize = 1 << 10;

impl Default for Names {
    fn default() -> Self {
        Names {
            recent: vec![None; RECENT],
        }
    }
}

impl Names {
    /// The name with this text; shared if it was created recently.
    pub(crate) fn get(&mut self, text: &str) -> Name {
        let recent = self.recent.get_mut(hash(text) % RECENT);
        match recent {
            Some(Some(name)) if name.as_str() == text => name.clone(),
            Some(place) => place.insert(Name::from(text)).clone(),
            None => Name::from(text),
        }
    }
}

/// FNV-1a of the first bytes and the length. Names that collide are not shared, which is harmless.
fn hash(text: &str) -> usize {
    let step = |hash: u32, byte: u32| (hash ^ byte).wrapping_mul(0x0100_0193);
    let start = step(0x811c_9dc5, text.len() as u32);
    let bytes = text.bytes().take(32).map(u32::from);
    let hash = bytes.fold(start, step);
    (hash ^ hash >> 16) as usize
}

#[cfg(test)]
mod tests {
    use super::{Name, Names};

    #[test]
    fn names_are_shared_and_never_mixed_up() {
        let mut names = Names::default();
        let first = names.get("fd");
        assert!(std::sync::Arc::ptr_eq(&first.0, &names.get("fd").0));
        for round in 0..3 {
            for number in 0..5000 {
                let text = format!("{number}{}", "x".repeat(number % 40));
                assert_eq!(names.get(&text), Name::from(text), "in round {round}");
            }
        }
    }
}
