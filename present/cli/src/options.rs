//! Options that several commands share, and the functions that open their traces.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use jiff::tz::TimeZone;
use tracebraid_clocks::Machines;
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::Extent;
use tracebraid_language::glob::Glob;

use crate::failure::Failure;
use crate::fold::FoldArgs;
use crate::indexes;
use crate::numbers::{self, Numbers};
use crate::origins;
use crate::time::{self, TimeSpec};

/// Paths of the traces, and options for reading them.
#[derive(Args, Debug)]
pub(crate) struct InputArgs {
    /// Trace directories, or directories that contain traces at any depth; archives of these (.tar,
    /// .tar.gz, .tar.xz, .tar.zst, .zip); perf.data, trace.dat, SQLite exports of Nsight Systems,
    /// execution traces of Go, and traces of FxT
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Exit with code 1 if an input is damaged
    #[arg(long)]
    pub(crate) strict: bool,
    /// Align the clocks of several hosts: a file written by `tracebraid sync -o`, or `auto` to
    /// infer the offsets from the packets that the hosts exchanged
    #[arg(long, value_name = "FILE|auto")]
    pub(crate) sync: Option<PathBuf>,
    /// Show user-level threads (goroutines, fibres, tasks) as threads: merge the kernel's and the
    /// runtimes' scheduling into a temporary trace first, as `tracebraid levels merge` does
    #[arg(long)]
    pub(crate) levels: bool,
}

impl InputArgs {
    /// All files that the command reads: traces, files of other tools, and the file of `--sync`.
    pub(crate) fn read(&self) -> Vec<PathBuf> {
        self.paths.iter().chain(&self.sync).cloned().collect()
    }
}

/// Options for the time range.
#[derive(Args, Debug)]
pub(crate) struct TimeArgs {
    /// Start of the time range: an offset from the beginning of the trace (+1.5s), a time of day
    /// (01:43:15.2; its first occurrence in a trace that crosses midnight), a date
    /// (2026-11-21T01:43:15.2), or a time since the clock's origin (12.5 s or 1795225395200000000ns)
    #[arg(
        long,
        short = 'b',
        visible_alias = "begin",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    pub(crate) from: Option<TimeSpec>,
    /// End of the time range, in the same forms. With --from, +500ms is a length: the range ends 500
    /// ms after --from
    #[arg(
        long,
        short = 'e',
        visible_alias = "end",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    pub(crate) to: Option<TimeSpec>,
    /// Start and end of the time range, separated by a comma
    #[arg(long, short = 't', value_name = "FROM,TO", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub(crate) timerange: Option<String>,
}

/// A time range in nanoseconds since the origin; both bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl TimeRange {
    pub(crate) const ALL: TimeRange = TimeRange {
        from: i64::MIN,
        to: i64::MAX,
    };

    /// Refuses a range that ends before it begins.
    ///
    /// # Errors
    /// When it does; the message contains the time range of the trace.
    pub(crate) fn check(self, trace: Option<(i64, i64)>, zone: &TimeZone) -> Result<(), Failure> {
        if self.from <= self.to {
            return Ok(());
        }
        let trace = trace.map(|(first, last)| format!("; the trace {}", lasts(first, last, zone)));
        Err(Failure::usage(format!(
            "the time range is empty: it begins at {} and ends at {}{}",
            time::date(self.from, zone),
            time::date(self.to, zone),
            trace.unwrap_or_default()
        )))
    }

    #[inline(always)]
    pub(crate) fn contains(self, time: i64) -> bool {
        self.from <= time && time <= self.to
    }
}

impl TimeArgs {
    /// Resolves the range for these traces; `offset` is added to the times of the traces.
    ///
    /// # Errors
    /// When a time cannot be resolved, or the range is empty.
    pub(crate) fn range(
        &self,
        set: &TraceSet,
        zone: &TimeZone,
        offset: i64,
    ) -> Result<TimeRange, Failure> {
        let (from, to) = match &self.timerange {
            None => (self.from, self.to),
            Some(range) => {
                let inner = range.trim().trim_start_matches('[').trim_end_matches(']');
                let (from, to) = inner.split_once(',').ok_or_else(|| {
                    Failure::usage(format!(
                        "--timerange {range}: expected two times separated by a comma"
                    ))
                })?;
                let parse = |text: &str| text.parse().map(Some).map_err(Failure::usage);
                (parse(from)?, parse(to)?)
            }
        };
        if from.is_none() && to.is_none() {
            return Ok(TimeRange::ALL);
        }
        let extent = extent_of(set, offset);
        let start = from;
        let from = from.map(|spec| spec.resolve(extent, zone)).transpose();
        let from = from.map_err(Failure::usage)?;
        let end = to.map(|spec| spec.resolve_end(from, extent, zone));
        let end = end.transpose().map_err(Failure::usage)?;
        if let (Some(start), Some(to)) = (start, to) {
            to.tell_length(start);
        }
        let range = TimeRange {
            from: from.unwrap_or(i64::MIN),
            to: end.unwrap_or(i64::MAX),
        };
        range.check(extent, zone)?;
        Ok(range)
    }
}

