//! Metrics of an execution that follow from its critical path.

use tracebraid_graph::{ActorId, Graph, Path, Role, SegmentKind, WaitReason};

use crate::counts::{CountSeries, Quantities, SeriesCursors};

/// A metric of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Time from begin to end, in nanoseconds.
    Duration,
    /// Nanoseconds that are attributed to a reason.
    Time(WaitReason),
    /// Number of times that a thread on the path left its CPU, because it waited or was preempted.
    Switches,
    /// Number of times that a thread on the path continued on another CPU.
    Migrations,
    /// Number of threads on the path.
    Threads,
    /// Number of machines on the path.
    Hosts,
    /// Page faults of threads on the path.
    PageFaults,
    /// Bytes that system calls of threads on the path read.
    BytesRead,
    /// Bytes that system calls of threads on the path wrote.
    BytesWritten,
    /// System calls that threads on the path began.
    SystemCalls,
}

impl Metric {
    /// All metrics, in the order of [`metrics`].
    pub fn all() -> impl Iterator<Item = Metric> {
        let times = WaitReason::ALL.into_iter().map(Metric::Time);
        let counts = [
            Metric::Switches,
            Metric::Migrations,
            Metric::Threads,
            Metric::Hosts,
            Metric::PageFaults,
            Metric::BytesRead,
            Metric::BytesWritten,
            Metric::SystemCalls,
        ];
        [Metric::Duration].into_iter().chain(times).chain(counts)
    }

    /// Name, which is a valid SQL name and ends with the unit for times and bytes.
    pub fn name(self) -> String {
        match self {
            Metric::Duration => "duration_ns".to_owned(),
            Metric::Time(reason) => format!("{}_ns", reason.name().replace('-', "_")),
            Metric::Switches => "switches".to_owned(),
            Metric::Migrations => "migrations".to_owned(),
            Metric::Threads => "threads".to_owned(),
            Metric::Hosts => "hosts".to_owned(),
            Metric::PageFaults => "page_faults".to_owned(),
            Metric::BytesRead => "read_bytes".to_owned(),
            Metric::BytesWritten => "written_bytes".to_owned(),
            Metric::SystemCalls => "system_calls".to_owned(),
        }
    }

    /// Unit: `ns`, `bytes`, or `""` for a number.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Duration | Metric::Time(_) => "ns",
            Metric::BytesRead | Metric::BytesWritten => "bytes",
            Metric::Switches
            | Metric::Migrations
            | Metric::Threads
            | Metric::Hosts
            | Metric::PageFaults
            | Metric::SystemCalls => "",
        }
    }

    /// Description for the user.
    pub fn description(self) -> String {
        let text = match self {
            Metric::Duration => "from begin to end",
            Metric::Time(reason) => {
                return format!("time on the path for the reason {}", reason.name());
            }
            Metric::Switches => "number of times that a thread on the path left its CPU",
            Metric::Migrations => "number of times that a thread on the path moved to another CPU",
            Metric::Threads => "threads on the path",
            Metric::Hosts => "hosts on the path",
            Metric::PageFaults => "page faults of threads while they were on the path",
            Metric::BytesRead => "bytes that system calls of threads on the path read",
            Metric::BytesWritten => "bytes that system calls of threads on the path wrote",
            Metric::SystemCalls => "system calls that threads on the path began",
        };
        text.to_owned()
    }
}

/// Metrics of the path of an execution of the definition `kind`, in the order of [`Metric::all`],
/// followed by those of [`Quantities::extra`].
pub fn all_metrics(
    graph: &Graph,
    path: &Path,
    kind: usize,
    (quantities, series): (&Quantities, &CountSeries),
) -> Vec<Option<u64>> {
    let mut figures = Vec::with_capacity(WaitReason::ALL.len() + ROOM);
    put_metrics(
        &mut figures,
        graph,
        path,
        (kind, quantities, (series, &mut SeriesCursors::default())),
    );
    figures
}

/// As [`all_metrics`]; appends the metrics to `figures`.
pub(crate) fn put_metrics(
    figures: &mut Vec<Option<u64>>,
    graph: &Graph,
    path: &Path,
    (kind, quantities, series): (usize, &Quantities, (&CountSeries, &mut SeriesCursors)),
) {
    let counted = quantities.of_path(series, graph, path, kind);
    put_own(figures, graph, path, counted.fixed);
    figures.extend(counted.extra);
}

/// Metrics of a path without counted quantities, in the order of [`Metric::all`].
pub fn metrics(graph: &Graph, path: &Path) -> Vec<Option<u64>> {
    let mut figures = Vec::with_capacity(WaitReason::ALL.len() + ROOM);
    put_own(&mut figures, graph, path, [None; 4]);
    figures
}

