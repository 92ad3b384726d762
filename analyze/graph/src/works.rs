//! Work that is put into queues, until a thread turns to it.

use serde::{Deserialize, Serialize};
use tracebraid_follow::Pairs;

use crate::cause::Wake;
use crate::graph::{Queue, Work};

/// Work in a queue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub(crate) time: i64,
    pub(crate) cause: Wake,
    pub(crate) queue: Queue,
}

impl Queued {
    /// A thread turns to it.
    pub(crate) fn begins(self, time: i64) -> Work {
        Work {
            begin: time,
            queued: self.time,
            cause: self.cause,
            queue: self.queue,
        }
    }
}

/// The work of all queues, by machine and address.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Works(Pairs<(u32, i64), Queued>);

impl Works {
    /// That ends up in a queue.
    pub(crate) fn adds(&mut self, key: (u32, i64), queued: Queued) {
        self.0.begin(key, queued);
    }

    /// Leaves out the work of keys that `keep` does not choose.
    pub(crate) fn retain(&mut self, keep: impl Fn(&(u32, i64)) -> bool) {
        self.0.forget(|key| !keep(key));
    }

    /// A thread turns to it. Work that nobody was seen to queue, as that by which others wait for
    /// work before it, belongs to the work before it.
    pub(crate) fn begins(&mut self, key: (u32, i64), time: i64) -> Option<Work> {
        Some(self.0.end(key)?.begins(time))
    }

    /// What queued the work that is in the queues.
    pub(crate) fn causes(&self) -> impl Iterator<Item = Wake> {
        self.0.open().map(|(_, queued)| queued.cause)
    }

    /// Events were lost: what is queued may have been done, and queued again.
    pub(crate) fn lose(&mut self) {
        self.0 = Pairs::default();
    }
}
