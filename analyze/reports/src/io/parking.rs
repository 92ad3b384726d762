//! Open calls of threads that left their CPUs.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tracebraid_descriptors::Open;
use tracebraid_follow::{CpuKey, KeyHasher, ThreadKey};

use crate::io::sums::Types;

/// The open call of a thread that left its CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Parked {
    pub(super) open: Open,
    pub(super) cpu: CpuKey,
    /// Types of the call's descriptors at its start, once known.
    pub(super) types: Option<Types>,
}

/// At most one call for each thread. Most threads are in no call, or run, so the map stays small.
#[derive(Clone, Debug, Default)]
pub(super) struct Parking(HashMap<ThreadKey, Parked, BuildHasherDefault<KeyHasher>>);

impl Parking {
    pub(super) fn put(&mut self, thread: ThreadKey, parked: Parked) {
        self.0.insert(thread, parked);
    }

    pub(super) fn take(&mut self, thread: ThreadKey) -> Option<Parked> {
        self.0.remove(&thread)
    }

    pub(super) fn get(&self, thread: ThreadKey) -> Option<Parked> {
        self.0.get(&thread).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ThreadKey, &Parked)> {
        self.0.iter().map(|(thread, parked)| (*thread, parked))
    }
}

impl Serialize for Parking {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Parking {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let all: Vec<(ThreadKey, Parked)> = Vec::deserialize(from)?;
        Ok(Parking(all.into_iter().collect()))
    }
}
