//! `tracebraid report`: the one-page summary.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::{Head, KernelAnalysis, KernelReport, Selection, ThreadFilter};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::overview::{self, Defect, Parts, Recording};
use tracebraid_tables::{Report, Unit, Value, shell_word};

use crate::commands::report::{self, Show};
use crate::failure::Failure;
use crate::lami::Analysis;
use crate::options::{self, InputArgs};
use crate::stack_quality;
use crate::terminal_text;
use crate::time;

/// Summarize a kernel trace on one page, with further commands
///
/// Duration and load, the largest users of CPUs, disks and network, the longest operations and when
/// they occurred, losses, and findings.
///
/// The page combines the reports cpu, io, syscalls, sched, irq, disk and net, in one pass over the
/// trace. Events that were not recorded are left out.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid report ~/lttng-traces/my-session
  tracebraid report --from +1s --to +1s TRACE
  tracebraid report --top 10 --format json TRACE | jq .findings")]
pub(crate) struct OverviewArgs {
    #[command(flatten)]
    report: report::ReportArgs,
}

/// Warning for a trace without any event of the combined reports.
const LACK: &str = "the trace contains no kernel events that this report uses: record them (tracebraid record \
                    --system; or lttng enable-event --kernel --syscall --all, and sched_*, irq_*, \
                    block_rq_*, net_*), or examine its events with `tracebraid count`, `print` and \
                    `stacks`";

/// Default number of rows of each list.
const ROWS: usize = 5;

/// The LAMI interface of the summary.
pub(super) fn lami() -> Analysis {
    Analysis {
        title: "Summary: largest users, longest operations, findings",
        empty: || overview::overview(&Parts::default(), &Recording::default(), ROWS),
        lacks: |set| CpuAnalysis::new(set, Selection::default()).lacks(),
    }
}

pub(super) fn run(args: &OverviewArgs) -> Result<ExitCode, Failure> {
    let mut subject = args.report.open()?;
    let selection = args.report.selection(&subject);
    let analysis = overview::analysis(&subject.set, &selection);
    if analysis.lacks_all() {
        subject.warnings.note(LACK);
    }
    let parts = Parts::from(args.report.fold_all(&mut subject, &analysis, &selection)?);
    let lost = crate::loss::summary(&subject.set)
        .into_iter()
        .map(|lost| Defect {
            what: lost.of_file(),
            command: "info",
        });
    let quality = args.report.stack_quality(&subject)?;
    let stacks = stack_quality::lines(&quality)
        .into_iter()
        .map(|what| Defect {
            what,
            command: "stacks",
        });
    let lost: Vec<Defect> = lost.collect();
    let nothing_lost = lost.is_empty();
    let recording = Recording {
        defects: lost.into_iter().chain(stacks).collect(),
        origin: options::extent_of(&subject.set, 0).map(|(begin, _)| begin),
    };
    let rows = args.report.rows_or(ROWS);
    let mut report = overview::overview(&parts, &recording, rows);
    complete_commands(&mut report, args.report.input());
    let mut title = names(&subject.set);
    if let Some(begin) = report.head.begin {
        title += &format!(", from {}", time::date(begin.0, &subject.zone));
    }
    title += match nothing_lost {
        true => "; the tracer reports no lost event records",
        false => "; the tracer reports lost event records, see the findings",
    };
    args.report.show(subject, Page { report, title })
}

/// Makes the commands of a report complete, so that they can be copied: adds the program's name and
/// the paths of the traces.
fn complete_commands(report: &mut Report, input: &InputArgs) {
    let word = |path: &PathBuf| shell_word(&path.to_string_lossy());
    // Times in the commands are aligned ones.
    let sync = input
        .sync
        .iter()
        .map(|sync| format!("--sync {}", word(sync)));
    let words = sync.chain(input.paths.iter().map(word));
    let paths = words.collect::<Vec<_>>().join(" ");
    for section in &mut report.sections {
        let is_command = section.columns.iter().map(|of| of.unit == Unit::Command);
        let is_command: Vec<bool> = is_command.collect();
        for row in &mut section.rows {
            for (value, _) in row.iter_mut().zip(&is_command).filter(|(_, is)| **is) {
                if let Value::Text(arguments) = value {
                    *arguments = format!("tracebraid {arguments} {paths}");
                }
            }
        }
    }
}

/// Maximum number of traces named in the title; a recording with call stacks consists of dozens.
const MOST_NAMES: usize = 3;

/// Names of the traces, from their tracers or else from their directories.
fn names(set: &TraceSet) -> String {
    let name = |trace: &Trace| {
        let path = trace.known_path();
        let directory = || {
            path?
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        let given = trace.layout.class.env_str("trace_name").map(str::to_owned);
        let name = given
            .filter(|name| !name.is_empty())
            .or_else(directory)
            .unwrap_or_else(|| "a trace".to_owned());
        match trace.layout.class.env_str("hostname") {
            Some(host) => format!("{name} of {host}"),
            None => name,
        }
    };
    let mut names: Vec<String> = set.traces.iter().map(name).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MOST_NAMES);
    if more > 0 {
        names.truncate(MOST_NAMES);
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// The page: the report under a title.
struct Page {
    report: Report,
    title: String,
}

impl Serialize for Page {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.report.serialize(serializer)
    }
}

impl KernelReport for Page {
    fn head(&self) -> &Head {
        self.report.head()
    }

    fn is_empty(&self) -> bool {
        self.report.is_empty()
    }

    fn lacks_threads(&self, filter: &ThreadFilter) -> bool {
        self.report.lacks_threads(filter)
    }

    fn truncate(&mut self, rows: usize) {
        self.report.truncate(rows);
    }
}

impl Show for Page {
    fn summary(&self) -> String {
        terminal_text::paragraph(&self.title) + &self.report.summary()
    }

    fn tables(&self, rows: usize, zone: &TimeZone) -> Vec<String> {
        self.report.tables(rows, zone)
    }

    fn csv(&self, rows: usize) -> String {
        self.report.csv(rows)
    }

    fn sections(&mut self) -> &mut Report {
        &mut self.report
    }
}
