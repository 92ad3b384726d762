//! The quantities, and the share of each that a critical path is charged with.

use tracebraid_follow::CpuKey;
use tracebraid_graph::{Graph, Path, Role, Segment, SegmentKind};
use tracebraid_language::executions::{Attached, How};

use crate::counts::series_by_owner::{CountSeries, Owner, SeriesCursors};
use crate::counts::time_series::{Keep, SeriesCursor, TimeSeries};

/// A metric that exists only in some traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraMetric {
    /// Unique name, also among [`crate::Metric`].
    pub name: String,
    /// Unit of the values; `""` for a number.
    pub unit: &'static str,
    /// Description for the user.
    pub description: String,
    /// True for a value that a program attaches, false for a processor counter.
    pub is_value: bool,
}

/// The counted quantities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantities {
    list: Vec<Quantity>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) what: Measured,
    /// True if some event class of the traces records the quantity.
    pub(crate) is_recorded: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Measured {
    Faults,
    Read,
    Written,
    Calls,
    /// A processor counter: the name of the context field.
    Counter(String),
    /// A value that a program attaches.
    Value(Attached),
}

/// The first quantities, which always exist.
pub(crate) const FIXED: [Measured; 4] = [
    Measured::Faults,
    Measured::Read,
    Measured::Written,
    Measured::Calls,
];
pub(crate) const FAULTS: u16 = 0;
pub(crate) const READ: u16 = 1;
pub(crate) const WRITTEN: u16 = 2;
pub(crate) const CALLS: u16 = 3;

/// Amount of each quantity on a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Page faults, bytes read, bytes written, system calls.
    pub(crate) fixed: [Option<u64>; 4],
    /// Other quantities, in the order of [`Quantities::extra`].
    pub(crate) extra: Vec<Option<u64>>,
}

impl Quantity {
    pub(crate) fn keep(&self) -> Keep {
        match &self.what {
            Measured::Counter(_) => Keep::Growth,
            Measured::Value(value) if matches!(value.how, How::Last | How::Max) => Keep::Each,
            _ => Keep::Sum,
        }
    }
}

impl Quantity {
    /// True if event records may record the quantity by thread; otherwise it is known by CPU only.
    fn is_of_threads(&self) -> bool {
        matches!(self.what, Measured::Counter(_) | Measured::Value(_))
    }
}

impl Quantities {
    pub(crate) fn new(list: Vec<Quantity>) -> Quantities {
        Quantities { list }
    }

    pub(crate) fn list(&self) -> &[Quantity] {
        &self.list
    }

    /// Metrics other than those of [`crate::Metric`].
    pub fn extra(&self) -> Vec<ExtraMetric> {
        let extra = |quantity: &Quantity| match &quantity.what {
            Measured::Counter(name) => Some(ExtraMetric {
                name: name.clone(),
                unit: "",
                description: format!("growth of the counter {name} while threads on the path ran"),
                is_value: false,
            }),
            Measured::Value(value) => Some(ExtraMetric {
                name: value.name.clone(),
                unit: "",
                description: described(value),
                is_value: true,
            }),
            _ => None,
        };
        self.list.iter().filter_map(extra).collect()
    }

    /// Amount of each quantity on the path of an execution of the definition `kind`.
    pub(crate) fn of_path(
        &self,
        (series, cursors): (&CountSeries, &mut SeriesCursors),
        graph: &Graph,
        path: &Path,
        kind: usize,
    ) -> Counted {
        let taken = self.taken((series, cursors), graph, path);
        let mut counted = Counted::default();
        for (place, (quantity, taken)) in self.list.iter().zip(taken).enumerate() {
            let is_of_it = match &quantity.what {
                Measured::Value(value) => value.kind.is_none_or(|of| of == kind),
                _ => true,
            };
            let found = (quantity.is_recorded && is_of_it).then_some(taken);
            let amount = found.and_then(|taken| taken.amount(&quantity.what));
            match counted.fixed.get_mut(place) {
                Some(fixed) => *fixed = amount,
                None => counted.extra.push(amount),
            }
        }
        counted
    }

