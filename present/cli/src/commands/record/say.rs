//! Summary of a recording, with warnings and the next command to type.

use std::path::Path;
use std::time::Duration;

use tracebraid_session::kernel::{Conditions, Options, Progress, Summary, Syscalls};
use tracebraid_session::{Finished, SessionOptions, SessionSummary};

use super::chunks_below;
use super::written::{Written, see_it};
use crate::output::say;
use crate::units::{bytes, duration, grouped, number_of};

/// Prints the summary on standard error: standard output belongs to the command.
pub(super) fn summary(options: &SessionOptions, summary: &SessionSummary, elapsed: Duration) {
    let directory = options.directory.display();
    let elapsed = duration(elapsed.as_nanos() as u64);
    match summary.kernel.as_ref().zip(options.kernel.as_ref()) {
        Some((kernel, wanted)) => {
            let Progress {
                events,
                bytes: size,
                ..
            } = kernel.total;
            say!(
                "Recorded {} in {elapsed}: {} in {directory}{}",
                number_of(events, "event", "events"),
                bytes(size),
                in_chunks(kernel.total.chunks, &options.directory)
            );
            if wanted.conditions != Conditions::default() {
                say!(
                    "Left out by --where: {} system calls and page faults",
                    grouped(kernel.left_out)
                );
            }
            warn(wanted, kernel);
        }
        None if options.directory.exists() => say!("Recorded for {elapsed} into {directory}"),
        None => say!("Recorded for {elapsed}"),
    }
    if let Some(probes) = &summary.probes {
        tell(probes, &options.directory);
    }
    let has_loaded = summary.probes.as_ref().is_some_and(|probes| {
        probes.traces > 0 || !probes.running.is_empty() || !probes.failed.is_empty()
    });
    if let Some(said) = missed(options).filter(|_| !has_loaded) {
        say!("warning: {said}");
    }
    let only_stacks = options.kernel.as_ref().is_some_and(|kernel| {
        kernel.stacks.is_some() && kernel.groups.is_empty() && kernel.syscalls == Syscalls::None
    });
    match only_stacks {
        true => say!("See it with: tracebraid stacks {directory}"),
        false => say!("{}", see_it(&options.directory)),
    }
}

/// Warns of existing descendants of the processes of --pid that are not recorded.
pub(super) fn left_out(count: usize) {
    match count {
        0 => {}
        1 => say!(
            "warning: 1 existing descendant of the processes of --pid is not recorded: add --descendants"
        ),
        _ => say!(
            "warning: {count} existing descendants of the processes of --pid are not recorded: add --descendants"
        ),
    }
}

/// The number of chunks, if the trace was written as chunks.
fn in_chunks(begun: u64, directory: &Path) -> String {
    let kept = chunks_below(directory).len() as u64;
    match begun {
        0 => String::new(),
        _ if kept < begun => format!(
            " ({}; the newest {kept} are kept)",
            number_of(begun, "chunk", "chunks")
        ),
        _ => format!(" ({})", number_of(begun, "chunk", "chunks")),
    }
}

/// Message for a recording in which probes were requested, but no program recorded any events.
fn missed(options: &SessionOptions) -> Option<&'static str> {
    let probes = options.probes.as_ref()?;
    if probes.levels.is_some() {
        return Some(
            "no user-level threads were recorded: the command uses no runtime that --levels knows (LLVM's libomp, asyncio, \
             programs with probes of the probe library), or does not load the recorder's libraries (static and setuid \
             programs do not)",
        );
    }
    let preloads = options.modules.is_some() || probes.library.is_some();
    if !preloads {
        return probes.gpu.as_ref().map(|_| {
            "no calls of OpenCL or CUDA were recorded: the command makes none, or does not load the \
             recorder's library (static and setuid programs do not)"
        });
    }
    Some(match probes.has_functions() {
        true => {
            "no functions were recorded: no program is compiled with -finstrument-functions, or such programs do not load libraries \
             (static and setuid programs do not)"
        }
        false => {
            "no events of probes were recorded: no program has probes that match --probes, or such programs do not load libraries \
             (static and setuid programs do not)"
        }
    })
}

/// Warns that processes started by the command or by chosen processes are still running.
pub(super) fn left(count: usize, has_command: bool, followed: bool) {
    let [processes, go_on] = match count {
        1 => ["process", "runs and is"],
        _ => ["processes", "run and are"],
    };
    let by = if has_command {
        "the command"
    } else {
        "the chosen processes"
    };
    let remedy = match followed {
        true => "",
        false => "; record them with --follow-daemons",
    };
    let count = grouped(count as u64);
    say!("warning: {count} {processes} started by {by} still {go_on} no longer recorded{remedy}");
}

