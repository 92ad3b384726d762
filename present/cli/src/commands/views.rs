//! Options of reports with several views.

use std::process::ExitCode;

use clap::builder::ArgPredicate;
use clap::{Arg, Args};
use tracebraid_follow::{Buckets, CallNames, KernelAnalysis, Limits, Selection, Views};
use tracebraid_tables::{Report, View};

use crate::commands::histograms::Histograms;
use crate::commands::report::{ReportArgs, Subject};
use crate::failure::Failure;
use crate::numbers::{self, Numbers};
use crate::options;

/// Options for views and durations.
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// Views to show: stats (summary tables), top (the largest), log (every one), freq (histogram)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "VIEW", default_values = ["stats", "top"],
        default_value_ifs = [("by", IMPLIES, "freq"), ("buckets", IMPLIES, "freq")])]
    view: Vec<ViewName>,
    /// Show only intervals of at least this duration: 10us, 2.5ms, 1s
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    min: Option<u64>,
    /// Show only intervals of at most this duration
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max: Option<u64>,
}

/// Options of histograms imply their view.
const IMPLIES: ArgPredicate = ArgPredicate::IsPresent;

/// For commands that show other views only on request.
pub(super) fn only_stats(view: Arg) -> Arg {
    view.default_values(["stats"])
}

/// For commands whose `--min` is a size.
pub(super) fn least_size(min: Arg) -> Arg {
    sized(min).help("Show only allocations and releases of at least this size: 8192, 64k, 1M")
}

/// For commands whose `--max` is a size.
pub(super) fn greatest_size(max: Arg) -> Arg {
    sized(max).help("Show only allocations and releases of at most this size")
}

fn sized(limit: Arg) -> Arg {
    limit.value_name("BYTES").value_parser(bytes)
}

/// Options for sizes.
#[derive(Args, Debug)]
pub(crate) struct SizeArgs {
    /// Hide transfers smaller than this: 4096, 64k, 1M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    minsize: Option<u64>,
    /// Hide transfers larger than this
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    maxsize: Option<u64>,
}

/// Refuses limits that no value satisfies.
fn check(limits: Limits, least: &str, greatest: &str) -> Result<(), Failure> {
    match (limits.min, limits.max) {
        (Some(min), Some(max)) if min > max => Err(Failure::usage(format!(
            "{least} exceeds {greatest}: no value satisfies both"
        ))),
        _ => Ok(()),
    }
}

impl SizeArgs {
    /// Refuses limits that no size satisfies.
    ///
    /// # Errors
    /// When the minimum exceeds the maximum.
    pub(super) fn check(&self) -> Result<(), Failure> {
        check(self.limits(), "--minsize", "--maxsize")
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            min: self.minsize,
            max: self.maxsize,
        }
    }
}

/// Options for system calls.
#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    /// Select system calls by name (a pattern with * and ?)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    syscall: Vec<String>,
}

impl CallArgs {
    /// Patterns of the names of calls.
    pub(super) fn names(&self) -> CallNames {
        CallNames(options::globs(&self.syscall))
    }
}

/// Options for priorities.
#[derive(Args, Debug)]
pub(crate) struct PriorityArgs {
    /// Select threads by kernel priority, numbers and ranges: -1 deadline, 0-99 real time, 100-139
    /// others (120 is nice 0)
    #[arg(long, value_name = "PRIO", value_delimiter = ',', allow_hyphen_values = true, value_parser = numbers::priorities)]
    prio: Vec<Numbers<i32>>,
}

impl PriorityArgs {
    pub(super) fn numbers(&self) -> Vec<i32> {
        numbers::all(&self.prio).into_iter().collect()
    }
}

/// A number of bytes; k, M and G are powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let units = [('k', 10), ('K', 10), ('M', 20), ('G', 30)];
    let unit = units
        .iter()
        .find_map(|&(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let number = digits
        .parse::<u64>()
        .ok()
        .filter(|_| !digits.starts_with('+'));
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text}: expected a number of bytes, such as 4096, 64k or 1M"))
}

