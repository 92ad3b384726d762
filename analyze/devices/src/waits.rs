//! Waits of threads for the commands of devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tracebraid_follow::{Thread, ThreadKey};
use tracebraid_graph::{DeviceCommand, DeviceTimes, DeviceWait};
use tracebraid_threads::DeviceCalls;

use crate::exported::{Call, Command, Exported};
use crate::kind::Kind;
use crate::{DeviceAnalysis, Devices};

/// Nanoseconds by which the end of a command may seem to lie after that of the call that waited for
/// it, since the relation of the clocks has an error.
const TOLERANCE: i64 = 100_000;

impl DeviceAnalysis {
    /// The thread of a call in each trace of its machine: calls and kernel are separate traces.
    fn threads(&self, call: &Call) -> impl Iterator<Item = ThreadKey> {
        let tid = call.thread.tid.unwrap_or_default();
        let traces = self.machines.traces_beside(call.thread.trace as usize);
        traces.map(move |trace| ThreadKey {
            trace: trace as u32,
            tid,
        })
    }

    /// Calls that waited for a command: one of their process ended during the call. Needs
    /// [`Keep::Waits`](crate::Keep::Waits).
    pub fn device_calls(&self, found: &Devices) -> DeviceCalls {
        let Exported {
            calls, commands, ..
        } = self.exported(found);
        let mut processes = Processes::default();
        let times = DeviceTimes::new(device_commands(&commands, &mut processes));
        let ends = Ends::new(&times);
        let waiting = calls
            .iter()
            .filter(|call| ends.awaited((&times, &processes), call).is_some());
        DeviceCalls::new(waiting.flat_map(|call| {
            let of_call = |thread| (thread, call.begin, call.end);
            self.threads(call).map(of_call)
        }))
    }

    /// All commands, and the waits for them: from the begin of a call until the command that it
    /// waited for was complete. Needs [`Keep::Waits`](crate::Keep::Waits).
    pub fn device_times(&self, found: &Devices) -> DeviceTimes {
        let exported = self.exported(found);
        let mut processes = Processes::default();
        let mut times = DeviceTimes::new(device_commands(&exported.commands, &mut processes));
        let ends = Ends::new(&times);
        let mut waits = Vec::new();
        for call in &exported.calls {
            let Some(command) = ends.awaited((&times, &processes), call) else {
                continue;
            };
            let ended = times.commands().get(command as usize).map(|of| of.ended);
            let wait = DeviceWait {
                begin: call.begin,
                // The relation of the clocks has an error.
                end: ended.map_or(call.end, |ended| ended.min(call.end)),
                command,
            };
            waits.extend(self.threads(call).map(|thread| (thread, wait)));
        }
        times.set_waits(waits);
        times.devices = exported.devices;
        times.without_clock = exported.without_clock;
        times.processes = processes.names;
        times
    }
}

/// Processes with commands.
#[derive(Default)]
struct Processes {
    /// By trace and process id: index in `names`.
    numbers: BTreeMap<(u32, Option<i32>), u32>,
    /// Names and ids.
    names: Vec<(String, i32)>,
}

impl Processes {
    fn get(&self, thread: &Thread) -> Option<u32> {
        self.numbers.get(&(thread.trace, thread.pid)).copied()
    }

    fn number(&mut self, thread: &Thread) -> u32 {
        if let Some(known) = self.get(thread) {
            return known;
        }
        let number = self.names.len() as u32;
        self.numbers.insert((thread.trace, thread.pid), number);
        let name = thread.name.clone().unwrap_or_else(|| "?".to_owned());
        self.names.push((name, thread.pid.unwrap_or_default()));
        number
    }
}

/// Commands as paths show them.
fn device_commands(commands: &[Command], processes: &mut Processes) -> Vec<DeviceCommand> {
    let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut name_of = |name: &str| match names.get(name) {
        Some(known) => Arc::clone(known),
        None => {
            let name: Arc<str> = name.into();
            names.insert(Arc::clone(&name));
            name
        }
    };
    let device_command = |command: &Command| {
        let [queued, submitted, started, ended] = command.times;
        DeviceCommand {
            device: command.device as u32,
            thread: ThreadKey {
                trace: command.thread.trace,
                tid: command.thread.tid.unwrap_or_default(),
            },
            process: processes.number(&command.thread),
            queue: command.queue,
            name: name_of(&command.name),
            is_kernel: command.kind == Kind::Kernel,
            called: command.entry,
            queued,
            ready: command.ready,
            submitted,
            started,
            ended,
        }
    };
    commands.iter().map(device_command).collect()
}

/// Commands by process and end, with indexes in [`DeviceTimes::commands`].
struct Ends(BTreeMap<u32, Vec<(i64, u32)>>);

impl Ends {
    fn new(times: &DeviceTimes) -> Ends {
        let mut ends: BTreeMap<u32, Vec<(i64, u32)>> = BTreeMap::new();
        for (place, command) in (0..).zip(times.commands()) {
            let of_process = ends.entry(command.process).or_default();
            of_process.push((command.ended, place));
        }
        ends.values_mut().for_each(|ends| ends.sort_unstable());
        Ends(ends)
    }

    /// The command that a call waited for: its own, or the last of its process that ended during
    /// the call.
    fn awaited(&self, (times, processes): (&DeviceTimes, &Processes), call: &Call) -> Option<u32> {
        let ends = self.0.get(&processes.get(&call.thread)?)?;
        let until = call.end.saturating_add(TOLERANCE);
        let after = ends.partition_point(|(end, _)| *end <= until);
        let ended = ends.get(..after)?.iter().rev();
        let mut ended = ended.take_while(|(end, _)| *end > call.begin);
        let is_own = |(_, place): &&(i64, u32)| {
            let command = times.commands().get(*place as usize);
            command.is_some_and(|of| {
                Some(of.thread.tid) == call.thread.tid && of.called == Some(call.begin)
            })
        };
        let awaited = match call.function.contains("Enqueue") {
            true => ended.find(is_own),
            false => ended.next(),
        };
        awaited.map(|(_, place)| *place)
    }
}
