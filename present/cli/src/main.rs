//! `tracebraid`: reads any CTF trace and says what ran, and what it read and wrote.
//!
//! The exit code is 0 (also with warnings), 1 when `--strict` was given and something was damaged
//! or a write failed, 2 for wrong usage, 3 when nothing could be read.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod csv;
mod debug_info;
mod failure;
mod fold;
mod hints;
mod imported;
mod info;
mod lami;
mod loss;
mod nameless_frames;
mod numbers;
mod options;
mod output;
mod print;
mod progress;
mod rings;
mod spare;
mod stack_quality;
mod sync;
mod table;
mod threads;
mod time;
mod timings;
mod unfinished;
mod warnings;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(code) = commands::become_command() {
        return code;
    }
    // Where it is refused, files are read by copying.
    let _ = tracebraid_ctf::mapping::allow();
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let code = match lami::Phase::of(&arguments) {
        Some(phase) => phase.answer(commands::lami),
        None => commands::run(cli::Cli::parse().command).unwrap_or_else(failure::Failure::report),
    };
    imported::clean();
    match timings::write() {
        Ok(()) => code,
        Err(failure) => failure.report(),
    }
}
