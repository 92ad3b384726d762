//! `tracebraid levels TRACE`: where the time of user-level threads went.

use std::process::ExitCode;

use clap::Args;
use tracebraid_follow::{KernelAnalysis, Views};
use tracebraid_language::glob::Glob;
use tracebraid_reports::levels::{LevelAnalysis, LevelOptions, UltPattern};
use tracebraid_tables::Report;

use crate::commands::report::ReportArgs;
use crate::commands::views;
use crate::failure::Failure;
use crate::lami::Analysis;

/// Selection of user-level threads.
#[derive(Args, Debug)]
pub(super) struct UltArgs {
    /// Select user-level threads by the runtime's id, or by name (a pattern with * and ?)
    #[arg(long, value_name = "ID|GLOB", value_delimiter = ',')]
    ult: Vec<String>,
}

impl UltArgs {
    fn patterns(&self) -> Vec<UltPattern> {
        // A number is an id, all else a pattern of names.
        let pattern = |text: &String| match text.parse() {
            Ok(id) => UltPattern::Id(id),
            Err(_) => UltPattern::Name(Glob::new(text)),
        };
        self.ult.iter().map(pattern).collect()
    }
}

/// Runs an analysis of super-traces and prints its report.
///
/// # Errors
/// When the traces cannot be read or merged, or the user interrupts it.
pub(super) fn report<A>(args: &ReportArgs, ults: &UltArgs) -> Result<ExitCode, Failure>
where
    A: KernelAnalysis<Report = Report, Options = LevelOptions>,
{
    let mut subject = args.open()?;
    let selection = args.selection(&subject);
    let shown = Views {
        rows: args.longest(),
        ..Views::default()
    };
    let options = |views| LevelOptions {
        views,
        ults: ults.patterns(),
    };
    let report = views::report::<A>(args, &mut subject, selection, shown, options)?;
    args.show(subject, report)
}

pub(super) fn run(args: &ReportArgs, ults: &UltArgs) -> Result<ExitCode, Failure> {
    report::<LevelAnalysis>(args, ults)
}

pub(super) fn lami() -> Analysis {
    Analysis::of::<LevelAnalysis>("User-level threads, LWPs and CPUs")
}
