//! `tracebraid stacks`: functions that used the CPU or waited.

mod data;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tracebraid_ctf::schema::FieldClass;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::Head;
use tracebraid_language::glob::Glob;
use tracebraid_profile::{KERNEL_SUFFIX, Met, Profile, Stack, Sums};

use crate::commands::data_tables::TablesArgs;
use crate::commands::report;
use crate::debug_info;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options::{self, InputArgs, SelectArgs, TimeArgs, ZoneArgs};
use crate::output::Output;
use crate::stack_quality;
use crate::table::{self, Column};
use crate::terminal_text;
use crate::units::{self, grouped};
use crate::warnings::Warnings;

/// Show which functions used CPU time and which waited
///
/// Uses the call stacks in the trace (`tracebraid record --stacks`, or `perf record -g`). A wait is
/// the time off the CPU, from the switch away from the thread until it runs again: it includes the
/// time in the run queue after the wake-up, which `tracebraid waits` and `critical-path` show separately.
/// Names of kernel functions end in `_[k]`; `bpf_*` functions are eBPF programs of the recorder or
/// another tool. Functions are named from the files of the programs, if these are unchanged, and
/// from debug information found by build id. In perf.data, samples of cpu-clock, cycles or another
/// event count as CPU time, and the call chains of sched_switch as waits.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid record --stacks -o TRACE -- ./my-program
  tracebraid stacks TRACE
  tracebraid stacks --format folded TRACE > stacks.folded
  tracebraid stacks --format folded --waits TRACE \\
      | flamegraph.pl --countname us > waits.svg
  perf record -a -g -e cpu-clock -e sched:sched_switch sleep 5
  tracebraid stacks perf.data")]
pub(crate) struct StacksArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    zone: ZoneArgs,
    /// Limit each table to N rows; 0 for all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    tables: TablesArgs,
    /// With --format folded: write the stacks of waits, in microseconds off the CPU
    #[arg(long)]
    waits: bool,
    /// Additional directory with debug information (below DIR/.build-id)
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Additional directory with maps of just-in-time compilers (perf-PID.map); a recording
    /// contains those of the programs that it recorded
    #[arg(long, value_name = "DIR")]
    perf_map_dir: Vec<PathBuf>,
    #[command(flatten)]
    fold: FoldArgs,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables
    Table,
    /// JSON
    Json,
    /// Comma-separated values
    Csv,
    /// Folded stacks: functions from the outermost to the innermost, and the number of CPU samples
    Folded,
}

pub(super) fn run(args: &StacksArgs) -> Result<ExitCode, Failure> {
    let set = options::open(&args.input, &args.fold)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    warnings.recorder(&set, &args.select);
    let profile = profile(&set, args)?;
    show(args, &profile)?;
    // Text tables begin with these lines; other formats are read by programs and must not contain
    // them.
    if args.format != Format::Table {
        let lines = stack_quality::lines(&profile.quality);
        lines.iter().for_each(|line| warnings.note(line));
        let is_shown = match args.format {
            Format::Folded => args.waits,
            format => format == Format::Csv,
        };
        let short_waits = short_waits(&profile).filter(|_| is_shown);
        short_waits.iter().for_each(|line| warnings.note(line));
    }
    Ok(warnings.finish(args.input.strict))
}

impl From<Format> for report::Format {
    fn from(format: Format) -> report::Format {
        match format {
            Format::Table | Format::Folded => report::Format::Table,
            Format::Json => report::Format::Json,
            Format::Csv => report::Format::Csv,
        }
    }
}

fn show(args: &StacksArgs, profile: &Profile) -> Result<(), Failure> {
    if args.tables.are_wanted(args.format) {
        let tables = data::tables(profile);
        return args.tables.print(args.format, &Head::default(), tables);
    }
    let mut output = Output::open(None)?;
    match args.format {
        Format::Folded => output.write(folded(profile, args.waits).as_bytes())?,
        Format::Json => output.write_json(profile)?,
        _ => output.write(tables(profile, args.top).as_bytes())?,
    };
    Ok(())
}

