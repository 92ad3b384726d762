//! What the reports' commands share.

use clap::Args;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_filter::glob::Glob;
use tracebraid_reports::kernel::{CpuSet, Host, Thread, ThreadFilter, Window};

use crate::options::{ReportFormat, SelectArgs, TimeRange};

/// How to show a report.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Show only so many processes, threads and system calls (in tables for people 20 if not given);
    /// other tables are always whole
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// How to show it
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ReportFormat,
    /// Read times in UTC, not in the local time zone
    #[arg(long)]
    pub(super) clock_gmt: bool,
}

/// Rows of a table that nobody asked for a number of.
const ROWS: usize = 20;

impl ShowArgs {
    /// Rows of a table.
    pub(super) fn rows(&self) -> usize {
        self.top.unwrap_or(if self.format == ReportFormat::Table {
            ROWS
        } else {
            usize::MAX
        })
    }
}

/// The range as reports take it: its end does not belong to it.
pub(super) fn window(range: TimeRange) -> Window {
    Window {
        from: (range.from > i64::MIN).then_some(Timestamp(range.from)),
        to: range.to.checked_add(1).filter(|&to| to < i64::MAX).map(Timestamp),
    }
}

/// The CPUs that were chosen.
pub(super) fn cpus(args: &SelectArgs) -> CpuSet {
    let numbers = args.cpu.iter().filter_map(|&cpu| u32::try_from(cpu).ok());
    CpuSet((!args.cpu.is_empty()).then(|| numbers.collect()))
}

/// The threads that were chosen.
pub(super) fn threads(args: &SelectArgs) -> ThreadFilter {
    let names = args.procname.iter().map(|name| Glob::new(name)).collect();
    ThreadFilter {
        tids: args.tid.clone(),
        pids: args.pid.clone(),
        names,
    }
}

/// The machine of a row, where there are several.
pub(super) fn host(hosts: &[Host], trace: u32) -> Option<String> {
    let host = hosts
        .iter()
        .find(|host| host.trace == trace)
        .filter(|_| hosts.len() > 1)?;
    Some(host.name.clone().unwrap_or_else(|| format!("trace {trace}")))
}

/// An id, or what stands for one that is not known.
pub(super) fn id(id: Option<i32>) -> String {
    id.map_or_else(|| "?".to_owned(), |id| id.to_string())
}

/// An id in a machine's table: nothing if it is not known.
pub(super) fn plain_id(id: Option<i32>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

/// A thread's name, with the machine where there are several.
pub(super) fn name(hosts: &[Host], thread: &Thread) -> String {
    let name = thread.name.clone().unwrap_or_else(|| unnamed(thread.tid));
    with_host(hosts, thread.trace, name)
}

/// A name with the machine where there are several.
pub(super) fn with_host(hosts: &[Host], trace: u32, name: String) -> String {
    match host(hosts, trace) {
        Some(host) => format!("{name} @ {host}"),
        None => name,
    }
}

/// What stands for the name of one that has none.
pub(super) fn unnamed(tid: Option<i32>) -> String {
    (if tid.is_none() {
        "(thread not known)"
    } else {
        "(name not known)"
    })
    .to_owned()
}

/// A line about the rows that are not shown.
pub(super) fn more(shown: usize, all: usize) -> String {
    if all > shown {
        format!("  ... and {} more\n", all - shown)
    } else {
        String::new()
    }
}
