//! Interning: each new key or text gets the next number.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use tracebraid_follow::{KeyHasher, NumberIndex};

use crate::text_hash;

/// Keys and their numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Interned<K> {
    keys: Vec<K>,
    #[serde(skip)]
    index: NumberIndex,
}

impl<K> Default for Interned<K> {
    fn default() -> Self {
        Interned {
            keys: Vec::new(),
            index: NumberIndex::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> Interned<K> {
    /// The number of a key, which is added if it is new.
    #[inline]
    pub fn number(&mut self, key: K) -> u32 {
        if self.index.count() != self.keys.len() {
            self.index_all();
        }
        let hash = KeyHasher::hash_of(&key);
        let is_key = |number: u32| self.keys.get(number as usize) == Some(&key);
        match self.index.find(hash, is_key) {
            Some(number) => number,
            None => {
                let number = self.keys.len() as u32;
                self.index.insert(hash, number);
                self.keys.push(key);
                number
            }
        }
    }

    /// Rebuilds the index, which is missing after deserialization and after a change of the keys.
    #[cold]
    fn index_all(&mut self) {
        self.index.clear();
        for (key, number) in self.keys.iter().zip(0..) {
            self.index.insert(KeyHasher::hash_of(key), number);
        }
    }

    /// Changes the keys. Different keys must stay different.
    pub fn change(&mut self, change: impl FnMut(&mut K)) {
        self.keys.iter_mut().for_each(change);
        self.index.clear();
    }

    /// Whether each key occurs once. May be false for deserialized data.
    pub fn is_sound(&self) -> bool {
        let mut known: std::collections::HashSet<K> = Default::default();
        self.keys.iter().all(|key| known.insert(*key))
    }

    /// All keys, in the order of their numbers.
    pub fn keys(&self) -> &[K] {
        &self.keys
    }
}

/// Number of a text in [`Texts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Text {
    /// Tag of the list in which the text has this number.
    tag: u32,
    number: u32,
}

impl Text {
    /// No text.
    pub const NONE: Text = Text {
        tag: 0,
        number: u32::MAX,
    };

    /// `None` for [`Text::NONE`].
    pub fn some(self) -> Option<Text> {
        (self != Text::NONE).then_some(self)
    }
}

/// Texts and their numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Texts {
    texts: Vec<Box<str>>,
    /// Distinguishes lists that are in use at the same time. The main list has 0.
    tag: u32,
    #[serde(skip)]
    index: NumberIndex,
}

impl Texts {
    /// An empty list with a tag that is unique in this process.
    pub fn tagged() -> Texts {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Texts {
            tag: NEXT.fetch_add(1, Ordering::Relaxed),
            ..Texts::default()
        }
    }

    /// The number of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> Text {
        if self.index.count() != self.texts.len() {
            self.index_all();
        }
        let tag = self.tag;
        let hash = text_hash::hash(text);
        let is_text = |number: u32| {
            self.texts
                .get(number as usize)
                .is_some_and(|known| **known == *text)
        };
        if let Some(number) = self.index.find(hash, is_text) {
            return Text { tag, number };
        }
        let number = self.texts.len() as u32;
        self.index.insert(hash, number);
        self.texts.push(text.into());
        Text { tag, number }
    }

    /// Rebuilds the index, which is missing after deserialization.
    #[cold]
    fn index_all(&mut self) {
        self.index.clear();
        for (text, number) in self.texts.iter().zip(0..) {
            self.index.insert(text_hash::hash(text), number);
        }
    }

    /// Whether each text occurs once. May be false for deserialized data.
    pub fn is_sound(&self) -> bool {
        let mut known: std::collections::HashSet<&str> = Default::default();
        self.tag == 0 && self.texts.iter().all(|text| known.insert(text))
    }

    /// True if there are no texts.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The text, if it belongs to this list.
    pub fn of(&self, text: Text) -> Option<&str> {
        self.get(text).filter(|_| text.tag == self.tag)
    }

    /// The text with this number, whatever its tag.
    pub fn get(&self, text: Text) -> Option<&str> {
        self.texts.get(text.number as usize).map(|text| &**text)
    }
}

/// Lists of texts that are in use at the same time, distinguished by their tags.
#[derive(Clone, Debug, Default)]
pub struct Dictionaries(Vec<Dictionary>);

#[derive(Clone, Debug)]
struct Dictionary {
    texts: Arc<Texts>,
    /// Latest time of an item that refers to the texts.
    until: i64,
}

impl Dictionaries {
    /// Adds a list whose texts are referred to until `until`.
    pub fn add(&mut self, texts: Texts, until: i64) {
        if !texts.is_empty() {
            let texts = Arc::new(texts);
            self.0.push(Dictionary { texts, until });
        }
    }

    /// Appends all lists of `others`.
    pub fn append(&mut self, mut others: Dictionaries) {
        self.0.append(&mut others.0);
    }

    /// Looks up a text by its tag and number.
    pub fn get(&self, text: Text) -> Option<&str> {
        // Most texts are in recent lists.
        let mut all = self.0.iter().rev();
        let dictionary = all.find(|dictionary| dictionary.texts.tag == text.tag)?;
        dictionary.texts.get(text)
    }

    /// Converts a text of any list to a text of the main list.
    pub fn known(&self, text: Text, known: &mut Texts) -> Text {
        if text.tag == known.tag || text == Text::NONE {
            return text;
        }
        self.get(text).map_or(Text::NONE, |text| known.number(text))
    }

    /// Drops the lists that no item at or after `from` refers to, except those of the texts in
    /// `named`.
    pub fn retain(&mut self, from: i64, named: &[Text]) {
        let is_named = |tag| named.iter().any(|text| text.tag == tag);
        self.0
            .retain(|dictionary| dictionary.until >= from || is_named(dictionary.texts.tag));
    }
}

impl Serialize for Dictionaries {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let all = self.0.iter();
        to.collect_seq(all.map(|dictionary| (&*dictionary.texts, dictionary.until)))
    }
}

impl<'de> Deserialize<'de> for Dictionaries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let all: Vec<(Texts, i64)> = Vec::deserialize(from)?;
        let dictionary = |(texts, until)| Dictionary {
            texts: Arc::new(texts),
            until,
        };
        Ok(Dictionaries(all.into_iter().map(dictionary).collect()))
    }
}