fn profile(set: &TraceSet, args: &StacksArgs) -> Result<Profile, Failure> {
    let mut symbols = debug_info::open(&args.debug_dir);
    let range = args.time.range(set, &args.zone.zone(), 0)?;
    let wanted = Wanted::new(set, &args.select);
    let is_choice = std::cell::Cell::new(false);
    let wants = |met: &Met<'_>| {
        is_choice.set(true);
        (range.from..=range.to).contains(&met.time.0) && wanted.wants(met)
    };
    let profile = fold::watched(&args.fold, |control| {
        let how = (args.fold.options(None), control);
        Profile::new(set, &mut symbols, &args.perf_map_dir, how, &wants)
    });
    let profile = profile.map_err(Failure::from)?;
    if profile.processes.is_empty() && is_choice.get() {
        return Err(Failure::nothing_readable(
            "no call stack matches the selection",
        ));
    }
    if profile.processes.is_empty() {
        return Err(Failure::nothing_readable(
            match profile.quality.limits.depth.is_some() || were_wanted(set) {
                true => {
                    "the recording of call stacks was enabled, but is empty: no program used a full sampling period of CPU time or \
                 waited long enough, or waits could not be recorded"
                }
                false if profile.unended_waits > 0 => why_unended(&profile),
                false if has_call_chains(set) => {
                    "the call chains in the trace are neither CPU samples nor waits: record cpu-clock, cycles or sched:sched_switch \
                 with `perf record -g`"
                }
                false => {
                    "the trace contains no call stacks: record them with `tracebraid record --stacks` or `perf record -g`"
                }
            },
        ));
    }
    Ok(profile)
}

/// Reason why waits in a recording of perf have no end.
fn why_unended(profile: &Profile) -> &'static str {
    match profile.is_switch_sampled {
        true => {
            "perf sampled the switches, since -F applies to sched_switch too: record without -F"
        }
        false => {
            "no switch back to the waiting thread was recorded (use perf record -a or --switch-events)"
        }
    }
}

/// Whether events of perf contain call chains.
fn has_call_chains(set: &TraceSet) -> bool {
    let streams = set
        .traces
        .iter()
        .flat_map(|trace| &trace.layout.class.streams);
    let payloads = streams
        .flat_map(|stream| &stream.events)
        .filter_map(|event| event.payload.as_ref());
    let mut payloads = payloads.filter_map(|payload| match payload {
        FieldClass::Struct(members) => Some(&members.members),
        _ => None,
    });
    payloads.any(|members| {
        members
            .iter()
            .any(|member| &*member.name == "perf_callchain")
    })
}

/// Whether the options of the recording requested call stacks of the command. The traces do not
/// show it: kernel traces contain all classes, and traces of programs only those that occurred.
fn were_wanted(set: &TraceSet) -> bool {
    let paths = set.traces.iter().flat_map(|trace| &trace.paths);
    // Traces are DIR/kernel and DIR/ust/pid/PROCESS.
    let mut recordings = paths.flat_map(|path| [1, 3].map(|nth| path.ancestors().nth(nth)));
    let wants = |recording: &Path| {
        let options = crate::unfinished::options(recording).unwrap_or_default();
        options.lines().any(|line| line == "enable = tracebraid:*")
    };
    recordings.any(|recording| recording.is_some_and(wants))
}

/// Selection of call stacks.
pub(super) struct Wanted<'a> {
    select: &'a SelectArgs,
    cpus: Vec<u64>,
    names: Vec<Glob>,
    without: Vec<(u32, i64)>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(set: &TraceSet, select: &'a SelectArgs) -> Wanted<'a> {
        Wanted {
            select,
            cpus: crate::numbers::all(&select.cpu).into_iter().collect(),
            names: options::globs(&select.procname),
            without: match select.no_recorder {
                true => options::recorders(set),
                false => Vec::new(),
            },
        }
    }

    pub(super) fn wants(&self, met: &Met<'_>) -> bool {
        let is_among = |wanted: &[i64], number: Option<i64>| {
            wanted.is_empty() || number.is_some_and(|number| wanted.contains(&number))
        };
        is_among(&self.select.pid, met.pid)
            && is_among(&self.select.tid, met.tid)
            && (self.cpus.is_empty() || met.cpu.is_some_and(|cpu| self.cpus.contains(&cpu)))
            && (self.names.is_empty()
                || self
                    .names
                    .iter()
                    .any(|glob| glob.matches(met.name.as_bytes())))
            && !met
                .pid
                .is_some_and(|pid| self.without.contains(&(met.trace, pid)))
    }
}

