//! `tracebraid sync`: relations between the clocks of several hosts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracebraid_clocks::{Accuracy, MachineReport, PairReport, Synchronization};

use crate::csv::Rows;
use crate::failure::Failure;
use crate::file_kind::FileKind;
use crate::fold::FoldArgs;
use crate::glyphs::glyphs;
use crate::options::{self, ReportFormat};
use crate::output::{self, Output};
use crate::spare;
use crate::sync::relate;
use crate::table::{self, Column};
use crate::terminal_text;
use crate::units::{self, grouped};
use crate::warnings::Warnings;

/// Align clocks of several hosts; show delays of packets
///
/// Reports offset, drift and the bounds of both, and the median delay of packets in each direction.
/// Needs kernel traces of at least two hosts, recorded at the same time, with net_dev_queue and
/// net_if_receive_skb (lttng-modules 2.9 or later), or inet_sock_local_out and inet_sock_local_in.
/// Every command that reads traces accepts the file that -o writes: with --sync FILE it reads
/// several hosts as one trace.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid sync CLIENT-TRACE SERVER-TRACE
  tracebraid sync --reference web1 -o clocks.json TRACE TRACE TRACE
  tracebraid print --sync clocks.json CLIENT-TRACE SERVER-TRACE
  tracebraid net --sync auto CLIENT-TRACE SERVER-TRACE
  tracebraid sync --format json TRACE TRACE | jq '.pairs[].drift_ppm'

CSV has a row for each pair of hosts.")]
pub(crate) struct SyncArgs {
    /// Trace directories, or directories that contain traces at any depth
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Exit with code 1 if an input is damaged, or if the clock of a host cannot be aligned with the
    /// reference
    #[arg(long)]
    strict: bool,
    /// Host whose clock is the reference: its name, or the UUID of its clock; default: the host of
    /// the first trace
    #[arg(long, value_name = "HOST")]
    reference: Option<String>,
    /// Write the corrections to FILE, for --sync
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    fold: FoldArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

pub(super) fn run(args: &SyncArgs) -> Result<ExitCode, Failure> {
    let set = options::open_paths(&args.paths)?;
    if let Some(path) = &args.output {
        spare::check(path, &set, &args.paths)?;
        FileKind::Clocks.check_target(path)?;
    }
    let mut warnings = Warnings::default();
    warnings.opening_without_clocks(&set);
    let found = relate(&set, args.reference.as_deref(), &args.fold, &mut warnings)?;
    tell(&found, &mut warnings);
    for loss in crate::loss::summary(&set) {
        warnings.note(&loss.to_string());
    }
    if let Some(path) = &args.output {
        let text = serde_json::to_string_pretty(&found.transformations());
        let text = text.map_err(|error| Failure::output(error.to_string()))?;
        output::replace(path, format!("{text}\n").as_bytes())?;
    }
    let mut out = Output::open(None)?;
    match args.format {
        ReportFormat::Table => out.write(tables(&found).as_bytes())?,
        ReportFormat::Json => out.write_json(&found)?,
        ReportFormat::Csv => out.write(csv(&found).as_bytes())?,
    };
    Ok(warnings.finish(args.strict))
}

/// Warns of unreliable results.
fn tell(found: &Synchronization, warnings: &mut Warnings) {
    if found.hosts.len() < 2 {
        warnings.note("all traces come from one host: there are no clocks to align");
    }
    for host in found.hosts.iter().filter(|host| !host.is_related) {
        warnings.damage(&format!(
            "{}: its clock cannot be aligned with that of {}; its times are not corrected",
            host.host, found.reference
        ));
    }
    for pair in &found.pairs {
        let (one, other) = (&pair.reference, &pair.other);
        match pair.accuracy {
            Accuracy::Fail => warnings.note(&format!(
                "{one} and {other}: the packets contradict each other for any relation of the clocks: events were lost, or \
                 one of the clocks was set"
            )),
            Accuracy::Approximate => warnings.note(&format!(
                "{one} and {other}: the packets bound the drift from one side only, or only loosely: the drift is assumed to be at most \
                 1,000 ppm (more only if the packets require it); times far from the packets may be wrong"
            )),
            Accuracy::Incomplete => warnings.note(&format!(
                "{one} and {other}: only packets of one direction were recorded: the error of the offset is unbounded"
            )),
            _ => {}
        }
    }
}

fn tables(found: &Synchronization) -> String {
    let sentences = found.hosts.iter().filter_map(|of| sentence(found, of));
    let mut text: String = sentences.map(|of| terminal_text::paragraph(&of)).collect();
    text.push('\n');
    text += &terminal_text::paragraph(&format!(
        "Corrections, to be added to the times of a host to get times of {}",
        found.reference
    ));
    text += &table::render(
        &[
            Column::text("Host"),
            Column::number("Offset"),
            Column::number("Error"),
            Column::number("Drift (ppm)"),
            Column::text("Through").left_out(1),
        ],
        found.hosts.iter().map(host_row),
    );
    if !found.pairs.is_empty() {
        text.push('\n');
        text += &terminal_text::paragraph(
            "Pairs of hosts (add the offset to times of the second host; delays are medians)",
        );
        text += &pairs(&found.pairs);
    }
    if found.repeated_packets > 0 {
        text.push('\n');
        text += &terminal_text::paragraph(&format!(
            "Ignored {} more than once",
            units::number_of(
                found.repeated_packets,
                "packet that was sent or received",
                "packets that were sent or received"
            )
        ));
    }
    text
}

/// How far the clock of a host is ahead or behind; `None` for the reference.
fn sentence(found: &Synchronization, of: &MachineReport) -> Option<String> {
    let (host, reference) = (&of.host, &found.reference);
    if host == reference {
        return None;
    }
    let Some(offset) = of.offset_ns.filter(|_| of.is_related) else {
        return Some(format!(
            "The clock of {host} cannot be aligned with that of {reference}"
        ));
    };
    let direction = match offset {
        ..0 => "ahead of that of",
        _ => "behind that of",
    };
    let amount = signed_plain(i64::try_from(offset.unsigned_abs()).unwrap_or(i64::MAX));
    let error = of.error_ns.map_or_else(
        || "the error is unbounded".to_owned(),
        |error| format!("{} {}", glyphs().plus_minus, units::duration(error)),
    );
    Some(format!(
        "The clock of {host} is {amount} {direction} {reference} ({error})"
    ))
}

fn host_row(host: &MachineReport) -> Vec<String> {
    if !host.is_related {
        return vec![host.host.clone(), "not aligned".to_owned()];
    }
    vec![
        host.host.clone(),
        signed(host.offset_ns),
        host.error_ns.map_or_else(
            || "?".to_owned(),
            |error| format!("{} {}", glyphs().plus_minus, units::duration(error)),
        ),
        drift(host.drift_ppm),
        host.through.join(", "),
    ]
}

fn pairs(pairs: &[PairReport]) -> String {
    let row = |pair: &PairReport| {
        let delay = |delay: Option<i64>| delay.map_or_else(|| "-".to_owned(), length);
        vec![
            format!("{} - {}", pair.reference, pair.other),
            accuracy(pair.accuracy).to_owned(),
            grouped(pair.packets_to_other),
            grouped(pair.packets_to_reference),
            signed(pair.offset_ns),
            range(signed(pair.offset_min_ns), signed(pair.offset_max_ns)),
            drift(pair.drift_ppm),
            range(drift(pair.drift_min_ppm), drift(pair.drift_max_ppm)),
            pair.stretches.to_string(),
            delay(pair.delay_to_other_ns),
            delay(pair.delay_to_reference_ns),
        ]
    };
    table::render(
        &[
            Column::text("Hosts"),
            Column::text("Accuracy").left_out(8),
            Column::number("Packets to second").left_out(5),
            Column::number("Packets to first").left_out(4),
            Column::number("Offset"),
            Column::number("Offset bounds").left_out(3),
            Column::number("Drift (ppm)").left_out(6),
            Column::number("Drift bounds").left_out(2),
            Column::number("Lines").left_out(1),
            Column::number("Delay to second"),
            Column::number("Delay to first"),
        ],
        pairs.iter().map(row),
    )
}

fn accuracy(of: Accuracy) -> &'static str {
    match of {
        Accuracy::Accurate => "accurate",
        Accuracy::Approximate => "approximate",
        Accuracy::Incomplete => "incomplete",
        Accuracy::Absent => "absent",
        Accuracy::Fail => "fail",
    }
}