/// Views of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ViewName {
    /// Summary tables
    Stats,
    /// Largest values
    Top,
    /// Every value, in the order of time; intervals by their end
    Log,
    /// Histograms
    Freq,
}

impl ViewName {
    fn view(self) -> View {
        match self {
            ViewName::Stats => View::Stats,
            ViewName::Top => View::Top,
            ViewName::Log => View::Log,
            ViewName::Freq => View::Freq,
        }
    }
}

/// Parses a duration, in nanoseconds. A unit is required: other tools take plain numbers for
/// microseconds.
fn duration(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic()) || text == "0";
    let nanoseconds = crate::time::duration(text).and_then(|time| u64::try_from(time).ok());
    match (nanoseconds, has_unit) {
        (Some(nanoseconds), true) => Ok(nanoseconds),
        (Some(_), false) => Err(format!(
            "{text}: the unit is missing: {text}us, {text}ms or {text}s?"
        )),
        (None, _) => Err(format!(
            "{text}: expected a duration, such as 10us, 2.5ms or 1s"
        )),
    }
}

impl ViewArgs {
    pub(super) fn views(&self) -> Vec<View> {
        self.view.iter().map(|view| view.view()).collect()
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            min: self.min,
            max: self.max,
        }
    }

    /// Refuses limits that no duration satisfies.
    ///
    /// # Errors
    /// When the minimum exceeds the maximum.
    pub(super) fn check(&self) -> Result<(), Failure> {
        check(self.limits(), "--min", "--max")
    }

    /// True if histograms are requested.
    pub(super) fn has_histograms(&self) -> bool {
        self.view.contains(&ViewName::Freq)
    }
}

/// Runs a report with several views and prints it; `options` adds the command's own options.
///
/// # Errors
/// When the traces cannot be read, the options are contradictory, or the user interrupts it.
pub(super) fn run<A: KernelAnalysis<Report = Report>>(
    args: &ReportArgs,
    views: &ViewArgs,
    histograms: Histograms,
    options: impl Fn(Views) -> A::Options,
) -> Result<ExitCode, Failure> {
    views.check()?;
    let mut subject = args.open()?;
    let selection = args.selection(&subject);
    let views = args.views(views, histograms);
    let report = report::<A>(args, &mut subject, selection, views, options)?;
    args.show(subject, report)
}

/// Runs a report with some views, in two passes if one of them requires that.
///
/// # Errors
/// When the user interrupts it.
pub(super) fn report<A: KernelAnalysis<Report = Report>>(
    args: &ReportArgs,
    subject: &mut Subject,
    selection: Selection,
    mut views: Views,
    options: impl Fn(Views) -> A::Options,
) -> Result<Report, Failure> {
    let mut report = args.fold::<A>(subject, selection.clone(), options(views.clone()))?;
    report
        .notes
        .iter()
        .for_each(|note| subject.warnings.note(note));
    let is_second = views.buckets == Buckets::Linear && views.views.contains(&View::Freq);
    if is_second && !report.ranges.is_empty() {
        views.ranges = Some(std::mem::take(&mut report.ranges));
        let second = args.fold::<A>(subject, selection, options(views))?;
        report.sections.extend(second.sections);
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::{bytes, duration};

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64k"), Ok(65_536));
        assert_eq!(bytes("2M"), Ok(2 << 20));
        assert_eq!(bytes("1G"), Ok(1 << 30));
        for wrong in ["", "k", "-1", "+1", "1.5k", "1kb", "99999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("1500ns"), Ok(1500));
        assert_eq!(duration("10us"), Ok(10_000));
        assert_eq!(duration("2.5ms"), Ok(2_500_000));
        assert_eq!(duration("0"), Ok(0));
        assert!(duration("10").unwrap_err().contains("10ms"));
        for wrong in ["10", "0.001", "", "ms", "-1us", "1m", "1e99s", "nans"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
