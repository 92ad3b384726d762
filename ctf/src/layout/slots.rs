//! Slots: small registers in which the values of length and selector fields are kept while an
//! event record is decoded.

use std::collections::HashMap;
use std::sync::Arc;

use crate::schema::{FieldClass, FieldLocation, Scope};

/// Index of a register.
pub(crate) type Slot = u16;

/// Registers for fields that a trace has at most.
pub(super) const MOST_SLOTS: usize = Slot::MAX as usize - 8;

/// Registers for a set of locations.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotMap {
    /// Slots before this one belong to others.
    base: usize,
    slots: HashMap<Arc<FieldLocation>, Slot>,
    saves: HashMap<(Scope, Vec<u32>), Vec<Slot>>,
}

impl SlotMap {
    /// An empty map whose slots come behind those of `other`.
    pub(super) fn behind(other: &SlotMap) -> Self {
        SlotMap {
            base: other.end(),
            ..SlotMap::default()
        }
    }

    /// Gives a slot to every location that `class` and its descendants use, in those scopes.
    pub(super) fn gather(&mut self, class: &FieldClass, scopes: &[Scope]) {
        for class in class.all() {
            if let Some(location) = class.location() {
                self.add(location, scopes);
            }
        }
    }

    fn add(&mut self, location: &Arc<FieldLocation>, scopes: &[Scope]) {
        if !scopes.contains(&location.scope) || self.slots.contains_key(location) {
            return;
        }
        // Beyond the registers there is none: what needs it is reported as damaged when it is read.
        let slot = Slot::try_from(self.end())
            .ok()
            .filter(|&slot| usize::from(slot) < MOST_SLOTS)
            .unwrap_or(Slot::MAX);
        self.slots.insert(location.clone(), slot);
        for path in &location.paths {
            self.saves
                .entry((location.scope, path.clone()))
                .or_default()
                .push(slot);
        }
    }

    /// The slot of a location.
    pub(super) fn of(&self, location: &Arc<FieldLocation>) -> Option<Slot> {
        self.slots.get(location).copied()
    }

    /// Slots that the field at that path is kept in.
    pub(super) fn saves(&self, scope: Scope, path: &[u32]) -> Box<[Slot]> {
        if self.saves.is_empty() {
            return Box::default();
        }
        self.saves
            .get(&(scope, path.to_vec()))
            .map(|slots| slots.as_slice().into())
            .unwrap_or_default()
    }

    /// The first slot behind this map's.
    pub(super) fn end(&self) -> usize {
        self.base + self.slots.len()
    }
}
