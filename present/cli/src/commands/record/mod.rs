//! `tracebraid record`: records events of the kernel and of programs.

mod asked;
mod checks;
mod choice;
mod conditions;
mod go;
mod launch;
mod options;
mod rotation;
mod say;
mod stacks;
mod watch;
mod when;
mod written;

pub(super) use say::tell;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Zoned;
use tracebraid_session::control::Server;
use tracebraid_session::kernel::{Context, EventSpec};
use tracebraid_session::{Launched, Session, SessionError, SessionOptions, Signals, forget_probes};

use crate::failure::{DAMAGED, Failure};
use crate::fold;
use crate::output::say;
use crate::settings;
use asked::Asked;
use choice::{Groups, Traced};
use conditions::Condition;
pub(crate) use launch::become_command;
use options::session_options;
pub(crate) use rotation::chunks_below;
use watch::{Ended, Limits, watch};
pub(crate) use written::{Written, see_it};

/// Record events of the kernel and of programs as a trace
///
/// All other commands, babeltrace2 and Trace Compass can read the trace. Kernel events are recorded for
/// the whole machine; system calls and page faults are recorded for the command, or for the
/// processes of --pid, and for the processes that they start. Recording the kernel needs CAP_BPF
/// and CAP_PERFMON; recording a command's own probes needs no privilege. The exit code is the
/// command's.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  tracebraid record -- ./my-program --its-option
  tracebraid record --stacks -- ./my-program
  tracebraid record -o server.trace --pid 1234 --duration 10s
  tracebraid record --pid 1234 --descendants --duration 10s
  tracebraid record --system --kernel sched,irq --syscalls none --duration 5s
  tracebraid record --syscalls read,write,openat -- make -j4
  tracebraid record --where 'duration > 1ms' -- ./my-program
  tracebraid record --system --duration 10s \\
      --where 'ret < 0 && procname == \"nginx*\"'
  tracebraid record --context procname,perf:cpu:page-faults -- ./my-program
  tracebraid record --follow-daemons --duration 60s -- nginx
  tracebraid record --event 'tracepoint:kmem:mm_page_*' -- ./my-program
  tracebraid record --pid 1234 \\
      --event usdt:/usr/lib/postgresql/15/bin/postgres:transaction__start
  tracebraid record --event uprobe:./my-program:parse \\
      --event uretprobe:./my-program:parse -- ./my-program
  tracebraid record --event go:./my-server --pid 1234
  tracebraid record --system --rotate 100M --keep 5
  tracebraid record --snapshot --when 'syscall(fsync) > 100ms' \\
      --when 'load > 8' -- ./my-server
  tracebraid record --go http://localhost:6060 --duration 10s
  tracebraid record --go localhost:6060 --duration 10s -- ./my-go-server
  # in a container, with a PID of the container
  docker exec BOX tracebraid record --pid 1

Groups of kernel events:
  sched   context switches, wake-ups, forks, exits
  irq     interrupts and softirqs
  timer   setting and expiry of timers
  block   requests to block devices
  net     packets with their headers, connections
  fault   page faults (x86)
  vector  the processor's own interrupts (x86)
  lock    waits for the kernel's locks
  work    work queues and io_uring requests
  gpu     jobs of GPUs, by the kernel's scheduler, fences and drivers")]
