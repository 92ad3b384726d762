//! Completeness of call stacks, and remedies for incomplete stacks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;
use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{Control, FoldError, Options};

use crate::Met;
use crate::Process;
use crate::events::{EventOrigin, EventRole};
use crate::fields::Fields;
use crate::how::{CALL_STACKS, How};
use crate::kinds::Kinds;
use crate::nameless::{NamelessCounts, NamelessFrames};

/// Where a stack ends; the field `status` of its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackShape {
    /// At the outermost frame.
    Whole,
    /// At the tracer's maximum number of frames (`depth`).
    Cut,
    /// At the end of the copied part of the stack.
    Short,
    /// Where the next frame was not found.
    Broken,
}

impl StackShape {
    /// The shape in an event; `None` if the event has none.
    pub(crate) fn of(fields: &Fields) -> Option<StackShape> {
        match fields.integer("status")? {
            0 => Some(StackShape::Whole),
            1 => Some(StackShape::Cut),
            2 => Some(StackShape::Broken),
            3 => Some(StackShape::Short),
            _ => None,
        }
    }
}

/// Numbers of stacks by shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// Stacks with all frames. (Those taken by frame pointers may end early unnoticed.)
    pub whole: u64,
    /// Stacks cut at the tracer's maximum number of frames, and those of `cut_by_bytes`.
    pub cut: u64,
    /// Stacks whose copied part was too short: counted in `cut`, too. Recordings of earlier
    /// versions do not distinguish them.
    pub cut_by_bytes: u64,
    /// Stacks with outer frames that were not found.
    pub broken: u64,
}

impl Completeness {
    /// All stacks.
    pub fn all(&self) -> u64 {
        self.whole + self.cut + self.broken
    }

    /// True if no stack has a recorded shape.
    pub fn is_unknown(&self) -> bool {
        self.all() == 0
    }

    pub(crate) fn add(&mut self, shape: StackShape) {
        match shape {
            StackShape::Whole => self.whole += 1,
            StackShape::Cut => self.cut += 1,
            StackShape::Short => {
                self.cut += 1;
                self.cut_by_bytes += 1;
            }
            StackShape::Broken => self.broken += 1,
        }
    }
}

/// The runtime of a program, which determines the remedy for broken stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Runtime {
    /// Machine code without a runtime.
    #[default]
    Compiled,
    Java,
    Node,
    /// CPython 3 with this minor version.
    Python(Option<u32>),
}

/// First minor version of CPython that writes maps for perf, with frames that can be unwound.
const PYTHON_WITH_MAPS: u32 = 12;

impl Runtime {
    /// The runtime that an executable mapping of this file indicates.
    pub(crate) fn of_file(path: &Path) -> Option<Runtime> {
        let name = path.file_name()?.to_str()?;
        let python = name
            .strip_prefix("libpython3")
            .or_else(|| name.strip_prefix("python3"));
        if let Some(rest) = python {
            let digits = rest.strip_prefix('.').unwrap_or_default();
            let digits = digits
                .split(|letter: char| !letter.is_ascii_digit())
                .next()?;
            return Some(Runtime::Python(digits.parse().ok()));
        }
        let is_node = name.starts_with("libnode.so") || ["node", "nodejs"].contains(&name);
        match name {
            "libjvm.so" => Some(Runtime::Java),
            _ if is_node => Some(Runtime::Node),
            _ => None,
        }
    }

    fn name(self) -> String {
        match self {
            Runtime::Compiled => "compiled programs".to_owned(),
            Runtime::Java => "Java".to_owned(),
            Runtime::Node => "Node.js".to_owned(),
            Runtime::Python(Some(minor)) => format!("Python 3.{minor}"),
            Runtime::Python(None) => "Python".to_owned(),
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Runtime::Compiled => {
                "compile programs and libraries with -fno-omit-frame-pointer, and keep unwind tables (.eh_frame)"
            }
            Runtime::Java => {
                "start java with -XX:+PreserveFramePointer, and use perf-map-agent for names of compiled methods"
            }
            Runtime::Node => "start node with --perf-basic-prof",
            Runtime::Python(minor) if minor.is_none_or(|minor| minor >= PYTHON_WITH_MAPS) => {
                "start python with -X perf (or PYTHONPERFSUPPORT=1)"
            }
            Runtime::Python(_) => {
                "use Python 3.12 or later with -X perf: earlier versions have no support for perf"
            }
        }
    }
}

