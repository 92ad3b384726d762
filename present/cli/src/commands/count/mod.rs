//! `tracebraid count`: event records by class, stream, CPU and time.

mod data;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Args;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{CpuSet, Head, Window};
use tracebraid_reports::count::{Count, CountReport};

use crate::commands::cells;
use crate::commands::data_tables::TablesArgs;
use crate::commands::report::{self, Subject};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::hints;
use crate::options::{self, InputArgs, ReportFormat, SelectArgs, TimeArgs, TimeRange, ZoneArgs};
use crate::output;
use crate::print::select::{Chosen, Selection};
use crate::progress::Progress;
use crate::table::{self, Cell, Column};
use crate::terminal_text;
use crate::units::{self, grouped, number_of, percent};
use crate::warnings::Warnings;

/// Count event records by name, stream and CPU, and over time
///
/// Lost event records are counted for each stream as well.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid count ~/lttng-traces/my-session
  tracebraid count --top 10 --from +1s --to +1s TRACE
  tracebraid count --format json TRACE | jq '.by_name.sched_switch'
  tracebraid count --format csv --table streams TRACE
  tracebraid count --filter 'syscall_exit_* && ret < 0' --procname nginx TRACE")]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    fold: FoldArgs,
    /// Select events by name (a pattern with * and ?)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    name: Vec<String>,
    /// Select event records for which this expression holds, as in `tracebraid print`
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Limit each table to the N rows with the most event records; default: all
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    tables: TablesArgs,
    #[command(flatten)]
    zone: ZoneArgs,
}

/// Number of intervals for which the rate is shown.
const PARTS: usize = 60;

pub(super) fn run(args: &CountArgs) -> Result<ExitCode, Failure> {
    let mut subject = Subject::open(&args.input, &args.fold, &args.time, args.zone)?;
    let Subject {
        set,
        range,
        zone,
        warnings,
        ..
    } = &mut subject;
    crate::hints::left_out_of(*range, set, warnings);
    let window = report::window(*range);
    let cpus = report::cpus(&args.select);
    warnings.recorder(set, &args.select);
    let chosen = Chosen {
        option: "--filter",
        select: &args.select,
        names: &args.name,
        expression: args.filter.as_deref(),
    };
    let mut is_doubted = false;
    let report = if args.selects_records() {
        let extent = || options::extent_of(set, 0);
        let selection = Selection::new(set, &chosen, extent, zone)?;
        let doubts = selection.as_ref().map(Selection::doubts);
        for doubt in doubts.iter().flatten() {
            is_doubted = true;
            warnings.note(&doubt.to_string());
        }
        let count = Count::new(set, window, cpus, PARTS);
        selected(set, *range, selection, &count, warnings)?
    } else {
        counted(set, window, cpus, &args.fold, warnings)?
    };
    match report.events {
        0 => {
            let (range, zone) = ((subject.range, 0), &subject.zone);
            chosen.report_nothing(&subject.set, range, zone, is_doubted, &mut subject.warnings);
        }
        _ => hints::unknown_cpus(&subject.set, &args.select, &mut subject.warnings),
    }
    let top = args.top.filter(|&rows| rows > 0).unwrap_or(usize::MAX);
    match args.format {
        format if args.tables.are_wanted(format) => {
            let tables = data::tables(&report, top);
            args.tables.print(format, &Head::default(), tables)?;
            Ok(subject.lost(args.input.strict))
        }
        ReportFormat::Json => subject.finish_json(&report, args.input.strict),
        _ => subject.finish(&tables(&report, top), args.input.strict),
    }
}

impl CountArgs {
    /// Whether event records must be decoded to decide whether they are counted.
    fn selects_records(&self) -> bool {
        let select = &self.select;
        let by_thread = select.has_threads() || select.no_recorder;
        by_thread || !self.name.is_empty() || self.filter.is_some()
    }
}

/// Counts event records of all threads. Ends of streams that packet headers do not contain are
/// guessed, which saves a serial pass; if a guess was wrong, all event records are counted again.
///
/// # Errors
/// When the user interrupts it.
fn counted(
    set: &TraceSet,
    window: Window,
    cpus: CpuSet,
    args: &FoldArgs,
    warnings: &mut Warnings,
) -> Result<CountReport, Failure> {
    if window == Window::default() && cpus.0.is_none() {
        let outcome =
            fold::run_without_warnings(set, &Count::with_guessed_ends(set, PARTS), args, None)?;
        if !outcome.report.has_wrong_guess {
            warnings.reading(&outcome.damage);
            return Ok(outcome.report);
        }
    }
    let count = Count::new(set, window, cpus, PARTS);
    fold::run(set, &count, args, window.to, warnings)
}

