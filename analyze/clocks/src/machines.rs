//! Assignment of traces to machines.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::trace::{Trace, TraceSet};

/// A machine or, more exactly, its clock during one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name, if the traces contain it.
    pub host: Option<String>,
    /// UUID of the clock, if the traces contain it.
    pub clock: Option<String>,
    /// Directory of the trace, if the trace contains neither host name nor clock UUID.
    pub trace: Option<String>,
}

impl Machine {
    /// The machine of a trace.
    pub fn of(trace: &Trace) -> Machine {
        let class = &trace.layout.class;
        // `hostname` is LTTng's name, `host` is perf's.
        let host = class.env_str("hostname").or(class.env_str("host"));
        let clock = trace.layout.streams.iter().find_map(|stream| stream.clock);
        let clock = clock.and_then(|clock| class.clocks.get(clock)?.uid.clone());
        let path = || trace.known_path().map(|path| path.display().to_string());
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

    /// True if the two are certainly different machines: their clocks differ or, if either clock is
    /// unknown, their host names differ.
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

    /// True if `name` is the host name, clock UUID or trace directory.
    fn is_called(&self, name: &str) -> bool {
        [&self.host, &self.clock, &self.trace]
            .into_iter()
            .flatten()
            .any(|own| own == name)
    }
}

/// The machines of a set of traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machines {
    all: Vec<Machine>,
    /// Index of the machine, by index of the trace.
    of_traces: Vec<usize>,
}

/// Creates machines without traces.
impl FromIterator<Machine> for Machines {
    fn from_iter<I: IntoIterator<Item = Machine>>(machines: I) -> Self {
        Machines {
            all: machines.into_iter().collect(),
            of_traces: Vec::new(),
        }
    }
}

impl Machines {
    /// The machines of a trace set, in the order of its traces.
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

    /// All machines, in the order of their first traces.
    pub fn all(&self) -> &[Machine] {
        &self.all
    }

    /// Index of the machine of a trace.
    pub fn of_trace(&self, trace: usize) -> Option<usize> {
        self.of_traces.get(trace).copied()
    }

    /// Indexes of all traces of the machine of a trace, itself among them.
    pub fn traces_beside(&self, trace: usize) -> impl Iterator<Item = usize> {
        let own = self.of_trace(trace);
        let all = self.of_traces.iter().enumerate();
        all.filter(move |(_, machine)| Some(**machine) == own)
            .map(|(trace, _)| trace)
    }

    /// Index of the machine with this host name, clock UUID or trace directory.
    pub fn called(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|machine| machine.is_called(name))
    }

    /// Display name. Machines with equal host names are distinguished by their clocks.
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
