//! `tracebraid memory`: page allocations, kernel objects, page faults, page cache, reclaim.

use std::process::ExitCode;

use clap::Args;
use tracebraid_follow::{Limits, Views};
use tracebraid_reports::memory::{GROUPINGS, MemoryAnalysis, MemoryOptions};

use crate::commands::histograms::{self, GroupArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, ViewArgs};
use crate::failure::Failure;

/// Show page allocations and page faults by process and thread
///
/// Kernel objects, the page cache and reclaim are shown where they were recorded. `--view top`
/// lists the largest allocations of pages, `--view log` every allocation and every release, `--view
/// freq` a histogram of their sizes.
///
/// Pages need kmem_mm_page_alloc and kmem_mm_page_free (mm_page_alloc and mm_page_free in traces of
/// perf); faults need x86_exceptions_page_fault_user and x86_exceptions_page_fault_kernel;
/// sched_switch or the tid context assigns them to threads. An event is charged to the thread that
/// runs when it occurs.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    mut_arg("view", views::only_stats),
    mut_arg("min", views::least_size),
    mut_arg("max", views::greatest_size),
    after_help = "Examples:
  tracebraid memory ~/lttng-traces/my-session
  tracebraid memory --procname 'nginx*' --top 5 TRACE
  tracebraid memory --view top,freq TRACE
  tracebraid memory --by process TRACE
  tracebraid memory --view log --min 64k TRACE
  tracebraid memory --from 10:30:00 --to 10:30:05 TRACE
  tracebraid memory --format json TRACE \\
      | jq '.threads[] | select(.balance_pages > 1000)'"
)]
pub(crate) struct MemoryArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    groups: GroupArgs,
}

pub(super) fn run(args: &MemoryArgs) -> Result<ExitCode, Failure> {
    views::run::<MemoryAnalysis>(
        &args.report,
        &args.views,
        args.groups.histograms(),
        |views| MemoryOptions {
            sizes: views.limits,
            views: Views {
                limits: Limits::default(),
                ..views
            },
        },
    )
}
