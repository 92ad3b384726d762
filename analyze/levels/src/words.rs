//! Names and reasons, each stored once.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{KeyHasher, NumberIndex};

/// Words and their numbers, in the order of their first use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Words {
    words: Vec<Box<[u8]>>,
    #[serde(skip)]
    index: NumberIndex,
}

impl Words {
    /// The number of a word, which is added if it is new.
    pub(crate) fn number(&mut self, word: &[u8]) -> u32 {
        if self.index.count() != self.words.len() {
            // The index is missing after deserialization.
            self.index.clear();
            for (word, number) in self.words.iter().zip(0..) {
                self.index.insert(hash(word), number);
            }
        }
        let hash = hash(word);
        let is_word = |number: u32| self.get(number) == word;
        if let Some(number) = self.index.find(hash, is_word) {
            return number;
        }
        let number = self.words.len() as u32;
        self.index.insert(hash, number);
        self.words.push(word.into());
        number
    }

    pub(crate) fn get(&self, number: u32) -> &[u8] {
        self.words.get(number as usize).map_or(&[], |word| word)
    }

    /// All words, in the order of their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.words.iter().map(|word| &**word)
    }
}

fn hash(word: &[u8]) -> u64 {
    KeyHasher::hash_of(&word)
}
