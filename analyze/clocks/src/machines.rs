//! Which traces are of which machine.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::trace::{Trace, TraceSet};

/// A machine: more exactly, one of its clocks, which is another after each start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name, if its traces tell it.
    pub host: Option<String>,
    /// The UUID of the clock, if its traces tell it.
    pub clock: Option<String>,
    /// The directory of its trace, if that is all that tells it.
    pub trace: Option<String>,
}

impl Machine {
    /// That of a trace.
    pub fn of(trace: &Trace) -> Machine {
        let class = &trace.layout.class;
        // LTTng's name, perf's name.
        let host = class.env_str("hostname").or(class.env_str("host"));
        let clock = trace.layout.streams.iter().find_map(|stream| stream.clock);
        let clock = clock.and_then(|clock| class.clocks.get(clock)?.uid.clone());
        let path = || trace.paths.first().map(|path| path.display().to_string());
        Machine {
            host: host.map(str::to_owned),
            trace: if host.is_none() && clock.is_none() {
                path()
            } else {
                None
            },
            clock,
        }
    }

    /// True if that is surely another one: it has another clock, or, where one of them tells none,
    /// another name.
    pub fn is_other(&self, other: &Machine) -> bool {
        let differ = |one: &Option<String>, other: &Option<String>| {
            one.as_ref()
                .zip(other.as_ref())
                .map(|(one, other)| one != other)
        };
        let by_clock = differ(&self.clock, &other.clock);
        by_clock
            .or(differ(&self.host, &other.host))
            .unwrap_or(false)
    }

    /// True if a person can mean it by that name.
    fn is_called(&self, name: &str) -> bool {
        [&self.host, &self.clock, &self.trace]
            .into_iter()
            .flatten()
            .any(|own| own == name)
    }
}

/// The machines of some traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machines {
    all: Vec<Machine>,
    /// By trace: the index of its machine.
    of_traces: Vec<usize>,
}

/// Machines that have no traces.
impl FromIterator<Machine> for Machines {
    fn from_iter<I: IntoIterator<Item = Machine>>(machines: I) -> Self {
        Machines {
            all: machines.into_iter().collect(),
            of_traces: Vec::new(),
        }
    }
}

impl Machines {
    /// Those of the traces, in their order.
    pub fn of(set: &TraceSet) -> Machines {
        let mut machines = Machines::default();
        for machine in set.traces.iter().map(Machine::of) {
            let known = machines.all.iter().position(|other| *other == machine);
            machines.of_traces.push(known.unwrap_or(machines.all.len()));
            if known.is_none() {
                machines.all.push(machine);
            }
        }
        machines
    }

    /// All of them.
    pub fn all(&self) -> &[Machine] {
        &self.all
    }

    /// That of a trace, by their indices.
    pub fn of_trace(&self, trace: usize) -> Option<usize> {
        self.of_traces.get(trace).copied()
    }

    /// That with a name, or UUID of the clock, or directory.
    pub fn called(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|machine| machine.is_called(name))
    }

    /// A name for people: of two machines of one name with the clock's.
    pub fn name(&self, machine: usize) -> String {
        let Some(own) = self.all.get(machine) else {
            return String::new();
        };
        let Some(host) = &own.host else {
            let other = own.trace.as_ref().or(own.clock.as_ref());
            return other.cloned().unwrap_or_default();
        };
        let is_alone = self
            .all
            .iter()
            .filter(|other| other.host == own.host)
            .count()
            < 2;
        match &own.clock {
            Some(clock) if !is_alone => format!("{host} ({clock})"),
            _ => host.clone(),
        }
    }
}
