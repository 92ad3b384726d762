//! Rings of GPUs.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tracebraid_kernel_model::events::gpu::Ring;

/// A ring of one of the traces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RingName {
    pub(super) trace: u32,
    pub(super) device: String,
    pub(super) name: String,
}

/// A shared [`RingName`]: each step of a job has one.
#[derive(Clone, Debug)]
pub(super) struct RingRef(Arc<RingName>);

impl RingRef {
    pub(super) fn name(&self) -> &RingName {
        &self.0
    }
}

impl PartialEq for RingRef {
    fn eq(&self, other: &RingRef) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RingRef {}

impl PartialOrd for RingRef {
    fn partial_cmp(&self, other: &RingRef) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RingRef {
    fn cmp(&self, other: &RingRef) -> Ordering {
        match Arc::ptr_eq(&self.0, &other.0) {
            true => Ordering::Equal,
            false => self.0.cmp(&other.0),
        }
    }
}

impl Serialize for RingRef {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for RingRef {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RingRef, D::Error> {
        RingName::deserialize(from).map(|name| RingRef(Arc::new(name)))
    }
}

/// The rings that a chunk has met, so that each name is stored once.
#[derive(Clone, Debug, Default)]
pub(super) struct MetRings(Vec<RingRef>);

impl MetRings {
    pub(super) fn get(&mut self, trace: u32, ring: Ring) -> RingRef {
        // The names are in the event record, so the search compares texts: there are few rings.
        let is_it = |known: &&RingRef| {
            let known = known.name();
            known.trace == trace && known.name == ring.name && known.device == ring.device
        };
        if let Some(known) = self.0.iter().find(is_it) {
            return known.clone();
        }
        let Ring { device, name } = ring;
        let new = RingRef(Arc::new(RingName {
            trace,
            device,
            name,
        }));
        self.0.push(new.clone());
        new
    }
}
