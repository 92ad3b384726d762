//! Slots: small registers in which the values of length and selector fields are kept while an
//! event record is decoded.

use std::collections::{BTreeMap, HashMap, btree_map};
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
    /// In the order of the nodes: each before its parts.
    saves: BTreeMap<(Scope, Vec<u32>), Vec<Slot>>,
}

/// The fields that are kept, by scope and path, and where each is kept.
pub(super) type Saves<'a> = btree_map::Range<'a, (Scope, Vec<u32>), Vec<Slot>>;

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

    /// The fields that are kept, from the first of that scope on.
    pub(super) fn saves(&self, scope: Scope) -> Saves<'_> {
        self.saves.range((scope, Vec::new())..)
    }

    /// The first slot behind this map's.
    pub(super) fn end(&self) -> usize {
        self.base + self.slots.len()
    }
}