pub(crate) struct RecordArgs {
    /// Record these groups of kernel events: names, `all` or `none`; default:
    /// sched,irq,timer,block,net
    #[arg(long, value_name = "GROUPS")]
    kernel: Option<Groups>,
    /// Record these system calls: names, `all` or `none`; default: all
    #[arg(long, value_name = "CALLS")]
    syscalls: Option<Traced>,
    /// Record an event of the recorded processes by name; may be repeated. SPEC is
    /// tracepoint:CATEGORY:NAME, usdt:PATH:NAME or usdt:PATH:PROVIDER:NAME (patterns with * and ?),
    /// uprobe:PATH:FUNCTION or uprobe:PATH:FUNCTION+OFFSET, uretprobe:PATH:FUNCTION,
    /// kprobe:FUNCTION, kretprobe:FUNCTION, or go:PATH for waits of goroutines
    #[arg(long, value_name = "SPEC")]
    event: Vec<EventSpec>,
    /// Record only the system calls and page faults for which a condition holds; it compares
    /// duration and ret of calls, tid, pid, prio and procname, joined by &&
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Condition>,
    /// Add context values to each kernel event: pid, tid, ppid, vpid, vtid, vppid, procname, prio,
    /// nice, pid_ns, uid, gid, and counters of the CPU such as perf:cpu:page-faults or
    /// perf:cpu:cycles
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    context: Vec<Context>,
    /// Record these event classes of the command's own probes: patterns with * and ?, or `none`;
    /// default: *. With patterns, programs that are not linked with libtracebraid_probe.so load it
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    probes: Vec<String>,
    /// Record the OpenCL and CUDA calls of the command, its device commands with their times, and
    /// the kernel events of group gpu unless --kernel names groups
    #[arg(long, requires = "command")]
    gpu: bool,
    /// Record the user-level threads of the command's runtimes: tasks of OpenMP (LLVM's libomp) and
    /// of Python's asyncio, and programs that record their own with the probe library. See them with
    /// `tracebraid levels`
    #[arg(long, requires = "command")]
    levels: bool,
    /// Record goroutines too: read the execution trace of a Go program on this machine from its
    /// pprof endpoint, such as http://localhost:6060, and store it beside the kernel's trace; may be
    /// repeated. Without --pid, --system and a command, --pid is the program that listens there
    #[arg(long, value_name = "URL", conflicts_with = "snapshot")]
    go: Vec<go::Endpoint>,
    /// Record call stacks: for each millisecond of CPU time, and for each wait of 100 us or
    /// longer. OPTIONS change these values, for example period_us=500,threshold_us=50,depth=64.
    /// Programs need no preparation. stack_bytes=0 follows frame pointers instead of unwind tables
    #[arg(long, value_name = "OPTIONS", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    stacks: Option<stacks::Wanted>,
    /// Record system calls and page faults of these processes and of those that they start; the
    /// recording ends when the given processes have ended
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["system", "command"])]
    pid: Vec<u32>,
    /// With --pid: also record the existing descendants of the processes, such as the workers of a
    /// server
    #[arg(long)]
    descendants: bool,
    /// Record system calls and page faults of all processes
    #[arg(long)]
    system: bool,
    /// Record until all descendants of the command or of --pid have also ended, such as the
    /// background workers of a server. Ctrl-C, --duration and `tracebraid stop` also end such a
    /// recording
    #[arg(long)]
    follow_daemons: bool,
    /// Directory of the trace; default: tracebraid-DATE-TIME
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Stop recording when the trace reaches this size (with K, M or G); the command keeps running
    #[arg(long, value_name = "BYTES", value_parser = fold::size)]
    max_size: Option<u64>,
    /// Stop recording after this time (10s, 500ms, 2min); the command keeps running
    #[arg(long, value_name = "TIME", value_parser = watch::duration)]
    duration: Option<Duration>,
    /// Write the kernel's trace as chunks, each a complete trace, and begin a new one at a size,
    /// after a time, or at whichever comes first (1G,10min); `manual`: only by `tracebraid rotate`
    #[arg(long, value_name = "SIZE|TIME", conflicts_with = "snapshot")]
    rotate: Option<rotation::Wanted>,
    /// Keep only the newest N chunks, including the one that is being written
    #[arg(long, value_name = "N", requires = "rotate", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Size of each CPU's ring between the kernel and the recorder, a power of two (with K, M or G)
    #[arg(long, value_name = "BYTES", value_parser = choice::ring, default_value = "8M")]
    buffer_size: u32,
    /// Leave out the state dump: the processes, files and devices that exist when recording begins
    #[arg(long)]
    no_state_dump: bool,
    /// Write the kernel's trace as CTF 2, which babeltrace2 reads from 2.1 on, not as CTF 1.8;
    /// traces of programs stay CTF 1.8
    #[arg(long)]
    ctf2: bool,
    /// Keep only the newest events, in memory: the last --max-size bytes (default 64M), written
    /// when the recording ends or by `tracebraid snapshot`
    #[arg(long)]
    snapshot: bool,
    /// Write a snapshot when a condition holds, into snapshot-DATE-TIME in the trace's directory,
    /// and go on: `syscall > 100ms`, `syscall(read,fsync) > 1s`, `latency > 50ms` (from wake-up to
    /// running), `rate(EVENT) > 10000/s`, `load > 4`, `runnable > 8`, `cpu > 90%`; may be repeated
    #[arg(long, value_name = "CONDITION", requires = "snapshot")]
    when: Vec<when::When>,
    /// Ignore conditions for this time after a snapshot
    #[arg(long, value_name = "TIME", value_parser = watch::duration, default_value = "10s", requires = "when")]
    when_interval: Duration,
    /// Write at most N snapshots by --when
    #[arg(long, value_name = "N", default_value_t = 10, requires = "when", value_parser = clap::value_parser!(u32).range(1..))]
    snapshots: u32,
    /// The command to record, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    record(args, None)
}

