//! Lists of commands and calls for export, by the clock of the trace.

use std::sync::Arc;

use tracebraid_follow::Thread;

use crate::cuda::UNKNOWN;
use crate::kind::Kind;
use crate::late::{host_time, paths};
use crate::{DeviceAnalysis, Devices};

/// Commands and calls, in the order of time. Times are nanoseconds from the origin.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// Names of the devices.
    pub devices: Vec<String>,
    /// Complete commands whose times the device has.
    pub commands: Vec<Command>,
    /// Calls of the API.
    pub calls: Vec<Call>,
    /// Commands that are left out, since the clock of their device has no known relation to that of
    /// the trace.
    pub without_clock: u64,
}

/// A command.
#[derive(Clone, Debug)]
pub struct Command {
    /// Index in [`Exported::devices`].
    pub device: usize,
    /// The thread that enqueued it.
    pub thread: Thread,
    /// Number of the queue in its process, if known.
    pub queue: Option<u32>,
    /// The kernel, or the kind of another command.
    pub name: String,
    /// Kind of the command.
    pub kind: Kind,
    /// Begin of the call that enqueued it, if known.
    pub entry: Option<i64>,
    /// When it was queued, submitted and started, and when it ended.
    pub times: [i64; 4],
    /// When the last event that it waited for was complete; when it was queued, without one.
    pub ready: i64,
}

/// A call of the API.
#[derive(Clone, Debug)]
pub struct Call {
    /// The thread.
    pub thread: Thread,
    /// Name of the function.
    pub function: Arc<str>,
    /// Begin.
    pub begin: i64,
    /// End.
    pub end: i64,
}

impl DeviceAnalysis {
    /// Lists of commands and calls, empty without [`DeviceAnalysis::keeping`].
    pub fn exported(&self, found: &Devices) -> Exported {
        let state = &found.state;
        let paths = paths(self, state);
        let mut exported = Exported::default();
        for (handle, line) in &state.lines {
            let device = exported.devices.len();
            exported.devices.push(state.device_name(*handle));
            let Some(path) = paths.get(handle) else {
                exported.without_clock += line.kept.len() as u64;
                continue;
            };
            for placed in &line.kept {
                let ready = placed.ready.clamp(placed.queued, placed.start);
                let times = [
                    placed.queued,
                    placed.submit,
                    placed.start,
                    placed.end,
                    ready,
                ];
                let times = times.map(|time| host_time(path, time));
                let [
                    Some(queued),
                    Some(submit),
                    Some(start),
                    Some(end),
                    Some(ready),
                ] = times
                else {
                    exported.without_clock += 1;
                    continue;
                };
                let queue = crate::item::Handle {
                    process: placed.process,
                    handle: placed.queue,
                };
                let name = state.names.get(placed.name);
                exported.commands.push(Command {
                    device,
                    thread: self.thread_of(placed.process, placed.tid),
                    queue: state.queues.get(&queue).map(|of| of.number),
                    name: match name.is_empty() {
                        true => placed.kind.name().to_owned(),
                        false => name.to_owned(),
                    },
                    kind: placed.kind,
                    entry: Some(placed.entry).filter(|entry| *entry != UNKNOWN),
                    times: [queued, submit, start, end],
                    ready,
                });
            }
        }
        exported.commands.sort_by_key(|of| (of.times[2], of.device));
        let functions = self.rules.classes.functions().iter();
        let functions: Vec<Arc<str>> = functions.map(|of| of.name.as_str().into()).collect();
        let mut kept = state.sums.kept.clone();
        kept.sort_unstable();
        exported.calls = kept
            .into_iter()
            .filter_map(|call| {
                Some(Call {
                    thread: self.thread_of(call.thread.process, call.thread.tid),
                    function: Arc::clone(functions.get(call.function as usize)?),
                    begin: call.begin,
                    end: call.end,
                })
            })
            .collect();
        exported
    }

    pub(crate) fn thread_of(&self, process: u32, tid: i32) -> Thread {
        Thread {
            tid: Some(tid),
            ..self.processes.get(process)
        }
    }
}
