//! All stacks of a trace set.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{Control, FoldError, Options};
use tracebraid_symbols::{PerfMap, Symbols};

use crate::events::{EventOrigin, EventRole, Sample, StackSource};
use crate::few::Few;
use crate::fields::Fields;
use crate::go_stacks::GoStacks;
use crate::how::{CALL_STACKS, How, not_cancelled};
use crate::kinds::Kinds;
use crate::mapped::{Beside, FindBeside};
use crate::naming::{NameId, Naming};
use crate::perf::PerfSystem;
use crate::process::OwnStacks;
use crate::quality::{Completeness, Limits, Quality, QualityCounts};
use crate::system::System;

/// CPU time and waits by process, function and stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Sums over all stacks.
    #[serde(flatten)]
    pub total: Sums,
    /// Processes, those with the most CPU time first.
    pub processes: Vec<Process>,
    /// Functions, those with the most CPU time first.
    pub functions: Vec<Function>,
    /// Stacks, ordered by CPU time, then by duration of waits, both descending.
    pub stacks: Vec<Stack>,
    /// Kinds of stacks that could not be recorded.
    pub missing: Vec<Missing>,
    /// Waits without a recorded end: they are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub unended_waits: u64,
    /// True if their ends are missing because perf sampled switches.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_switch_sampled: bool,
    /// Completeness of the stacks, and reasons for incomplete stacks.
    #[serde(flatten)]
    pub quality: Quality,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A kind of stacks that could not be taken in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Missing {
    /// True for stacks of waits, false for stacks of CPU time.
    pub waits: bool,
    /// The reason, as `errno`.
    pub error: i32,
}

/// Sums of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Process {
    /// Process id, if the trace contains it.
    pub pid: Option<i64>,
    /// Name of the process.
    pub name: String,
    /// Sums over its stacks.
    #[serde(flatten)]
    pub sums: Sums,
    /// Completeness of its stacks.
    #[serde(skip_serializing_if = "Completeness::is_unknown")]
    pub completeness: Completeness,
}

/// Sums of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Function {
    /// Demangled name, or a substitute if the function has no name.
    pub name: String,
    /// Stacks in which the function is the innermost.
    pub own: Sums,
    /// Stacks that contain the function.
    pub total: Sums,
}

/// Sums of one distinct stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stack {
    /// Name of the process.
    pub process: String,
    /// Functions, the outermost first.
    pub functions: Vec<String>,
    /// Sums over its occurrences.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Counts and durations, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Number of samples of CPU time.
    pub cpu_samples: u64,
    /// CPU time that the samples stand for.
    pub cpu_ns: u64,
    /// Number of waits.
    pub waits: u64,
    /// Total duration of the waits.
    pub wait_ns: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.cpu_samples += other.cpu_samples;
        self.cpu_ns += other.cpu_ns;
        self.waits += other.waits;
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
    }

    fn of(sample: &Sample) -> Sums {
        match sample.wait_ns {
            Some(wait_ns) => Sums {
                waits: 1,
                wait_ns,
                ..Sums::default()
            },
            None => Sums {
                cpu_samples: 1,
                cpu_ns: sample.period_ns,
                ..Sums::default()
            },
        }
    }

    fn order(&self) -> Reverse<(u64, u64)> {
        Reverse((self.cpu_ns, self.wait_ns))
    }
}

