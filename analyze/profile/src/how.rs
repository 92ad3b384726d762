//! How traces are read for stacks.

use tracebraid_engine::{Control, FoldError, Options};

/// Options of the folds, and what shows their progress, cancels them, and collects their times.
pub(crate) type How<'c> = (Options, &'c Control);

/// Names, among the times of a command, the CPU time of the thread that takes events of stacks one after the other.
pub(crate) const CALL_STACKS: &str = "call stacks";

/// An error if it was cancelled: events may be missing then.
pub(crate) fn not_cancelled(control: &Control) -> Result<(), FoldError> {
    match control.is_cancelled() {
        true => Err(FoldError::Cancelled),
        false => Ok(()),
    }
}
