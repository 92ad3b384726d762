//! Sentences about a report, which contain values.

use crate::{Unit, Value};

/// A sentence; the formatting of its values is left to the output format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence(pub Vec<Phrase>);

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Phrase {
    /// Words, with the white space around them.
    Words(&'static str),
    /// A value with its unit.
    Value(Unit, Value),
    /// A count: the number, the singular noun and the plural noun.
    Number(u64, &'static str, &'static str),
}

impl Sentence {
    /// Appends words.
    pub fn words(mut self, words: &'static str) -> Sentence {
        self.0.push(Phrase::Words(words));
        self
    }

    /// Appends a value.
    pub fn value(mut self, unit: Unit, value: impl Into<Value>) -> Sentence {
        self.0.push(Phrase::Value(unit, value.into()));
        self
    }

    /// Appends a count.
    pub fn number(mut self, number: u64, one: &'static str, many: &'static str) -> Sentence {
        self.0.push(Phrase::Number(number, one, many));
        self
    }
}
