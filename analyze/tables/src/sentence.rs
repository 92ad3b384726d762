//! Sentences about a report, with values in them.

use crate::{Unit, Value};

/// A sentence; how its values look is decided where it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence(pub Vec<Phrase>);

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Phrase {
    /// Words, with the spaces around them.
    Words(&'static str),
    /// A value.
    Value(Unit, Value),
    /// A number of things: what stands after 1, and what after others.
    Number(u64, &'static str, &'static str),
}

impl Sentence {
    /// Adds words.
    pub fn words(mut self, words: &'static str) -> Sentence {
        self.0.push(Phrase::Words(words));
        self
    }

    /// Adds a value.
    pub fn value(mut self, unit: Unit, value: impl Into<Value>) -> Sentence {
        self.0.push(Phrase::Value(unit, value.into()));
        self
    }

    /// Adds a number of things.
    pub fn number(mut self, number: u64, one: &'static str, many: &'static str) -> Sentence {
        self.0.push(Phrase::Number(number, one, many));
        self
    }
}