    /// Sum, last and greatest value of each quantity on a path.
    fn taken(
        &self,
        (series, cursors): (&CountSeries, &mut SeriesCursors),
        graph: &Graph,
        path: &Path,
    ) -> Vec<Taken> {
        let end = path.segments.last().map(|segment| segment.end);
        let are_of_threads = self.list.iter().any(Quantity::is_of_threads);
        let mut taken = vec![Taken::default(); self.list.len()];
        // Work of the threads for other executions is not charged.
        let own = path
            .segments
            .iter()
            .filter(|segment| path.role(segment) == Role::Own);
        for segment in own {
            for owner in owners(graph, path, segment) {
                let is_thread = matches!(owner, Owner::Thread(_));
                if is_thread && !are_of_threads {
                    continue;
                }
                let of_owner = series.of(owner);
                let cursors = cursors.of(owner, of_owner.len());
                let of_owner = self.list.iter().zip(of_owner).zip(&mut taken).zip(cursors);
                for (((quantity, series), taken), cursor) in of_owner {
                    if !is_thread || quantity.is_of_threads() {
                        let keep = quantity.keep();
                        let window = keep.window(segment, Some(segment.end) == end);
                        taken.take((series, cursor), window, keep);
                    }
                }
            }
        }
        taken
    }
}

impl Keep {
    /// First time and end time (exclusive) of the values that belong to a segment of a path. The
    /// events that begin and end an execution belong to it. For a counter, its readings at both
    /// ends count.
    fn window(self, segment: &Segment, is_last: bool) -> (i64, i64) {
        let after = |time: i64| time.saturating_add(1);
        match self {
            Keep::Growth => (after(segment.begin), after(segment.end)),
            _ if is_last => (segment.begin, after(segment.end)),
            _ => (segment.begin, segment.end),
        }
    }
}

fn described(value: &Attached) -> String {
    let events = value.events.text();
    match value.how {
        How::Count => format!("number of {events} event records"),
        how => format!("{} of the values of {events}", how.name()),
    }
}

/// CPU and thread whose quantities a segment of a path is charged with.
fn owners(graph: &Graph, path: &Path, segment: &Segment) -> impl Iterator<Item = Owner> {
    // While a command is on a device, its thread does other work.
    let is_on_device = matches!(segment.kind, SegmentKind::OnDevice(_));
    let hop = path
        .hops
        .get(segment.hop as usize)
        .filter(|_| !is_on_device);
    let key = hop
        .and_then(|hop| graph.actor(hop.actor))
        .map(|actor| actor.key);
    let cpu = match segment.kind {
        SegmentKind::Running(cpu) => Some(u32::from(cpu)),
        _ => None,
    };
    let cpu = key.zip(cpu).map(|(key, cpu)| {
        Owner::Cpu(CpuKey {
            trace: key.trace,
            cpu,
        })
    });
    key.map(Owner::Thread).into_iter().chain(cpu)
}

#[derive(Clone, Copy, Default)]
struct Taken {
    sum: u64,
    last: Option<u64>,
    max: Option<u64>,
}

impl Taken {
    fn amount(self, what: &Measured) -> Option<u64> {
        match what {
            Measured::Value(value) if value.how == How::Last => self.last,
            Measured::Value(value) if value.how == How::Max => self.max,
            _ => Some(self.sum),
        }
    }

