//! Paths through random graphs: they have no gaps.

use proptest::prelude::*;
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_graph::{
    Actor, ActorId, Graph, Interrupt, Link, NO_OBJECT, Occupant, Occupied, Packet, Passed, Path,
    Queue, Request, Role, State, Stretch, WaitReason, Wake, Work,
};
use tracebraid_kernel_model::{Device, Syscall};

pub(crate) const END: i64 = 200;
pub(crate) const ACTORS: u32 = 7;
const CPUS: u16 = 3;

fn actor_id() -> impl Strategy<Value = ActorId> {
    // Includes an id without a thread.
    (0..=ACTORS).prop_map(ActorId)
}

fn wake() -> impl Strategy<Value = Wake> {
    prop_oneof![
        1 => Just(Wake::Unknown),
        6 => actor_id().prop_map(Wake::Thread),
        1 => Just(Wake::Timer),
        1 => Just(Wake::Interrupt(Interrupt::Softirq(3))),
        2 => (0u32..9).prop_map(Wake::Request),
        2 => (0u32..9).prop_map(Wake::Packet),
    ]
}

fn state() -> impl Strategy<Value = State> {
    let cpu = 0..CPUS + 1;
    prop_oneof![
        // Occurs after losses.
        1 => Just(State::Unknown),
        3 => cpu.clone().prop_map(State::Running),
        1 => cpu.clone().prop_map(|cpu| State::Interrupted(cpu, Interrupt::Irq(7))),
        1 => cpu.clone().prop_map(State::Preempted),
        1 => prop_oneof![cpu, Just(u16::MAX)].prop_map(State::Runnable),
        6 => (wake(), any::<bool>()).prop_map(|(wake, is_idle)| State::Blocked {
            call: Syscall::OTHER,
            object: NO_OBJECT,
            wake,
            reason: WaitReason::Unknown,
            is_idle,
        }),
        1 => Just(State::Ended),
    ]
}

fn line() -> impl Strategy<Value = Vec<Stretch>> {
    let stretch = (1i64..12, state());
    (0i64..60, prop::collection::vec(stretch, 0..25)).prop_map(|(first, stretches)| {
        let mut begin = first;
        let stretch = |(gap, state)| {
            let stretch = Stretch { begin, state };
            begin += gap;
            stretch
        };
        stretches.into_iter().map(stretch).collect()
    })
}

fn works() -> impl Strategy<Value = Vec<Work>> {
    let work = (0i64..50, wake());
    prop::collection::btree_map(0i64..END, work, 0..8).prop_map(|works| {
        let work = |(begin, (before, cause))| Work {
            begin,
            queued: begin - before,
            cause,
            queue: Queue::Ring,
        };
        works.into_iter().map(work).collect()
    })
}

fn actor() -> impl Strategy<Value = Actor> {
    (line(), prop::option::of(actor_id()), works()).prop_map(|(line, creator, works)| Actor {
        key: ThreadKey { trace: 0, tid: 1 },
        creator,
        line,
        works,
        ..Actor::default()
    })
}

fn occupied() -> impl Strategy<Value = Vec<Occupied>> {
    let by = prop_oneof![
        Just(Occupant::Unknown),
        Just(Occupant::Idle),
        actor_id().prop_map(Occupant::Thread)
    ];
    prop::collection::btree_map(0i64..END, by, 0..30).prop_map(|line| {
        line.into_iter()
            .map(|(begin, by)| Occupied { begin, by })
            .collect()
    })
}

fn request() -> impl Strategy<Value = Request> {
    let sectors = prop::sample::select(vec![0, 8, 24, 128, 4096]);
    (
        0i64..END,
        0i64..40,
        0i64..40,
        prop::option::of(actor_id()),
        sectors,
    )
        .prop_map(|(end, duration, queued, by, sectors)| Request {
            begin: end - duration,
            issued: end - duration + queued.min(duration),
            end,
            by,
            trace: 0,
            device: Device(8),
            sectors,
        })
}

fn packet() -> impl Strategy<Value = Packet> {
    (prop::option::of(0i64..END), prop::option::of(actor_id())).prop_map(|(sent, by)| Packet {
        connection: 1,
        sent,
        by,
    })
}

prop_compose! {
    pub(crate) fn graph()(
        actors in prop::collection::vec(actor(), ACTORS as usize),
        lines in prop::collection::vec(occupied(), usize::from(CPUS)),
        mut requests in prop::collection::vec(request(), 0..8),
        packets in prop::collection::vec(packet(), 0..8),
        end in 100i64..END + 20,
    ) -> Graph {
        requests.sort_by_key(|request| request.end);
        let longest_request = requests.iter().map(|request| request.end - request.begin).max().unwrap_or(0);
        let cpu = |(cpu, line)| (CpuKey { trace: 0, cpu }, line);
        Graph {
            known_until: end,
            actors,
            cpus: (0..).zip(lines).map(cpu).collect(),
            requests: requests.into(),
            packets: packets.into(),
            longest_request,
            ..Graph::default()
        }
    }
}

