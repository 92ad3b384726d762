//! Activity of threads while a device is idle because of them, by their critical paths.

use std::collections::BTreeMap;

use tracebraid_clocks::Path;
use tracebraid_follow::ThreadKey;
use tracebraid_graph::Graph;
use tracebraid_threads::WaitReason;

use crate::item::Handle;
use crate::line::Cause;
use crate::state::State;
use crate::{DeviceAnalysis, Devices};

/// A time in which a device was idle because a thread had not enqueued the next command.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    line: Handle,
    /// Trace and id of the thread.
    process: u32,
    tid: i32,
    /// By the clock of the trace, in nanoseconds from the origin.
    begin: i64,
    end: i64,
}

/// Activity of threads while devices waited for them: nanoseconds by reason.
#[derive(Clone, Debug, Default)]
pub struct HostDid {
    /// Time and number of parts by device, process, reason and detail.
    pub(crate) rows: BTreeMap<(Handle, u32, WaitReason, String), (u64, u64)>,
}

/// Relations of the clocks of timelines to that of the trace.
pub(crate) fn paths(analysis: &DeviceAnalysis, state: &State) -> BTreeMap<Handle, Path> {
    let mut timelines: BTreeMap<Handle, tracebraid_clocks::Timeline> = BTreeMap::new();
    for (device, clock) in &state.clocks {
        let line = analysis.rules.line(*device);
        timelines.entry(line).or_default().merge(clock.clone());
    }
    for (device, clock) in &state.sums.readings {
        let line = analysis.rules.line(*device);
        if let Some(of_line) = timelines.get_mut(&line) {
            of_line.merge(clock.clone());
        }
    }
    let known = timelines.into_iter();
    known
        .filter_map(|(line, clock)| Some((line, Path::of(&clock).ok()??)))
        .collect()
}

/// A time of a device, by the clock of the trace.
pub(crate) fn host_time(path: &Path, device: u64) -> Option<i64> {
    Some(path.at(i64::try_from(device).ok()?)?.round())
}

impl DeviceAnalysis {
    /// The longest times in which devices were idle because of the host.
    pub fn late(&self, found: &Devices) -> Vec<Late> {
        let paths = paths(self, &found.state);
        let mut late = Vec::new();
        for (line, of) in &found.state.lines {
            let Some(path) = paths.get(line) else {
                continue;
            };
            for gap in of.sums.longest() {
                let [length, ..] = Cause::split(gap.begin, &gap.command);
                let begin = host_time(path, gap.begin);
                let end = host_time(path, gap.begin.saturating_add(length));
                if let Some((begin, end)) = begin.zip(end).filter(|(begin, end)| begin < end) {
                    late.push(Late {
                        line: *line,
                        process: gap.command.process,
                        tid: gap.command.tid,
                        begin,
                        end,
                    });
                }
            }
        }
        late
    }

    /// Sums of the critical paths of the threads, over all of `late`.
    pub fn explain(&self, late: &[Late], graph: &Graph) -> HostDid {
        let mut did = HostDid::default();
        for late in late {
            let own = self.processes.trace(late.process);
            let mut traces = self.machines.traces_beside(own as usize);
            let actor = traces.find_map(|trace| {
                let (trace, tid) = (trace as u32, late.tid);
                // The thread may begin during the time; before, its path is that of its creator.
                graph.at(ThreadKey { trace, tid }, late.end)
            });
            let mut add = |reason, detail, time, parts| {
                let key = (late.line, late.process, reason, detail);
                let sum: &mut (u64, u64) = did.rows.entry(key).or_default();
                *sum = (sum.0 + time, sum.1 + parts);
            };
            let Some(actor) = actor else {
                let time = late.begin.abs_diff(late.end);
                add(WaitReason::Unknown, String::new(), time, 1);
                continue;
            };
            let path = graph.path(actor, late.begin, late.end);
            for sum in graph.summary(&path).reasons {
                if sum.reason != WaitReason::Running {
                    add(sum.reason, sum.detail, sum.duration_ns, sum.parts);
                }
            }
            for segment in &path.segments {
                if graph.reason(&path, segment) == WaitReason::Running {
                    let hop = path.hops.get(segment.hop as usize);
                    // The path may lead to threads for which the late one waited.
                    let other = hop.filter(|hop| hop.actor != actor);
                    let detail = other.map(|hop| graph.name(hop.actor)).unwrap_or_default();
                    add(WaitReason::Running, detail, segment.duration(), 1);
                }
            }
        }
        did
    }
}
