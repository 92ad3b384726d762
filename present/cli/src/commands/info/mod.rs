//! `tracebraid info`: the contents of traces.

mod data;

use std::process::ExitCode;

use clap::Args;
use tracebraid_follow::{CpuSet, Head, Window};
use tracebraid_reports::count::Count;

use crate::commands::data_tables::TablesArgs;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::info::tables::View;
use crate::info::{Info, Wanted};
use crate::options::{self, InputArgs, ReportFormat, ZoneArgs};
use crate::output::Output;
use crate::warnings::Warnings;

/// Show the contents of a trace: streams, clocks, losses, damage
///
/// With --events, also the event classes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid info ~/lttng-traces/my-session
  tracebraid info --events --counts TRACE
  tracebraid info --format json TRACE | jq '.traces[].environment'

CSV has a row for each stream, or with --events a row for each event class; \
--table NAME has other tables.

Damage inside packets is found only with --counts, which reads all event records. \
To check a whole trace, use --counts --strict.")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// List the event classes
    #[arg(long)]
    events: bool,
    /// Count the event records of each stream; with --events, of each class
    #[arg(long)]
    counts: bool,
    #[command(flatten)]
    fold: FoldArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    tables: TablesArgs,
    #[command(flatten)]
    zone: ZoneArgs,
}

pub(super) fn run(args: &InfoArgs) -> Result<ExitCode, Failure> {
    if args.fold.timings.is_some() && !args.counts {
        return Err(Failure::usage(
            "--timings requires --counts: without --counts, no event records are read",
        ));
    }
    let set = options::open(&args.input, &args.fold)?;
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
    if args.tables.are_wanted(args.format) {
        let tables = data::tables(&info);
        args.tables.print(args.format, &Head::default(), tables)?;
        return Ok(warnings.finish(args.input.strict));
    }
    let mut out = Output::open(None)?;
    let text = match args.format {
        ReportFormat::Table | ReportFormat::Csv => {
            let colours = out.has_colours();
            View {
                zone: args.zone.zone(),
                colours,
            }
            .show(&info)
        }
        ReportFormat::Json => {
            serde_json::to_string_pretty(&info)
                .map_err(|error| Failure::output(error.to_string()))?
                + "\n"
        }
    };
    out.write(text.as_bytes())?;
    Ok(warnings.finish(args.input.strict))
}
