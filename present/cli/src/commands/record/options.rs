//! Options of a recording from the arguments of `record`.

use jiff::Zoned;
use tracebraid_session::kernel::{
    ChosenEvents, Group, Options, Syscalls, USUAL, is_in_user_namespace, missing_privileges,
};
use tracebraid_session::{Probes, SessionOptions, file_size_limit, is_cuda_taken};

use super::{RecordArgs, launch, stacks, when};
use crate::failure::Failure;
use crate::output::say;

/// Smallest size limit of a trace, in bytes.
const LEAST: u64 = 1 << 20;

/// Default of `--max-size` with `--snapshot`: number of bytes kept in memory.
const KEPT: u64 = 64 << 20;

/// Patterns of the command's event classes.
fn patterns(args: &RecordArgs) -> Vec<String> {
    if args.probes.is_empty() {
        return vec!["*".to_owned()];
    }
    let wanted = args.probes.iter().filter(|pattern| *pattern != "none");
    wanted.cloned().collect()
}

/// Maximum size of the trace in bytes. The file size limit of this process counts too: a file cut
/// at that limit would lack its end.
fn size_limit(args: &RecordArgs) -> Option<u64> {
    let of_files = file_size_limit().filter(|_| args.rotate.is_none());
    let limits = [args.max_size, of_files].into_iter().flatten();
    limits.min().filter(|_| !args.snapshot)
}

/// Options of the session, whose directory has yet to be created.
pub(super) fn session_options(args: &RecordArgs) -> Result<SessionOptions, Failure> {
    let mut probes = Probes {
        patterns: patterns(args),
        ring: args.snapshot,
        limit: size_limit(args),
        library: None,
        gpu: None,
        cost: None,
        levels: (args.levels && !args.command.is_empty()).then(stacks::of_levels),
    };
    if args.gpu && !args.command.is_empty() {
        let library = stacks::of_gpu()?;
        if is_cuda_taken(&library) {
            say!(
                "warning: CUDA is not recorded: CUDA_INJECTION64_PATH names the library of another tool"
            );
        }
        probes.gpu = Some(library);
    }
    let has_events = !probes.patterns.is_empty() || probes.gpu.is_some() || probes.levels.is_some();
    let has_probes = !args.command.is_empty() && has_events;
    let kernel = kernel_options(args)?;
    let modules = stacks::modules(has_probes && probes.has_functions() && !args.snapshot);
    // Only on request: programs with other C libraries or with sanitizers may refuse to start with
    // a preloaded library.
    let is_asked_for = !args.probes.is_empty() || probes.levels.is_some();
    if has_probes && is_asked_for && modules.is_none() {
        probes.library = stacks::of_probes();
    }
    if has_probes && is_asked_for {
        probes.cost = launch::probe_cost();
    }
    Ok(SessionOptions {
        kernel,
        modules,
        probes: has_probes.then_some(probes),
        ..SessionOptions::default()
    })
}

