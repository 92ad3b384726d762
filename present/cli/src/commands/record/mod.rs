//! `tracebraid record`: records what a machine does.

mod asked;
mod choice;
mod launch;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::Zoned;
use tracebraid_session::control::Server;
use tracebraid_session::kernel::{self, Options};
use tracebraid_session::{Launched, Session, SessionError, SessionOptions, SessionSummary};

use crate::failure::Failure;
use crate::{fold, table};
use asked::Asked;
use choice::{Groups, Traced};
pub(crate) use launch::become_command;
use watch::{Ended, Limits, watch};

/// Records what the kernel and a program do, as a trace for all other commands, for babeltrace2 and for
/// Trace Compass.
///
/// Kernel events are those of the whole machine; system calls and page faults are those of the command, or of
/// the processes that are given, and of what they start. Recording the kernel needs CAP_BPF and CAP_PERFMON.
/// The exit code is the command's.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid record -- ./my-program --its-option
  tracebraid record -o server.trace --pid 1234 --duration 10s
  tracebraid record --system --kernel sched,irq --syscalls none --duration 5s
  tracebraid record --syscalls read,write,openat -- make -j4

Groups of kernel events:
  sched   who runs, who wakes whom, who begins and ends    irq    interrupts and softirqs
  timer   timers, how they are set and expire              block  requests to block devices
  net     packets with their headers, connections          fault  page faults (x86)
  vector  the processor's own interrupts (x86)             lock   waiting for the kernel's locks")]
pub(crate) struct RecordArgs {
    /// Groups of kernel events: their names, `all` or `none`
    #[arg(long, value_name = "GROUPS", default_value = "sched,irq,timer,block,net")]
    kernel: Groups,
    /// System calls: their names, `all` or `none`
    #[arg(long, value_name = "CALLS", default_value = "all")]
    syscalls: Traced,
    /// System calls and page faults of these processes, and of those that they start
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["system", "command"])]
    pid: Vec<u32>,
    /// System calls and page faults of all processes
    #[arg(long)]
    system: bool,
    /// The trace's directory; tracebraid-DATE-TIME if not given
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Stop recording when the trace has so many bytes (with K, M or G); the command goes on
    #[arg(long, value_name = "BYTES", value_parser = fold::size)]
    max_size: Option<u64>,
    /// Stop recording after so long (10s, 500ms, 2min); the command goes on
    #[arg(long, value_name = "TIME", value_parser = watch::duration)]
    duration: Option<std::time::Duration>,
    /// Memory between the kernel and the recorder for each CPU, a power of two (with K, M or G)
    #[arg(long, value_name = "BYTES", value_parser = choice::ring, default_value = "8M")]
    buffer_size: u32,
    /// Leave out the processes, files and devices that are there when recording begins
    #[arg(long)]
    no_state_dump: bool,
    /// Write CTF 2 instead of CTF 1.8
    #[arg(long)]
    ctf2: bool,
    /// Keep only the newest events, in memory: the last --max-size bytes (64M if not given), which are written in
    /// the end, or when `tracebraid snapshot` says so
    #[arg(long)]
    snapshot: bool,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
    /// The command to record, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Bytes that are kept in memory.
const KEPT: u64 = 64 << 20;

/// Runs it.
pub(super) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    record(args, None)
}

