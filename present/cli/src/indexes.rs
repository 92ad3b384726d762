//! Restarts a command if the index of a stream file is wrong.
//!
//! Opening a trace compares the first and the last entry of an index with the file. The other
//! entries are compared when their packets are read. With a wrong entry, the report would depend on
//! how the trace was cut into chunks, so the fold ends without a report
//! ([`FoldError::WrongIndexes`](tracebraid_engine::FoldError)). The command then restarts, and
//! opens its traces with every entry compared. No wrong index is used after that, so a command
//! restarts at most once.
//!
//! Commands write their results after their last fold, so no result is written twice. The few lines
//! that are written earlier are not repeated ([`has_restarted`], `output::say`).

use std::sync::atomic::{AtomicBool, Ordering};

use tracebraid_ctf::index::IndexCheck;

use crate::failure::Failure;
use crate::{imported, output, timings};

static HAS_RESTARTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn has_restarted() -> bool {
    HAS_RESTARTED.load(Ordering::Relaxed)
}

/// Which index entries are compared when traces are opened.
pub(crate) fn check() -> IndexCheck {
    match has_restarted() {
        true => IndexCheck::Every,
        false => IndexCheck::Ends,
    }
}

/// Runs `work`, which opens traces, and runs it again if an index turns out to be wrong.
///
/// # Errors
/// Those of `work`.
pub(crate) fn with_restart<T>(work: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    match work() {
        Err(failure) if failure.restarts() && !has_restarted() => {
            restart();
            work()
        }
        done => done,
    }
}

/// From now on, every index entry is compared when a trace is opened.
pub(crate) fn restart() {
    if !HAS_RESTARTED.swap(true, Ordering::Relaxed) {
        output::restart();
        imported::restart();
        timings::restart();
    }
}
