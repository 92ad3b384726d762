//! Constraints on the values of fields that other fields depend on, so that the trace is readable.

use std::collections::HashMap;
use tracebraid_ctf::schema::{FieldLocation, IntRange, Scope};

/// Location of a field: the root class of its scope, and the path from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FieldPath {
    /// Index of the stream class; `None` in packet headers.
    pub(super) stream: Option<usize>,
    /// Index of the event class; only in specific contexts and payloads.
    pub(super) event: Option<usize>,
    pub(super) scope: Scope,
    pub(super) path: Vec<u32>,
}

/// Constraint on the value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Need {
    /// A multiple of `unit`, at most `limit` times it.
    Length { limit: u64, unit: u64 },
    /// An integer in one of the ranges.
    Select(Vec<IntRange>),
}

/// A field that later fields may depend on.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) location: FieldLocation,
    pub(super) stream: Option<usize>,
    pub(super) event: Option<usize>,
    pub(super) kind: CandidateKind,
}

/// Possible uses of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CandidateKind {
    /// A length.
    Length,
    /// A selector of options: each has a label (if the candidate is an enumeration) and its ranges.
    Selector(Vec<(Option<String>, Vec<IntRange>)>),
    /// A selector of optional fields only.
    Boolean,
}

impl Candidate {
    /// All possible sources of the candidate's value.
    pub(super) fn places(&self) -> impl Iterator<Item = FieldPath> + '_ {
        self.location.paths.iter().map(|path| FieldPath {
            stream: self.stream,
            event: self.event,
            scope: self.location.scope,
            path: path.clone(),
        })
    }
}

/// All constraints of a trace class.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    by_place: HashMap<FieldPath, Need>,
}

impl Needs {
    pub(super) fn get(&self, place: &FieldPath) -> Option<&Need> {
        self.by_place.get(place)
    }

    pub(super) fn set(&mut self, candidate: &Candidate, need: &Need) {
        for place in candidate.places() {
            self.by_place.insert(place, need.clone());
        }
    }

    /// Makes the candidate's lengths multiples of `unit` (a power of two).
    pub(super) fn raise_unit(&mut self, candidate: &Candidate, by: u64) {
        for place in candidate.places() {
            if let Some(Need::Length { unit, .. }) = self.by_place.get_mut(&place) {
                *unit = (*unit).max(by);
            }
        }
    }
}
