//! Names: unique in their scope, sometimes awkward.

use crate::rng::Rng;
use std::collections::HashSet;

const WORDS: [&str; 12] = [
    "len",
    "comm",
    "ret",
    "flags",
    "data",
    "x",
    "prev_state",
    "Ünïcode",
    "fd",
    "buf",
    "a_b",
    "count",
];
const ASCII_FOR_UNICODE: &str = "unicode";
/// Keywords of TSDL, which must be escaped there, and names that start with an underscore.
const AWKWARD: [&str; 9] = [
    "event", "stream", "int", "align", "struct", "_hidden", "__two", "env", "string",
];

/// The used names of a scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    used: HashSet<String>,
    only_ascii: bool,
}

impl Names {
    /// `only_ascii`: restricts names to TSDL identifiers.
    pub(super) fn new(only_ascii: bool) -> Self {
        Names {
            used: HashSet::new(),
            only_ascii,
        }
    }

    /// Marks a name as used.
    pub(super) fn reserve(&mut self, name: &str) {
        self.used.insert(name.to_string());
    }

    /// A new name.
    pub(super) fn fresh(&mut self, rng: &mut Rng) -> String {
        let awkward = rng.pick(&AWKWARD);
        if rng.chance(6) && self.used.insert(awkward.to_string()) {
            return awkward.to_string();
        }
        let mut word = rng.pick(&WORDS);
        if self.only_ascii && !word.is_ascii() {
            word = ASCII_FOR_UNICODE;
        }
        if !self.only_ascii && rng.chance(3) {
            word = "with space.and/dot";
        }
        let name = format!("{word}{}", self.used.len());
        self.used.insert(name.clone());
        name
    }
}
