//! Commands of devices, such as GPUs, and waits of threads for them.
//!
//! A path divides a wait for a device by the activity of the device. Activities are found when a
//! path needs them: a list for each command would take memory for each pair of commands in a deep
//! queue.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;

/// A complete command of a device. Times are nanoseconds from the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCommand {
    /// Index in [`DeviceTimes::devices`].
    pub device: u32,
    /// The thread that enqueued it, in the trace of its process.
    pub thread: ThreadKey,
    /// Index in [`DeviceTimes::processes`].
    pub process: u32,
    /// Number of the queue in its process, if known.
    pub queue: Option<u32>,
    /// The kernel, or the kind of another command.
    pub name: Arc<str>,
    /// True for kernels.
    pub is_kernel: bool,
    /// Begin of the call that enqueued it, if known.
    pub called: Option<i64>,
    /// When it was queued.
    pub queued: i64,
    /// When the last event that it waited for was complete; `queued` without one.
    pub ready: i64,
    /// When the driver gave it to the device.
    pub submitted: i64,
    /// Start of its execution.
    pub started: i64,
    /// End of its execution.
    pub ended: i64,
}

/// A time in which a thread waits for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceWait {
    /// Start, in nanoseconds from the origin.
    pub begin: i64,
    /// End.
    pub end: i64,
    /// Index of the command in [`DeviceTimes::commands`].
    pub command: u32,
}

/// Activity of a device, seen by those that wait for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceActivity {
    /// Index of the active command in [`DeviceTimes::commands`].
    pub command: u32,
    /// Activity of that command.
    pub state: CommandState,
}

/// State of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandState {
    /// Queued, and waits for events that other devices or the program complete.
    Dependency,
    /// Waits for the driver.
    HostQueue,
    /// Waits for the device.
    DeviceQueue,
    /// Executes.
    Executing,
    /// Executes, and is of another process than the awaited command.
    ExecutingForOther,
}

/// Commands of devices, and the waits of threads for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Names of the devices.
    pub devices: Vec<String>,
    /// Names and ids of processes.
    pub processes: Vec<(String, i32)>,
    /// Number of commands that are left out, since the clock of their device has no known relation
    /// to that of the trace.
    pub without_clock: u64,
    /// By device and start.
    commands: Vec<DeviceCommand>,
    /// By command: the last end of the commands of its device up to this one.
    latest: Vec<i64>,
    /// In the order of time, without overlaps.
    waits: BTreeMap<ThreadKey, Vec<DeviceWait>>,
}

impl DeviceTimes {
    /// Commands, in the order of devices and starts; equal ones keep their order.
    pub fn new(mut commands: Vec<DeviceCommand>) -> DeviceTimes {
        commands.sort_by_key(|of| (of.device, of.started));
        let mut latest: Vec<i64> = Vec::with_capacity(commands.len());
        let mut device = None;
        for command in &commands {
            let before = latest.last().filter(|_| device == Some(command.device));
            latest.push(before.map_or(command.ended, |before| command.ended.max(*before)));
            device = Some(command.device);
        }
        DeviceTimes {
            commands,
            latest,
            ..DeviceTimes::default()
        }
    }

    /// Sets the waits of threads. Where several waits of a thread overlap, the first one counts.
    pub fn set_waits(&mut self, waits: impl IntoIterator<Item = (ThreadKey, DeviceWait)>) {
        let mut by_thread: BTreeMap<ThreadKey, Vec<DeviceWait>> = BTreeMap::new();
        for (thread, wait) in waits {
            by_thread.entry(thread).or_default().push(wait);
        }
        for waits in by_thread.values_mut() {
            waits.sort_unstable();
            let mut until = i64::MIN;
            for wait in &mut *waits {
                wait.begin = wait.begin.max(until);
                until = until.max(wait.end);
            }
            waits.retain(|wait| wait.begin < wait.end);
        }
        self.waits = by_thread;
    }

    /// All commands, by device and start.
    pub fn commands(&self) -> &[DeviceCommand] {
        &self.commands
    }

    /// Waits of a thread that overlap a window.
    pub fn waits(&self, thread: ThreadKey, (begin, end): (i64, i64)) -> &[DeviceWait] {
        // Most traces have none.
        let Some(waits) = self.waits.get(&thread) else {
            return &[];
        };
        let first = waits.partition_point(|wait| wait.end <= begin);
        let after = waits.partition_point(|wait| wait.begin < end);
        waits.get(first..after).unwrap_or_default()
    }

    /// Calls `put` for the activities of the device in a window until the command is complete, in
    /// the order of time and without gaps: the execution of earlier commands, then the queues that
    /// contain the command, and its own execution. Of commands that execute at the same time, the
    /// one that started first counts.
    pub fn activities(
        &self,
        command: u32,
        (begin, end): (i64, i64),
        put: impl FnMut((i64, i64), DeviceActivity),
    ) {
        let Some(awaited) = self.commands.get(command as usize) else {
            return;
        };
        let mut walk = DeviceWalk {
            awaited,
            place: command,
            at: begin,
            end,
            put,
        };
        let before = self.before(awaited);
        while walk.at < end.min(awaited.started)
            && let Some((place, other)) = self.first_after(before.clone(), walk.at)
        {
            walk.wait(other.started);
            let state = match other.process == awaited.process {
                true => CommandState::Executing,
                false => CommandState::ExecutingForOther,
            };
            walk.go(other.ended.min(awaited.started), place, state);
        }
        walk.wait(awaited.started);
        walk.go(awaited.ended, command, CommandState::Executing);
    }

