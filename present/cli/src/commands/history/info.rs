//! `tracebraid history info`: range, size and integrity of a history.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use tracebraid_history::History;

use super::unreadable;
use crate::failure::Failure;
use crate::options::ZoneArgs;
use crate::output::Output;
use crate::units::{bytes, duration, grouped};

/// Show what a history covers; with --verify, check all of it
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid history info TRACE.history
  tracebraid history info --verify TRACE.history && echo whole")]
pub(crate) struct InfoArgs {
    /// The history
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Read the whole file and verify all checksums
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text
    Table,
    /// JSON
    Json,
}

pub(super) fn run(args: &InfoArgs) -> Result<ExitCode, Failure> {
    let history = History::open(&args.file).map_err(|error| unreadable(&error))?;
    if args.verify {
        history.verify().map_err(|error| unreadable(&error))?;
    }
    let mut output = Output::open(None)?;
    match args.format {
        Format::Table => output.write(text(args, &history).as_bytes())?,
        Format::Json => output.write_json(&value(&history))?,
    };
    Ok(ExitCode::SUCCESS)
}

fn value(history: &History) -> serde_json::Value {
    let meta = history.meta();
    let (fine, coarse) = history.blocks();
    json!({
        "program": meta.program,
        "version": tracebraid_history::VERSION,
        "paths": meta.paths,
        "hosts": meta.hosts,
        "cpus": meta.cpus.len(),
        "begin_ns": meta.begin,
        "end_ns": meta.end,
        "trace_bytes": meta.bytes,
        "losses": meta.losses,
        "blocks": fine,
        "coarse_blocks": coarse,
    })
}

fn text(args: &InfoArgs, history: &History) -> String {
    let meta = history.meta();
    let zone = args.zone.zone();
    let (fine, coarse) = history.blocks();
    let mut text = String::new();
    let mut line = |title: &str, value: String| text.push_str(&format!("{title:<12}{value}\n"));
    for path in &meta.paths {
        line("Trace", path.display().to_string());
    }
    for host in meta.hosts.iter().flatten() {
        line("Host", host.clone());
    }
    line("CPUs", meta.cpus.len().to_string());
    line("From", crate::time::date(meta.begin, &zone));
    line("To", crate::time::date(meta.end, &zone));
    line("Duration", duration(meta.end.abs_diff(meta.begin)));
    line("Packets", bytes(meta.bytes));
    line("Losses", grouped(meta.losses));
    line(
        "Blocks",
        format!(
            "{} of all changes, {} coarse",
            grouped(fine as u64),
            grouped(coarse as u64)
        ),
    );
    line("Written by", meta.program.clone());
    if args.verify {
        line("Check", "whole".to_owned());
    }
    text
}