/// The time range of a trace as part of a sentence.
pub(crate) fn lasts(first: i64, last: i64, zone: &TimeZone) -> String {
    format!(
        "lasts from {} to {}",
        time::date(first, zone),
        time::date(last, zone)
    )
}

/// Options that select event records.
#[derive(Args, Debug, Default)]
pub(crate) struct SelectArgs {
    /// Select CPUs: numbers and ranges, such as 0-3,7
    #[arg(long, value_name = "CPU", value_delimiter = ',', value_parser = numbers::cpus)]
    pub(crate) cpu: Vec<Numbers<u64>>,
    /// Select threads by id
    #[arg(long, value_name = "TID", value_delimiter = ',', allow_hyphen_values = true, value_parser = thread_id)]
    pub(crate) tid: Vec<i64>,
    /// Select processes by id
    #[arg(long, value_name = "PID", value_delimiter = ',', allow_hyphen_values = true, value_parser = process_id)]
    pub(crate) pid: Vec<i64>,
    /// Select threads by name (a pattern with * and ?)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) procname: Vec<String>,
    /// Exclude the process that recorded the trace, if the trace identifies it (traces of tracebraid
    /// do)
    #[arg(long)]
    pub(crate) no_recorder: bool,
}

impl SelectArgs {
    /// True if the options select threads or processes.
    pub(crate) fn has_threads(&self) -> bool {
        !(self.tid.is_empty() && self.pid.is_empty() && self.procname.is_empty())
    }
}

/// Key in a trace's environment for the id of the process that recorded it.
pub(crate) const RECORDER: &str = "tracebraid_pid";

/// Ids of the processes that recorded the traces, each with the index of its trace.
pub(crate) fn recorders(set: &TraceSet) -> Vec<(u32, i64)> {
    let of = |(trace, index): (&Trace, u32)| match trace.layout.class.env(RECORDER) {
        Some(&EnvValue::Int(pid)) => Some((index, i64::try_from(pid).ok()?)),
        _ => None,
    };
    set.traces.iter().zip(0..).filter_map(of).collect()
}

fn thread_id(text: &str) -> Result<i64, String> {
    let message = "expected a thread id (select names with --procname)";
    text.parse().map_err(|_| message.to_owned())
}

fn process_id(text: &str) -> Result<i64, String> {
    let message = "expected a process id (select names with --procname)";
    text.parse().map_err(|_| message.to_owned())
}

/// Format of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// Tables
    #[default]
    Table,
    /// JSON; times in nanoseconds
    Json,
    /// Comma-separated values; times in nanoseconds
    Csv,
}

pub(crate) fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(|pattern| Glob::new(pattern)).collect()
}

/// Opens all traces, aligns their clocks if `--sync` is given, and merges them if `--levels` is.
///
/// # Errors
/// When there is no trace, or traces cannot be aligned or merged.
pub(crate) fn open(args: &InputArgs, fold: &FoldArgs) -> Result<TraceSet, Failure> {
    let set = open_recorded(args)?;
    match args.levels {
        true => crate::merged::in_place_of(set, &args.paths, fold),
        false => {
            crate::merged::hint(&set);
            Ok(set)
        }
    }
}

/// As [`open`], without merging.
///
/// # Errors
/// When there is no trace, or the clocks cannot be aligned.
pub(crate) fn open_recorded(args: &InputArgs) -> Result<TraceSet, Failure> {
    let mut set = open_paths(&args.paths)?;
    if let Some(from) = &args.sync {
        crate::sync::apply(from, &mut set)?;
    }
    Ok(set)
}

/// Opens all traces at the paths, including files of other tools, with the times of their own
/// clocks.
///
/// # Errors
/// When there is no trace, or a file cannot be imported.
pub(crate) fn open_paths(paths: &[PathBuf]) -> Result<TraceSet, Failure> {
    let paths = crate::imported::resolve(paths)?;
    let mut set = TraceSet::open_checking(&paths, indexes::check())
        .map_err(|error| Failure::nothing_readable(error.to_string()))?;
    origins::note(&mut set);
    Ok(set)
}

/// Total size of all streams in bytes.
pub(crate) fn total_bytes(set: &TraceSet) -> u64 {
    let streams = set.traces.iter().flat_map(|trace| &trace.streams);
    streams.map(tracebraid_ctf::stream::Stream::bytes).sum()
}

