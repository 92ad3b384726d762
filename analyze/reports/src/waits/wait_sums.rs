//! What is counted, in no order that matters: it is added up by each worker, over all that it does.

use serde::{Deserialize, Serialize};

use crate::waits::futex::Futexes;
use crate::waits::socket::SocketSums;
use crate::waits::sums::{Sums, Wait};
use tracebraid_follow::Table;

/// What is counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WaitSums {
    pub(super) threads: Table<Sums>,
    pub(super) futexes: Futexes,
    pub(super) sockets: SocketSums,
    /// Waits that are listed.
    pub(super) log: Vec<Wait>,
}

impl WaitSums {
    /// Adds others, of which so many waits at most are listed for each thread.
    pub(super) fn merge(&mut self, other: WaitSums, top: usize) {
        self.threads
            .merge_by(other.threads, |own, other| own.merge(other, top));
        self.futexes.merge(other.futexes);
        self.sockets.merge(other.sockets);
        match self.log.is_empty() {
            true => self.log = other.log,
            false => self.log.extend(other.log),
        }
    }
}