    /// Commands of the device that start before a command.
    fn before(&self, command: &DeviceCommand) -> Range<usize> {
        let start = |of: &DeviceCommand| (of.device, of.started);
        let commands = &self.commands;
        let first = commands.partition_point(|of| of.device < command.device);
        first..commands.partition_point(|of| start(of) < start(command))
    }

    /// The first command of a range within a device that ends after a time.
    fn first_after(&self, range: Range<usize>, time: i64) -> Option<(u32, &DeviceCommand)> {
        let latest = self.latest.get(range.clone()).unwrap_or_default();
        let place = range.start + latest.partition_point(|latest| *latest <= time);
        let command = self.commands.get(place).filter(|_| place < range.end)?;
        Some((place as u32, command))
    }

    /// An activity as text, without numbers that differ between recordings.
    pub fn activity(&self, activity: DeviceActivity) -> String {
        let Some(command) = self.commands.get(activity.command as usize) else {
            return String::new();
        };
        let name = &command.name;
        match activity.state {
            CommandState::Dependency => format!("{name}, dependency"),
            CommandState::HostQueue => format!("{name}, in host queue"),
            CommandState::DeviceQueue => format!("{name}, in device queue"),
            CommandState::Executing => name.to_string(),
            CommandState::ExecutingForOther => {
                let process = self.processes.get(command.process as usize);
                format!("{name} of {}", process.map_or("?", |of| of.0.as_str()))
            }
        }
    }

    /// An activity as text, with the id of another process.
    pub fn exact_activity(&self, activity: DeviceActivity) -> String {
        let text = self.activity(activity);
        let command = self.commands.get(activity.command as usize);
        let process = command.and_then(|of| self.processes.get(of.process as usize));
        match (activity.state, process) {
            (CommandState::ExecutingForOther, Some((_, pid))) => format!("{text} ({pid})"),
            _ => text,
        }
    }
}

/// The activities of a device while a command is awaited.
struct DeviceWalk<'t, F> {
    awaited: &'t DeviceCommand,
    place: u32,
    at: i64,
    end: i64,
    put: F,
}

impl<F: FnMut((i64, i64), DeviceActivity)> DeviceWalk<'_, F> {
    /// Adds an activity up to a time.
    fn go(&mut self, time: i64, command: u32, state: CommandState) {
        let time = time.min(self.end);
        if time > self.at {
            let window = (std::mem::replace(&mut self.at, time), time);
            (self.put)(window, DeviceActivity { command, state });
        }
    }

    /// Adds the waits of the command up to a time.
    fn wait(&mut self, time: i64) {
        let (of, place) = (self.awaited, self.place);
        self.go(time.min(of.queued), place, CommandState::HostQueue);
        self.go(time.min(of.ready), place, CommandState::Dependency);
        self.go(time.min(of.submitted), place, CommandState::HostQueue);
        self.go(time, place, CommandState::DeviceQueue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(device: u32, process: u32, times: [i64; 4]) -> DeviceCommand {
        let [queued, submitted, started, ended] = times;
        DeviceCommand {
            device,
            thread: ThreadKey { trace: 0, tid: 7 },
            process,
            queue: None,
            name: format!("k{queued}").into(),
            is_kernel: true,
            called: Some(queued),
            queued,
            ready: queued,
            submitted,
            started,
            ended,
        }
    }

    fn found(times: &DeviceTimes, command: u32, window: (i64, i64)) -> Vec<(i64, i64, String)> {
        let mut found = Vec::new();
        times.activities(command, window, |(begin, end), activity| {
            found.push((begin, end, times.exact_activity(activity)));
        });
        found
    }

    #[test]
    fn activities_are_those_of_the_device_until_the_command_is_complete() {
        let mut awaited = command(1, 1, [30, 60, 80, 100]);
        awaited.ready = 40;
        let mut times = DeviceTimes::new(vec![
            awaited,
            command(1, 1, [0, 5, 10, 20]),
            command(1, 2, [0, 5, 45, 55]),
            command(0, 1, [0, 5, 20, 90]),
            command(1, 1, [0, 5, 90, 95]),
        ]);
        let names = ["?", "own", "other"].map(str::to_owned);
        times.processes = names.into_iter().zip([20, 21, 22]).collect();
        let place = times.commands().iter().position(|of| of.queued == 30);
        let place = place.expect("the command") as u32;
        let all = [
            (15, 20, "k0"),
            (20, 30, "k30, in host queue"),
            (30, 40, "k30, dependency"),
            (40, 45, "k30, in host queue"),
            (45, 55, "k0 of other (22)"),
            (55, 60, "k30, in host queue"),
            (60, 80, "k30, in device queue"),
            (80, 100, "k30"),
        ]
        .map(|(begin, end, text)| (begin, end, text.to_owned()));
        assert_eq!(found(&times, place, (15, 200)), all);
        assert_eq!(found(&times, place, (55, 80)), all[5..7]);
        assert_eq!(found(&times, place, (100, 200)), []);
    }

    #[test]
    fn waits_of_a_thread_do_not_overlap() {
        let mut times = DeviceTimes::default();
        let thread = ThreadKey { trace: 0, tid: 1 };
        let wait = |(begin, end, command)| DeviceWait {
            begin,
            end,
            command,
        };
        let waits = [(0, 100, 0), (10, 90, 1), (50, 120, 2), (150, 160, 3)].map(wait);
        times.set_waits(waits.map(|wait| (thread, wait)));
        let expected = [(0, 100, 0), (100, 120, 2), (150, 160, 3)].map(wait);
        assert_eq!(times.waits(thread, (0, 200)), expected);
        assert_eq!(times.waits(thread, (100, 150)), &expected[1..2]);
        assert_eq!(times.waits(ThreadKey { trace: 1, tid: 1 }, (0, 200)), &[]);
    }
}
