//! `tracebraid periods`: periods that the user defines.

use std::process::ExitCode;

use clap::Args;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_follow::{Buckets, CpuSet};
use tracebraid_language::periods::Periods;
use tracebraid_periods::{Asked, MOST_OPEN, Order, PeriodAnalysis, rare_totals};
use tracebraid_tables::{Report, View};

use crate::commands::definitions::DefinitionArgs;
use crate::commands::histograms::BucketArgs;
use crate::commands::report::{self, ShowArgs, Subject};
use crate::commands::views::ViewArgs;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::lami::Analysis;
use crate::numbers::{self, Numbers};
use crate::options::{InputArgs, TimeArgs};

/// Show periods that you define: counts, durations, nesting
///
/// A period begins at an event record for which one condition holds and ends at one for which
/// another holds. Conditions are those of `print --filter`; fields can also be compared with those
/// of the event that began the period ($begin.FIELD) or its parent ($parent.FIELD). Works with
/// traces of any tracer, kernel or user space.
///
/// `--view top` lists the longest periods, `--view log` every period, `--view freq` a histogram of
/// their durations.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid periods --file my.periods --view log --order-by hierarchy TRACE

  # how long each thread ran without a switch
  tracebraid periods --group-by run.tid \\
      --period 'run : sched_switch : sched_switch && cpu == $begin.cpu' \\
      --captures 'run : comm = next_comm, tid = next_tid' TRACE

  # requests of a server, by their id
  tracebraid periods --view stats,top,freq \\
      --period 'request : srv:begin : srv:end && id == $begin.id' TRACE")]
pub(crate) struct PeriodsArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    definitions: DefinitionArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    buckets: BucketArgs,
    /// Group by captured values (PERIOD.CAPTURE), or by cpu
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    group_by: Vec<String>,
    /// For each period of this name, summarize the other periods within it, one row for each name
    /// (adds the view log)
    #[arg(long, value_name = "PERIOD")]
    aggregate_by: Option<String>,
    /// Print a histogram for each group, with the same buckets for all groups of a period (adds the
    /// view freq; needs --group-by)
    #[arg(long, visible_alias = "freq-uniform", requires = "group_by")]
    freq_series: bool,
    /// Show only these periods; others can still contain them
    #[arg(long, value_name = "PERIOD", value_delimiter = ',')]
    select: Vec<String>,
    /// Order of the log
    #[arg(long, value_enum, default_value_t)]
    order_by: OrderName,
    /// Select events by CPU: numbers and ranges, such as 0-3,7
    #[arg(long, value_name = "CPU", value_delimiter = ',', value_parser = numbers::cpus)]
    cpu: Vec<Numbers<u64>>,
    /// Maximum number of periods open at once
    #[arg(long, value_name = "N", default_value_t = MOST_OPEN)]
    max_open: usize,
    #[command(flatten)]
    fold: FoldArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Orders of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum OrderName {
    /// By beginning
    #[default]
    Time,
    /// Each period followed by the periods within it
    Hierarchy,
    /// By duration, longest first
    Duration,
}

pub(super) fn run(args: &PeriodsArgs) -> Result<ExitCode, Failure> {
    args.show.say_progress()?;
    args.views.check()?;
    let periods = args.definitions.periods()?;
    let mut subject = Subject::open(&args.input, &args.fold, &args.time, args.show.zone)?;
    let mut asked = args.asked(&subject);
    let mut report = args.fold(&mut subject, &periods, &asked, true)?;
    let has_histograms = args.views.has_histograms() || args.freq_series;
    let is_second = asked.buckets == Buckets::Linear && has_histograms;
    if is_second && !report.ranges.is_empty() {
        asked.ranges = Some(std::mem::take(&mut report.ranges));
        let second = args.fold(&mut subject, &periods, &asked, false)?;
        report.sections.extend(second.sections);
    }
    report::show(&args.show, args.input.strict, None, subject, report)
}

impl PeriodsArgs {
    fn asked(&self, subject: &Subject) -> Asked {
        let cpus = numbers::all(&self.cpu).into_iter();
        let cpus = cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
        let mut views = self.views.views();
        if self.aggregate_by.is_some() && !views.contains(&View::Log) {
            views.push(View::Log);
        }
        Asked {
            window: report::window(subject.range),
            cpus: CpuSet((!self.cpu.is_empty()).then_some(cpus)),
            views,
            rows: self.show.longest(),
            limits: self.views.limits(),
            select: self.select.clone(),
            group_by: self.group_by.clone(),
            order: match self.order_by {
                OrderName::Time => Order::Time,
                OrderName::Hierarchy => Order::Hierarchy,
                OrderName::Duration => Order::Duration,
            },
            aggregate_by: self.aggregate_by.clone(),
            series: self.freq_series,
            most_open: self.max_open,
            buckets: self.buckets.buckets(),
            ranges: None,
        }
    }

    fn fold(
        &self,
        subject: &mut Subject,
        periods: &Periods,
        asked: &Asked,
        is_first: bool,
    ) -> Result<Report, Failure> {
        let analysis =
            PeriodAnalysis::new(&subject.set, periods.clone(), asked).map_err(Failure::usage)?;
        if is_first {
            for doubt in analysis.doubts() {
                subject.warnings.note(doubt);
            }
        }
        let until = analysis.until();
        fold::run(
            &subject.set,
            &analysis,
            &self.fold,
            until,
            &mut subject.warnings,
        )
    }
}

/// The LAMI interface. Columns do not depend on the definitions, and periods may occur in any
/// trace.
pub(super) fn lami() -> Analysis {
    Analysis {
        title: "Periods that users define",
        empty,
        lacks: |_| None,
    }
}

/// The report on an empty set of traces, with all tables.
fn empty() -> Report {
    let definitions = ["outer : x == 1", "inner(outer) : x == 2"];
    let mut periods = Periods::default();
    if definitions.iter().any(|text| periods.period(text).is_err()) {
        return Report::default();
    }
    let report = || {
        let asked = Asked {
            views: View::ALL.to_vec(),
            group_by: vec!["cpu".to_owned()],
            aggregate_by: Some("outer".to_owned()),
            series: true,
            ..Asked::default()
        };
        let set = TraceSet::default();
        let analysis = PeriodAnalysis::new(&set, periods.clone(), &asked).ok()?;
        let outcome =
            tracebraid_engine::fold(&set, &analysis, Options::default(), &Control::default());
        outcome.ok().map(|outcome| outcome.report)
    };
    let mut all = report().unwrap_or_default();
    all.totals.extend(rare_totals(0, 0));
    all
}
