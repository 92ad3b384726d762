//! `tracebraid print`: event records as lines.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::reader::{MergedReader, StreamReader};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_profile::Addresses;
use tracebraid_symbols::Symbols;

use crate::debug_info;
use crate::failure::Failure;
use crate::fold::FoldArgs;
use crate::options::{self, InputArgs, SelectArgs, TimeArgs, TimeRange, ZoneArgs};
use crate::output::{self, Output, PIECE, Written};
use crate::print::buffer::Buffer;
use crate::print::csv::{CsvRows, RowOptions};
use crate::print::event_ranges::EventRanges;
use crate::print::line::{LineOptions, Lines, Names, Properties};
use crate::print::select::{Chosen, Selection};
use crate::print::stamp::StampOptions;
use crate::print::style::Palette;
use crate::print::symbols;
use crate::progress::Progress;
use crate::spare;
use crate::warnings::Warnings;

/// Print event records as text (like babeltrace2), JSON or CSV
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid print ~/lttng-traces/my-session
  tracebraid print --from +1.5s --to +500ms --cpu 0,1 TRACE
  tracebraid print --filter 'syscall_exit_* && ret < 0' --procname nginx TRACE
  tracebraid print --filter 'sched_switch && next_tid == 42' TRACE \\
      --format json | jq .payload
  tracebraid print --name sched_switch --format csv -w switches.csv TRACE
  tracebraid print --begin-at 'prof_in && name == \"parse\"' \\
      --end-at 'prof_out && name == \"parse\"' TRACE
  tracebraid print --name sched_switch --nth 1000 TRACE
  tracebraid print --symbols --name 'lttng_ust_cyg_profile:*' TRACE
  tracebraid print --name 'net_*' --clock-date --no-delta --limit 20 TRACE

