//! Slots: registers that store the values of length and selector fields while an event record is
//! decoded.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::sync::Arc;

use crate::schema::{FieldClass, FieldLocation, Scope};

/// Index of a register.
pub(crate) type Slot = u16;

/// Largest number of registers for the fields of a trace.
pub(super) const MOST_SLOTS: usize = Slot::MAX as usize - 8;

/// Assigns registers to locations.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotMap {
    /// Slots below this belong to other maps.
    base: usize,
    slots: HashMap<Arc<FieldLocation>, Slot>,
    /// In the order of the nodes: each node before its parts.
    saves: BTreeMap<(Scope, Vec<u32>), Vec<Slot>>,
}

/// The fields whose values are stored, by scope and path, with their slots.
pub(super) type Saves<'a> = btree_map::Range<'a, (Scope, Vec<u32>), Vec<Slot>>;

impl SlotMap {
    /// An empty map whose slots follow those of `other`.
    pub(super) fn behind(other: &SlotMap) -> Self {
        SlotMap {
            base: other.end(),
            ..SlotMap::default()
        }
    }

    /// Assigns a slot to every location in these scopes that `class` and its descendants use.
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
        // When the registers are used up, a location gets none: a field that needs it is reported
        // as damaged when it is read.
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

    /// The fields whose values are stored, starting with this scope.
    pub(super) fn saves(&self, scope: Scope) -> Saves<'_> {
        self.saves.range((scope, Vec::new())..)
    }

    /// The first slot after those of this map.
    pub(super) fn end(&self) -> usize {
        self.base + self.slots.len()
    }
}
