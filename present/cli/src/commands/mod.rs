//! The commands, one file each, and what they share.

mod cells;
mod completions;
mod count;
mod cpu;
mod info;
mod io;
mod man;
mod print;
mod report;
mod sections;
mod syscalls;
mod views;

use std::process::ExitCode;

use crate::cli::Command;
use crate::failure::Failure;

/// Runs a command.
///
/// # Errors
/// When it cannot do what it was asked for.
pub(crate) fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Info(args) => info::run(&args),
        Command::Print(args) => print::run(&args),
        Command::Count(args) => count::run(&args),
        Command::Cpu(args) => cpu::run(&args),
        Command::Io(args) => io::run(&args),
        Command::Syscalls(args) => syscalls::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}

pub(crate) use completions::CompletionsArgs;
pub(crate) use count::CountArgs;
pub(crate) use cpu::CpuArgs;
pub(crate) use info::InfoArgs;
pub(crate) use io::IoArgs;
pub(crate) use man::ManArgs;
pub(crate) use print::PrintArgs;
pub(crate) use syscalls::SyscallsArgs;