The filter language is described in docs/reference/filter.md, differences from babeltrace2 in docs/reference/print.md.")]
pub(crate) struct PrintArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: PrintFormat,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    select: SelectArgs,
    /// Select events by name (a pattern with * and ?)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    name: Vec<String>,
    /// Select event records for which this expression holds
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Select ranges of event records: each begins with a record for which this expression holds, and
    /// ends with the next for which that of --end-at does
    #[arg(long, value_name = "EXPR")]
    begin_at: Option<String>,
    /// End of the ranges of --begin-at; without that, there is one range, from the first record on
    #[arg(long, value_name = "EXPR")]
    end_at: Option<String>,
    /// Select LWPs (kernel threads) of a super-trace by id
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    lwp: Vec<u32>,
    /// Append the names of functions at addresses, if the trace records the loaded modules
    #[arg(long)]
    symbols: bool,
    /// Additional directory with debug information (below DIR/.build-id)
    #[arg(long, value_name = "DIR", requires = "symbols")]
    debug_dir: Vec<PathBuf>,
    /// Stop after N records
    #[arg(long, visible_alias = "head", value_name = "N")]
    limit: Option<u64>,
    /// Print only the N-th of the selected records
    #[arg(long, value_name = "N", conflicts_with = "limit", value_parser = clap::value_parser!(u64).range(1..))]
    nth: Option<u64>,
    /// Print the clock's value instead of the time
    #[arg(long, help_heading = "Text lines")]
    clock_cycles: bool,
    /// Print the date too
    #[arg(long, help_heading = "Text lines")]
    clock_date: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    /// Print seconds since the origin instead of the time of day
    #[arg(long, help_heading = "Text lines")]
    clock_seconds: bool,
    /// Add SEC seconds to all times
    #[arg(
        long,
        value_name = "SEC",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    clock_offset: i64,
    /// Add NS nanoseconds to all times
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    clock_offset_ns: i64,
    /// Omit the time since the previous record
    #[arg(long, help_heading = "Text lines")]
    no_delta: bool,
    /// Properties to print between time and event name
    #[arg(
        long,
        short = 'f',
        value_enum,
        value_name = "FIELD",
        value_delimiter = ',',
        help_heading = "Text lines"
    )]
    fields: Vec<FieldChoice>,
    /// Names to print
    #[arg(
        long,
        short = 'n',
        value_enum,
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Text lines"
    )]
    names: Vec<NameChoice>,
    /// Write to FILE instead of standard output
    #[arg(long, short = 'w', value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PrintFormat {
    /// Lines of text, as babeltrace2 prints them
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// Comma-separated values: a row for each record, a column for each field
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FieldChoice {
    None,
    All,
    /// Name of the trace
    Trace,
    #[value(name = "trace:hostname")]
    Hostname,
    #[value(name = "trace:domain")]
    Domain,
    #[value(name = "trace:procname")]
    Procname,
    #[value(name = "trace:vpid")]
    Vpid,
    Loglevel,
    Emf,
    /// Has no effect, as in babeltrace2
    Callsite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NameChoice {
    None,
    All,
    #[value(alias = "arg", alias = "args")]
    Payload,
    #[value(alias = "ctx")]
    Context,
    Scope,
    Header,
}

impl PrintArgs {
    fn names(&self) -> Names {
        if self.names.is_empty() {
            return Names {
                payload: true,
                context: true,
                scope: false,
                header: false,
            };
        }
        let has = |choice| self.names.contains(&choice) || self.names.contains(&NameChoice::All);
        Names {
            payload: has(NameChoice::Payload),
            context: has(NameChoice::Context),
            scope: has(NameChoice::Scope),
            header: has(NameChoice::Header),
        }
    }

    fn properties(&self) -> Properties {
        let default = [
            FieldChoice::Hostname,
            FieldChoice::Procname,
            FieldChoice::Vpid,
        ];
        let chosen = if self.fields.is_empty() {
            &default[..]
        } else {
            &self.fields
        };
        let has = |choice| chosen.contains(&choice) || chosen.contains(&FieldChoice::All);
        Properties {
            trace: has(FieldChoice::Trace),
            hostname: has(FieldChoice::Hostname),
            domain: has(FieldChoice::Domain),
            procname: has(FieldChoice::Procname),
            vpid: has(FieldChoice::Vpid),
            log_level: has(FieldChoice::Loglevel),
            emf: has(FieldChoice::Emf),
        }
    }

    fn line_options(&self, zone: TimeZone, colours: bool) -> LineOptions {
        let json = self.format == PrintFormat::Json;
        let palette = if colours && !json {
            Palette::COLOURS
        } else {
            Palette::NONE
        };
        let names = self.names();
        let stamp = StampOptions {
            cycles: self.clock_cycles,
            seconds: self.clock_seconds,
            date: self.clock_date,
            delta: !self.no_delta,
            names: names.header,
            zone,
            palette,
        };
        LineOptions {
            json,
            names,
            properties: self.properties(),
            stamp,
            palette,
        }
    }
}

impl PrintArgs {
    /// The filter expression, with the condition of `--lwp`.
    fn expression(&self) -> Option<String> {
        let lwps: Vec<String> = self
            .lwp
            .iter()
            .map(|lwp| format!("ctx.lwp == {lwp}"))
            .collect();
        match (&self.filter, lwps.is_empty()) {
            (filter, true) => filter.clone(),
            (None, false) => Some(lwps.join(" || ")),
            (Some(filter), false) => Some(format!("({filter}) && ({})", lwps.join(" || "))),
        }
    }
}

pub(super) fn run(args: &PrintArgs) -> Result<ExitCode, Failure> {
    let set = options::open(&args.input, &FoldArgs::default())?;
    if let Some(path) = &args.output {
        spare::check(path, &set, &args.input.read())?;
    }
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    warnings.recorder(&set, &args.select);
    let zone = args.zone.zone();
    let offset = clock_offset(args, &set)?;
    let range = args.time.range(&set, &zone, offset)?;
    crate::hints::left_out_of(range, &set, &mut warnings);
    let extent = || options::extent_of(&set, offset);
    let shown_zone = zone.clone();
    let expression = args.expression();
    let chosen = Chosen {
        select: &args.select,
        names: &args.name,
        expression: expression.as_deref(),
        option: "--filter",
    };
    let selection = Selection::new(&set, &chosen, extent, &zone)?;
    let ends = (args.begin_at.as_deref(), args.end_at.as_deref());
    let ranges = EventRanges::new(&set, ends, &extent, &zone)?;
    let doubts = selection
        .as_ref()
        .map(Selection::doubts)
        .unwrap_or_default();
    doubts
        .iter()
        .for_each(|doubt| warnings.note(&doubt.to_string()));
    let names = options::trace_names(&set, &args.input.paths);
    let rows = match args.format {
        PrintFormat::Csv => Some(csv_rows(args, &set, &names, selection.as_ref())?),
        PrintFormat::Text | PrintFormat::Json => None,
    };
    let mut out = Output::open(args.output.as_deref())?;
    let colours = out.has_colours();
    let mut symbols = debug_info::open(&args.debug_dir);
    let addresses = addresses(args, &set, &mut symbols, &mut warnings)?;
    let mut job = Job {
        range,
        offset,
        selection,
        addresses,
        ranges,
        skip: args.nth.map_or(0, |nth| nth - 1),
        limit: args.nth.map(|_| 1).or(args.limit).unwrap_or(u64::MAX),
        found: args.limit == Some(0),
        printer: match rows {
            Some(rows) => Printer::Rows(Box::new(rows)),
            None => {
                let lines = Lines::new(args.line_options(zone, colours), names);
                let json = args.format == PrintFormat::Json;
                Printer::Lines(Box::new(lines), json)
            }
        },
        progress: Progress::new(options::total_bytes(&set), out.is_terminal()),
    };
    let damage = job.run(&set, &mut out)?;
    job.progress.finish();
    out.finish()?;
    warnings.reading(&damage);
    if job.found {
        crate::hints::unknown_cpus(&set, &args.select, &mut warnings);
    } else {
        let around = (range, offset);
        chosen.report_nothing(&set, around, &shown_zone, !doubts.is_empty(), &mut warnings);
    }
    for loss in crate::loss::summary(&set) {
        warnings.note(&loss.to_string());
    }
    Ok(warnings.finish(args.input.strict))
}

/// CSV with columns for the fields of all event classes that can be selected.
fn csv_rows<'t>(
    args: &PrintArgs,
    set: &'t TraceSet,
    names: &HashMap<PathBuf, String>,
    selection: Option<&Selection<'_>>,
) -> Result<CsvRows<'t>, Failure> {
    let is_selected = |trace, stream_class, event| {
        selection.is_none_or(|selection| selection.may_select(trace, stream_class, event))
    };
    let options = RowOptions {
        names,
        is_selected: &is_selected,
        symbols: args.symbols,
    };
    CsvRows::new(set, &options).map_err(|error| Failure::usage(format!("--format csv: {error}")))
}