/// Appends the metrics of a path, with page faults, bytes read, bytes written and system calls.
fn put_own(
    figures: &mut Vec<Option<u64>>,
    graph: &Graph,
    path: &Path,
    [faults, read, written, calls]: [Option<u64>; 4],
) {
    let mut times = [0; WaitReason::ALL.len()];
    let mut hosts: Vec<u32> = Vec::new();
    // Runs: thread, index of the segment, CPU.
    let mut ran: Vec<(ActorId, usize, u16)> = Vec::new();
    let mut switches = 0;
    // The hop that had a CPU in the previous segment.
    let mut before = None;
    for (place, segment) in path.segments.iter().enumerate() {
        if let Some(time) = times.get_mut(graph.reason(path, segment).index()) {
            *time += segment.duration();
        }
        if path.role(segment) != Role::Own {
            before = None;
            continue;
        }
        push_new(&mut hosts, graph.trace_of(path, segment));
        match segment.kind {
            SegmentKind::Running(cpu) => {
                let hop = path.hops.get(segment.hop as usize);
                ran.extend(hop.map(|hop| (hop.actor, place, cpu)));
                before = Some(segment.hop);
            }
            // An interrupted thread keeps its CPU.
            SegmentKind::Interrupted(_) => {}
            // The thread goes on with other work.
            SegmentKind::OnDevice(_) => before = None,
            _ => {
                switches += u64::from(before == Some(segment.hop));
                before = None;
            }
        }
    }
    ran.sort_unstable();
    let moved = |pair: &&[(ActorId, usize, u16)]| matches!(pair, [one, next] if one.0 == next.0 && one.2 != next.2);
    let migrations = ran.windows(2).filter(moved).count() as u64;
    let own = path.hops.iter().filter(|hop| hop.role == Role::Own);
    let mut threads: Vec<ActorId> = own.map(|hop| hop.actor).collect();
    let [threads, hosts] = [distinct(&mut threads), distinct(&mut hosts)];
    let value = |metric| {
        Some(match metric {
            Metric::Duration => times.iter().sum(),
            Metric::Time(reason) => times.get(reason.index()).copied().unwrap_or(0),
            Metric::Switches => switches,
            Metric::Migrations => migrations,
            Metric::Threads => threads,
            Metric::Hosts => hosts,
            Metric::PageFaults => return faults,
            Metric::BytesRead => return read,
            Metric::BytesWritten => return written,
            Metric::SystemCalls => return calls,
        })
    };
    figures.extend(Metric::all().map(value));
}

/// Number of metrics other than times of reasons, rounded up.
const ROOM: usize = 16;

/// Appends a value, unless it is the last one already.
fn push_new(list: &mut Vec<u32>, next: u32) {
    if list.last() != Some(&next) {
        list.push(next);
    }
}

/// Number of distinct elements.
fn distinct<T: Ord>(list: &mut Vec<T>) -> u64 {
    list.sort_unstable();
    list.dedup();
    list.len() as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tracebraid_graph::{Actor, Interrupt, NO_OBJECT, State, Stretch, Wake};
    use tracebraid_kernel_model::Syscall;

    use super::*;

    #[test]
    fn figures_are_those_of_the_path() {
        let waits = |wake| State::Blocked {
            call: Syscall::OTHER,
            object: NO_OBJECT,
            wake,
            reason: match wake {
                Wake::Timer => WaitReason::Timer,
                _ => WaitReason::Thread,
            },
            is_idle: false,
        };
        let actor = |line: &[(i64, State)]| Actor {
            line: line
                .iter()
                .map(|&(begin, state)| Stretch { begin, state })
                .collect(),
            ..Actor::default()
        };
        let graph = Graph {
            known_until: 100,
            actors: vec![
                actor(&[
                    (0, State::Running(0)),
                    (10, State::Interrupted(0, Interrupt::Softirq(1))),
                    (12, State::Running(0)),
                    (20, waits(Wake::Timer)),
                    (50, State::Runnable(1)),
                    (55, State::Running(1)),
                    (70, waits(Wake::Thread(ActorId(1)))),
                    (90, State::Running(1)),
                ]),
                actor(&[(0, State::Running(0))]),
            ],
            ..Graph::default()
        };
        let found: HashMap<Metric, Option<u64>> = Metric::all()
            .zip(metrics(&graph, &graph.path(ActorId(0), 0, 100)))
            .collect();
        let of = |metric| found[&metric].expect("a metric of the path");
        assert_eq!(
            (of(Metric::Duration), of(Metric::Time(WaitReason::Timer))),
            (100, 30)
        );
        assert_eq!(of(Metric::Time(WaitReason::Running)), 10 + 8 + 15 + 20 + 10);
        assert_eq!(of(Metric::Time(WaitReason::Interrupted)), 2);
        // The wait for the other thread is time of that thread: no thread on the path leaves its
        // CPU for it.
        assert_eq!((of(Metric::Switches), of(Metric::Migrations)), (1, 1));
        assert_eq!((of(Metric::Threads), of(Metric::Hosts)), (2, 1));
        let times: u64 = WaitReason::ALL
            .into_iter()
            .map(|reason| of(Metric::Time(reason)))
            .sum();
        assert_eq!(times, of(Metric::Duration));
    }
}
