//! Commands of devices, for commands that show waits.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_devices::{DeviceAnalysis, Devices, Keep};
use tracebraid_follow::{Selection, Window};

use crate::commands::report;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options::TimeRange;
use crate::warnings::Warnings;

/// Reads calls and commands, again for as long as a reading shows that this is necessary.
///
/// # Errors
/// When the user interrupts it.
pub(super) fn read(
    analysis: &mut DeviceAnalysis,
    (set, warnings): (&TraceSet, &mut Warnings),
    args: &FoldArgs,
) -> Result<Devices, Failure> {
    loop {
        let once = fold::run_without_warnings(set, analysis, args, analysis.until())?;
        if !analysis.learn(&once.report) {
            warnings.reading(&once.damage);
            return Ok(once.report);
        }
    }
}

/// A window for waits of threads in `range`: a call that waits at the end of the range ends later.
pub(super) fn window(range: TimeRange) -> Window {
    let behind = Selection::BEHIND_NS as i64;
    let mut window = report::window(range);
    window.to = window.to.map(|to| Timestamp(to.0.saturating_add(behind)));
    window
}

/// An analysis that keeps commands and the calls that may wait for them, with its result; `None` if
/// the traces have no calls of an API for devices.
///
/// # Errors
/// When the user interrupts it.
pub(super) fn waits(
    (set, window): (&TraceSet, Window),
    warnings: &mut Warnings,
    args: &FoldArgs,
) -> Result<Option<(DeviceAnalysis, Devices)>, Failure> {
    let analysis = DeviceAnalysis::new(set, window);
    if !analysis.is_possible() {
        return Ok(None);
    }
    let mut analysis = analysis.keeping(Keep::Waits);
    let found = read(&mut analysis, (set, warnings), args)?;
    Ok(Some((analysis, found)))
}
