//! Sums that do not depend on order: each worker has its own.

use serde::{Deserialize, Serialize};

use crate::waits::futex::Futexes;
use crate::waits::socket::SocketSums;
use crate::waits::sums::{Sums, Wait};
use tracebraid_follow::Table;

/// Sums that do not depend on order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WaitSums {
    pub(super) threads: Table<Sums>,
    pub(super) futexes: Futexes,
    pub(super) sockets: SocketSums,
    /// Listed waits.
    pub(super) log: Vec<Wait>,
}

impl WaitSums {
    /// Adds other sums, keeping at most `top` waits of each thread.
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