fn folded(profile: &Profile, waits: bool) -> String {
    let number = |stack: &Stack| match waits {
        true => stack.sums.wait_ns / 1000,
        false => stack.sums.cpu_samples,
    };
    let mut text = String::new();
    for stack in profile.stacks.iter().filter(|stack| number(stack) > 0) {
        // Both characters have a meaning in folded stacks.
        let plain = |name: &String| name.replace(';', ":").replace('\n', " ");
        let functions: Vec<String> = stack.functions.iter().map(plain).collect();
        text += &format!(
            "{};{} {}\n",
            stack.process,
            functions.join(";"),
            number(stack)
        );
    }
    text
}

fn tables(profile: &Profile, top: usize) -> String {
    let rows = if top == 0 { usize::MAX } else { top };
    let summary = format!(
        "{} of CPU time in {}, {} of waits in {}",
        units::duration(profile.total.cpu_ns),
        units::number_of(profile.total.cpu_samples, "sample", "samples"),
        units::duration(profile.total.wait_ns),
        units::number_of(profile.total.waits, "stack", "stacks")
    );
    let short_waits = short_waits(profile).map(|line| terminal_text::paragraph(&line));
    let missing = profile.missing.iter().map(|missing| {
        let (what, remedy) = match missing.waits {
            true => (
                "waits",
                "CAP_PERFMON, or kernel.perf_event_paranoid of at most 1",
            ),
            false => ("CPU time", "kernel.perf_event_paranoid of at most 2"),
        };
        let error = std::io::Error::from_raw_os_error(missing.error);
        let text = format!(
            "{what} could not be recorded in some processes ({error}): that needs {remedy}"
        );
        terminal_text::paragraph(&text)
    });
    let unended = match profile.unended_waits {
        0 => String::new(),
        count => {
            let waits = units::number_of(count, "wait is", "waits are");
            terminal_text::paragraph(&format!("{waits} left out: {}", why_unended(profile)))
        }
    };
    let untimed = match (profile.total.cpu_ns, profile.total.cpu_samples) {
        (0, 1..) => terminal_text::paragraph(
            "the CPU time of a sample is unknown (neither a clock event nor cycles with -F): --format folded shows the number \
             of samples of each stack",
        ),
        _ => String::new(),
    };
    let quality = stack_quality::lines(&profile.quality);
    let quality = quality.iter().map(|line| terminal_text::paragraph(line));
    [
        terminal_text::paragraph(&summary)
            + &in_ebpf(profile)
            + &short_waits.unwrap_or_default()
            + &missing.collect::<String>()
            + &quality.collect::<String>()
            + &unended
            + &untimed,
        processes(profile, rows),
        functions(profile, rows),
        waits(profile, rows),
    ]
    .join("\n")
}

/// A line on waits that are too short to have a stack.
fn short_waits(profile: &Profile) -> Option<String> {
    let limits = profile.quality.limits;
    let shortest = limits.threshold_ns.filter(|shortest| *shortest > 1)?;
    Some(format!(
        "waits shorter than {} have no stack (record all with --stacks=threshold_us=0); critical-path includes them",
        units::duration(shortest)
    ))
}

/// A line on CPU time in eBPF programs; without such time, no line. Tracers run such programs inside
/// the traced functions: their time is not the program's own.
fn in_ebpf(profile: &Profile) -> String {
    let is_of_ebpf = |name: &String| {
        let name = name.strip_suffix(KERNEL_SUFFIX);
        name.is_some_and(|name| name.starts_with("bpf_prog_") || name.starts_with("bpf_trace_run"))
    };
    let stacks = profile.stacks.iter();
    let stacks = stacks.filter(|stack| stack.functions.iter().any(is_of_ebpf));
    match stacks.map(|stack| stack.sums.cpu_ns).sum() {
        0 => String::new(),
        time => terminal_text::paragraph(&format!(
            "{} ({}) of the CPU time was spent in eBPF programs (bpf_*)",
            units::duration(time),
            units::percent(time, profile.total.cpu_ns)
        )),
    }
}