/// Options of the kernel recorder. `None` if the kernel cannot be recorded, no option requires it,
/// and other events are recorded.
fn kernel_options(args: &RecordArgs) -> Result<Option<Options>, Failure> {
    let groups = groups(args);
    let syscalls = args
        .syscalls
        .as_ref()
        .map_or(Syscalls::All, |traced| traced.0.clone().by_kernel_names());
    if let Some(name) = syscalls.unknown().first() {
        return Err(Failure::usage(format!("there is no system call `{name}`")));
    }
    let has_events = !groups.is_empty() || syscalls != Syscalls::None || !args.event.is_empty();
    if !has_events && args.stacks.is_none() {
        return Ok(None);
    }
    check_sizes(args)?;
    let missing = missing_privileges();
    let events = events(args, &missing)?;
    let is_choice = args.kernel.is_some() || args.syscalls.is_some();
    let needs_privileges = args.command.is_empty() || is_choice && has_events;
    let is_unprivileged = !missing.is_empty() && !needs_privileges;
    if is_unprivileged && has_events {
        warn_unprivileged(args, &missing);
    }
    if is_unprivileged && args.stacks.is_none() {
        return Ok(None);
    }
    if is_unprivileged && (args.condition.is_some() || !args.context.is_empty()) {
        return Err(Failure::usage(format!(
            "--where and --context need the recorder of kernel events, and this process lacks {}",
            missing.join(" and ")
        )));
    }
    let (groups, syscalls) = match is_unprivileged {
        true => (Vec::new(), Syscalls::None),
        false => (groups, syscalls),
    };
    let events = with_gpu(args, events, &groups)?;
    for note in events.notes() {
        say!("warning: {note}");
    }
    let mut options = Options {
        groups,
        syscalls,
        events,
        conditions: args.condition.clone().unwrap_or_default().0,
        contexts: args.context.clone(),
        processes: (!args.pid.is_empty()).then(|| args.pid.clone()),
        descendants: args.descendants,
        stacks: args.stacks.as_ref().map(stacks::Wanted::of_kernel),
        ring_bytes: args.buffer_size,
        keep: args.snapshot.then(|| args.max_size.unwrap_or(KEPT)),
        limit: size_limit(args),
        rotation: args
            .rotate
            .as_ref()
            .map(|wanted| wanted.of_kernel(args.keep)),
        ctf2: args.ctf2,
        creation: Zoned::now().strftime("%Y%m%dT%H%M%S%z").to_string(),
        state_dump: !args.no_state_dump && !is_unprivileged,
        // The process id of the command is not known yet.
        unprivileged: is_unprivileged.then_some(0),
        ..Options::default()
    };
    options.triggering = when::of_kernel(args, &options)?;
    Ok(Some(options))
}

fn check_sizes(args: &RecordArgs) -> Result<(), Failure> {
    if args.max_size.is_some_and(|most| most < LEAST) {
        return Err(Failure::usage(
            "--max-size must be at least 1M: the descriptions of events alone take half of that",
        ));
    }
    if size_limit(args).is_some_and(|most| most < LEAST) {
        return Err(Failure::usage(
            "the file size limit (`ulimit -f`) is below the 1M that a trace needs: raise the limit",
        ));
    }
    Ok(())
}

/// Groups of kernel events.
fn groups(args: &RecordArgs) -> Vec<Group> {
    if let Some(groups) = &args.kernel {
        return groups.0.clone();
    }
    let of_gpu = args.gpu.then_some(Group::Gpu);
    USUAL.iter().copied().chain(of_gpu).collect()
}

/// Adds the tracepoints of GPU jobs. A kernel without them is reported only if the group is named.
fn with_gpu(
    args: &RecordArgs,
    mut events: ChosenEvents,
    groups: &[Group],
) -> Result<ChosenEvents, Failure> {
    if !groups.contains(&Group::Gpu) {
        return Ok(events);
    }
    let is_named = (args.kernel.as_ref()).is_some_and(|groups| groups.is_named(Group::Gpu));
    match events.add_gpu(is_named) {
        Err(why) if is_named => Err(Failure::usage(format!("--kernel gpu: {why}"))),
        _ => Ok(events),
    }
}

/// The events of `--event`. Fails if privileges are `missing`.
fn events(args: &RecordArgs, missing: &[&str]) -> Result<ChosenEvents, Failure> {
    if !missing.is_empty() && !args.event.is_empty() {
        return Err(Failure::usage(format!(
            "--event needs {}",
            missing.join(" and ")
        )));
    }
    ChosenEvents::resolve(&args.event).map_err(|why| Failure::usage(format!("--event: {why}")))
}

/// Warns that kernel events are not recorded because privileges are `missing`.
fn warn_unprivileged(args: &RecordArgs, missing: &[&str]) {
    let stacks = if args.stacks.is_some() {
        " and its call stacks"
    } else {
        ""
    };
    say!(
        "warning: kernel events are not recorded, which needs {}{}: only the command's own probes{stacks} are recorded",
        missing.join(" and "),
        match is_in_user_namespace() {
            true =>
                " in the initial user namespace (this process is in another one, as in a rootless container)",
            false => "",
        }
    );
}
