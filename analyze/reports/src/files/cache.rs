//! A cache of the files of descriptors, valid between changes of descriptors.

/// Files of threads' descriptors, valid until any descriptor changes.
#[derive(Clone, Debug)]
pub(super) struct Cache<F> {
    entries: Vec<Cached<F>>,
    /// Number of changes of descriptors.
    changes: u32,
}

/// The file of a thread's descriptor.
#[derive(Clone, Copy, Debug, Default)]
struct Cached<F> {
    place: u32,
    fd: i32,
    /// `changes` of the cache when the entry was made; 0 for an empty one.
    changes: u32,
    file: F,
}

/// Number of entries; a direct-mapped table.
const CACHED: usize = 256;

impl<F> Default for Cache<F> {
    fn default() -> Self {
        Cache {
            entries: Vec::new(),
            changes: 1,
        }
    }
}

fn at(place: u32, fd: i32) -> usize {
    (place as usize).wrapping_mul(31).wrapping_add(fd as usize) % CACHED
}

impl<F: Copy + Default> Cache<F> {
    /// Invalidates all entries.
    pub(super) fn clear(&mut self) {
        self.changes = self.changes.wrapping_add(1).max(1);
    }

    /// The cached file of descriptor `fd` of the thread with index `place`.
    #[inline(always)]
    pub(super) fn find(&self, place: u32, fd: i32) -> Option<F> {
        let cached = self.entries.get(at(place, fd))?;
        let is_it = (cached.place, cached.fd, cached.changes) == (place, fd, self.changes);
        is_it.then_some(cached.file)
    }

    /// Stores the file of a descriptor.
    pub(super) fn put(&mut self, place: u32, fd: i32, file: F) {
        if self.entries.is_empty() {
            self.entries.resize(CACHED, Cached::default());
        }
        let changes = self.changes;
        self.entries[at(place, fd)] = Cached {
            place,
            fd,
            changes,
            file,
        };
    }
}
