//! `tracebraid info`: what a trace is made of.

use std::process::ExitCode;

use clap::Args;
use tracebraid_follow::{CpuSet, Window};
use tracebraid_reports::count::Count;

use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::info::tables::View;
use crate::info::{Info, Wanted, csv};
use crate::options::{self, InputArgs, ReportFormat};
use crate::output::{ColourChoice, Output};
use crate::warnings::Warnings;

/// Tells what a trace is made of: streams, clocks, environment, event classes, what was lost and
/// what is damaged.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid info ~/lttng-traces/my-session
  tracebraid info --events --counts TRACE
  tracebraid info --format json TRACE | jq '.traces[].environment'

CSV has a row for each stream, or with --events a row for each event class.

Damage inside packets is found by reading all event records, which only --counts does: give it
together with --strict to check a whole trace.")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Tell the event classes too
    #[arg(long)]
    events: bool,
    /// Count the event records: with --events of each class
    #[arg(long)]
    counts: bool,
    #[command(flatten)]
    fold: FoldArgs,
    /// How to show it
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    /// Show times in UTC, not in the local time zone
    #[arg(long, alias = "gmt")]
    clock_gmt: bool,
    /// Use colours
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    color: ColourChoice,
}

/// Runs it.
pub(super) fn run(args: &InfoArgs) -> Result<ExitCode, Failure> {
    if args.fold.timings.is_some() && !args.counts {
        return Err(Failure::usage(
            "--timings requires --counts: without --counts, no event records are read",
        ));
    }
    let set = options::open(&args.input)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    let counts = if args.counts {
        let all = Window {
            from: None,
            to: None,
        };
        let count = Count::new(&set, all, CpuSet(None), 1);
        Some(fold::run(&set, &count, &args.fold, None, &mut warnings)?.by_name)
    } else {
        None
    };
    let info = Info::of(
        &set,
        Wanted {
            events: args.events,
            counts: counts.as_ref(),
        },
    );
    let mut out = Output::open(None)?;
    let text = match args.format {
        ReportFormat::Table => {
            let colours = out.colours(args.color);
            View {
                zone: options::zone(args.clock_gmt),
                colours,
            }
            .show(&info)
        }
        ReportFormat::Json => {
            serde_json::to_string_pretty(&info)
                .map_err(|error| Failure::output(error.to_string()))?
                + "\n"
        }
        ReportFormat::Csv if args.events => csv::events(&info),
        ReportFormat::Csv => csv::streams(&info),
    };
    out.write(text.as_bytes())?;
    Ok(warnings.finish(args.input.strict))
}
