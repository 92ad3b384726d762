//! Calls that left their CPUs with their threads.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tracebraid_descriptors::Open;
use tracebraid_follow::{CpuKey, KeyHasher, ThreadKey};

use crate::io::sums::Types;

/// A call that left its CPU with its thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Parked {
    pub(super) open: Open,
    pub(super) cpu: CpuKey,
    /// Of its descriptors when it began, once that is known.
    pub(super) types: Option<Types>,
}

/// All that wait; one for each thread at most. Most threads are in no call, or run: it stays small.
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
