//! The command line.

use std::fmt::Write as _;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    CompareArgs, CompletionsArgs, CountArgs, CpuArgs, CriticalPathArgs, DiskArgs, ExecutionsArgs,
    FilesArgs, GpuArgs, HistoryArgs, ImportArgs, InfoArgs, IoArgs, IrqArgs, LevelsArgs, ListArgs,
    ManArgs, MemoryArgs, NetArgs, OverviewArgs, PeriodsArgs, PrintArgs, ProbesArgs, ProcessesArgs,
    RecordArgs, RotateArgs, SchedArgs, SchemaArgs, SnapshotArgs, SqlArgs, StacksArgs, StartArgs,
    StatusArgs, StopArgs, SyncArgs, SyscallsArgs, ViewArgs, WaitsArgs,
};
use crate::settings::Settings;

/// Record what a Linux machine does, and explain where the time went
#[derive(Debug, Parser)]
#[command(name = "tracebraid", version, max_term_width = 100)]
#[command(after_help = "Examples:
  tracebraid record -- ./my-program
  tracebraid report ~/lttng-traces/my-session
  tracebraid critical-path --longest 'f*sync' --top 3 TRACE
  tracebraid print --filter 'sched_switch && next_tid == 42' TRACE | less

`tracebraid help COMMAND` describes a command, with examples.

Exit codes:
  0    done (warnings are on standard error)
  1    an input was damaged and --strict was given, or a write failed
  2    wrong usage
  3    no input could be read
  4    a gate of `compare --fail-if` failed
  130  interrupted by Ctrl-C")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// The commands, in the order of `GROUPS`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(Box<RecordArgs>),
    Start(Box<StartArgs>),
    Status(StatusArgs),
    List(ListArgs),
    Snapshot(SnapshotArgs),
    Rotate(RotateArgs),
    Stop(StopArgs),
    Probes(ProbesArgs),
    Report(OverviewArgs),
    Info(InfoArgs),
    Count(CountArgs),
    Print(Box<PrintArgs>),
    Cpu(CpuArgs),
    Sched(SchedArgs),
    Processes(ProcessesArgs),
    Syscalls(SyscallsArgs),
    Io(IoArgs),
    Files(FilesArgs),
    Disk(DiskArgs),
    Net(NetArgs),
    Memory(MemoryArgs),
    Irq(IrqArgs),
    Gpu(GpuArgs),
    Stacks(StacksArgs),
    Waits(WaitsArgs),
    CriticalPath(Box<CriticalPathArgs>),
    Levels(Box<LevelsArgs>),
    Periods(Box<PeriodsArgs>),
    Executions(ExecutionsArgs),
    Compare(CompareArgs),
    View(ViewArgs),
    History(HistoryArgs),
    Sql(SqlArgs),
    Import(ImportArgs),
    Sync(SyncArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Schema(SchemaArgs),
}

/// Commands as `--help` lists them: a heading, and the first and the last command below it.
const GROUPS: [(&str, &str, &str); 4] = [
    ("Record", "record", "probes"),
    ("Look", "report", "stacks"),
    ("Explain", "waits", "sql"),
    ("Convert and set up", "import", "man"),
];

impl Cli {
    /// The command-line parser, with its commands in groups.
    pub(crate) fn grouped() -> clap::Command {
        let command = Cli::command();
        let list = list(&command);
        command.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
        ))
    }

    /// Parses the arguments of the process. Exits on wrong usage and after `--help`.
    pub(crate) fn of_process() -> Cli {
        let matches = Cli::grouped().get_matches();
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The commands in groups, one per line.
fn list(command: &clap::Command) -> String {
    let mut text = String::new();
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        let name = one.get_name();
        if let Some((heading, ..)) = GROUPS.iter().find(|(_, first, _)| *first == name) {
            let _ = writeln!(text, "{heading}:");
        }
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "  {name:<14} {about}");
        if GROUPS.iter().any(|(.., last)| *last == name) {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 80 columns no line is wrapped.
    #[test]
    fn each_command_is_in_a_group_and_takes_one_line() {
        let command = Cli::command();
        command.clone().debug_assert();
        let mut open = None;
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = one.get_name();
            if let Some(group) = GROUPS.iter().find(|(_, first, _)| *first == name) {
                assert_eq!(open, None, "{name}");
                open = Some(group);
            }
            let (.., last) = open.unwrap_or_else(|| panic!("{name} is in no group"));
            if *last == name {
                open = None;
            }
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() <= 63, "{name}: {about}");
            assert!(!about.ends_with('.'), "{name}: {about}");
        }
        assert_eq!(open, None);
    }
}
