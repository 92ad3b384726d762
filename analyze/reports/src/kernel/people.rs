//! Who the threads are: their names and processes, as last known.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use crate::kernel::sources::CpuKey;

/// A thread (or process) of one of the traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ThreadKey {
    pub(crate) trace: u32,
    pub(crate) tid: i32,
}

impl ThreadKey {
    /// Stands for whoever ran where the trace does not tell; no thread has this id.
    pub(crate) const UNKNOWN: i32 = -1;

    pub(crate) fn with(self, tid: i32) -> ThreadKey {
        ThreadKey { tid, ..self }
    }
}

/// Something that was learnt at a time. Later knowledge replaces earlier; at equal times that of
/// the later CPU, on one CPU that of the later event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known<T> {
    pub(crate) time: i64,
    pub(crate) cpu: CpuKey,
    pub(crate) value: T,
}

impl<T: Copy> Known<T> {
    fn is_before(&self, other: &Known<T>) -> bool {
        (self.time, self.cpu) <= (other.time, other.cpu)
    }

    fn learn(place: &mut Option<Known<T>>, new: Known<T>) {
        if place.as_ref().is_none_or(|old| old.is_before(&new)) {
            *place = Some(new);
        }
    }
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    name: Option<Known<Comm>>,
    pid: Option<Known<i32>>,
}

impl Identity {
    #[inline(always)]
    pub(crate) fn learn_name(&mut self, time: i64, cpu: CpuKey, name: Comm) {
        match &mut self.name {
            // Most often nothing changes but the time.
            Some(known) if known.cpu == cpu && known.time <= time => (known.time, known.value) = (time, name),
            place => Known::learn(
                place,
                Known {
                    time,
                    cpu,
                    value: name,
                },
            ),
        }
    }

    pub(crate) fn learn_pid(&mut self, time: i64, cpu: CpuKey, pid: i32) {
        Known::learn(
            &mut self.pid,
            Known {
                time,
                cpu,
                value: pid,
            },
        );
    }

    fn merge(&mut self, later: Identity) {
        later
            .name
            .into_iter()
            .for_each(|name| Known::learn(&mut self.name, name));
        later
            .pid
            .into_iter()
            .for_each(|pid| Known::learn(&mut self.pid, pid));
    }
}

/// The threads that were met.
pub(crate) type People = Table<Identity>;

impl People {
    pub(crate) fn merge(&mut self, later: People) {
        for (key, identity) in later.into_entries() {
            self.get(key).merge(identity);
        }
    }

    /// The thread as reports show it.
    pub(crate) fn thread(&self, key: ThreadKey) -> Thread {
        let identity = self.find(key).copied().unwrap_or_default();
        Thread {
            trace: key.trace,
            tid: (key.tid != ThreadKey::UNKNOWN).then_some(key.tid),
            pid: identity.pid.map(|pid| pid.value),
            name: identity
                .name
                .map(|name| name.value.text())
                .filter(|name| !name.is_empty()),
        }
    }
}

/// Values by thread; found fast, kept in the order in which they were met.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Table<T> {
    entries: Vec<(ThreadKey, T)>,
    #[serde(skip)]
    index: Index,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            entries: Vec::new(),
            index: HashMap::default(),
        }
    }
}

impl<T: Default> Table<T> {
    /// The place of a thread, which is made if it is new.
    #[inline]
    pub(crate) fn place(&mut self, key: ThreadKey) -> usize {
        if self.index.len() != self.entries.len() {
            // It was deserialized.
            self.index = index(&self.entries);
        }
        match self.index.get(&key) {
            Some(&at) => at as usize,
            None => {
                let at = self.entries.len();
                self.index.insert(key, at as u32);
                self.entries.push((key, T::default()));
                at
            }
        }
    }

    /// The value of a thread, which is made if it is new.
    #[inline]
    pub(crate) fn get(&mut self, key: ThreadKey) -> &mut T {
        let place = self.place(key);
        // `place` has made it.
        &mut self.entries[place].1
    }

    /// The value of a thread, if it was met.
    pub(crate) fn find(&self, key: ThreadKey) -> Option<&T> {
        if self.index.len() == self.entries.len() {
            return self
                .index
                .get(&key)
                .and_then(|&at| self.entries.get(at as usize))
                .map(|(_, value)| value);
        }
        self.entries
            .iter()
            .find(|(other, _)| *other == key)
            .map(|(_, value)| value)
    }

    /// All values.
    pub(crate) fn values(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Leaves out those that `keep` does not choose.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.entries.retain(|(_, value)| keep(value));
        self.index = index(&self.entries);
    }

    pub(crate) fn into_entries(self) -> Vec<(ThreadKey, T)> {
        self.entries
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (ThreadKey, &T)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }
}

type Index = HashMap<ThreadKey, u32, BuildHasherDefault<KeyHasher>>;

fn index<T>(entries: &[(ThreadKey, T)]) -> Index {
    entries
        .iter()
        .enumerate()
        .map(|(at, (key, _))| (*key, at as u32))
        .collect()
}

/// Thread ids are small numbers without an adversary worth a slow hash: their spread is enough.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_i32(&mut self, value: i32) {
        self.write_u64(u64::from(value as u32));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(29) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A thread as reports show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Index of its trace.
    pub trace: u32,
    /// Its id; `None` stands for all threads that the trace does not tell.
    pub tid: Option<i32>,
    /// Its process, if the trace tells.
    pub pid: Option<i32>,
    /// Its last known name.
    pub name: Option<String>,
}

/// A machine of the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Index of its trace.
    pub trace: u32,
    /// Its name, if the trace tells.
    pub name: Option<String>,
}