/// Names of addresses; `None` without `--symbols`.
fn addresses<'s>(
    args: &PrintArgs,
    set: &TraceSet,
    symbols: &'s mut Symbols,
    warnings: &mut Warnings,
) -> Result<Option<Addresses<'s>>, Failure> {
    if !args.symbols {
        return Ok(None);
    }
    let how = (Options::default(), &Control::default());
    let addresses = Addresses::new(set, symbols, &[], how).map_err(Failure::from)?;
    if addresses.is_empty() {
        warnings.note("--symbols: the trace does not record loaded modules; `tracebraid record` does with --stacks, or if --probes contains lttng_ust_cyg_profile:*");
    }
    Ok(Some(addresses))
}

/// The sum of `--clock-offset` and `--clock-offset-ns`, in nanoseconds.
///
/// # Errors
/// When a packet of the trace would begin or end outside the range of times.
fn clock_offset(args: &PrintArgs, set: &TraceSet) -> Result<i64, Failure> {
    let offset = i128::from(args.clock_offset) * 1_000_000_000 + i128::from(args.clock_offset_ns);
    let offset = i64::try_from(offset).map_err(|_| offset_too_far())?;
    if offset == 0 {
        return Ok(0);
    }
    let streams = set.traces.iter().flat_map(|trace| {
        trace
            .streams
            .iter()
            .filter_map(|stream| Some((trace.clock(stream)?, stream)))
    });
    for (clock, stream) in streams {
        let times = stream
            .packets
            .iter()
            .flat_map(|packet| [packet.begin, packet.end]);
        for time in times.flatten() {
            with_offset(clock.timestamp(time), offset)?;
        }
    }
    Ok(offset)
}

/// The time to show. Event records of streams without a clock come first and have no time.
fn with_offset(time: Timestamp, offset: i64) -> Result<Timestamp, Failure> {
    if time.0 == i64::MIN {
        return Ok(time);
    }
    time.0
        .checked_add(offset)
        .map(Timestamp)
        .ok_or_else(offset_too_far)
}

#[cold]
fn offset_too_far() -> Failure {
    Failure::usage(
        "--clock-offset: times of the trace would be more than 292 years from 1970, out of the range of 64 bits of \
         nanoseconds (the years 1677 to 2262): use a smaller offset",
    )
}