fn processes(profile: &Profile, rows: usize) -> String {
    let mut columns = vec![
        Column::number("PID"),
        Column::text("Process"),
        Column::number("CPU"),
        Column::number("Waits"),
        Column::number("Off CPU"),
    ];
    let completeness = &profile.quality.completeness;
    let has_others = completeness.cut + completeness.broken > 0;
    if has_others {
        columns.extend(["Stacks", "Cut", "Broken"].map(Column::number));
    }
    let row = |process: &tracebraid_profile::Process| {
        let pid = process
            .pid
            .map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let Sums {
            cpu_ns,
            waits,
            wait_ns,
            ..
        } = process.sums;
        let mut row = vec![
            pid,
            process.name.clone(),
            units::duration(cpu_ns),
            grouped(waits),
            units::duration(wait_ns),
        ];
        if has_others {
            let of = &process.completeness;
            let not_zero = |number: u64| {
                if number == 0 {
                    String::new()
                } else {
                    grouped(number)
                }
            };
            row.extend([of.all(), of.cut, of.broken].map(not_zero));
        }
        row
    };
    table::render(&columns, profile.processes.iter().take(rows).map(row))
}

fn functions(profile: &Profile, rows: usize) -> String {
    let columns = [
        Column::text("Function"),
        Column::number("Own CPU"),
        Column::number("Of total"),
        Column::number("With callees"),
        Column::number("Of total"),
    ];
    let row = |function: &tracebraid_profile::Function| {
        let share = |part: u64| units::percent(part, profile.total.cpu_ns);
        let (own, total) = (function.own.cpu_ns, function.total.cpu_ns);
        vec![
            function.name.clone(),
            units::duration(own),
            share(own),
            units::duration(total),
            share(total),
        ]
    };
    let used = profile
        .functions
        .iter()
        .filter(|function| function.total.cpu_ns > 0);
    table::render(&columns, used.take(rows).map(row))
}

/// The innermost function and its callers, from a stack that begins with the outermost function. Of
/// kernel functions, only the first is kept if there are others.
fn innermost(functions: &[String]) -> Vec<&str> {
    let in_kernel = |function: &&str| function.ends_with(KERNEL_SUFFIX);
    let all = || functions.iter().rev().map(String::as_str);
    let mut own = all().filter(|function| !in_kernel(function)).peekable();
    let kernels = if own.peek().is_some() { 1 } else { 4 };
    all()
        .take_while(in_kernel)
        .take(kernels)
        .chain(own)
        .take(4)
        .collect()
}

/// The longest waits by stack, shown from the function that is nearest to the program's own code.
fn waits(profile: &Profile, rows: usize) -> String {
    let columns = [
        Column::number("Off CPU"),
        Column::number("Waits"),
        Column::text("Process"),
        Column::text("Function, called by"),
    ];
    // Stacks that differ only in frames that are not shown would be equal rows.
    let mut shown: BTreeMap<(&str, Vec<&str>), (u64, u64)> = BTreeMap::new();
    for stack in profile.stacks.iter().filter(|stack| stack.sums.waits > 0) {
        let key = (stack.process.as_str(), innermost(&stack.functions));
        let (time, waits) = shown.entry(key).or_default();
        *time += stack.sums.wait_ns;
        *waits += stack.sums.waits;
    }
    let mut shown: Vec<_> = shown.into_iter().collect();
    shown.sort_by_key(|(_, (time, _))| std::cmp::Reverse(*time));
    let row = |((process, innermost), (time, waits)): &((&str, Vec<&str>), (u64, u64))| {
        vec![
            units::duration(*time),
            grouped(*waits),
            (*process).to_owned(),
            innermost.join(" < "),
        ]
    };
    table::render(&columns, shown.iter().take(rows).map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_time_are_explained() {
        let profile = |cpu_samples, cpu_ns| Profile {
            total: Sums {
                cpu_samples,
                cpu_ns,
                ..Sums::default()
            },
            ..Profile::default()
        };
        let says =
            |profile: Profile| tables(&profile, 10).contains("the CPU time of a sample is unknown");
        assert!(says(profile(8, 0)));
        assert!(!says(profile(8, 1)) && !says(profile(0, 0)));
    }
}
