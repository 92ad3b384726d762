//! Waits of threads for the commands of devices.

use tracebraid_follow::ThreadKey;
use tracebraid_graph::DeviceWait;
use tracebraid_threads::DeviceCalls;

use crate::exported::{Call, Command};
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
        let exported = self.exported(found);
        let timeline = Timeline::new(&exported.commands);
        let waiting = exported
            .calls
            .iter()
            .filter(|call| timeline.awaited(call).is_some());
        DeviceCalls::new(waiting.flat_map(|call| {
            let of_call = |thread| (thread, call.begin, call.end);
            self.threads(call).map(of_call)
        }))
    }

    /// Waits by the activity of the device until the command ended that a call waited for: earlier
    /// commands, also those of other processes, the queues, the command itself. Needs
    /// [`Keep::Waits`](crate::Keep::Waits).
    pub fn device_waits(&self, found: &Devices) -> Vec<DeviceWait> {
        let exported = self.exported(found);
        let timeline = Timeline::new(&exported.commands);
        let mut waits = Vec::new();
        for call in &exported.calls {
            let Some(awaited) = timeline.awaited(call) else {
                continue;
            };
            for (begin, end, activity) in timeline.activities(call, awaited) {
                waits.extend(self.threads(call).map(|thread| DeviceWait {
                    thread,
                    begin,
                    end,
                    activity: activity.clone(),
                }));
            }
        }
        waits
    }
}

/// Commands by time.
struct Timeline<'a> {
    /// By process and end.
    ends: Vec<&'a Command>,
    /// By device and start.
    starts: Vec<&'a Command>,
    /// Longest execution.
    longest: i64,
}

fn by_end(command: &Command) -> (u32, i64) {
    (command.thread.trace, command.times[3])
}

fn by_start(command: &Command) -> (usize, i64) {
    (command.device, command.times[2])
}

impl<'a> Timeline<'a> {
    fn new(commands: &'a [Command]) -> Timeline<'a> {
        let [mut ends, mut starts] = [(); 2].map(|()| commands.iter().collect::<Vec<_>>());
        ends.sort_by_key(|command| by_end(command));
        starts.sort_by_key(|command| by_start(command));
        let lengths = commands.iter().map(|of| of.times[3] - of.times[2]);
        Timeline {
            ends,
            starts,
            longest: lengths.max().unwrap_or(0),
        }
    }

    /// The command that a call waited for: its own, or the last of its process that ended during
    /// the call.
    fn awaited(&self, call: &Call) -> Option<&'a Command> {
        let until = (call.thread.trace, call.end.saturating_add(TOLERANCE));
        let after = self.ends.partition_point(|of| by_end(of) <= until);
        let ended = self.ends.get(..after)?.iter().rev();
        let mut ended = ended.take_while(|of| by_end(of) > (call.thread.trace, call.begin));
        let is_own = |of: &&&Command| of.thread.tid == call.thread.tid && of.entry == call.begin;
        match call.function.contains("Enqueue") {
            true => ended.find(is_own),
            false => ended.next(),
        }
        .copied()
    }

    /// Begin, end and activity of the device, from the begin of the call to the end of the command.
    fn activities(&self, call: &Call, awaited: &Command) -> Vec<(i64, i64, String)> {
        // No wait is longer than its call, whatever the error of the clocks.
        let [_, submit, start, end] = awaited.times.map(|time| time.min(call.end));
        let mut activities = Vec::new();
        let mut at = call.begin;
        let mut until = |time: i64, activity: &dyn Fn() -> String| {
            if time > at {
                activities.push((std::mem::replace(&mut at, time), time, activity()));
            }
        };
        let idle = |time: i64, until: &mut dyn FnMut(i64, &dyn Fn() -> String)| {
            until(time.min(submit), &|| {
                format!("{}, in host queue", awaited.name)
            });
            until(time, &|| format!("{}, in device queue", awaited.name));
        };
        let first = (awaited.device, call.begin.saturating_sub(self.longest));
        let from = self.starts.partition_point(|of| by_start(of) < first);
        let before = self.starts.get(from..).unwrap_or_default().iter();
        for other in before.take_while(|of| by_start(of) < (awaited.device, start)) {
            let [_, _, begin, end] = other.times;
            if end > call.begin {
                idle(begin, &mut until);
                until(end.min(start), &|| of_process(other, call));
            }
        }
        idle(start, &mut until);
        until(end, &|| awaited.name.clone());
        activities
    }
}

/// A command, with its process if that is not the one of the call.
fn of_process(command: &Command, call: &Call) -> String {
    let Command { thread, name, .. } = command;
    if thread.trace == call.thread.trace {
        return name.clone();
    }
    let process = thread.name.as_deref().unwrap_or("?");
    format!("{name} of {process} ({})", thread.pid.unwrap_or_default())
}