impl Profile {
    /// Reads the stacks of all processes of the traces. Maps of just-in-time compilers
    /// (`perf-PID.map`) are searched for in `maps`, and then in `symbols` above the traces.
    ///
    /// Only stacks that `wants` accepts count.
    ///
    /// # Errors
    /// If the pass is cancelled.
    pub fn new(
        set: &TraceSet,
        symbols: &mut Symbols,
        maps: &[PathBuf],
        (options, control): (Options, &Control),
        wants: &dyn Fn(&Met<'_>) -> bool,
    ) -> Result<Profile, FoldError> {
        control.serially(CALL_STACKS, || {
            Profile::read(set, symbols, maps, (options, control), wants)
        })
    }

    fn read(
        set: &TraceSet,
        symbols: &mut Symbols,
        maps: &[PathBuf],
        how: How<'_>,
        wants: &dyn Fn(&Met<'_>) -> bool,
    ) -> Result<Profile, FoldError> {
        let mut all = Stacks::default();
        let mut naming = Naming::new(symbols);
        let mut counts = QualityCounts::default();
        let lacks = each(
            (set, how),
            maps,
            &mut naming,
            &mut |trace, place, sample| {
                let has_duration = sample.wait_ns != Some(0);
                if has_duration && wants(&Met::new(trace, place, &sample)) {
                    if let Some((shape, runtime)) = sample.shape {
                        counts.add(shape, runtime, &sample.process);
                    }
                    all.add(sample);
                }
            },
        )?;
        counts.reaches(lacks.limits);
        Ok(Profile {
            quality: counts.finish(naming.take_nameless()),
            missing: lacks.missing.into_iter().collect(),
            unended_waits: lacks.unended_waits,
            is_switch_sampled: lacks.is_switch_sampled,
            ..all.profile(&naming)
        })
    }

    fn fill(&mut self, stacks: BTreeMap<(String, Vec<String>), Sums>) {
        let mut functions: BTreeMap<String, Function> = BTreeMap::new();
        for ((process, names), sums) in stacks {
            self.total.add(sums);
            // A recursive function counts once.
            for name in names.iter().collect::<BTreeSet<_>>() {
                functions.entry(name.clone()).or_default().total.add(sums);
            }
            if let Some(innermost) = names.last() {
                functions
                    .entry(innermost.clone())
                    .or_default()
                    .own
                    .add(sums);
            }
            self.stacks.push(Stack {
                process,
                functions: names,
                sums,
            });
        }
        let named = |(name, function)| Function { name, ..function };
        self.functions = functions.into_iter().map(named).collect();
        self.functions
            .sort_by_key(|function| (function.own.order(), function.total.order()));
        self.stacks.sort_by_key(|stack| stack.sums.order());
    }
}

/// Reasons why stacks are missing from a trace.
#[derive(Default)]
pub(crate) struct Lacks {
    pub(crate) missing: BTreeSet<Missing>,
    pub(crate) unended_waits: u64,
    pub(crate) is_switch_sampled: bool,
    /// Limits at which recorded stacks are cut.
    pub(crate) limits: Limits,
}

/// Receives each stack of the traces: the index of its trace, its origin, and the stack.
type TakeStack<'a> = &'a mut dyn FnMut(u32, &EventOrigin, Sample);

/// Passes each stack of the traces to `to`; those of one process or machine in the order of time.
/// Returns the reasons for missing stacks.
///
/// # Errors
/// If the pass is cancelled.
pub(crate) fn each(
    (set, how): (&TraceSet, How<'_>),
    maps: &[PathBuf],
    naming: &mut Naming<'_>,
    to: TakeStack<'_>,
) -> Result<Lacks, FoldError> {
    let mut lacks = Lacks::default();
    for (trace, index) in set.traces.iter().zip(0..) {
        let kinds = Kinds::new(trace);
        let beside = || beside_in(maps, trace);
        let mut give = |place: &EventOrigin, sample: Option<Sample>| {
            if let Some(sample) = sample {
                to(index, place, sample);
            }
        };
        let reading = Reading {
            set,
            how,
            trace,
            kinds: &kinds,
        };
        if kinds.any(EventRole::is_own) {
            let mut own = OwnStacks::of(trace, &beside());
            kinds.read(set, trace, how, |place, kind, fields| {
                give(place, own.event(kind, &fields, naming));
            })?;
            lacks.missing.extend(own.errors());
            lacks.limits = lacks.limits.join(own.limits());
        }
        if kinds.any(EventRole::is_kernels) {
            let mut system = System::new(beside(), trace, &kinds);
            reading.of_machine(&mut system, naming, &mut give)?;
            lacks.limits = lacks.limits.join(system.limits());
        }
        if kinds.any(EventRole::is_gos) {
            reading.of_machine(&mut GoStacks::default(), naming, &mut give)?;
        }
        if kinds.any(EventRole::is_perfs) {
            let mut perf = PerfSystem::new(beside());
            reading.of_machine(&mut perf, naming, &mut give)?;
            lacks.unended_waits += perf.unended();
            lacks.is_switch_sampled |= perf.is_sampled();
        }
    }
    Ok(lacks)
}

/// A trace whose events are read twice, if they are not few.
struct Reading<'t> {
    set: &'t TraceSet,
    how: How<'t>,
    trace: &'t Trace,
    kinds: &'t Kinds,
}

impl Reading<'_> {
    fn of_machine(
        &self,
        source: &mut dyn StackSource,
        naming: &mut Naming<'_>,
        give: &mut dyn FnMut(&EventOrigin, Option<Sample>),
    ) -> Result<(), FoldError> {
        let (_, control) = self.how;
        let mut events = Few::default();
        self.read(|place, kind, fields| {
            source.learn(kind, &fields);
            events.add(place, kind, fields);
        })?;
        let mut to = |place: &EventOrigin, kind, fields: &Fields| {
            let sample = source.event(place, kind, fields, naming);
            give(place, sample);
        };
        match events.all() {
            Some(events) => {
                let events = events.iter().take_while(|_| !control.is_cancelled());
                events.for_each(|(place, kind, fields)| to(place, *kind, fields));
                not_cancelled(control)
            }
            None => self.read(|place, kind, fields| to(place, kind, &fields)),
        }
    }

    fn read(&self, to: impl FnMut(&EventOrigin, EventRole, Fields)) -> Result<(), FoldError> {
        self.kinds.read(self.set, self.trace, self.how, to)
    }
}

/// Attributes of a stack by which it can be selected.
#[derive(Clone, Copy, Debug)]
pub struct Met<'m> {
    /// Index of its trace in the set.
    pub trace: u32,
    /// Time of the sample.
    pub time: Timestamp,
    /// The CPU; for programs that take their own stacks, the CPU on which the packet was begun.
    pub cpu: Option<u64>,
    /// Thread id.
    pub tid: Option<i64>,
    /// Process id.
    pub pid: Option<i64>,
    /// Name of the process, or of the thread if the kernel took the stack.
    pub name: &'m str,
}