/// The output format.
enum Printer<'t> {
    /// The flag is true for JSON.
    Lines(Box<Lines>, bool),
    Rows(Box<CsvRows<'t>>),
}

struct Job<'t, 's> {
    range: TimeRange,
    /// Nanoseconds that are added to all times.
    offset: i64,
    selection: Option<Selection<'t>>,
    ranges: Option<EventRanges<'t>>,
    /// Number of selected records to pass over.
    skip: u64,
    /// Names addresses, if `--symbols` is given.
    addresses: Option<Addresses<'s>>,
    limit: u64,
    /// Whether a line was printed, or none was requested.
    found: bool,
    printer: Printer<'t>,
    progress: Progress,
}

impl<'t> Job<'t, '_> {
    fn run(
        &mut self,
        set: &'t TraceSet,
        out: &mut Output,
    ) -> Result<Vec<tracebraid_ctf::damage::Damage>, Failure> {
        let stop = output::interruption();
        let mut merged = reader(set, self.range, self.offset, self.needs_past());
        let mut buffer = Buffer::new(PIECE + PIECE / 4);
        if let Printer::Rows(rows) = &self.printer {
            rows.put_header(&mut buffer);
        }
        let mut damage = Vec::new();
        let mut since_check = 0u32;
        while self.limit > 0 {
            let Some((time, reader)) = merged.next() else {
                break;
            };
            let time = with_offset(time, self.offset)?;
            if self.wants(time, reader) && !self.skips() && self.put(&mut buffer, time, reader) {
                self.limit -= 1;
                self.found = true;
            }
            since_check += 1;
            if buffer.len() >= PIECE || since_check >= 1 << 16 {
                since_check = 0;
                if out.write(buffer.bytes())? == Written::Closed {
                    return Ok(damage);
                }
                if stop.load(Ordering::Relaxed) {
                    self.progress.finish();
                    return Err(Failure::interrupted());
                }
                buffer.clear();
                damage.extend(merged.take_damage());
                self.progress.at(|| merged.position());
            }
        }
        out.write(buffer.bytes())?;
        damage.extend(merged.take_damage());
        Ok(damage)
    }

    /// Puts a line; returns false if the event record cannot be decoded.
    #[inline]
    fn put(&mut self, buffer: &mut Buffer, time: Timestamp, reader: &mut StreamReader<'_>) -> bool {
        let is_put = match &mut self.printer {
            Printer::Lines(lines, _) => lines.put(buffer, time, reader),
            Printer::Rows(rows) => rows.put(buffer, time, reader),
        };
        let is_put = is_put.is_ok();
        if let (true, Some(addresses)) = (is_put, &mut self.addresses) {
            // Modules are looked up by the trace's own time, without the offset.
            let told = Timestamp(time.0.saturating_sub(self.offset));
            let trace = reader.trace();
            if let Some(mut event) = reader.event() {
                let names = addresses.names(trace, told, &mut event);
                match self.printer {
                    Printer::Lines(_, json) => symbols::put(buffer, json, &names),
                    Printer::Rows(_) => symbols::put_cell(buffer, &names),
                }
            }
        }
        is_put
    }

    #[inline]
    fn wants(&mut self, time: Timestamp, reader: &mut StreamReader<'_>) -> bool {
        let is_in_time = self.range.contains(time.0);
        let ranges = self.ranges.as_mut();
        let is_in_range = ranges.is_none_or(|ranges| ranges.wants(time, reader, is_in_time));
        let selected = self
            .selection
            .as_mut()
            .is_none_or(|selection| selection.wants(time, reader));
        selected && is_in_range && is_in_time
    }

    /// Passes over the records before that of `--nth`.
    #[inline]
    fn skips(&mut self) -> bool {
        let skips = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        skips
    }

    fn needs_past(&self) -> bool {
        let selection = self.selection.as_ref();
        let ranges = self.ranges.as_ref();
        selection.is_some_and(Selection::needs_past) || ranges.is_some_and(EventRanges::needs_past)
    }
}

/// Reads the packets that may have event records in the range, or that determine the running
/// thread.
fn reader(set: &TraceSet, range: TimeRange, offset: i64, needs_past: bool) -> MergedReader<'_> {
    let time = |time: i64| Timestamp(time.saturating_sub(offset));
    let from = (range.from > i64::MIN && !needs_past).then(|| time(range.from));
    let until = range.to.checked_add(1).map(time);
    MergedReader::within(set, from, until)
}
