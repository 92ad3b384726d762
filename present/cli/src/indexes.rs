//! Commands that begin anew, because the index of a stream file is wrong.
//!
//! Opening a trace compares the ends of an index with the file. An entry in the middle is compared when its
//! packet is read, and if it is wrong, the report would depend on how the trace was cut into chunks: the fold
//! ends without one ([`FoldError::WrongIndexes`](tracebraid_engine::FoldError)). Then the command begins anew
//! and opens its traces with every entry compared, so that wrong indexes are not used, whichever they are: a
//! command begins at most twice.
//!
//! Commands write their results after their last fold, so nothing is written twice; the few lines that come
//! before are written once ([`is_anew`], `output::say`).

use std::sync::atomic::{AtomicBool, Ordering};

use tracebraid_ctf::index::IndexCheck;

use crate::failure::Failure;
use crate::{imported, output, timings};

static IS_ANEW: AtomicBool = AtomicBool::new(false);

/// Whether the command has begun anew.
pub(crate) fn is_anew() -> bool {
    IS_ANEW.load(Ordering::Relaxed)
}

/// How indexes are to be checked.
pub(crate) fn check() -> IndexCheck {
    match is_anew() {
        true => IndexCheck::Every,
        false => IndexCheck::Ends,
    }
}

/// Does work which opens traces, and again if an index turns out to be wrong.
///
/// # Errors
/// Those of the work.
pub(crate) fn beginning_anew<T>(work: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    match work() {
        Err(failure) if failure.may_be_of_indexes() && !is_anew() => {
            begin_anew();
            work()
        }
        done => done,
    }
}

/// From here on traces are opened again.
pub(crate) fn begin_anew() {
    if !IS_ANEW.swap(true, Ordering::Relaxed) {
        output::begin_anew();
        imported::begin_anew();
        timings::begin_anew();
    }
}
