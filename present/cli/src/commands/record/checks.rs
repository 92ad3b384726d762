//! Checks of the arguments of `record`.

use tracebraid_session::classes::check_pattern;
use tracebraid_session::kernel::Options;
use tracebraid_session::{SessionOptions, Target};

use super::RecordArgs;
use crate::failure::Failure;
use crate::output::say;

/// The processes of `--pid`. Fails if the arguments select nothing to record.
pub(super) fn targets(args: &RecordArgs) -> Result<Vec<Target>, Failure> {
    if args.command.is_empty() && args.pid.is_empty() && !args.system {
        let message = match args.go.is_empty() {
            true => {
                "choose what to record: a command (-- COMMAND), processes (--pid PID), or the whole machine \
                     (--system)"
            }
            false => {
                "no process of this machine is known to listen at the endpoint of --go: give its process \
                      (--pid PID) or --system"
            }
        };
        return Err(Failure::usage(message));
    }
    if args.descendants && args.pid.is_empty() {
        let message =
            "--descendants needs --pid: it adds the existing descendants of these processes";
        return Err(Failure::usage(message));
    }
    let processes = args.pid.iter().map(|&process| Target::find(process));
    let processes: Result<Vec<Target>, _> = processes.collect();
    processes.map_err(|error| Failure::usage(error.to_string()))
}

/// Checks the patterns of `--probes`, and warns if they have no effect.
pub(super) fn probes(args: &RecordArgs) -> Result<(), Failure> {
    for pattern in &args.probes {
        check_pattern(pattern).map_err(|why| Failure::usage(format!("--probes: {why}")))?;
    }
    if args.gpu && args.command.is_empty() {
        say!(
            "warning: without a command, --gpu records only jobs of GPU drivers: calls of running programs are not recorded"
        );
    }
    if args.command.is_empty()
        && args
            .probes
            .iter()
            .any(|pattern| pattern != "*" && pattern != "none")
    {
        say!(
            "warning: --probes has no effect without a command: probes of running programs are not recorded"
        );
    }
    Ok(())
}

/// Checks that the session has the recorders that the arguments need.
pub(super) fn recorders(args: &RecordArgs, options: &SessionOptions) -> Result<(), Failure> {
    if options.kernel.is_none() && !args.when.is_empty() {
        return Err(Failure::usage("--when needs the recorder of kernel events"));
    }
    if options.kernel.is_none() && args.rotate.is_some() {
        say!("warning: --rotate has no effect: kernel events are not recorded");
    }
    let has_programs = options.probes.is_some() || options.modules.is_some();
    if options.kernel.is_none() && !has_programs && args.go.is_empty() {
        return Err(Failure::usage(
            "nothing to record: --kernel none, --syscalls none, no probes, no stacks",
        ));
    }
    let follows = |kernel: &Options| kernel.unprivileged.is_none();
    if args.follow_daemons && !options.kernel.as_ref().is_some_and(follows) {
        return Err(Failure::usage(
            "--follow-daemons needs the recorder of kernel events: CAP_BPF and CAP_PERFMON, and --kernel or --syscalls other \
             than none",
        ));
    }
    Ok(())
}
