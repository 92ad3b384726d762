//! The state at the beginning of a recording: processes, their files, devices, interfaces,
//! interrupts.
//!
//! The events are those of lttng-modules' state dump: threads as listed by the kernel
//! ([`crate::tasks`]), files from `/proc`, the rest from `/sys`. A process that ends in the
//! meantime is left out.

mod devices;
mod processes;

use std::path::Path;

use crate::machine::now;
use crate::tasks::{Proc, Task};

/// Receives the events of the state dump as they are found.
pub(crate) trait Sink {
    /// Takes an event with its class id and time.
    fn event_at(&mut self, time: u64, id: u16, payload: &[u8]);

    /// Takes an event with the current time.
    fn event(&mut self, id: u16, payload: &[u8]) {
        self.event_at(now(), id, payload);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Id in the initial PID namespace, as in event records.
    pub(crate) pid: u32,
    /// Id under `/proc`.
    pub(crate) number: u32,
}

/// Processes listed by `/proc`: those that BPF follows, or all.
pub(crate) fn processes(tasks: &[Task], proc: Option<Proc>, is_of_followed: bool) -> Vec<Process> {
    let is_wanted = |task: &&Task| task.is_leader() && (task.is_target || !is_of_followed);
    let wanted = tasks.iter().filter(is_wanted);
    wanted
        .filter_map(|task| processes::of_task(task, proc))
        .collect()
}

/// Ids of event classes, by short names.
mod ids {
    pub(super) use crate::shared::kinds::{
        LTTNG_STATEDUMP_BLOCK_DEVICE as BLOCK, LTTNG_STATEDUMP_END as END,
        LTTNG_STATEDUMP_FILE_DESCRIPTOR as FILE, LTTNG_STATEDUMP_INTERRUPT as INTERRUPT,
        LTTNG_STATEDUMP_NETWORK_INTERFACE as INTERFACE,
        LTTNG_STATEDUMP_PROCESS_PID_NS as NAMESPACE, LTTNG_STATEDUMP_PROCESS_STATE as PROCESS,
        LTTNG_STATEDUMP_START as START,
    };
}

/// Records the whole state.
pub(crate) fn dump(tasks: &[Task], proc: Option<Proc>, to: &mut impl Sink) {
    to.event(ids::START, &[]);
    processes::dump(tasks, proc, to);
    devices::dump(Path::new("/sys"), to);
    to.event(ids::END, &[]);
}

/// The payload of an event, built field by field.
#[derive(Default)]
pub(crate) struct Payload(Vec<u8>);

impl Payload {
    pub(crate) fn int(mut self, value: i32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn long(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(value);
        self
    }

    /// Appends text without its nulls, and a terminating null.
    pub(crate) fn text(mut self, value: &[u8]) -> Self {
        self.0
            .extend(value.iter().copied().filter(|&byte| byte != 0));
        self.0.push(0);
        self
    }

    pub(crate) fn bytes_of(self) -> Vec<u8> {
        self.0
    }

    /// Text of constant size.
    fn name(mut self, value: &[u8]) -> Self {
        let mut name = [0; 16];
        // The last byte stays null.
        name.iter_mut()
            .take(15)
            .zip(value)
            .for_each(|(to, from)| *to = *from);
        self.0.extend_from_slice(&name);
        self
    }
}

/// Sorted numeric entries of a directory.
pub(crate) fn numbers(directory: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
#[derive(Default)]
struct Collected(Vec<(u16, Vec<u8>)>);

#[cfg(test)]
impl Sink for Collected {
    fn event_at(&mut self, _time: u64, id: u16, payload: &[u8]) {
        self.0.push((id, payload.to_vec()));
    }
}