/// Broken stacks of programs that need the same remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Name of the runtime.
    pub runtime: String,
    /// Number of broken stacks.
    pub broken: u64,
    /// Processes, those with the most broken stacks first.
    pub processes: Vec<BrokenProcess>,
    /// Imperative advice: an option or a command.
    pub remedy: &'static str,
}

/// A process with broken stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenProcess {
    /// Process id.
    pub pid: Option<i64>,
    /// Name of the process.
    pub name: String,
    /// Number of broken stacks.
    pub broken: u64,
}

/// Completeness of stacks, and remedies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quality {
    /// Completeness of all stacks.
    #[serde(skip_serializing_if = "Completeness::is_unknown")]
    pub completeness: Completeness,
    /// The tracer's limits.
    #[serde(flatten)]
    pub limits: Limits,
    /// By runtime, those with the most broken stacks first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// Frames without names, if names were looked up.
    #[serde(flatten)]
    pub nameless: NamelessFrames,
}

/// Minimum share of stacks, in percent, for a defect to be reported as a line.
const LEAST_PERCENT: u64 = 1;

/// Maximum number of stack bytes that a recording without privileges copies
/// (`record/kernel/src/stacks/perf.rs`).
const MOST_UNPRIVILEGED: u64 = 16 << 10;

/// A defect that affects enough stacks to be reported as a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackDefect<'q> {
    /// This number of stacks is cut at the maximum number of frames.
    CutByDepth(u64),
    /// This number of stacks is cut at the end of their copied part.
    CutByBytes(u64),
    /// Stacks of one runtime are broken.
    Broken(&'q Remedy),
}

impl Quality {
    /// The defects that affect at least `LEAST_PERCENT` of the stacks.
    pub fn defects(&self) -> Vec<StackDefect<'_>> {
        let all = self.completeness.all();
        let is_much = |part: u64| part > 0 && part * 100 >= all * LEAST_PERCENT;
        let Completeness {
            cut, cut_by_bytes, ..
        } = self.completeness;
        let by_depth = cut.saturating_sub(cut_by_bytes);
        let cut = [
            (by_depth, StackDefect::CutByDepth(by_depth)),
            (cut_by_bytes, StackDefect::CutByBytes(cut_by_bytes)),
        ];
        let broken = self.remedies.iter();
        let broken = broken.map(|remedy| (remedy.broken, StackDefect::Broken(remedy)));
        let defects = cut.into_iter().chain(broken);
        defects
            .filter_map(|(stacks, defect)| is_much(stacks).then_some(defect))
            .collect()
    }
}

/// Limits of recorded stacks; the largest of all traces that have stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Maximum number of user-space frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// Number of stack bytes that are copied. Recordings of earlier versions do not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_bytes: Option<u64>,
    /// Minimum duration of waits with a stack, in nanoseconds; 0: waits have none. All waits: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_ns: Option<u64>,
}

impl Limits {
    /// True if copying more of each stack requires privileges.
    pub fn needs_privileges(&self) -> bool {
        self.stack_bytes
            .is_some_and(|bytes| bytes <= MOST_UNPRIVILEGED)
    }

    /// The limits in the event that describes how stacks are taken.
    pub(crate) fn of(fields: &Fields) -> Limits {
        Limits {
            depth: fields.integer("depth"),
            stack_bytes: fields.integer("stack_bytes"),
            threshold_ns: fields.integer("threshold_ns"),
        }
    }

