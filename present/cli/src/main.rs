//! `tracebraid`: reads any CTF trace and reports where the time went.
//!
//! In: a command line. Out: text, JSON, CSV, LAMI or files of other tools; warnings on standard
//! error. The exit code is 0 (also with warnings), 1 if a write failed or if, with `--strict`, an
//! input was damaged, 2 for wrong usage, 3 if no input could be read, 4 if a condition of `compare
//! --fail-if` holds, 130 after Ctrl-C.
//!
//! Each command is a module of `commands`, with its arguments and its help. `commands/report.rs`
//! and `commands/views.rs` run every report on kernel events, and `commands/sections.rs` shows it;
//! a report's own command adds its options. Promise: no analysis happens in this crate.
#![forbid(unsafe_code)]

mod archives;
mod cli;
mod commands;
mod csv;
mod debug_info;
mod failure;
mod file_kind;
mod fold;
mod glyphs;
mod hints;
mod imported;
mod indexes;
mod info;
mod lami;
mod loss;
mod merged;
mod named_globs;
mod nameless_frames;
mod numbers;
mod options;
mod origins;
mod output;
mod part_file;
mod print;
mod progress;
mod rings;
mod schema;
mod settings;
mod spare;
mod stack_quality;
mod sync;
mod table;
mod terminal_text;
mod threads;
mod time;
mod timings;
mod unfinished;
mod units;
mod warnings;
mod without_trace;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tracebraid_allocator::Allocator = tracebraid_allocator::Allocator;

fn main() -> ExitCode {
    if let Some(code) = commands::become_command() {
        return code;
    }
    // If mapping is refused, files are read by copying.
    let _ = tracebraid_ctf::mapping::allow();
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let code = match lami::Phase::of(&arguments) {
        Some(phase) => phase.answer(commands::lami),
        None => {
            let cli::Cli { command, settings } = cli::Cli::of_process();
            settings.apply();
            let code = indexes::with_restart(|| commands::run(&command));
            code.unwrap_or_else(failure::Failure::report)
        }
    };
    imported::clean();
    match timings::write() {
        Ok(()) => code,
        Err(failure) => failure.report(),
    }
}
