//! OpenMP: libomp, with programs compiled by clang and by gcc.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::recorded::{Event, Run, record};
use crate::support::skipped;
use crate::truth::{Recorded, Segment, Wait, agree, follow, segments};

/// Compiles examples/openmp; `None`, with a message, without clang or libomp.
pub(crate) fn compiled() -> Option<&'static PathBuf> {
    static COMPILED: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        let directory = TempDir::new().expect("a temporary directory");
        let source = include_str!("../../../../examples/openmp/openmp.c");
        let program = compiled_from(directory.path(), "openmp", source)?;
        Some((directory, program))
    });
    compiled.as_ref().map(|(_, program)| program)
}

/// Compiles a source with clang.
pub(crate) fn compiled_from(directory: &Path, name: &str, source: &str) -> Option<PathBuf> {
    let program = directory.join(name);
    let file = program.with_extension("c");
    std::fs::write(&file, source).expect("a file");
    let mut clang = Command::new("clang");
    clang
        .args(["-fopenmp", "-O1", "-w", "-o"])
        .arg(&program)
        .arg(file);
    match clang.output() {
        Ok(output) if output.status.success() => Some(program),
        other => {
            skipped(format_args!(
                "clang -fopenmp fails (clang, libomp-14-dev): {other:?}"
            ));
            None
        }
    }
}

/// A recorded run of one of the programs with four threads.
pub(crate) struct Truth {
    events: Vec<Event>,
    pub(crate) recorded: Recorded,
    pub(crate) segments: Vec<Segment>,
    ult_of: BTreeMap<String, u64>,
}

fn program(arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new(compiled()?);
    command.args(arguments).env("OMP_NUM_THREADS", "4");
    command
        .env("OMP_CANCELLATION", "true")
        .env_remove("OMP_TOOL_LIBRARIES");
    Some(command)
}

fn recorded(arguments: &[&str], options: &[&str]) -> Option<Run> {
    record(&program(arguments)?, options)
}

/// Records a program, and compares every interval.
fn compared(arguments: &[&str]) -> Option<Truth> {
    Some(truth_of(&recorded(arguments, &[])?))
}

/// As [`compared`], with fewer threads than there may be CPUs: none has to wait for one.
pub(crate) fn compared_with_two_threads(arguments: &[&str]) -> Option<Truth> {
    let mut command = program(arguments)?;
    command.env("OMP_NUM_THREADS", "2");
    Some(truth_of(&record(&command, &[])?))
}

fn truth_of(run: &Run) -> Truth {
    let segments = segments(&run.log());
    let events = run.events();
    let recorded = follow(&events);
    let ult_of = agree(&recorded, &segments);
    Truth {
        events,
        recorded,
        segments,
        ult_of,
    }
}

impl Truth {
    fn waits(&self, reason: &str) -> Vec<&Wait> {
        let waits = self.recorded.waits.iter();
        waits.filter(|wait| wait.reason == reason).collect()
    }

    /// The task that created each task.
    fn parents(&self) -> HashMap<u64, u64> {
        let tasks = self
            .events
            .iter()
            .filter(|event| event.name == "tracebraid_openmp:task");
        tasks
            .map(|event| (event.number("ult"), event.number("parent")))
            .collect()
    }

    fn has_waits(&self, reasons: &[(&str, usize)]) {
        for (reason, least) in reasons {
            let count = self.waits(reason).len();
            assert!(count >= *least, "{count} waits for {reason}");
        }
    }
}

#[test]
fn tasks_and_their_waits() {
    let Some(truth) = compared(&["fib", "12"]) else {
        return;
    };
    let parents = truth.parents();
    let waits = truth.waits("taskwait");
    assert!(waits.len() > 20, "{} waits", waits.len());
    for wait in waits {
        assert_eq!(
            parents.get(&wait.waker),
            Some(&wait.ult),
            "the last child wakes: {wait:?}"
        );
    }
    let name = |ult: u64| truth.recorded.names[&ult].as_str();
    assert_eq!(name(truth.ult_of["1"]), "initial task");
    let tasks = truth
        .ult_of
        .values()
        .filter(|ult| name(**ult) == "fib task")
        .count();
    assert_eq!(tasks, 232, "{:?}", truth.recorded.names);
    let region = truth
        .events
        .iter()
        .find(|event| event.name == "tracebraid:span_begin");
    assert_eq!(region.expect("a span").text("name"), "main parallel");
}

#[test]
fn untied_tasks_and_parents_that_end_first() {
    if let Some(truth) = compared(&["tree", "5", "3"]) {
        truth.has_waits(&[("taskwait", 10)]);
    }
}

#[test]
fn groups_and_undeferred_tasks() {
    let Some(truth) = compared(&["groups", "8"]) else {
        return;
    };
    truth.has_waits(&[("taskgroup", 4), ("undeferred", 8)]);
    for reason in ["taskgroup", "undeferred"] {
        assert!(
            truth.waits(reason).iter().all(|wait| wait.waker > 0),
            "{reason}"
        );
    }
}

