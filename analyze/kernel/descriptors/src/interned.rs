//! Things by number: each gets the next one when it is met first.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

use serde::{Deserialize, Serialize};

use tracebraid_kernel_fold::KeyHasher;

/// Keys made of numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Interned<K> {
    keys: Vec<K>,
    #[serde(skip, default = "HashMap::default")]
    index: HashMap<K, u32, BuildHasherDefault<KeyHasher>>,
}

impl<K> Default for Interned<K> {
    fn default() -> Self {
        Interned {
            keys: Vec::new(),
            index: HashMap::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> Interned<K> {
    /// The number of a key, which is new if it is the last one.
    pub fn number(&mut self, key: K) -> u32 {
        if self.index.len() != self.keys.len() {
            // It was deserialized.
            self.index = (self.keys.iter().copied().zip(0..)).collect();
        }
        let next = self.keys.len() as u32;
        let number = *self.index.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        number
    }

    /// Changes the keys, of which different ones must stay so.
    pub fn change(&mut self, change: impl FnMut(&mut K)) {
        self.keys.iter_mut().for_each(change);
        self.index.clear();
    }

    /// Whether each key is there once, as when it was not made of bytes from elsewhere.
    pub fn is_sound(&self) -> bool {
        let mut known: std::collections::HashSet<K> = Default::default();
        self.keys.iter().all(|key| known.insert(*key))
    }

    /// All keys, in the order of their numbers.
    pub fn keys(&self) -> &[K] {
        &self.keys
    }
}

/// A text by its number among [`Texts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Text(pub u32);

impl Text {
    /// None.
    pub const NONE: Text = Text(u32::MAX);

    /// It, if there is one.
    pub fn some(self) -> Option<Text> {
        (self != Text::NONE).then_some(self)
    }

    /// Its number in another list.
    pub fn moved(&mut self, texts: &[Text]) {
        *self = texts.get(self.0 as usize).copied().unwrap_or(Text::NONE);
    }
}

/// Texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Texts {
    texts: Vec<Box<str>>,
    #[serde(skip)]
    index: HashMap<Box<str>, u32>,
}

impl Texts {
    /// The number of a text.
    pub fn number(&mut self, text: &str) -> Text {
        if self.index.len() != self.texts.len() {
            // It was deserialized.
            self.index = (self.texts.iter().cloned().zip(0..)).collect();
        }
        if let Some(&number) = self.index.get(text) {
            return Text(number);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.index.insert(text.into(), number);
        Text(number)
    }

    /// Whether each text is there once.
    pub fn is_sound(&self) -> bool {
        let mut known: std::collections::HashSet<&str> = Default::default();
        self.texts.iter().all(|text| known.insert(text))
    }

    /// The text of that number.
    pub fn get(&self, text: Text) -> Option<&str> {
        self.texts.get(text.0 as usize).map(|text| &**text)
    }

    /// Takes in all texts of another list; gives their numbers here.
    pub fn merge(&mut self, later: &Texts) -> Vec<Text> {
        later.texts.iter().map(|text| self.number(text)).collect()
    }
}
