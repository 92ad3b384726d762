//! Work in queues, until a thread begins it.

use serde::{Deserialize, Serialize};
use tracebraid_follow::Pairs;

use crate::cause::Wake;
use crate::graph::{Queue, Work};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub(crate) time: i64,
    pub(crate) cause: Wake,
    pub(crate) queue: Queue,
}

impl Queued {
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
    pub(crate) fn adds(&mut self, key: (u32, i64), queued: Queued) {
        self.0.begin(key, queued);
    }

    /// Drops the work of keys for which `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&(u32, i64)) -> bool) {
        self.0.forget(|key| !keep(key));
    }

    /// Begins work. Work whose queueing was not recorded, such as the work by which a flush waits
    /// for earlier work, belongs to the preceding work.
    pub(crate) fn begins(&mut self, key: (u32, i64), time: i64) -> Option<Work> {
        Some(self.0.end(key)?.begins(time))
    }

    /// The causes of the queued work.
    pub(crate) fn causes(&self) -> impl Iterator<Item = Wake> {
        self.0.open().map(|(_, queued)| queued.cause)
    }

    /// Handles lost events: queued work may have been done, and queued again.
    pub(crate) fn lose(&mut self) {
        self.0 = Pairs::default();
    }
}
