//! `tracebraid-testkit`: the test tools from the command line.

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use tracebraid_testkit::grow::{self, Target};

/// Test tools of tracebraid.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Grow(GrowArgs),
}

/// Make a real trace longer by repeating its packets at later times.
///
/// SRC is a trace directory, or a directory with several (an LTTng session): all of them are
/// shifted alike. The result has correct packet times, sequence numbers, counts of discarded
/// events, and LTTng index files where the source has them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tracebraid-testkit grow trace/kernel longer --times 10\n  \
    tracebraid-testkit grow trace longer --events 45000000")]
struct GrowArgs {
    /// The trace to repeat.
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// Where to write; must be new or empty.
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Number of repetitions, the first included.
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "events",
        conflicts_with = "events"
    )]
    times: Option<u64>,
    /// Repeat until there are at least this many events.
    #[arg(long, value_name = "E")]
    events: Option<u64>,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Grow(args) => run_grow(&args),
    }
}

fn run_grow(args: &GrowArgs) -> Result<()> {
    let target = match (args.times, args.events) {
        (_, Some(events)) => Target::Events(events),
        (times, None) => Target::Times(times.unwrap_or(1)),
    };
    let report = grow::grow(&args.source, &args.destination, target)?;
    println!(
        "{} repetitions of {} events, {} cycles apart: {} events in {} packets, {} bytes",
        report.times, report.source_events, report.shift, report.events, report.packets, report.bytes
    );
    Ok(())
}
