//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    CompareArgs, CompletionsArgs, CountArgs, CpuArgs, CriticalPathArgs, DiskArgs, ExecutionsArgs,
    FilesArgs, HistoryArgs, ImportArgs, InfoArgs, IoArgs, IrqArgs, ListArgs, ManArgs, MemoryArgs,
    NetArgs, OverviewArgs, PeriodsArgs, PrintArgs, ProbesArgs, ProcessesArgs, RecordArgs,
    RotateArgs, SchedArgs, SnapshotArgs, StacksArgs, StartArgs, StatusArgs, StopArgs, SyncArgs,
    SyscallsArgs, ViewArgs, WaitsArgs,
};

/// Records what a Linux machine does, reads any CTF trace, and says what ran, what it read and
/// wrote, and what it waited for.
#[derive(Debug, Parser)]
#[command(name = "tracebraid", version, max_term_width = 100)]
#[command(after_help = "Examples:
  tracebraid record -- ./my-program
  tracebraid info ~/lttng-traces/my-session
  tracebraid print ~/lttng-traces/my-session | less
  tracebraid print --filter 'sched_switch && next_tid == 42' ~/lttng-traces/my-session

Exit codes: 0 done (warnings are on standard error); 1 something was damaged and --strict
was given, or the output could not be written; 2 wrong usage; 3 nothing could be read;
4 `compare --fail-if` holds.")]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(Box<RecordArgs>),
    Start(Box<StartArgs>),
    Stop(StopArgs),
    Snapshot(SnapshotArgs),
    Rotate(RotateArgs),
    Status(StatusArgs),
    List(ListArgs),
    Probes(ProbesArgs),
    Stacks(StacksArgs),
    Report(OverviewArgs),
    Import(ImportArgs),
    Info(InfoArgs),
    Print(Box<PrintArgs>),
    Count(CountArgs),
    Cpu(CpuArgs),
    Disk(DiskArgs),
    Files(FilesArgs),
    Io(IoArgs),
    Irq(IrqArgs),
    Memory(MemoryArgs),
    Sched(SchedArgs),
    Net(NetArgs),
    Processes(ProcessesArgs),
    Syscalls(SyscallsArgs),
    Waits(WaitsArgs),
    CriticalPath(Box<CriticalPathArgs>),
    Periods(Box<PeriodsArgs>),
    Executions(ExecutionsArgs),
    Compare(CompareArgs),
    View(ViewArgs),
    History(HistoryArgs),
    Sync(SyncArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
