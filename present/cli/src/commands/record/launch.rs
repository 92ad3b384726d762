//! Launches the command that is recorded, and passes on its exit code.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use tracebraid_session::{Launched, probe_cost, wait_and_become};

use super::watch::Ended;
use crate::failure::Failure;

/// First argument of this program when it must become a command that is recorded.
const LAUNCH: &str = "__launch";
/// First argument of this program when it must measure the cost of a probe.
const PROBE_COST: &str = "__probe-cost";

/// Launches a command with additional environment variables. The command waits to be released.
pub(super) fn launch(
    command: &[OsString],
    environment: &[(String, OsString)],
    directory: &Path,
) -> Result<Launched, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::output(error.to_string());
    let own = own_path().map_err(|error| failed(&error))?;
    Launched::new(&own, OsStr::new(LAUNCH), command, environment, directory)
        .map_err(|error| failed(&error))
}

/// Path of this program. The standard library finds it in `/proc`, which a chroot may lack; then it
/// is derived from the first argument.
fn own_path() -> std::io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| {
        let called = std::env::args_os()
            .next()
            .map(PathBuf::from)
            .unwrap_or_default();
        if called.components().count() > 1 {
            return Ok(called);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut found = std::env::split_paths(&path).map(|directory| directory.join(&called));
        found.find(|program| program.is_file()).ok_or(error)
    })
}

/// Becomes the command, if this process was launched for that.
pub(crate) fn become_command() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    if first == PROBE_COST {
        let cost = probe_cost::measure_here();
        let is_printed = writeln!(std::io::stdout(), "{cost}").is_ok();
        return Some(ExitCode::from(u8::from(!is_printed)));
    }
    if first != LAUNCH {
        return None;
    }
    // The recorder, which waits for this process, reports the error.
    let _ = wait_and_become(arguments);
    Some(ExitCode::FAILURE)
}

/// Nanoseconds that a probe takes on this machine.
pub(super) fn probe_cost() -> Option<u64> {
    probe_cost::measured(&own_path().ok()?, PROBE_COST)
}

/// The exit code of `record`: that of the command, as in shells.
pub(super) fn exit_code(ended: &Ended, has_command: bool) -> ExitCode {
    match ended {
        Ended::Command(status) => of_status(*status),
        // As a shell reports the end by this signal.
        Ended::Signal(number) if has_command => ExitCode::from(128 + *number as u8),
        _ => ExitCode::SUCCESS,
    }
}

fn of_status(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(code as u8),
        (None, Some(signal)) => ExitCode::from(128 + signal as u8),
        _ => ExitCode::FAILURE,
    }
}
