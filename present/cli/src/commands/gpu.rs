//! `tracebraid gpu`: device commands and calls of GPU programs.

use std::process::ExitCode;

use clap::Args;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_devices::DeviceAnalysis;
use tracebraid_engine::{Control, Options};
use tracebraid_follow::Window;
use tracebraid_tables::Report;

use crate::commands::report::{self, ShowArgs, Subject};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::lami::Analysis;
use crate::options::{InputArgs, TimeArgs};

/// Show GPU commands: queues, kernels, transfers, API calls
///
/// For each queue, kernel and kind of transfer: how long commands waited in the queue of the host
/// (from queued to submitted) and in that of the device (from submitted to started), and how long
/// they ran. Devices have clocks of their own: their relation to the clock of the trace follows from
/// the commands, with its bounds.
///
/// Needs a recording by `tracebraid record --gpu`, or a trace of THAPI: its OpenCL traces have
/// commands, those of CUDA, HIP, Level Zero and MPI only calls. Commands are those that are complete
/// in the range of time.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid record --gpu -o TRACE -- ./my-gpu-program
  tracebraid gpu TRACE
  tracebraid gpu --table kernels --top 5 TRACE
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
}

pub(super) fn run(args: &GpuArgs) -> Result<ExitCode, Failure> {
    args.show.say_progress()?;
    let mut subject = Subject::open(&args.input, &args.time, args.show.zone)?;
    let analysis = DeviceAnalysis::new(&subject.set, report::window(subject.range));
    if !analysis.is_possible() {
        return Err(Failure::nothing_readable(
            "the traces contain no calls of OpenCL, CUDA or a similar API: record them with `tracebraid record --gpu -- COMMAND`",
        ));
    }
    let report = fold::run(
        &subject.set,
        &analysis,
        &args.fold,
        analysis.until(),
        &mut subject.warnings,
    )?;
    report::show(&args.show, args.input.strict, None, subject, report)
}

/// The LAMI interface.
pub(super) fn lami() -> Analysis {
    Analysis {
        title: "Commands of GPUs: times in queues and executing, transfers, API calls",
        empty,
        lacks: |set| {
            let analysis = DeviceAnalysis::new(set, Window::default());
            (!analysis.is_possible())
                .then_some("the traces contain no calls of OpenCL, CUDA or a similar API")
        },
    }
}

/// The report on an empty set of traces, with all tables.
fn empty() -> Report {
    let set = TraceSet::default();
    let analysis = DeviceAnalysis::new(&set, Window::default());
    let outcome = tracebraid_engine::fold(&set, &analysis, Options::default(), &Control::default());
    outcome.map_or_else(|_| Report::default(), |outcome| outcome.report)
}
