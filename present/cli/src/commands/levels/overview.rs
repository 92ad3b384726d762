//! `tracebraid levels TRACE`: where the time of user-level threads went.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::{KernelAnalysis, Views};
use tracebraid_language::glob::Glob;
use tracebraid_reports::levels::{LevelAnalysis, LevelOptions, UltPattern};
use tracebraid_tables::Report;

use crate::commands::levels::functions;
use crate::commands::report::ReportArgs;
use crate::commands::views;
use crate::failure::Failure;
use crate::lami::Analysis;
use crate::options::globs;

/// Selection of user-level threads.
#[derive(Args, Debug)]
pub(super) struct UltArgs {
    /// Select user-level threads by the runtime's id, or by name (a pattern with * and ?)
    #[arg(long, value_name = "ID|GLOB", value_delimiter = ',')]
    ult: Vec<String>,
}

/// Options of the tables of `levels`.
#[derive(Args, Debug, Default)]
pub(super) struct OverviewArgs {
    /// Show these functions only (patterns with * and ?)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    function: Vec<String>,
    /// Additional directory with debug information (below DIR/.build-id)
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Subtract the time that probes took, by the calibration that `record` writes into the traces
    #[arg(long)]
    compensate: bool,
}

/// Nanoseconds of a probe, by trace.
///
/// # Errors
/// When no trace contains the result of a calibration.
fn probe_costs(set: &TraceSet) -> Result<Vec<u32>, Failure> {
    let cost = |trace: &Trace| match trace.layout.class.env("tracebraid_probe_cost_ns") {
        Some(EnvValue::Int(cost)) => u32::try_from(*cost).unwrap_or(0),
        _ => 0,
    };
    let costs: Vec<u32> = set.traces.iter().map(cost).collect();
    if costs.iter().all(|cost| *cost == 0) {
        return Err(Failure::usage(
            "--compensate: the traces do not contain the time that a probe takes: record the \
             program again by `tracebraid record --probes`"
                .to_owned(),
        ));
    }
    Ok(costs)
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
pub(super) fn report<A>(
    args: &ReportArgs,
    ults: &UltArgs,
    own: &OverviewArgs,
) -> Result<ExitCode, Failure>
where
    A: KernelAnalysis<Report = Report, Options = LevelOptions>,
{
    let mut subject = args.open()?;
    let selection = args.selection(&subject);
    let shown = Views {
        rows: args.longest(),
        ..Views::default()
    };
    let probe_costs = match own.compensate {
        true => probe_costs(&subject.set)?,
        false => Vec::new(),
    };
    let options = |views| LevelOptions {
        views,
        ults: ults.patterns(),
        probe_costs: probe_costs.clone(),
    };
    let mut report = views::report::<A>(args, &mut subject, selection, shown, options)?;
    let patterns = globs(&own.function);
    if let Some(note) = functions::name(&mut report, &subject.set, &own.debug_dir, &patterns)? {
        subject.warnings.note(note);
    }
    args.show(subject, report)
}

pub(super) fn run(
    args: &ReportArgs,
    ults: &UltArgs,
    own: &OverviewArgs,
) -> Result<ExitCode, Failure> {
    report::<LevelAnalysis>(args, ults, own)
}

pub(super) fn lami() -> Analysis {
    Analysis::of::<LevelAnalysis>("User-level threads, LWPs and CPUs")
}