/// From the first event record to the end of the last packet, in nanoseconds since the origin;
/// `offset` is added to both.
pub(crate) fn extent_of(set: &TraceSet, offset: i64) -> Option<(i64, i64)> {
    let start = start_of(set)?;
    let end = Extent::of_packets(set).map_or(start, |covered| covered.last.0.max(start));
    Some((start.saturating_add(offset), end.saturating_add(offset)))
}

/// Time of the first event record, in nanoseconds since the origin.
fn start_of(set: &TraceSet) -> Option<i64> {
    Extent::start(set).map(|start| start.0)
}

/// Names of traces as in babeltrace2: the host, and the trace's path relative to the given path; by
/// the traces' directories.
pub(crate) fn trace_names(set: &TraceSet, paths: &[PathBuf]) -> HashMap<PathBuf, String> {
    let mut names = HashMap::new();
    for trace in &set.traces {
        let (Some(directory), Some(known)) = (trace.paths.first(), trace.known_path()) else {
            continue;
        };
        let below = paths.iter().find_map(|path| known.strip_prefix(path).ok());
        let below = below
            .map(|below| below.display().to_string())
            .unwrap_or_default();
        let host = trace.layout.class.env_str("hostname").unwrap_or_default();
        let parts: Vec<&str> = [host, &below]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        if !parts.is_empty() {
            names.insert(directory.clone(), parts.join("/"));
        }
    }
    names
}

/// Facts about the traces that are worth knowing but are not damage.
pub(crate) fn notes(set: &TraceSet) -> impl Iterator<Item = &Damage> {
    set.traces.iter().flat_map(|trace| &trace.notes)
}

/// Warning for traces whose clocks cannot be aligned.
pub(crate) fn unrelated_clocks(set: &TraceSet) -> Option<String> {
    let clocks: Vec<_> = set
        .traces
        .iter()
        .filter_map(|trace| {
            let clock = trace
                .layout
                .streams
                .iter()
                .find_map(|stream| stream.clock)?;
            Some((trace, trace.layout.class.clocks.get(clock)?))
        })
        .collect();
    if clocks.iter().any(|(trace, _)| trace.is_synchronized) {
        return unsynchronized(set);
    }
    let (first, first_clock) = clocks.first()?;
    let (other, _) = clocks
        .iter()
        .skip(1)
        .find(|(_, clock)| !tracebraid_ctf::clock::comparable(first_clock, clock))?;
    let place = |trace: &tracebraid_ctf::trace::Trace| {
        trace
            .paths
            .first()
            .map(|path| origins::shown(path))
            .unwrap_or_default()
    };
    Some(format!(
        "the clocks of {} and {} cannot be aligned: their event records are ordered as if both clocks had \
         the same origin, which may be wrong",
        place(first),
        place(other),
    ))
}

/// Warning for traces of several hosts that are related only by the date.
pub(crate) fn several_clocks(set: &TraceSet) -> Option<String> {
    if set.traces.iter().any(|trace| trace.is_synchronized) || unrelated_clocks(set).is_some() {
        return None;
    }
    let machines = Machines::of(set);
    let first = machines.all().first()?;
    let other = machines
        .all()
        .iter()
        .position(|other| first.is_other(other))?;
    let (first, other) = (machines.name(0), machines.name(other));
    Some(format!(
        "the traces come from several hosts ({first}, {other}), whose clocks may differ by more than the \
         travel time of a packet: align them with --sync auto, or with --sync FILE, written by \
         `tracebraid sync -o`"
    ))
}

/// Warning for traces that are not aligned although others are.
fn unsynchronized(set: &TraceSet) -> Option<String> {
    let left: Vec<String> = set
        .traces
        .iter()
        .filter(|trace| !trace.is_synchronized)
        .filter_map(|trace| Some(origins::shown(trace.paths.first()?)))
        .collect();
    (!left.is_empty()).then(|| {
        format!(
            "the clock of {} cannot be aligned with the reference clock: its times are not corrected",
            left.join(", ")
        )
    })
}

/// The time zone of times in options and in output.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ZoneArgs {
    /// Read and print times in UTC, not in the local time zone
    #[arg(long, visible_alias = "clock-gmt")]
    pub(crate) gmt: bool,
}

impl ZoneArgs {
    /// UTC with `--gmt`, else the local time zone.
    pub(crate) fn zone(self) -> TimeZone {
        // A quick check for the usual name of UTC avoids opening the zone database.
        let is_utc =
            self.gmt || std::env::var_os("TZ").is_some_and(|name| name == "UTC" || name == "UTC0");
        match is_utc {
            true => TimeZone::UTC,
            false => TimeZone::system(),
        }
    }
}
