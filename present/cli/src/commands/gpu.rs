//! `tracebraid gpu`: device commands and calls of GPU programs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_devices::{DeviceAnalysis, HostDid, Keep};
use tracebraid_engine::{Control, Options};
use tracebraid_export::devices::perfetto;
use tracebraid_follow::{KernelAnalysis, Selection, Window};
use tracebraid_graph::{Graph, GraphAnalysis, NO_SWITCHES};
use tracebraid_tables::Report;

use crate::commands::devices;
use crate::commands::gpu_jobs;
use crate::commands::report::{self, ShowArgs, Subject};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::lami::Analysis;
use crate::options::{InputArgs, TimeArgs};
use crate::output::{self, say};
use crate::spare;
use crate::units::number_of;

/// Show GPU commands: queues, kernels, transfers, API calls
///
/// For each queue, kernel and kind of transfer: how long commands waited in the queue of the host
/// (from queued to submitted) and in that of the device (from submitted to started), and how long
/// they executed. Devices have clocks of their own: commands bound their relation to the clock of
/// the trace.
///
/// Needs a recording by `tracebraid record --gpu`, an export of Nsight Systems, or a trace of THAPI:
/// its traces of OpenCL and Level Zero have commands, those of CUDA only their durations, those of HIP
/// and MPI only calls. Commands count if their completion is recorded in the time range.
///
/// Kernel traces with the events of GPU drivers (`tracebraid record --kernel gpu`, or imported from
/// ftrace or perf) show the jobs of all programs, graphics included: tables rings, jobs and
/// fence_waits.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid record --gpu -o TRACE -- ./my-gpu-program
  tracebraid gpu TRACE
  tracebraid gpu --table kernels --top 5 TRACE
  tracebraid gpu --perfetto gpu.perfetto-trace TRACE
  tracebraid gpu --format json TRACE | jq '.kernels[] | {kernel, total_ns}'")]
pub(crate) struct GpuArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    fold: FoldArgs,
    #[command(flatten)]
    show: ShowArgs,
    /// Write commands, calls and, where recorded, scheduling to FILE as a Perfetto trace
    /// (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

pub(super) fn run(args: &GpuArgs) -> Result<ExitCode, Failure> {
    args.show.say_progress()?;
    let mut subject = Subject::open(&args.input, &args.fold, &args.time, args.show.zone)?;
    let mut analysis = DeviceAnalysis::new(&subject.set, report::window(subject.range));
    let jobs = gpu_jobs::report(&mut subject, &args.fold)?;
    if !analysis.is_possible() && jobs.is_none() {
        return Err(Failure::nothing_readable(
            "the traces contain neither calls of OpenCL, CUDA or a similar API nor jobs of GPU drivers: record them with `tracebraid record --gpu -- COMMAND`",
        ));
    }
    if let Some(file) = &args.perfetto {
        spare::check(file, &subject.set, &args.input.read())?;
        analysis = analysis.keeping(Keep::All);
    }
    let found = devices::read(
        &mut analysis,
        (&subject.set, &mut subject.warnings),
        &args.fold,
    )?;
    let late = analysis.late(&found);
    let needs_kernel = !late.is_empty() || args.perfetto.is_some();
    let graph = if needs_kernel {
        graph(args, &mut subject)?
    } else {
        None
    };
    if let Some(file) = &args.perfetto {
        let exported = analysis.exported(&found);
        if exported.without_clock > 0 {
            let commands = number_of(exported.without_clock, "command is", "commands are");
            let note = format!(
                "{commands} not in {}: the relation of the device's clock to that of the trace is unknown",
                file.display()
            );
            subject.warnings.note(&note);
        }
        output::replace(file, &perfetto(&exported, graph.as_ref()))?;
        say!("wrote {}: open it in ui.perfetto.dev", file.display());
    }
    let did = graph.map_or_else(HostDid::default, |graph| analysis.explain(&late, &graph));
    let report = gpu_jobs::joined(&analysis, analysis.report(&found, &did), jobs);
    let window = report::window(subject.range);
    let is_all = window.from.is_none() && window.to.is_none();
    if let Some(why) = why_empty(&report).filter(|_| is_all) {
        subject.warnings.note(why);
    }
    report::show(&args.show, args.input.strict, None, subject, report)
}

/// The reason why a report has no commands; `None` if it has commands.
fn why_empty(report: &Report) -> Option<&'static str> {
    let tables = report.sections.iter().filter(|of| !of.rows.is_empty());
    let mut tables = tables.map(|table| table.key);
    match (tables.next(), tables.next()) {
        // A trace with the classes of GPU drivers, of a program that uses no GPU.
        (None, _) => Some(
            "neither calls of OpenCL, CUDA or a similar API nor jobs of GPU drivers were recorded",
        ),
        (Some("functions"), None) => Some(
            "no commands of devices were recorded: `--table functions` shows the calls, with the number of their errors",
        ),
        _ => None,
    }
}

/// The execution graph, if the traces contain scheduling.
fn graph(args: &GpuArgs, subject: &mut Subject) -> Result<Option<Graph>, Failure> {
    let selection = Selection {
        window: report::window(subject.range),
        behind: Selection::BEHIND_NS,
        ..Selection::default()
    };
    let analysis = GraphAnalysis::new(&subject.set, selection);
    if analysis.lacks() == Some(NO_SWITCHES) {
        return Ok(None);
    }
    let until = analysis.input().until();
    let graph = fold::run(
        &subject.set,
        &analysis,
        &args.fold,
        until,
        &mut subject.warnings,
    )?;
    Ok(Some(graph))
}

/// The LAMI interface.
pub(super) fn lami() -> Analysis {
    Analysis {
        title: "Commands of GPUs: times in queues and executing, transfers, API calls",
        empty,
        lacks: |set| {
            let analysis = DeviceAnalysis::new(set, Window::default());
            let has_any = analysis.is_possible() || gpu_jobs::is_possible(set);
            (!has_any).then_some(
                "the traces contain neither calls of OpenCL, CUDA or a similar API nor jobs of GPU drivers",
            )
        },
    }
}

/// The report on an empty set of traces, with all tables.
fn empty() -> Report {
    let set = TraceSet::default();
    let analysis = DeviceAnalysis::new(&set, Window::default());
    let outcome = tracebraid_engine::fold(&set, &analysis, Options::default(), &Control::default());
    outcome.map_or_else(
        |_| Report::default(),
        |outcome| {
            let report = analysis.report(&outcome.report, &HostDid::default());
            gpu_jobs::joined(&analysis, report, None)
        },
    )
}
