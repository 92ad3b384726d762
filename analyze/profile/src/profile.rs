//! All stacks of a trace set.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_symbols::Symbols;

use crate::fields::Fields;
use crate::process::{Kind, Mapped, Sample};

/// Which functions used the CPU, and which waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// In all.
    #[serde(flatten)]
    pub total: Sums,
    /// Processes, those with the most CPU time first.
    pub processes: Vec<Process>,
    /// Functions, those with the most CPU time first.
    pub functions: Vec<Function>,
    /// Stacks, those with the most CPU time first, and of those with as much, the longest waits.
    pub stacks: Vec<Stack>,
}

/// Of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: Option<i64>,
    /// Its name.
    pub name: String,
    /// In all.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// While it was the innermost.
    pub own: Sums,
    /// While it or what it called was.
    pub total: Sums,
}

/// A stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stack {
    /// The process.
    pub process: String,
    /// The outermost function first.
    pub functions: Vec<String>,
    /// In all.
    #[serde(flatten)]
    pub sums: Sums,
}

/// How often, and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Samples of CPU time.
    pub cpu_samples: u64,
    /// CPU time that they stand for.
    pub cpu_ns: u64,
    /// Waits.
    pub waits: u64,
    /// How long they took.
    pub wait_ns: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.cpu_samples += other.cpu_samples;
        self.cpu_ns += other.cpu_ns;
        self.waits += other.waits;
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
    }

    fn of(sample: &Sample, period_ns: u64) -> Sums {
        match sample.wait_ns {
            Some(wait_ns) => Sums {
                waits: 1,
                wait_ns,
                ..Sums::default()
            },
            None => Sums {
                cpu_samples: 1,
                cpu_ns: period_ns,
                ..Sums::default()
            },
        }
    }

    fn order(&self) -> Reverse<(u64, u64)> {
        Reverse((self.cpu_ns, self.wait_ns))
    }
}

impl Profile {
    /// Of all processes of the traces that have stacks.
    pub fn new(set: &TraceSet, symbols: &mut Symbols) -> Profile {
        let mut stacks: BTreeMap<(String, Vec<String>), Sums> = BTreeMap::new();
        let mut profile = Profile::default();
        for trace in &set.traces {
            let kinds = Kinds::new(trace);
            if kinds.is_empty() {
                continue;
            }
            let mut process = Process::of(trace);
            let name = process.name.clone();
            read(set, trace, &kinds, symbols, |sample, period| {
                let sums = Sums::of(&sample, period);
                process.sums.add(sums);
                let mut functions = sample.functions;
                functions.reverse();
                stacks.entry((name.clone(), functions)).or_default().add(sums);
            });
            if process.sums != Sums::default() {
                profile.processes.push(process);
            }
        }
        profile.processes.sort_by_key(|process| process.sums.order());
        profile.fill(stacks);
        profile
    }

    fn fill(&mut self, stacks: BTreeMap<(String, Vec<String>), Sums>) {
        let mut functions: BTreeMap<String, Function> = BTreeMap::new();
        for ((process, names), sums) in stacks {
            self.total.add(sums);
            // One that calls itself counts once.
            for name in names.iter().collect::<BTreeSet<_>>() {
                functions.entry(name.clone()).or_default().total.add(sums);
            }
            if let Some(innermost) = names.last() {
                functions.entry(innermost.clone()).or_default().own.add(sums);
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

impl Process {
    fn of(trace: &Trace) -> Process {
        let class = &trace.layout.class;
        let pid = match class.env("vpid") {
            Some(EnvValue::Int(pid)) => i64::try_from(*pid).ok(),
            _ => None,
        };
        Process {
            pid,
            name: class.env_str("procname").unwrap_or_default().to_owned(),
            sums: Sums::default(),
        }
    }
}

/// Which event classes of a trace matter.
struct Kinds(HashMap<(usize, usize), Kind>);

impl Kinds {
    fn new(trace: &Trace) -> Kinds {
        let mut kinds = HashMap::new();
        for (class, stream) in trace.layout.streams.iter().enumerate() {
            for (event, layout) in stream.events.iter().enumerate() {
                if let Some(kind) = Kind::named(&layout.name) {
                    kinds.insert((class, event), kind);
                }
            }
        }
        Kinds(kinds)
    }

    fn is_empty(&self) -> bool {
        !self.0.values().any(|kind| matches!(kind, Kind::Cpu | Kind::Wait))
    }
}

/// Gives all stacks of a trace, with the period that holds.
fn read(
    set: &TraceSet,
    trace: &Trace,
    kinds: &Kinds,
    symbols: &mut Symbols,
    mut to: impl FnMut(Sample, u64),
) {
    let mut merged = MergedReader::chosen(set, |of, stream| match std::ptr::eq(of, trace) {
        true => 0..stream.packets.len(),
        false => 0..0,
    });
    let mut mapped = Mapped::default();
    while let Some((_, reader)) = merged.next() {
        let class = reader.stream().class;
        if let Some(mut event) = reader.event()
            && let Some(&kind) = kinds.0.get(&(class, event.class_index))
            && let Some(sample) = mapped.event(kind, &Fields::of(&mut event), symbols)
        {
            to(sample, mapped.period_ns);
        }
    }
}
