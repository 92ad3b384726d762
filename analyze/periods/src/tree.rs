//! Conditions of one event class, after evaluating all parts that the class decides.

use tracebraid_language::ast::Operator;
use tracebraid_language::glob::Glob;
use tracebraid_language::{ClassFilter, Datum};

/// Source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// No value.
    Missing,
    /// Index among the values of the event record.
    Event(usize),
    /// Index among the values kept when the period began.
    Begin(usize),
    /// Index among the values kept when the parent began.
    Parent(usize),
}

/// The values that [`ValueSource`] refers to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values<'v> {
    /// The filters of the class that the event record passed, one bit each.
    pub(super) bits: u64,
    pub(super) event: &'v [Datum],
    pub(super) begin: &'v [Datum],
    pub(super) parent: &'v [Datum],
}

static MISSING: Datum = Datum::Missing;

impl<'v> Values<'v> {
    #[inline]
    pub(super) fn at(&self, place: ValueSource) -> &'v Datum {
        let found = match place {
            ValueSource::Missing => None,
            ValueSource::Event(at) => self.event.get(at),
            ValueSource::Begin(at) => self.begin.get(at),
            ValueSource::Parent(at) => self.parent.get(at),
        };
        found.unwrap_or(&MISSING)
    }

    /// Copies the values at `places`.
    pub(super) fn copy(&self, places: &[ValueSource], to: &mut Vec<Datum>) {
        to.clear();
        to.extend(places.iter().map(|&place| self.at(place).clone()));
    }
}

/// A hash of several values; equal values have equal hashes. `None` if a value equals nothing.
#[inline]
pub(super) fn key<'v>(values: impl Iterator<Item = &'v Datum>) -> Option<u64> {
    let mut key = 0u64;
    for value in values {
        key = key.rotate_left(23).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ value.key()?;
    }
    Some(key)
}

/// A condition on the event records of one class.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Const(bool),
    /// The event record passed the filter with that bit.
    Bit(u32),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Not(Box<Tree>),
    Compare(ValueSource, Operator, Right),
}

/// The right side of a comparison.
#[derive(Clone, Debug)]
pub(super) enum Right {
    Value(ValueSource),
    Constant(Datum),
    Pattern(Glob),
}

impl Tree {
    /// A filter, which gets the next bit unless it is constant.
    pub(super) fn filter(filter: ClassFilter, filters: &mut Vec<ClassFilter>) -> Tree {
        match filter.constant() {
            Some(value) => Tree::Const(value),
            None => {
                filters.push(filter);
                Tree::Bit(filters.len() as u32 - 1)
            }
        }
    }

    pub(super) fn compare(left: ValueSource, operator: Operator, right: Right) -> Tree {
        match (left, &right) {
            (ValueSource::Missing, _) | (_, Right::Value(ValueSource::Missing)) => {
                Tree::Const(false)
            }
            _ => Tree::Compare(left, operator, right),
        }
    }

    pub(super) fn all(parts: Vec<Tree>) -> Tree {
        Tree::join(parts, true, Tree::And)
    }

    pub(super) fn any(parts: Vec<Tree>) -> Tree {
        Tree::join(parts, false, Tree::Or)
    }

    /// Joins parts without those that equal `neutral`; a constant part of the opposite value
    /// decides.
    fn join(mut parts: Vec<Tree>, neutral: bool, join: fn(Vec<Tree>) -> Tree) -> Tree {
        parts.retain(|part| !matches!(part, Tree::Const(value) if *value == neutral));
        let decides = parts.iter().any(|part| matches!(part, Tree::Const(_)));
        match parts.pop() {
            None => Tree::Const(neutral),
            Some(_) if decides => Tree::Const(!neutral),
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                join(parts)
            }
        }
    }

    pub(super) fn negated(self) -> Tree {
        match self {
            Tree::Const(value) => Tree::Const(!value),
            tree => Tree::Not(Box::new(tree)),
        }
    }

    /// Whether the condition holds.
    #[inline]
    pub(super) fn holds(&self, values: &Values<'_>) -> bool {
        match self {
            Tree::Const(value) => *value,
            Tree::Bit(bit) => values.bits >> bit & 1 == 1,
            Tree::And(parts) => parts.iter().all(|part| part.holds(values)),
            Tree::Or(parts) => parts.iter().any(|part| part.holds(values)),
            Tree::Not(inner) => !inner.holds(values),
            Tree::Compare(left, operator, right) => {
                let left = values.at(*left);
                match right {
                    Right::Value(place) => left.compares(*operator, values.at(*place)),
                    Right::Constant(constant) => left.compares(*operator, constant),
                    // As in filters, neither `=~` nor `!~` holds for a value that is not text.
                    Right::Pattern(pattern) if *operator == Operator::MatchesNot => {
                        left.bytes().is_some() && !left.matches(pattern)
                    }
                    Right::Pattern(pattern) => left.matches(pattern),
                }
            }
        }
    }

    /// The result, if the event record's filters alone decide it.
    #[inline]
    pub(super) fn decided(&self, bits: u64) -> Option<bool> {
        match self {
            Tree::Const(value) => Some(*value),
            Tree::Bit(bit) => Some(bits >> bit & 1 == 1),
            Tree::And(parts) => decided(parts, bits, false),
            Tree::Or(parts) => decided(parts, bits, true),
            Tree::Not(inner) => inner.decided(bits).map(|value| !value),
            Tree::Compare(..) => None,
        }
    }
}

/// One part equal to `decisive` decides; otherwise all parts must be decided.
fn decided(parts: &[Tree], bits: u64, decisive: bool) -> Option<bool> {
    let mut all = Some(!decisive);
    for part in parts {
        match part.decided(bits) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_filters_decide_is_known_without_values() {
        let unknown = || {
            Tree::Compare(
                ValueSource::Event(0),
                Operator::Equal,
                Right::Value(ValueSource::Begin(0)),
            )
        };
        let both = Tree::all(vec![Tree::Bit(0), unknown()]);
        assert_eq!((both.decided(0), both.decided(1)), (Some(false), None));
        let either = Tree::any(vec![Tree::Bit(1), unknown()]);
        assert_eq!((either.decided(0), either.decided(2)), (None, Some(true)));
        assert_eq!(both.negated().decided(0), Some(true));
        assert!(matches!(
            Tree::all(vec![Tree::Const(true), Tree::Const(false), unknown()]),
            Tree::Const(false)
        ));
        assert!(matches!(
            Tree::any(vec![Tree::Const(false), Tree::Bit(3)]),
            Tree::Bit(3)
        ));
        let nowhere = Tree::compare(
            ValueSource::Missing,
            Operator::NotEqual,
            Right::Constant(Datum::Integer(0)),
        );
        assert!(matches!(nowhere, Tree::Const(false)));
    }
}
