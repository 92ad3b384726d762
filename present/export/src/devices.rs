//! Commands of GPUs for Perfetto: tracks for each device, the calls of each thread, and, where the
//! kernel's events were recorded, what each CPU ran.

use std::collections::BTreeMap;

use tracebraid_devices::{Command, Exported};
use tracebraid_graph::Graph;

use crate::perfetto::{Slice, Thread, Trace, Track};
use crate::scheduling::scheduling;

/// Perfetto trace of commands and calls. An arrow leads from the call that enqueued a command to the
/// command. Commands that execute at the same time are in several rows.
pub fn perfetto(exported: &Exported, graph: Option<&Graph>) -> Vec<u8> {
    let mut trace = Trace::default();
    devices(&mut trace, exported);
    calls(&mut trace, exported);
    if let Some(graph) = graph {
        scheduling(&mut trace, graph);
    }
    trace.into_bytes()
}

/// Rows of a device, with the times at which they are free.
type Rows = Vec<(i64, Track)>;

fn devices(trace: &mut Trace, exported: &Exported) {
    let mut tracks: BTreeMap<usize, Track> = BTreeMap::new();
    let mut rows: BTreeMap<(usize, bool), Rows> = BTreeMap::new();
    for (number, command) in exported.commands.iter().enumerate() {
        let device = *tracks.entry(command.device).or_insert_with(|| {
            let name = exported
                .devices
                .get(command.device)
                .map_or("", String::as_str);
            trace.track(&format!("GPU {}: {name}", command.device), None)
        });
        let is_transfer = command.kind.is_transfer();
        let rows = rows.entry((command.device, is_transfer)).or_default();
        let [_, _, start, end] = command.times;
        let free = rows.iter_mut().find(|(since, _)| *since <= start);
        let track = match free {
            Some((since, track)) => {
                *since = end;
                *track
            }
            None => {
                let name = if is_transfer { "Transfers" } else { "Kernels" };
                let track = trace.track(&format!("{name} {}", rows.len() + 1), Some(device));
                rows.push((end, track));
                track
            }
        };
        command_slice(trace, track, command, number as u64 + 1);
    }
}

fn command_slice(trace: &mut Trace, track: Track, command: &Command, arrow: u64) {
    let [queued, submit, start, end] = command.times;
    let process = &command.thread;
    let process = format!(
        "{} ({})",
        process.name.as_deref().unwrap_or("?"),
        process.pid.unwrap_or_default()
    );
    let queue = command.queue.map_or_else(String::new, |of| of.to_string());
    let waits = [(queued, submit), (submit, start)].map(|(from, to)| format!("{} ns", to - from));
    trace.slice(
        track,
        &Slice {
            begin: start,
            end,
            name: &command.name,
            category: command.kind.name(),
            notes: &[
                ("process", &process),
                ("queue", &queue),
                ("in host queue", &waits[0]),
                ("in device queue", &waits[1]),
            ],
            arrows: &[arrow],
        },
    );
}

fn calls(trace: &mut Trace, exported: &Exported) {
    // Each arrow begins at the call with the thread and the begin of the command's.
    let key = |trace: u32, tid: Option<i32>, begin: Option<i64>| (trace, tid, begin);
    let mut arrows: BTreeMap<(u32, Option<i32>, Option<i64>), u64> = BTreeMap::new();
    for (number, command) in exported.commands.iter().enumerate() {
        let Command { thread, entry, .. } = command;
        arrows.insert(key(thread.trace, thread.tid, *entry), number as u64 + 1);
    }
    let mut tracks: BTreeMap<(u32, Option<i32>), Track> = BTreeMap::new();
    for call in &exported.calls {
        let thread = &call.thread;
        let track = *tracks.entry((thread.trace, thread.tid)).or_insert_with(|| {
            trace.thread(Thread {
                pid: thread.pid,
                tid: thread.tid.unwrap_or_default(),
                name: thread.name.as_deref().unwrap_or("?"),
            })
        });
        let arrow = arrows.get(&key(thread.trace, thread.tid, Some(call.begin)));
        let arrow: Vec<u64> = arrow.copied().into_iter().collect();
        trace.slice(
            track,
            &Slice {
                begin: call.begin,
                end: call.end,
                name: &call.function,
                category: "call",
                notes: &[],
                arrows: &arrow,
            },
        );
    }
}
