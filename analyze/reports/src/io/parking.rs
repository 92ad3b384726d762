//! Calls that left their CPUs with their threads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::Open;

use crate::io::sums::Types;
use tracebraid_follow::{CpuKey, ThreadKey};

/// A call that left its CPU with its thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Parked {
    pub(super) open: Open,
    pub(super) cpu: CpuKey,
    /// Of its descriptors when it began, once that is known.
    pub(super) types: Option<Types>,
}

/// All that wait, by trace and thread; one for each thread at most.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Parking(BTreeMap<u32, BTreeMap<i32, Parked>>);

impl Parking {
    pub(super) fn put(&mut self, thread: ThreadKey, parked: Parked) {
        self.0.entry(thread.trace).or_default().insert(thread.tid, parked);
    }

    pub(super) fn take(&mut self, thread: ThreadKey) -> Option<Parked> {
        self.0.get_mut(&thread.trace)?.remove(&thread.tid)
    }

    pub(super) fn get_mut(&mut self, thread: ThreadKey) -> Option<&mut Parked> {
        self.0.get_mut(&thread.trace)?.get_mut(&thread.tid)
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = (ThreadKey, Parked)> {
        self.0.into_iter().flat_map(|(trace, threads)| {
            let entry = move |(tid, parked)| (ThreadKey { trace, tid }, parked);
            threads.into_iter().map(entry)
        })
    }
}
