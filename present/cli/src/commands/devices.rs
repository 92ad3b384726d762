//! Commands of devices, for commands that show waits.

use tracebraid_devices::{DeviceAnalysis, Devices, Keep};

use crate::commands::report::{self, Subject};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};

/// Reads calls and commands, twice where the first reading shows that this is necessary.
///
/// # Errors
/// When the user interrupts it.
pub(super) fn read(
    analysis: &mut DeviceAnalysis,
    subject: &mut Subject,
    args: &FoldArgs,
) -> Result<Devices, Failure> {
    loop {
        let once = fold::run_without_warnings(&subject.set, analysis, args, analysis.until())?;
        if !analysis.learn(&once.report) {
            subject.warnings.reading(&once.damage);
            return Ok(once.report);
        }
    }
}

/// An analysis that keeps commands and the calls that may wait for them, with its result; `None` if the traces have no calls of an API for
/// devices.
///
/// # Errors
/// When the user interrupts it.
pub(super) fn waits(
    subject: &mut Subject,
    args: &FoldArgs,
) -> Result<Option<(DeviceAnalysis, Devices)>, Failure> {
    let analysis = DeviceAnalysis::new(&subject.set, report::window(subject.range));
    if !analysis.is_possible() {
        return Ok(None);
    }
    let mut analysis = analysis.keeping(Keep::Waits);
    let found = read(&mut analysis, subject, args)?;
    Ok(Some((analysis, found)))
}
