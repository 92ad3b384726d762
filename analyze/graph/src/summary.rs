//! Sums over the segments of a path.

use std::collections::BTreeMap;

use serde::Serialize;
use tracebraid_follow::Thread;

use crate::cause::{ActorId, Wake};
use crate::graph::{Graph, Occupant};
use crate::path::{Path, Role, Segment, SegmentKind};
use tracebraid_threads::WaitReason;

/// Sums of a path's time, the largest first. Durations are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// By reason and detail.
    pub reasons: Vec<ReasonSum>,
    /// By the thread of the segments.
    pub threads: Vec<ThreadSum>,
    /// By machine: its index and the duration.
    pub hosts: Vec<(u32, u64)>,
    /// Threads that the devices served while the path waited for these devices.
    pub competitors: Vec<Competitor>,
}

/// The time of a reason and detail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasonSum {
    /// Reason of the time.
    pub reason: WaitReason,
    /// Device, connection or thread; see [`Graph::detail`].
    pub detail: String,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Number of segments.
    pub parts: u64,
}

/// The time of a thread on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadSum {
    /// The thread as reports show it.
    pub thread: Thread,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Part of the duration in which the thread ran.
    pub running_ns: u64,
}

/// A user of a device while the path waited for the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Competitor {
    /// Name of the device.
    pub device: String,
    /// The thread that issued the requests; `None` if an interrupt did.
    pub thread: Option<Thread>,
    /// Share of the device's time; see [`Graph::served`].
    pub duration_ns: u64,
    /// Number of requests in service.
    pub requests: u64,
}

impl Graph {
    /// The sums of a path.
    pub fn summary(&self, path: &Path) -> Summary {
        let mut reasons: BTreeMap<(WaitReason, String), (u64, u64)> = BTreeMap::new();
        let mut threads: BTreeMap<ActorId, (u64, u64)> = BTreeMap::new();
        let mut hosts: BTreeMap<u32, u64> = BTreeMap::new();
        for segment in &path.segments {
            let duration = segment.duration();
            let reason = self.reason(path, segment);
            let key = (reason, self.summed_detail(path, segment));
            let sum = reasons.entry(key).or_default();
            *sum = (sum.0 + duration, sum.1 + 1);
            if let Some(hop) = path.hops.get(segment.hop as usize) {
                let sum = threads.entry(hop.actor).or_default();
                sum.0 += duration;
                sum.1 += if reason == WaitReason::Running {
                    duration
                } else {
                    0
                };
            }
            *hosts.entry(self.trace_of(path, segment)).or_default() += duration;
        }
        let reasons = reasons
            .into_iter()
            .map(|((reason, detail), (duration_ns, parts))| ReasonSum {
                reason,
                detail,
                duration_ns,
                parts,
            });
        let threads = threads
            .into_iter()
            .map(|(actor, (duration_ns, running_ns))| ThreadSum {
                thread: self.thread(actor),
                duration_ns,
                running_ns,
            });
        Summary {
            reasons: greatest(reasons, |sum| sum.duration_ns),
            threads: greatest(threads, |sum| sum.duration_ns),
            hosts: greatest(hosts.into_iter(), |sum| sum.1),
            competitors: self.competitors(path),
        }
    }

    /// The detail by which segments are summed: without the CPU.
    pub(crate) fn summed_detail(&self, path: &Path, segment: &Segment) -> String {
        match (segment.kind, path.role(segment)) {
            (SegmentKind::Running(_), Role::Own) => String::new(),
            (SegmentKind::Running(_), _) => self.meanwhile(path, segment, ""),
            _ => self.detail(path, segment),
        }
    }

    /// Users of the devices that a path waited for, during these waits.
    fn competitors(&self, path: &Path) -> Vec<Competitor> {
        let mut sums: BTreeMap<(u32, u32, Option<ActorId>), (u64, u64)> = BTreeMap::new();
        let own = path
            .segments
            .iter()
            .filter(|segment| path.role(segment) == Role::Own);
        for segment in own {
            let SegmentKind::Waiting {
                wake: Wake::Request(place),
                ..
            } = segment.kind
            else {
                continue;
            };
            let Some(request) = self.requests.get(place as usize) else {
                continue;
            };
            let (trace, device) = (request.trace, request.device);
            for user in self.served(trace, device, (segment.begin, segment.end)) {
                let sum = sums.entry((trace, device.0, user.by)).or_default();
                sum.0 += user.time;
                sum.1 += user.requests;
            }
        }
        let row = |((trace, device, by), (duration_ns, requests)): (
            (u32, u32, Option<ActorId>),
            (u64, u64),
        )| {
            Competitor {
                device: self.disk(trace, tracebraid_kernel_model::Device(device)),
                thread: by.map(|by| self.thread(by)),
                duration_ns,
                requests,
            }
        };
        let sums = sums.into_iter().filter(|(_, sum)| sum.0 > 0);
        greatest(sums.map(row), |sum| sum.duration_ns)
    }

    /// The thread that has the CPU for which a segment waits.
    pub fn in_the_way(&self, segment: &Segment) -> Option<ActorId> {
        match segment.kind {
            SegmentKind::Preempted(Occupant::Thread(by))
            | SegmentKind::Runnable(Occupant::Thread(by)) => Some(by),
            _ => None,
        }
    }
}

/// Sorts by size, descending; equal sizes keep their order.
fn greatest<T>(sums: impl Iterator<Item = T>, size: impl Fn(&T) -> u64) -> Vec<T> {
    let mut sums: Vec<T> = sums.collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(size(sum)));
    sums
}