/// Reason for a trace without system calls, although the options request some.
fn lacks_calls(options: &Options, kernel: &Summary) -> Option<&'static str> {
    if kernel.has_calls
        || options.syscalls == Syscalls::None
        || kernel.total.lost > 0
        || kernel.disk_is_full
    {
        return None;
    }
    if kernel.left_out > 0 {
        return Some("no system call was recorded: none satisfied the condition of --where");
    }
    Some(
        match (&options.syscalls, options.command, &options.processes) {
            (Syscalls::Only(_), ..) => {
                "no system call was recorded: none of the calls of --syscalls was made; `--syscalls all` records all calls"
            }
            (_, Some(_), _) => {
                "no system call of the command was recorded, although it ran: record it with --system, and please report this"
            }
            (_, None, Some(_)) => {
                "no system call was recorded: the processes of --pid made none in that time; record for longer, or use \
             --system to include other processes"
            }
            _ => "no system call was recorded",
        },
    )
}

fn warn(options: &Options, kernel: &Summary) {
    if let Some(why) = lacks_calls(options, kernel) {
        say!("warning: {why}");
    }
    for process in &kernel.ended {
        say!("warning: process {process} had ended before recording began");
    }
    if kernel.lacks_proc {
        say!(
            "warning: /proc is not mounted: open files and mapped libraries at the beginning are not recorded (mount -t proc \
             proc /proc)"
        );
    }

    let lost = kernel.total.lost;
    if lost > 0 {
        let cpus = kernel
            .lost
            .iter()
            .enumerate()
            .filter(|(_, lost)| **lost > 0);
        let cpus = cpus.map(|(cpu, lost)| format!("{} on CPU {cpu}", grouped(*lost)));
        say!(
            "warning: {} lost because the rings were full ({}): record fewer events, or enlarge the \
             rings with --buffer-size",
            number_of(lost, "event was", "events were"),
            cpus.collect::<Vec<_>>().join(", ")
        );
    }
    if kernel.disk_is_full {
        say!(
            "warning: the disk is full: the kernel's recording has ended at the \
             same time on all CPUs; events lost earlier are counted"
        );
    }
    if kernel.unfollowed > 0 {
        say!(
            "warning: {} were not followed: there were too many at once",
            number_of(u64::from(kernel.unfollowed), "process", "processes")
        );
    }
    if !kernel.has_waits {
        say!(
            "warning: stacks of waits were not recorded, which needs CAP_BPF and CAP_PERFMON, or kernel.perf_event_paranoid of at \
             most 1"
        );
    }
    if kernel.missed > 0 {
        say!(
            "warning: up to {} missed: they interrupted others on the same CPU",
            number_of(kernel.missed, "hit of --event was", "hits of --event were")
        );
    }
    if kernel.omitted_returns > 0 {
        say!(
            "warning: {} lost: the kernel tracks at most 64 nested calls per thread",
            number_of(
                kernel.omitted_returns,
                "function return (uretprobe) was",
                "function returns (uretprobe) were"
            )
        );
    }
    if !kernel.missing.is_empty() {
        say!(
            "warning: this kernel has no tracepoint {}",
            kernel.missing.join(", ")
        );
    }
    if let Some(refused) = kernel.refused_events() {
        say!("warning: {refused}");
    }
}

/// Reports the events of probes.
pub(in crate::commands) fn tell(probes: &Finished, directory: &Path) {
    let traces = probes.traces + probes.failed.len();
    // A failed trace may not be readable.
    let written = (traces > 0)
        .then(|| Written::below(&directory.join("ust")))
        .flatten();
    if let Some(written) = written {
        let processes = number_of(traces as u64, "process", "processes");
        say!("Probes of {processes} as well: {written}");
        if written.lost > 0 {
            let remedy = match has_limit(directory) {
                true => "raise --max-size",
                false => {
                    "is the disk full? (Without --max-size, each process may write 4G.) Free some space"
                }
            };
            say!(
                "warning: {} lost for lack of space: {remedy}, or record fewer with --probes",
                number_of(written.lost, "event of probes was", "events of probes were")
            );
        }
    }
    for path in &probes.running {
        say!(
            "warning: {}: its process is still running, but no longer recorded",
            path.display()
        );
    }
    for (path, error) in &probes.failed {
        say!(
            "warning: {}: the trace could not be completed: {error}; `tracebraid stop {}` tries again",
            path.display(),
            directory.display()
        );
    }
}

/// Whether the recording was started with a limit on the size of each process's trace.
fn has_limit(directory: &Path) -> bool {
    let options = std::fs::read_to_string(directory.join("probe.conf")).unwrap_or_default();
    options.lines().any(|line| line.starts_with("limit"))
}