/// Properties of every path.
fn holds(graph: &Graph, path: &Path, (begin, end): (i64, i64)) -> Result<(), TestCaseError> {
    prop_assert!(path.tiles(begin, end), "{:?}", path.segments);
    for hop in &path.hops {
        let parent = hop.parent.map(|parent| path.hops[parent as usize]);
        if let Some(parent) = parent {
            prop_assert!(
                parent.begin <= hop.begin && hop.end <= parent.end,
                "{hop:?} in {parent:?}"
            );
            // Only an execution waits for other work of the receiving thread.
            let is_itself = matches!(hop.link, Link::Busy | Link::Unseen);
            prop_assert_eq!(parent.actor == hop.actor, is_itself);
        }
    }
    for segment in &path.segments {
        let hop = path.hops[segment.hop as usize];
        prop_assert!(
            hop.begin <= segment.begin && segment.end <= hop.end,
            "{segment:?} in {hop:?}"
        );
        prop_assert!(path.way(segment.hop).count() <= 64);
    }
    let summary = graph.summary(path);
    let whole = begin.abs_diff(end);
    prop_assert_eq!(
        summary
            .reasons
            .iter()
            .map(|sum| sum.duration_ns)
            .sum::<u64>(),
        whole
    );
    prop_assert_eq!(
        summary
            .threads
            .iter()
            .map(|sum| sum.duration_ns)
            .sum::<u64>(),
        whole
    );
    prop_assert_eq!(summary.hosts.iter().map(|sum| sum.1).sum::<u64>(), whole);
    for sum in &summary.competitors {
        prop_assert!(sum.duration_ns <= whole);
    }
    Ok(())
}

/// Nanoseconds for which the disk served a thread: each instant belongs to the requests in service,
/// in proportion to their sizes.
fn served(graph: &Graph, by: Option<ActorId>, (begin, end): (i64, i64)) -> f64 {
    let weight = |request: &Request| f64::from(request.sectors.max(8));
    let share = |time: i64| {
        let in_service = || {
            let requests = graph.requests.iter();
            requests.filter(move |request| request.issued <= time && time < request.end)
        };
        let all: f64 = in_service().map(weight).sum();
        let own: f64 = in_service()
            .filter(|request| request.by == by)
            .map(weight)
            .sum();
        if all > 0.0 { own / all } else { 0.0 }
    };
    (begin..end).map(share).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn devices_serve_by_size_while_requests_are_with_the_driver(
        graph in graph(),
        window in (0i64..END, 0i64..END),
    ) {
        let window = (window.0.min(window.1), window.0.max(window.1));
        let found = graph.served(0, Device(8), window);
        for user in &found {
            let expected = served(&graph, user.by, window);
            let difference = expected - user.time as f64;
            prop_assert!(difference > -1e-6 && difference < 1.0 - 1e-6, "{user:?}, not {expected}");
        }
        let all: u64 = found.iter().map(|user| user.time).sum();
        prop_assert!(all <= window.0.abs_diff(window.1));
        for by in (0..=ACTORS).map(|id| Some(ActorId(id))).chain([None]) {
            let is_found = found.iter().any(|user| user.by == by);
            prop_assert_eq!(is_found, served(&graph, by, window) > 0.0, "{:?}", by);
        }
    }

    #[test]
    fn paths_from_one_thread_to_another_have_no_gaps(
        graph in graph(),
        threads in (0u32..ACTORS, 0u32..ACTORS),
        window in (0i64..END, 0i64..END),
        bounds in (prop::option::of(0i64..END), prop::option::of(0i64..END)),
        (was_free, is_sure) in (any::<bool>(), any::<bool>()),
    ) {
        let window = (window.0.min(window.1), window.0.max(window.1));
        let within = |time: &i64| window.0 < *time && *time < window.1;
        let passed = Passed {
            first: ActorId(threads.0),
            last: ActorId(threads.1),
            begin: window.0,
            end: window.1,
            busy_until: bounds.0.filter(within),
            next: bounds.1.filter(within),
            was_free,
            is_sure,
        };
        let path = graph.passed_path(&passed);
        holds(&graph, &path, window)?;
        // Work for other executions counts as waiting: it is not part of the activity of the
        // execution.
        for segment in &path.segments {
            let reason = graph.reason(&path, segment);
            let expected = match path.role(segment) {
                Role::Own => graph.activity(segment),
                Role::Busy => WaitReason::Queued,
                Role::Unseen => WaitReason::UnknownHandOver,
                Role::Lwp => WaitReason::Lwp,
            };
            prop_assert_eq!(reason, expected);
        }
    }

    #[test]
    fn paths_have_no_gaps(graph in graph(), of in 0u32..ACTORS, window in (0i64..END, 0i64..END)) {
        let window = (window.0.min(window.1), window.0.max(window.1));
        let path = graph.path(ActorId(of), window.0, window.1);
        holds(&graph, &path, window)?;
    }
}
