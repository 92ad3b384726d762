//! Executions by commands of devices, such as GPUs: kernels and frames.
//!
//! A kernel is an execution from the begin of the call that enqueued it until it is complete; a
//! frame, from such a call to the next one of the thread. All are known before the first event is
//! read, and are returned as the time goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ThreadKey, Window};
use tracebraid_graph::{DeviceCommand, DeviceTimes};
use tracebraid_language::Datum;
use tracebraid_periods::{Bound, EndedPeriod};

use crate::delimit::log::{Log, bound};
use crate::delimit::{Patterns, fitting};

/// All executions of traces.
#[derive(Debug)]
pub(crate) struct DeviceExecutions {
    devices: Arc<DeviceTimes>,
    /// Definitions of kernels.
    kernels: BTreeSet<usize>,
    /// Commands in the order of their calls, which numbers executions from 1.
    called: Vec<u32>,
    executions: Vec<Delimited>,
    /// Begins and ends by time.
    edges: Vec<Edge>,
}

/// An execution.
#[derive(Debug)]
struct Delimited {
    kind: usize,
    /// Index in `called` of the command that begins it.
    place: u32,
    begin: i64,
    end: i64,
}

/// End of the last frame of a thread.
const NO_END: i64 = i64::MAX;

/// Begin or end of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    time: i64,
    is_end: bool,
    /// Index in `executions`.
    execution: u32,
}

/// State after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeviceExecutionsPartial {
    /// Number of edges that have been played.
    played: usize,
    /// Begins of open executions, with their indexes.
    open: BTreeSet<(i64, u32)>,
    pub(crate) log: Log,
}

impl DeviceExecutions {
    /// `None` if no definition concerns commands.
    pub(crate) fn new(
        devices: Arc<DeviceTimes>,
        kernels: Patterns,
        frames: Patterns,
        window: Window,
    ) -> Option<DeviceExecutions> {
        if kernels.is_empty() && frames.is_empty() {
            return None;
        }
        let mut found = DeviceExecutions {
            called: called(&devices, window),
            kernels: kernels.iter().map(|(kind, _)| *kind).collect(),
            devices,
            executions: Vec::new(),
            edges: Vec::new(),
        };
        found.delimit(&kernels, &frames);
        found.add_edges(window);
        Some(found)
    }

    fn delimit(&mut self, kernels: &Patterns, frames: &Patterns) {
        // By thread and definition: begin and index of the open frame.
        let mut open: BTreeMap<(ThreadKey, usize), (i64, usize)> = BTreeMap::new();
        for (place, command) in (0..).zip(&self.called) {
            let Some(command) = self.devices.commands().get(*command as usize) else {
                continue;
            };
            let begin = command.called.unwrap_or(command.queued);
            let execution = |kind, end| Delimited {
                kind,
                place,
                begin,
                end,
            };
            let name = command.name.as_bytes();
            for kind in fitting(kernels, name) {
                self.executions
                    .push(execution(kind, command.ended.max(begin)));
            }
            for kind in fitting(frames, name) {
                let of_thread = (command.thread, kind);
                let before = open.get(&of_thread).copied();
                // A call may enqueue several commands.
                if before.is_some_and(|(since, _)| since == begin) {
                    continue;
                }
                if let Some(before) = before.and_then(|of| self.executions.get_mut(of.1)) {
                    before.end = begin;
                }
                open.insert(of_thread, (begin, self.executions.len()));
                self.executions.push(execution(kind, NO_END));
            }
        }
    }

    fn add_edges(&mut self, window: Window) {
        for (execution, of) in (0..).zip(&self.executions) {
            let mut add = |time, is_end| {
                self.edges.push(Edge {
                    time,
                    is_end,
                    execution,
                });
            };
            add(of.begin, false);
            if of.end != NO_END && window.contains(of.end) {
                add(of.end, true);
            }
        }
        self.edges.sort_unstable();
    }

    /// Plays the begins and ends before a time.
    pub(crate) fn play(&self, partial: &mut DeviceExecutionsPartial, until: i64) {
        let left = self.edges.get(partial.played..).unwrap_or_default();
        for edge in left.iter().take_while(|edge| edge.time < until) {
            partial.played += 1;
            let Some(execution) = self.executions.get(edge.execution as usize) else {
                continue;
            };
            let open = (execution.begin, edge.execution);
            if !edge.is_end {
                partial.open.insert(open);
                partial.log.begins(execution.kind);
                continue;
            }
            partial.open.remove(&open);
            if let Some(bounds) = self.bounds(execution) {
                let number = u64::from(execution.place) + 1;
                partial.log.ends(execution.kind, vec![number], bounds);
            }
        }
    }

    fn bounds(&self, execution: &Delimited) -> Option<[Bound; 2]> {
        let command = self.command_at(execution.place)?;
        let DeviceCommand { thread, name, .. } = self.devices.commands().get(command as usize)?;
        let mut captures = vec![Datum::text(name.as_bytes())];
        if self.kernels.contains(&execution.kind) {
            captures.extend(self.captures(command));
        }
        let tid = Some(i64::from(thread.tid));
        let at = |time, captures| bound(time, (thread.trace, None), tid, captures);
        Some([at(execution.begin, captures), at(execution.end, Vec::new())])
    }

    /// Device and queue of a command.
    fn captures(&self, command: u32) -> [Datum; 2] {
        let command = self.devices.commands().get(command as usize);
        let device = command.and_then(|of| self.devices.devices.get(of.device as usize));
        let queue = command.and_then(|of| of.queue);
        [
            device.map_or(Datum::Missing, |device| Datum::text(device.as_bytes())),
            queue.map_or(Datum::Missing, |queue| Datum::Integer(queue.into())),
        ]
    }

    fn command_at(&self, place: u32) -> Option<u32> {
        self.called.get(place as usize).copied()
    }

    /// The command that an execution is, if one is.
    pub(crate) fn command(&self, period: &EndedPeriod) -> Option<u32> {
        let number = period.numbers.first()?.checked_sub(1)?;
        let is_kernel = self.kernels.contains(&period.period);
        is_kernel.then(|| self.command_at(u32::try_from(number).ok()?))?
    }
}

impl DeviceExecutionsPartial {
    /// Begins of the open executions.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.iter().map(|(begin, _)| *begin)
    }
}

/// Kernels in the order of the calls that enqueued them, if these begin in the window.
fn called(devices: &DeviceTimes, window: Window) -> Vec<u32> {
    let mut called: Vec<(i64, u32)> = Vec::new();
    for (place, command) in (0..).zip(devices.commands()) {
        let begin = command.called.filter(|called| window.contains(*called));
        if let Some(begin) = begin.filter(|_| command.is_kernel) {
            called.push((begin, place));
        }
    }
    called.sort_unstable();
    called.into_iter().map(|(_, place)| place).collect()
}