impl<'m> Met<'m> {
    fn new(trace: u32, place: &EventOrigin, sample: &'m Sample) -> Met<'m> {
        Met {
            trace,
            time: place.time,
            cpu: place.cpu,
            tid: sample.tid.or(place.tid),
            pid: sample.process.pid,
            name: &sample.process.name,
        }
    }
}

#[derive(Default)]
struct Stacks {
    /// By process id and name.
    processes: BTreeMap<(Option<i64>, String), (Sums, Completeness)>,
    /// By functions, the innermost first, and name of the process.
    stacks: HashMap<Vec<NameId>, BTreeMap<String, Sums>>,
}

impl Stacks {
    fn add(&mut self, sample: Sample) {
        let sums = Sums::of(&sample);
        let Process { pid, name, .. } = sample.process;
        let (of_process, completeness) = self.processes.entry((pid, name.clone())).or_default();
        of_process.add(sums);
        if let Some((shape, _)) = sample.shape {
            completeness.add(shape);
        }
        let stack = self.stacks.entry(sample.functions).or_default();
        stack.entry(name).or_default().add(sums);
    }

    fn profile(self, naming: &Naming<'_>) -> Profile {
        let process = |((pid, name), (sums, completeness))| Process {
            pid,
            name,
            sums,
            completeness,
        };
        let mut profile = Profile {
            processes: self.processes.into_iter().map(process).collect(),
            ..Profile::default()
        };
        profile
            .processes
            .sort_by_key(|process| process.sums.order());
        let mut stacks = BTreeMap::new();
        for (functions, processes) in &self.stacks {
            let functions = functions.iter().rev().map(|&id| naming.name(id).to_owned());
            let functions: Vec<String> = functions.collect();
            for (process, sums) in processes {
                stacks.insert((process.clone(), functions.clone()), *sums);
            }
        }
        profile.fill(stacks);
        profile
    }
}

/// Finds files of processes beside a trace or in the given directories.
pub(crate) fn beside_in(maps: &[PathBuf], trace: &Trace) -> Box<FindBeside> {
    let (maps, paths) = (maps.to_vec(), trace.paths.clone());
    let vdso = beside(&maps, &paths, "vdso.so");
    Box::new(move |pid| {
        let map = beside(&maps, &paths, &format!("perf-{pid}.map"));
        Beside {
            compiled: map.and_then(|file| PerfMap::open(&file).ok()),
            vdso: vdso.clone(),
        }
    })
}

/// A file beside the traces or in one of the given directories.
fn beside(directories: &[PathBuf], traces: &[PathBuf], name: &str) -> Option<PathBuf> {
    // A trace is in the recording's directory, or some levels below.
    let above = traces.iter().flat_map(|trace| trace.ancestors().take(5));
    let recorded = above.map(|directory| directory.join("symbols"));
    let places = directories.iter().cloned().chain(recorded);
    let mut files = places.map(|directory| directory.join(name));
    files.find(|file| file.is_file())
}

impl Process {
    pub(crate) fn of(trace: &Trace) -> Process {
        let class = &trace.layout.class;
        let pid = match class.env("vpid") {
            Some(EnvValue::Int(pid)) => i64::try_from(*pid).ok(),
            _ => None,
        };
        Process {
            pid,
            name: class.env_str("procname").unwrap_or_default().to_owned(),
            ..Process::default()
        }
    }
}
