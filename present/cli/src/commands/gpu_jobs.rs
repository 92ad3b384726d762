//! Jobs of GPU drivers, as tables of `tracebraid gpu`.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_devices::DeviceAnalysis;
use tracebraid_engine::{Control, Options};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_reports::gpu::GpuJobAnalysis;
use tracebraid_tables::Report;

use crate::commands::report::{self, Subject};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};

/// True if the traces have events of GPU drivers.
pub(super) fn is_possible(set: &TraceSet) -> bool {
    GpuJobAnalysis::new(set, Selection::default())
        .lacks()
        .is_none()
}

/// The jobs; `None` if the traces have no events of GPU drivers.
///
/// # Errors
/// When the user interrupts it.
pub(super) fn report(subject: &mut Subject, args: &FoldArgs) -> Result<Option<Report>, Failure> {
    let selection = Selection {
        window: report::window(subject.range),
        ..Selection::default()
    };
    let analysis = GpuJobAnalysis::new(&subject.set, selection);
    if analysis.lacks().is_some() {
        return Ok(None);
    }
    let until = analysis.input().until();
    let report = fold::run(&subject.set, &analysis, args, until, &mut subject.warnings)?;
    Ok(Some(report))
}

/// The report on calls and commands with the tables of jobs, which are empty without `jobs`.
pub(super) fn joined(
    analysis: &DeviceAnalysis,
    mut report: Report,
    jobs: Option<Report>,
) -> Report {
    let is_of_jobs = jobs.is_some() && !analysis.is_possible();
    let mut jobs = jobs.unwrap_or_else(empty);
    if is_of_jobs {
        report.head = jobs.head;
        // The first total is the subject of the report.
        std::mem::swap(&mut report.totals, &mut jobs.totals);
    }
    report.totals.extend(jobs.totals);
    report.sections.extend(jobs.sections);
    report
}

fn empty() -> Report {
    let set = TraceSet::default();
    let analysis = GpuJobAnalysis::new(&set, Selection::default());
    let outcome = tracebraid_engine::fold(&set, &analysis, Options::default(), &Control::default());
    outcome.map_or_else(|_| Report::default(), |outcome| outcome.report)
}