    /// The larger of both limits.
    #[must_use]
    pub(crate) fn join(self, other: Limits) -> Limits {
        Limits {
            depth: self.depth.max(other.depth),
            stack_bytes: self.stack_bytes.max(other.stack_bytes),
            threshold_ns: self.threshold_ns.max(other.threshold_ns),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct QualityCounts {
    total: Completeness,
    limits: Limits,
    broken: BTreeMap<Runtime, BTreeMap<Option<i64>, (u64, String)>>,
}

impl QualityCounts {
    pub(crate) fn add(&mut self, shape: StackShape, runtime: Runtime, process: &Process) {
        self.total.add(shape);
        if shape == StackShape::Broken {
            let processes = self.broken.entry(runtime).or_default();
            let (count, _) = processes
                .entry(process.pid)
                .or_insert_with(|| (0, process.name.clone()));
            *count += 1;
        }
    }

    pub(crate) fn reaches(&mut self, limits: Limits) {
        self.limits = self.limits.join(limits);
    }

    pub(crate) fn finish(self, nameless: NamelessCounts) -> Quality {
        let remedy = |(runtime, processes): (Runtime, BTreeMap<_, (u64, String)>)| {
            let mut processes: Vec<BrokenProcess> = processes
                .into_iter()
                .map(|(pid, (broken, name))| BrokenProcess { pid, name, broken })
                .collect();
            processes.sort_by_key(|process| Reverse(process.broken));
            Remedy {
                runtime: runtime.name(),
                broken: processes.iter().map(|process| process.broken).sum(),
                processes,
                remedy: runtime.remedy(),
            }
        };
        let mut remedies: Vec<Remedy> = self.broken.into_iter().map(remedy).collect();
        remedies.sort_by_key(|remedy| Reverse(remedy.broken));
        Quality {
            completeness: self.total,
            limits: self.limits,
            remedies,
            nameless: nameless.finish(),
        }
    }
}

impl Quality {
    /// Quality of the stacks that `wants` accepts, without looking up names. Traces without stacks
    /// are not read.
    ///
    /// # Errors
    /// If the pass is cancelled.
    pub fn new(
        set: &TraceSet,
        (options, control): (Options, &Control),
        wants: &dyn Fn(&Met<'_>) -> bool,
    ) -> Result<Quality, FoldError> {
        control.serially(CALL_STACKS, || {
            Quality::read(set, (options, control), wants)
        })
    }

    fn read(
        set: &TraceSet,
        how: How<'_>,
        wants: &dyn Fn(&Met<'_>) -> bool,
    ) -> Result<Quality, FoldError> {
        let mut counts = QualityCounts::default();
        for (trace, index) in set.traces.iter().zip(0..) {
            let kinds = Kinds::new(trace);
            let is_own = kinds.any(EventRole::is_own);
            if !is_own && !has_stacks(trace, &kinds) {
                continue;
            }
            let kinds = kinds.only(|kind| {
                kind.is_own()
                    || kind.is_kernels()
                    || matches!(
                        kind,
                        EventRole::MapLoad
                            | EventRole::MapFork
                            | EventRole::MapExec
                            | EventRole::Load
                            | EventRole::State
                            | EventRole::OwnState
                    )
            });
            let mut process = is_own.then(|| Process::of(trace));
            let mut runtimes = Runtimes::default();
            kinds.read(set, trace, how, |place, kind, fields| {
                match kind {
                    EventRole::State | EventRole::OwnState => counts.reaches(Limits::of(&fields)),
                    _ => runtimes.learn(kind, &fields),
                }
                let (true, Some(shape)) =
                    (kind.is_own() || kind.is_kernels(), StackShape::of(&fields))
                else {
                    return;
                };
                let of_event = || Process {
                    pid: fields.integer("pid").map(|pid| i64::from(pid as i32)),
                    name: String::from_utf8_lossy(fields.text("comm")).into_owned(),
                    ..Process::default()
                };
                let process = match &mut process {
                    Some(process) => process.clone(),
                    None => of_event(),
                };
                let pid = if is_own { None } else { process.pid };
                let is_kernel_thread =
                    !is_own && !runtimes.knows(pid) && fields.array("callstack_user").is_empty();
                if !is_kernel_thread && wants(&met(index, place, &fields, &process)) {
                    counts.add(shape, runtimes.of(pid), &process);
                }
            })?;
        }
        Ok(counts.finish(NamelessCounts::default()))
    }
}

fn met<'m>(trace: u32, place: &EventOrigin, fields: &Fields, process: &'m Process) -> Met<'m> {
    let tid = fields.integer("tid").map(|tid| i64::from(tid as i32));
    Met {
        trace,
        time: place.time,
        cpu: place.cpu,
        tid: tid.or(place.tid),
        pid: process.pid,
        name: &process.name,
    }
}

/// Runtimes by process id; `None` in the trace of a single process.
#[derive(Debug, Default)]
struct Runtimes(HashMap<Option<i64>, Runtime>);

impl Runtimes {
    fn learn(&mut self, kind: EventRole, fields: &Fields) {
        let pid = |name: &str| fields.integer(name).map(|pid| i64::from(pid as i32));
        match kind {
            EventRole::MapLoad | EventRole::Load => {
                let of = self.0.entry(if kind == EventRole::Load {
                    None
                } else {
                    pid("pid")
                });
                let of = of.or_default();
                let path = std::str::from_utf8(fields.text("path")).unwrap_or_default();
                *of = Runtime::of_file(Path::new(path)).unwrap_or(*of);
            }
            EventRole::MapFork => {
                if let Some(&parent) = self.0.get(&pid("parent_pid")) {
                    self.0.insert(pid("pid"), parent);
                }
            }
            EventRole::MapExec => _ = self.0.remove(&pid("pid")),
            _ => {}
        }
    }

    fn knows(&self, pid: Option<i64>) -> bool {
        self.0.contains_key(&pid)
    }

    fn of(&self, pid: Option<i64>) -> Runtime {
        self.0.get(&pid).copied().unwrap_or_default()
    }
}

/// True if a kernel's trace contains stacks. The recorder describes them at the beginning or, in
/// overwrite mode, at the end, so only the first and the last packet of each stream are read.
fn has_stacks(trace: &Trace, kinds: &Kinds) -> bool {
    trace.streams.iter().any(|stream| {
        let packets = [0, stream.packets.len().saturating_sub(1)];
        packets
            .iter()
            .any(|&index| describes_stacks(trace, stream, kinds, index))
    })
}

fn describes_stacks(trace: &Trace, stream: &Stream, kinds: &Kinds, packet: usize) -> bool {
    let find = || {
        let layout = trace.layout.streams.get(stream.class)?;
        let is_state = |class: usize| kinds.of((stream.class, class)) == Some(EventRole::State);
        if !(0..layout.events.len()).any(is_state) {
            return None;
        }
        let table = ScanTable::new(layout, is_state).into();
        let mut scanner = Scanner::new(trace, stream, table, packet..packet + 1)?;
        scanner.next_packet()?;
        loop {
            let progress = scanner.scan_up_to(1);
            if !scanner.hits().is_empty() {
                return Some(());
            }
            if progress == Progress::PacketEnd {
                return None;
            }
        }
    };
    find().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_their_files() {
        for (path, runtime) in [
            (
                "/usr/lib/jvm/java-17/lib/server/libjvm.so",
                Some(Runtime::Java),
            ),
            ("/usr/bin/python3.11", Some(Runtime::Python(Some(11)))),
            (
                "/opt/lib/libpython3.13t.so.1.0",
                Some(Runtime::Python(Some(13))),
            ),
            ("/usr/lib/libpython3.so", Some(Runtime::Python(None))),
            ("/usr/bin/python3", Some(Runtime::Python(None))),
            ("/usr/bin/node", Some(Runtime::Node)),
            ("/usr/lib/libnode.so.108", Some(Runtime::Node)),
            ("/usr/lib/libc.so.6", None),
            ("/opt/nodes", None),
            ("[vdso]", None),
            ("/", None),
        ] {
            assert_eq!(Runtime::of_file(Path::new(path)), runtime, "{path}");
        }
        assert!(Runtime::Python(Some(11)).remedy().contains("3.12"));
        assert!(
            Runtime::Python(Some(12))
                .remedy()
                .starts_with("start python with -X perf")
        );
        assert!(Runtime::Java.remedy().contains("PreserveFramePointer"));
    }

    #[test]
    fn there_is_a_remedy_for_each_runtime() {
        let mut counts = QualityCounts::default();
        let process = |pid, name: &str| Process {
            pid: Some(pid),
            name: name.to_owned(),
            ..Process::default()
        };
        let mut add = |shape, runtime, pid, name| counts.add(shape, runtime, &process(pid, name));
        add(StackShape::Whole, Runtime::Compiled, 1, "a");
        add(StackShape::Cut, Runtime::Java, 2, "java");
        add(StackShape::Short, Runtime::Java, 2, "java");
        for (pid, count) in [(2, 1), (3, 2), (4, 1)] {
            for _ in 0..count {
                add(StackShape::Broken, Runtime::Java, pid, "java");
            }
        }
        add(StackShape::Broken, Runtime::Compiled, 1, "a");
        let limits = Limits {
            depth: Some(64),
            stack_bytes: None,
            threshold_ns: Some(100_000),
        };
        counts.reaches(limits);
        counts.reaches(Limits::default());
        let quality = counts.finish(NamelessCounts::default());
        assert_eq!(
            quality.completeness,
            Completeness {
                whole: 1,
                cut: 2,
                cut_by_bytes: 1,
                broken: 5
            }
        );
        assert_eq!(quality.limits, limits);
        let remedies: Vec<(&str, u64)> = quality
            .remedies
            .iter()
            .map(|remedy| (&*remedy.runtime, remedy.broken))
            .collect();
        assert_eq!(remedies, [("Java", 4), ("compiled programs", 1)]);
        let pids: Vec<_> = quality.remedies[0]
            .processes
            .iter()
            .map(|process| process.pid)
            .collect();
        assert_eq!(pids, [Some(3), Some(2), Some(4)]);
    }
}