/// Records. A background session answers requests in the meantime.
pub(super) fn record(
    args: &RecordArgs,
    server: Option<(&str, &Server)>,
) -> Result<ExitCode, Failure> {
    let args = &with_listeners(args);
    let processes = checks::targets(args)?;
    checks::probes(args)?;
    let mut options = session_options(args)?;
    checks::recorders(args, &options)?;
    let is_new = make_directory(args.output.as_deref(), &mut options)?;
    let begun = begin(args, &mut options);
    let (session, mut command, mut signals) =
        begun.inspect_err(|_| clear(&options.directory, is_new))?;
    let traces = go::GoTraces::start(&args.go, &options.directory);
    let limits = Limits {
        time: args.duration,
        processes,
        follows_daemons: args.follow_daemons,
    };
    let asked = server.map(|(name, server)| Asked::new(name, server, &options.directory));
    let (ended, elapsed) = watch(
        &session,
        command.as_mut(),
        &limits,
        settings::is_quiet(),
        asked.as_ref(),
        &mut signals,
        &when::Snapshots::new(&options.directory, settings::is_quiet()),
    )?;
    let goes_on = command
        .as_mut()
        .and_then(|command| goes_on(&ended, command));
    let left = match matches!(ended, Ended::Command(_)) || limits.are_gone() {
        true => still_run(&session),
        false => 0,
    };
    traces.end();
    let stopped = session.stop(ended.reason());
    traces.store(options.clock_offset);
    let ended = match (ended, &asked) {
        (Ended::Told(question), Some(asked)) => return asked.stopped(question, stopped, elapsed),
        (ended, _) => ended,
    };
    let summary = stopped.map_err(failed)?;
    if matches!(ended, Ended::Command(_)) && is_empty(&options) {
        clear(&options.directory, is_new);
    }
    if !settings::is_quiet() {
        say::summary(&options, &summary, elapsed);
        if let Some(process) = goes_on {
            say!("The command is still running (process {process}), but no longer recorded");
        }
        if left > 0 {
            say::left(left, command.is_some(), args.follow_daemons);
        }
    }
    if summary.kernel.is_some_and(|kernel| kernel.disk_is_full) {
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(launch::exit_code(&ended, command.is_some()))
}

/// The arguments; if they name only endpoints, with the processes that listen there.
fn with_listeners(args: &RecordArgs) -> RecordArgs {
    let mut args = args.clone();
    if args.command.is_empty() && args.pid.is_empty() && !args.system {
        args.pid = args.go.iter().filter_map(go::process_of).collect();
    }
    args
}

/// Time for the processes of a pipe to end after one another.
const LAST_LOOK: Duration = Duration::from_millis(20);

/// Number of descendants of the recorded processes that are still running at the end.
fn still_run(session: &Session) -> usize {
    let count = || session.followed().map_or(0, |followed| followed.len());
    if count() == 0 {
        return 0;
    }
    std::thread::sleep(LAST_LOOK);
    count()
}

/// Id of the command's process, if it is still running when the recording ends.
fn goes_on(ended: &Ended, command: &mut Launched) -> Option<u32> {
    let is_there = !matches!(ended, Ended::Command(_)) && matches!(command.try_wait(), Ok(None));
    is_there.then(|| command.id())
}

fn failed(error: SessionError) -> Failure {
    let message = error.to_string();
    match error {
        SessionError::Command { source, .. } => Failure::command(&source, message),
        _ => Failure::output(message),
    }
}

/// State of a recording that has begun.
type Begun = (Session, Option<Launched>, Signals);

/// Starts recording, and then releases the command.
fn begin(args: &RecordArgs, options: &mut SessionOptions) -> Result<Begun, Failure> {
    let environment = options.prepare().map_err(failed)?;
    let launch = || launch::launch(&args.command, &environment, &options.directory);
    let mut command = (!args.command.is_empty()).then(launch).transpose()?;
    // From here on, a signal ends the recording properly.
    let signals = Signals::take().map_err(|error| Failure::output(format!("signals: {error}")))?;
    if let Some(command) = &mut command {
        command.wait_until_ready().map_err(failed)?;
        if let Some(kernel) = &mut options.kernel {
            kernel.command = Some(command.id());
            kernel.processes = (!args.system).then(|| vec![command.id()]);
            kernel.unprivileged = kernel.unprivileged.map(|_| command.id());
        }
    }
    let session = Session::start(options).map_err(failed)?;
    if !args.pid.is_empty() && !args.descendants {
        let left_out = session.unfollowed_descendants().map_err(failed)?;
        say::left_out(left_out.len());
    }
    if let Some(command) = &mut command {
        command.release().map_err(failed)?;
    }
    Ok((session, command, signals))
}

/// Whether a recording is empty. With the library for modules it never counts as empty: a
/// background process of the command may still begin to write, and the library would report that
/// its directory is gone.
fn is_empty(options: &SessionOptions) -> bool {
    let has = |name: &str| options.directory.join(name).exists();
    options.kernel.is_none() && options.modules.is_none() && !has("ust")
}

/// Removes a recording without events.
fn clear(directory: &Path, is_new: bool) {
    let _ = std::fs::remove_dir_all(directory.join("kernel"));
    for chunk in chunks_below(directory) {
        let _ = std::fs::remove_dir_all(chunk);
    }
    forget_probes(directory);
    if is_new {
        let _ = std::fs::remove_dir(directory);
    }
}

/// Creates the requested directory, or one named after the time; returns false if it already
/// existed.
fn make_directory(wanted: Option<&Path>, options: &mut SessionOptions) -> Result<bool, Failure> {
    let is_new = match wanted {
        Some(directory) => {
            options.directory = directory.to_owned();
            options.make_directory().map_err(failed)?
        }
        None => {
            options.directory = make_stamped("tracebraid")?;
            true
        }
    };
    if let Some(kernel) = &mut options.kernel {
        let name = options.directory.file_name().unwrap_or_default();
        kernel.name = name.to_string_lossy().into_owned();
    }
    Ok(is_new)
}

/// Maximum number of directories with the time stamp of the same second.
const MOST_OF_A_SECOND: u32 = 1000;

/// Creates a new directory with this name and a time stamp.
pub(super) fn make_stamped(name: &str) -> Result<PathBuf, Failure> {
    let now = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let plain = PathBuf::from(format!("{name}-{now}"));
    let others =
        (1..MOST_OF_A_SECOND).map(|number| PathBuf::from(format!("{name}-{now}-{number}")));
    for directory in std::iter::once(plain.clone()).chain(others) {
        match std::fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::output(format!("{}: {error}", directory.display()))),
        }
    }
    let why = "too many directories with this date and time exist: try again a second later";
    Err(Failure::output(format!("{}: {why}", plain.display())))
}