    fn take(
        &mut self,
        (series, cursor): (&TimeSeries, &mut SeriesCursor),
        (begin, end): (i64, i64),
        keep: Keep,
    ) {
        if keep != Keep::Each {
            self.sum = self.sum.saturating_add(series.grown(begin, end, cursor));
            return;
        }
        let values = series.between(begin, end, cursor);
        self.last = values.last().copied().or(self.last);
        self.max = self.max.max(values.iter().max().copied());
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_follow::ThreadKey;
    use tracebraid_graph::{Actor, ActorId, NO_OBJECT, State, Stretch, WaitReason, Wake};
    use tracebraid_kernel_model::Syscall;
    use tracebraid_language::executions::Definitions;

    use super::*;

    /// A thread that waits from 20 to 60 for another thread, which runs on another CPU from 10 on.
    fn graph() -> Graph {
        let actor = |tid, line: &[(i64, State)]| Actor {
            key: ThreadKey { trace: 0, tid },
            line: line
                .iter()
                .map(|&(begin, state)| Stretch { begin, state })
                .collect(),
            ..Actor::default()
        };
        let waits = State::Blocked {
            call: Syscall::OTHER,
            object: NO_OBJECT,
            wake: Wake::Thread(ActorId(1)),
            reason: WaitReason::Thread,
            is_idle: false,
        };
        let own = [(0, State::Running(0)), (20, waits), (60, State::Running(0))];
        Graph {
            known_until: 100,
            actors: vec![actor(7, &own), actor(8, &[(10, State::Running(1))])],
            ..Graph::default()
        }
    }

    fn amount(what: Measured, samples: &[(Owner, i64, u64)]) -> Option<u64> {
        let quantity = Quantity {
            what,
            is_recorded: true,
        };
        let mut series = CountSeries::default();
        for &(owner, time, value) in samples {
            series.add((0, owner), time, value, quantity.keep());
        }
        let graph = graph();
        let path = graph.path(ActorId(0), 5, 90);
        let quantities = Quantities::new(vec![quantity.clone()]);
        let [taken] = quantities.taken((&series, &mut SeriesCursors::default()), &graph, &path)[..]
        else {
            panic!("one quantity");
        };
        taken.amount(&quantity.what)
    }

    const CPUS: [Owner; 2] = [
        Owner::Cpu(CpuKey { trace: 0, cpu: 0 }),
        Owner::Cpu(CpuKey { trace: 0, cpu: 1 }),
    ];
    const THREADS: [Owner; 2] = [
        Owner::Thread(ThreadKey { trace: 0, tid: 7 }),
        Owner::Thread(ThreadKey { trace: 0, tid: 8 }),
    ];

    #[test]
    fn counters_count_while_their_thread_is_on_the_path() {
        // The first CPU's counter shows 1000 + time, the second's 2 × time.
        let shows = |time: i64| {
            [
                (CPUS[0], time, 1000 + time as u64),
                (CPUS[1], time, 2 * time as u64),
            ]
        };
        let samples: Vec<_> = [0, 5, 20, 60, 90, 99].into_iter().flat_map(shows).collect();
        let counter = Measured::Counter("perf_cpu_cycles".to_owned());
        assert_eq!(
            amount(counter, &samples),
            Some((20 - 5) + 2 * (60 - 20) + (90 - 60))
        );
    }

    #[test]
    fn what_happens_at_the_ends_of_an_execution_is_part_of_it() {
        let once = |times: &[i64], owner| {
            times
                .iter()
                .map(|&time| (owner, time, 1))
                .collect::<Vec<_>>()
        };
        let calls = |times: &[i64], owner| amount(Measured::Calls, &once(times, owner));
        assert_eq!(calls(&[4, 5, 19, 20, 59, 60, 90, 91], CPUS[0]), Some(4));
        assert_eq!(calls(&[19, 20, 59, 60], CPUS[1]), Some(2));
        let mut definitions = Definitions::default();
        definitions.add("value batches = e count").expect("a value");
        let value = Measured::Value(definitions.values.remove(0));
        assert_eq!(amount(value, &once(&[19, 20, 59, 60], THREADS[1])), Some(2));
    }

    #[test]
    fn values_are_added_or_chosen() {
        let samples = [
            (THREADS[0], 4, 100),
            (THREADS[0], 6, 3),
            (THREADS[1], 15, 100),
            (THREADS[1], 30, 9),
            (CPUS[0], 61, 4),
            (THREADS[0], 30, 1),
        ];
        let mut definitions = Definitions::default();
        for how in ["sum", "last", "max", "count"] {
            definitions
                .add(&format!("value {how} = e . x {how}"))
                .expect("a value");
        }
        let found = definitions.values.iter().map(|value| {
            let samples = samples.map(|(owner, time, value_of)| {
                let value = if value.how == How::Count { 1 } else { value_of };
                (owner, time, value)
            });
            amount(Measured::Value(value.clone()), &samples)
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            [Some(16), Some(4), Some(9), Some(3)]
        );
    }
}
