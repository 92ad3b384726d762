//! The commands, one file each, and the code that they share.

mod cells;
mod compare;
mod completions;
mod contexts;
mod count;
mod cpu;
mod critical_path;
mod data_tables;
mod definitions;
mod devices;
mod disk;
mod executions;
mod files;
mod gpu;
mod gpu_jobs;
mod histograms;
mod history;
mod import;
mod info;
mod io;
mod irq;
mod levels;
mod man;
mod memory;
mod net;
mod overview;
mod periods;
mod print;
mod probes;
mod processes;
mod record;
mod report;
mod sched;
mod schema;
mod sections;
mod session;
mod sql;
mod stacks;
mod sync;
mod syscalls;
mod tables;
mod tree;
mod view;
mod views;
mod waits;

use std::process::ExitCode;

use crate::cli::Command;
use crate::failure::Failure;
use crate::lami::Analysis;

/// Runs a command.
///
/// # Errors
/// When the command fails.
pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Import(args) => import::run(args),
        Command::Info(args) => info::run(args),
        Command::Print(args) => print::run(args),
        Command::Count(args) => count::run(args),
        Command::Probes(args) => probes::run(args),
        Command::Cpu(args) => cpu::run(args),
        Command::CriticalPath(args) => critical_path::run(args),
        Command::Disk(args) => disk::run(args),
        Command::Files(args) => files::run(args),
        Command::Executions(args) => executions::run(args),
        Command::Compare(args) => compare::run(args),
        Command::View(args) => view::run(args),
        Command::History(args) => history::run(args),
        Command::Io(args) => io::run(args),
        Command::Irq(args) => irq::run(args),
        Command::Levels(args) => levels::run(args),
        Command::Sched(args) => sched::run(args),
        Command::Net(args) => net::run(args),
        Command::Processes(args) => processes::run(args),
        Command::Record(args) => record::run(args),
        Command::Start(args) => session::start(args),
        Command::Stop(args) => session::stop(args),
        Command::Status(args) => session::status(args),
        Command::Sql(args) => sql::run(args),
        Command::Stacks(args) => stacks::run(args),
        Command::Sync(args) => sync::run(args),
        Command::List(args) => session::list(args),
        Command::Snapshot(args) => session::snapshot(args),
        Command::Rotate(args) => session::rotate(args),
        Command::Report(args) => overview::run(args),
        Command::Syscalls(args) => syscalls::run(args),
        Command::Waits(args) => waits::run(args),
        Command::Periods(args) => periods::run(args),
        Command::Gpu(args) => gpu::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Memory(args) => memory::run(args),
        Command::Man(args) => man::run(args),
        Command::Schema(args) => schema::run(args),
    }
}

/// The commands that support LAMI.
pub(crate) fn lami(name: &str) -> Option<Analysis> {
    use tracebraid_reports::cpu::CpuAnalysis;
    use tracebraid_reports::disk::DiskAnalysis;
    use tracebraid_reports::files::FilesAnalysis;
    use tracebraid_reports::irq::IrqAnalysis;
    use tracebraid_reports::memory::MemoryAnalysis;
    use tracebraid_reports::net::NetAnalysis;
    use tracebraid_reports::processes::ProcessAnalysis;
    use tracebraid_reports::sched::SchedAnalysis;
    use tracebraid_reports::syscalls::SyscallAnalysis;
    use tracebraid_reports::waits::WaitAnalysis;
    match name {
        "cpu" => Some(Analysis::of::<CpuAnalysis>(
            "Active time by CPU, process and thread",
        )),
        "disk" => Some(Analysis::of::<DiskAnalysis>(
            "Requests to block devices: counts, latency, queue depth",
        )),
        "files" => Some(Analysis::of::<FilesAnalysis>(
            "Bytes read and written, and call latency, by file",
        )),
        "gpu" => Some(gpu::lami()),
        "io" => Some(io::lami()),
        "irq" => Some(Analysis::of::<IrqAnalysis>(
            "Interrupts and softirqs: counts, handler times",
        )),
        "levels" => Some(levels::lami()),
        "levels-reactions" => Some(levels::reactions_lami()),
        "memory" => Some(Analysis::of::<MemoryAnalysis>(
            "Pages of memory, page faults and the page cache, by thread",
        )),
        "sched" => Some(Analysis::of::<SchedAnalysis>(
            "Scheduling: wake-ups, switches, run queues, migrations",
        )),
        "net" => Some(Analysis::of::<NetAnalysis>(
            "Network interfaces and TCP: traffic, drops, latency",
        )),
        "periods" => Some(periods::lami()),
        "report" => Some(overview::lami()),
        "processes" => Some(Analysis::of::<ProcessAnalysis>(
            "Process tree with CPU time, system calls and bytes",
        )),
        "syscalls" => Some(Analysis::of::<SyscallAnalysis>(
            "System calls: counts, durations, errors",
        )),
        "waits" => Some(Analysis::of::<WaitAnalysis>(
            "Reasons for waits in system calls",
        )),
        _ => None,
    }
}

pub(crate) use compare::CompareArgs;
pub(crate) use completions::CompletionsArgs;
pub(crate) use count::CountArgs;
pub(crate) use cpu::CpuArgs;
pub(crate) use critical_path::CriticalPathArgs;
pub(crate) use disk::DiskArgs;
pub(crate) use executions::ExecutionsArgs;
pub(crate) use files::FilesArgs;
pub(crate) use gpu::GpuArgs;
pub(crate) use history::HistoryArgs;
pub(crate) use import::ImportArgs;
pub(crate) use info::InfoArgs;
pub(crate) use io::IoArgs;
pub(crate) use irq::IrqArgs;
pub(crate) use levels::LevelsArgs;
pub(crate) use man::ManArgs;
pub(crate) use memory::MemoryArgs;
pub(crate) use net::NetArgs;
pub(crate) use overview::OverviewArgs;
pub(crate) use periods::PeriodsArgs;
pub(crate) use print::PrintArgs;
pub(crate) use probes::ProbesArgs;
pub(crate) use processes::ProcessesArgs;
pub(crate) use record::{RecordArgs, become_command};
pub(crate) use report::Show;
pub(crate) use sched::SchedArgs;
pub(crate) use schema::SchemaArgs;
pub(crate) use session::{ListArgs, RotateArgs, SnapshotArgs, StartArgs, StatusArgs, StopArgs};
pub(crate) use sql::SqlArgs;
pub(crate) use stacks::StacksArgs;
pub(crate) use sync::SyncArgs;
pub(crate) use syscalls::SyscallsArgs;
pub(crate) use view::ViewArgs;
pub(crate) use waits::WaitsArgs;