fn range(low: String, high: String) -> String {
    match low == "-" && high == "-" {
        true => low,
        false => format!("{low} .. {high}"),
    }
}

/// A duration with its sign.
fn signed(nanoseconds: Option<i64>) -> String {
    match nanoseconds {
        None => "-".to_owned(),
        Some(value) if value > 0 => format!("+{}", signed_plain(value)),
        Some(value) => signed_plain(value),
    }
}

/// The time that a packet takes; negative only if the relation of the clocks is wrong.
fn length(nanoseconds: i64) -> String {
    match u64::try_from(nanoseconds) {
        Ok(length) => units::duration(length),
        Err(_) => signed_plain(nanoseconds),
    }
}

/// A signed duration to the nanosecond, as the accuracy of clocks requires.
fn signed_plain(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let all = nanoseconds.unsigned_abs();
    format!("{sign}{}.{:09} s", all / 1_000_000_000, all % 1_000_000_000)
}

fn drift(ppm: Option<f64>) -> String {
    ppm.map_or_else(|| "-".to_owned(), |ppm| format!("{ppm:+.3}"))
}

/// A row for each pair of hosts.
fn csv(found: &Synchronization) -> String {
    let mut rows = Rows::new(&[
        "reference",
        "other",
        "accuracy",
        "packets_to_other",
        "packets_to_reference",
        "stretches",
        "offset_ns",
        "offset_min_ns",
        "offset_max_ns",
        "drift_ppm",
        "drift_min_ppm",
        "drift_max_ppm",
        "delay_min_ns",
        "delay_to_other_ns",
        "delay_to_reference_ns",
    ]);
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    let real = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for pair in &found.pairs {
        rows.add([
            pair.reference.clone(),
            pair.other.clone(),
            accuracy(pair.accuracy).to_owned(),
            pair.packets_to_other.to_string(),
            pair.packets_to_reference.to_string(),
            pair.stretches.to_string(),
            number(pair.offset_ns),
            number(pair.offset_min_ns),
            number(pair.offset_max_ns),
            real(pair.drift_ppm),
            real(pair.drift_min_ppm),
            real(pair.drift_max_ppm),
            number(pair.delay_min_ns),
            number(pair.delay_to_other_ns),
            number(pair.delay_to_reference_ns),
        ]);
    }
    rows.finish()
}
