//! Notice of skipped tests.

use std::fmt::Display;
use std::io::Write;

/// Reports a skipped test on standard error directly, because the test harness hides the output of
/// passing tests.
pub fn skipped(why: impl Display) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