#[test]
fn dependences() {
    let Some(truth) = compared(&["wavefront", "8"]) else {
        return;
    };
    let segment_of: HashMap<u64, &Segment> = truth
        .segments
        .iter()
        .map(|of| (truth.ult_of[&of.task], of))
        .collect();
    let waits = truth.waits("dependence");
    assert!(waits.len() > 10, "{} waits", waits.len());
    for wait in waits {
        // A predecessor ends, and its last segment with it; none of the waiter's is earlier.
        let waker = segment_of[&wait.waker];
        assert!(waker.end <= wait.end + 2000, "{wait:?} {waker:?}");
    }
}

#[test]
fn loops_and_barriers() {
    let Some(truth) = compared(&["loops", "60"]) else {
        return;
    };
    truth.has_waits(&[("barrier", 10)]);
    let members: Vec<u64> = truth.ult_of.values().copied().collect();
    let waits = truth.waits("barrier");
    let own = waits.iter().filter(|wait| wait.waker == wait.ult).count();
    // A member may pass the barrier before the last one has recorded its arrival.
    assert!(own * 10 <= waits.len(), "another member arrives: {waits:?}");
    for wait in waits {
        assert!(members.contains(&wait.waker), "{wait:?}");
    }
}

/// Critical sections and locks: the thread that had the mutex wakes the next one.
#[test]
fn mutexes() {
    for (program, reason) in [("critical", "critical"), ("locks", "lock")] {
        let Some(truth) = compared(&[program, "20"]) else {
            return;
        };
        let mut held: Vec<&Segment> = truth.segments.iter().filter(|of| of.holds).collect();
        held.sort_by_key(|of| of.end);
        let long = |wait: &&&Wait| wait.end - wait.begin > 20_000;
        let waits = truth.waits(reason);
        let (mut by_owner, mut by_scheduler) = (0, 0);
        for wait in waits.iter().filter(long) {
            let ended = held.partition_point(|of| of.end <= wait.end + 2000);
            let owner = held[..ended].last().map(|of| truth.ult_of[&of.task]);
            match wait.waker {
                0 => by_scheduler += 1,
                waker => {
                    assert_eq!(Some(waker), owner, "{wait:?}");
                    by_owner += 1;
                }
            }
        }
        assert!(
            by_owner > 4 * by_scheduler,
            "{program}: {by_owner}, {by_scheduler}"
        );
    }
}

#[test]
fn ordered_nested_detached_and_cancelled() {
    for (program, reasons) in [
        ("ordered", &[("ordered", 10)][..]),
        ("nested", &[("parallel", 10), ("barrier", 10)]),
        ("detached", &[("event", 0)]),
        ("cancelled", &[]),
        ("all", &[("taskwait", 10), ("barrier", 10)]),
    ] {
        let Some(truth) = compared(&[program, "12"]) else {
            return;
        };
        truth.has_waits(reasons);
        let cancels = truth
            .events
            .iter()
            .any(|event| event.name == "tracebraid_openmp:cancel");
        assert_eq!(cancels, matches!(program, "cancelled" | "all"), "{program}");
    }
}

#[test]
fn a_program_of_gcc_with_libomp_preloaded() {
    let Some(libomp) = [
        "/usr/lib/llvm-14/lib/libomp.so.5",
        "/usr/lib/x86_64-linux-gnu/libomp.so.5",
    ]
    .into_iter()
    .find(|path| Path::new(path).is_file()) else {
        return skipped("libomp is not installed");
    };
    let directory = TempDir::new().expect("a temporary directory");
    let program = directory.path().join("openmp");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/openmp/openmp.c"
    );
    let mut gcc = Command::new("gcc");
    gcc.args(["-fopenmp", "-O1", "-w", source, "-o"])
        .arg(&program);
    assert!(gcc.status().expect("gcc runs").success());
    let mut command = Command::new(&program);
    command.args(["fib", "10"]).env("OMP_NUM_THREADS", "3");
    command
        .env("LD_PRELOAD", libomp)
        .env_remove("OMP_TOOL_LIBRARIES");
    let Some(run) = record(&command, &[]) else {
        return;
    };
    let segments = segments(&run.log());
    let recorded = follow(&run.events());
    let ult_of = agree(&recorded, &segments);
    let mut names = ult_of.values().map(|ult| &recorded.names[ult]);
    assert!(names.any(|name| name == "fib task"), "{:?}", recorded.names);
}

/// In memory, only the newest events are kept.
#[test]
fn a_snapshot_of_tasks() {
    let Some(run) = recorded(&["fib", "14"], &["--snapshot", "--max-size", "1M"]) else {
        return;
    };
    run.log();
    let switches = run
        .events()
        .into_iter()
        .filter(|event| event.name == "tracebraid:ult_switch");
    assert!(switches.count() > 100);
}