/// Records; a session in the background answers questions meanwhile.
pub(super) fn record(args: &RecordArgs, server: Option<(&str, &Server)>) -> Result<ExitCode, Failure> {
    if args.command.is_empty() && args.pid.is_empty() && !args.system {
        let message =
            "what is to be recorded: a command (-- COMMAND), --pid PID, or the whole machine (--system)?";
        return Err(Failure::usage(message));
    }
    let mut options = SessionOptions {
        directory: directory(args),
        kernel: None,
    };
    let kernel = kernel_options(args, &options)?;
    options.make_directory().map_err(failed)?;
    let (session, mut command) = begin(args, &mut options, kernel)?;
    let limits = Limits {
        bytes: args.max_size.filter(|_| !args.snapshot),
        time: args.duration,
    };
    let asked = server.map(|(name, server)| Asked::new(name, server, &options.directory));
    let (ended, elapsed) = watch(&session, command.as_mut(), &limits, args.quiet, asked.as_ref())?;
    let stopped = session.stop();
    let ended = match (ended, &asked) {
        (Ended::Told(question), Some(asked)) => return asked.stopped(question, stopped, elapsed),
        (ended, _) => ended,
    };
    let summary = stopped.map_err(failed)?;
    if !args.quiet {
        say(&options, &summary, elapsed);
    }
    Ok(launch::exit_code(&ended, command.is_some()))
}

fn failed(error: SessionError) -> Failure {
    Failure::output(error.to_string())
}

/// Begins to record, and then lets the command go. If it cannot, nothing is left behind.
fn begin(
    args: &RecordArgs,
    options: &mut SessionOptions,
    mut kernel: Options,
) -> Result<(Session, Option<Launched>), Failure> {
    let begun = (|| {
        let command = (!args.command.is_empty()).then(|| launch::launch(&args.command, &options.directory));
        let mut command = command.transpose()?;
        if let (Some(command), false) = (&command, args.system) {
            kernel.processes = Some(vec![command.id()]);
        }
        options.kernel = Some(kernel);
        let session = Session::start(options).map_err(failed)?;
        if let Some(command) = &mut command {
            command.release().map_err(failed)?;
        }
        Ok((session, command))
    })();
    if begun.is_err() {
        let _ = std::fs::remove_dir_all(options.directory.join("kernel"));
        let _ = std::fs::remove_dir(&options.directory);
    }
    begun
}

/// Where the trace goes.
fn directory(args: &RecordArgs) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        let now = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
        PathBuf::from(format!("tracebraid-{now}"))
    })
}

fn kernel_options(args: &RecordArgs, session: &SessionOptions) -> Result<Options, Failure> {
    let syscalls = args.syscalls.0.clone();
    if let Some(name) = syscalls.unknown().first() {
        return Err(Failure::usage(format!("there is no system call `{name}`")));
    }
    let name = session.directory.file_name().unwrap_or_default();
    Ok(Options {
        groups: args.kernel.0.clone(),
        syscalls,
        processes: (!args.pid.is_empty()).then(|| args.pid.clone()),
        ring_bytes: args.buffer_size,
        ctf2: args.ctf2,
        keep: args.snapshot.then(|| args.max_size.unwrap_or(KEPT)),
        name: name.to_string_lossy().into_owned(),
        creation: Zoned::now().strftime("%Y%m%dT%H%M%S%z").to_string(),
        state_dump: !args.no_state_dump,
        ..Options::default()
    })
}

/// What was recorded, where it is, and what to do with it.
fn say(options: &SessionOptions, summary: &SessionSummary, elapsed: std::time::Duration) {
    let Some(kernel) = &summary.kernel else {
        return;
    };
    let kernel::Progress { events, bytes, lost } = kernel.total;
    let directory = options.directory.display();
    eprintln!(
        "Recorded {} events in {}: {} in {directory}",
        table::grouped(events),
        table::duration(elapsed.as_nanos() as u64),
        table::bytes(bytes)
    );
    if lost > 0 {
        let cpus = kernel.lost.iter().enumerate().filter(|(_, lost)| **lost > 0);
        let cpus: Vec<String> = cpus
            .map(|(cpu, lost)| format!("{} on CPU {cpu}", table::grouped(*lost)))
            .collect();
        eprintln!(
            "warning: {} events found no room ({}): record less, or give more memory by --buffer-size",
            table::grouped(lost),
            cpus.join(", ")
        );
    }
    if !kernel.missing.is_empty() {
        eprintln!(
            "warning: this kernel has no tracepoint {}",
            kernel.missing.join(", ")
        );
    }
    eprintln!("See it by: tracebraid report {directory}");
}
