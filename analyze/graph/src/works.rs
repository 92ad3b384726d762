//! Work that is put into queues, until a thread turns to it.

use serde::{Deserialize, Serialize};
use tracebraid_follow::Pairs;

use crate::cause::Wake;
use crate::graph::{Queue, Work};

/// Work in a queue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Queued {
    time: i64,
    cause: Wake,
    queue: Queue,
}

/// The work of all queues, by machine and address.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Works(Pairs<(u32, i64), Queued>);

impl Works {
    /// That ends up in a queue.
    pub(crate) fn queues(&mut self, key: (u32, i64), time: i64, cause: Wake, queue: Queue) {
        self.0.begin(key, Queued { time, cause, queue });
    }

    /// A thread turns to it. Work that nobody was seen to queue, as that by which others wait for work before it, belongs
    /// to the work before it.
    pub(crate) fn begins(&mut self, key: (u32, i64), time: i64) -> Option<Work> {
        let queued = self.0.end(key)?;
        Some(Work {
            begin: time,
            queued: queued.time,
            cause: queued.cause,
            queue: queued.queue,
        })
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