/// Counts the event records that the options select, in the order of time: the thread of an event
/// record is known only then.
///
/// # Errors
/// When the user interrupts it.
fn selected(
    set: &TraceSet,
    range: TimeRange,
    mut selection: Option<Selection<'_>>,
    count: &Count<'_>,
    warnings: &mut Warnings,
) -> Result<CountReport, Failure> {
    let stop = output::interruption();
    let mut progress = Progress::new(options::total_bytes(set), false);
    let until = range.to.checked_add(1).map(Timestamp);
    // Event records before the range determine the thread that runs at its beginning.
    let needs_past = selection.as_ref().is_some_and(Selection::needs_past);
    let from = (range.from > i64::MIN && !needs_past).then_some(Timestamp(range.from));
    let mut merged = MergedReader::within(set, from, until);
    let mut counter = count.counter();
    let mut since_check = 0u32;
    while let Some((time, reader)) = merged.next() {
        let wanted = selection
            .as_mut()
            .is_none_or(|selection| selection.wants(time, reader));
        if wanted && range.contains(time.0) {
            counter.add(time, reader);
        }
        since_check += 1;
        if since_check >= 1 << 16 {
            since_check = 0;
            progress.at(|| merged.position());
            if stop.load(Ordering::Relaxed) {
                progress.finish();
                return Err(Failure::interrupted());
            }
        }
    }
    progress.finish();
    warnings.reading(&merged.take_damage());
    Ok(counter.finish())
}

fn by_count(by_name: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut rows: Vec<_> = by_name
        .iter()
        .map(|(name, &count)| (name.as_str(), count))
        .collect();
    rows.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    rows
}

fn tables(report: &CountReport, top: usize) -> String {
    let mut head = number_of(report.events, "event record", "event records");
    if let (Some(first), Some(last)) = (report.first, report.last) {
        let length = last.abs_diff(first);
        let _ = write!(head, " in {}", units::duration(length));
        if length > 0 {
            let rate = u128::from(report.events) * 1_000_000_000 / u128::from(length);
            let _ = write!(
                head,
                ", {} a second",
                grouped(u64::try_from(rate).unwrap_or(u64::MAX))
            );
        }
    }
    let mut text = terminal_text::paragraph(&head) + "\n";
    let rows = by_count(&report.by_name);
    let shown = rows.iter().take(top);
    let largest = rows.first().map(|of| of.1);
    let row = |&(name, count): &(&str, u64)| {
        let texts = vec![
            name.to_owned(),
            grouped(count),
            percent(count, report.events),
        ];
        Cell::row(texts, 1, Some(count) == largest)
    };
    text += &table::render(
        &[
            Column::text("Event"),
            Column::number("Count"),
            Column::number("Of total"),
        ],
        shown.map(row),
    );
    text += &cells::more(top, rows.len());
    text.push('\n');
    text += &streams(report, top);
    let counts = parts(&report.rate.counts);
    if counts.iter().any(|&count| count > 0) {
        let part = report.rate.to.abs_diff(report.rate.from) / counts.len().max(1) as u64;
        let most = counts.iter().max().copied().unwrap_or(0);
        let bars = units::sparkline(&counts);
        let _ = writeln!(
            text,
            "\n{}  |{bars}|",
            terminal_text::paragraph(&format!(
                "Over time, {} per column, at most {}:",
                units::duration(part),
                grouped(most)
            ))
        );
    }
    if report.discarded_events > 0 || report.discarded_packets > 0 || !report.losses.is_empty() {
        text.push('\n');
        text += &table::trouble(&terminal_text::paragraph(&format!(
            "Lost by the tracer: {}, {}",
            number_of(report.discarded_events, "event record", "event records"),
            number_of(report.discarded_packets, "packet", "packets")
        )));
    }
    text
}

/// Numbers for the bars. Each two are added up if the terminal is too narrow for all.
fn parts(counts: &[u64]) -> Vec<u64> {
    let room = terminal_text::terminal_width().map_or(usize::MAX, |width| width.saturating_sub(4));
    let together = if counts.len() > room { 2 } else { 1 };
    counts
        .chunks(together)
        .map(|counts| {
            counts
                .iter()
                .fold(0, |sum: u64, &count| sum.saturating_add(count))
        })
        .collect()
}

/// The streams, in the order of their files; if not all are shown, those with the most event
/// records first.
fn streams(report: &CountReport, top: usize) -> String {
    let columns = [
        Column::text("Stream"),
        Column::number("CPU"),
        Column::number("Event records"),
        Column::number("Of total"),
        Column::number("Packets").left_out(2),
        Column::number("Bytes").left_out(1),
    ];
    let largest = report.streams.iter().map(|stream| stream.events).max();
    let row = |stream: &tracebraid_reports::count::StreamRow| {
        let name = std::path::Path::new(&stream.file);
        let name = name
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let texts = vec![
            name,
            stream.cpu.map(|cpu| cpu.to_string()).unwrap_or_default(),
            grouped(stream.events),
            percent(stream.events, report.events),
            grouped(stream.packets),
            units::bytes(stream.bytes),
        ];
        Cell::row(texts, 2, Some(stream.events) == largest)
    };
    let mut rows: Vec<_> = report.streams.iter().collect();
    if rows.len() > top {
        rows.sort_by_key(|stream| std::cmp::Reverse(stream.events));
    }
    let shown = rows.iter().take(top).map(|stream| row(stream));
    table::render(&columns, shown) + &cells::more(top, rows.len())
}
