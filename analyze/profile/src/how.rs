//! Options and control of the passes that read call stacks.

use tracebraid_engine::{Control, FoldError, Options};

/// Options of the folds, and the control that reports their progress, cancels them and collects
/// their times.
pub(crate) type How<'c> = (Options, &'c Control);

/// Name in `serial_work` (`--timings`) of the CPU time of the thread that processes events of
/// stacks in the order of time.
pub(crate) const CALL_STACKS: &str = "call stacks";

/// Returns an error if the pass was cancelled, because events may then be missing.
pub(crate) fn not_cancelled(control: &Control) -> Result<(), FoldError> {
    match control.is_cancelled() {
        true => Err(FoldError::Cancelled),
        false => Ok(()),
    }
}
