//! Slow requests with injected causes: their critical paths name these causes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use tracebraid_engine::Options;
use tracebraid_follow::{Selection, ThreadKey};
use tracebraid_graph::{Actor, Competitor, Graph, Path as CriticalPath, Segment, WaitReason};

use crate::support::traces;
use crate::support::user::user_events;

/// A request. Times are nanoseconds from the origin.
struct Request {
    id: u64,
    begin: i64,
    end: i64,
    cause: String,
    tid: i32,
    /// Time of computing, of waiting for the lock and of writing, by the program's own clock.
    compute: i64,
    locked: i64,
    stored: i64,
}

/// The interval in which a thread injected a cause.
struct Injection {
    tid: i32,
    begin: i64,
    end: i64,
}

struct Recording {
    graph: Graph,
    requests: Vec<Request>,
    injections: BTreeMap<u64, Injection>,
    /// By request: the interval in which the backend served it, from its own tracepoints.
    backend: BTreeMap<u64, (i64, i64)>,
}

static RECORDING: LazyLock<Recording> = LazyLock::new(|| {
    let directory = tracebraid_testkit::recorded::unpacked("kernel-ust-requests");
    let set = traces::open(&[directory.join("kernel-ust-requests/kernel")]);
    let origin = traces::origin(&set, 0);
    let truth = directory.join("kernel-ust-requests.truth");
    let time = |text: &String| origin + text.parse::<i64>().expect("a time");
    let request = |row: &Vec<String>| Request {
        id: row[0].parse().expect("a number"),
        begin: time(&row[1]),
        end: time(&row[2]),
        cause: row[3].clone(),
        tid: row[6].parse().expect("a number"),
        compute: row[8].parse().expect("a duration"),
        locked: row[9].parse().expect("a duration"),
        stored: row[10].parse().expect("a duration"),
    };
    let injection = |row: &Vec<String>| {
        let injection = Injection {
            tid: row[3].parse().expect("a number"),
            begin: time(&row[4]),
            end: time(&row[5]),
        };
        (row[1].parse().expect("a number"), injection)
    };
    Recording {
        graph: traces::graph(&set, Selection::default(), Options::default()),
        requests: traces::rows(&truth.join("requests.csv"))
            .iter()
            .map(request)
            .collect(),
        injections: traces::rows(&truth.join("injections.csv"))
            .iter()
            .map(injection)
            .collect(),
        backend: backend(&directory.join("kernel-ust-requests/ust")),
    }
});

/// Intervals in which the backend served requests.
fn backend(ust: &Path) -> BTreeMap<u64, (i64, i64)> {
    let set = traces::open(&[ust.to_owned()]);
    let mut found: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    for event in user_events(&set) {
        let id = || *event.integers.get("id").expect("a request");
        match event.name.as_str() {
            "app:backend_begin" => _ = found.insert(id(), (event.time, event.time)),
            "app:backend_end" => found.get_mut(&id()).expect("it has begun").1 = event.time,
            _ => {}
        }
    }
    found
}

impl Recording {
    fn path(&self, request: &Request) -> CriticalPath {
        let thread = ThreadKey {
            trace: 0,
            tid: request.tid,
        };
        let actor = self
            .graph
            .at(thread, request.begin)
            .expect("the worker is there");
        let path = self.graph.path(actor, request.begin, request.end);
        assert!(path.tiles(request.begin, request.end));
        path
    }
}

impl Recording {
    /// Nanoseconds of a path within a window, of the segments that `is` selects by thread and
    /// activity.
    fn sum(
        &self,
        path: &CriticalPath,
        window: (i64, i64),
        is: impl Fn(&Actor, &Segment) -> bool,
    ) -> f64 {
        let of = |segment: &&Segment| {
            let hop = path.hops[segment.hop as usize];
            is(self.graph.actor(hop.actor).expect("a thread"), segment)
        };
        let clipped = |segment: &Segment| {
            let duration = segment.end.min(window.1) - segment.begin.max(window.0);
            duration.max(0) as f64
        };
        path.segments.iter().filter(of).map(clipped).sum()
    }

    /// Found and expected time of a cause, in nanoseconds.
    fn found(&self, request: &Request) -> (f64, f64) {
        let path = self.path(request);
        let own = (request.begin, request.end);
        let injection = self.injections.get(&request.id);
        let locked = (
            request.begin + request.compute,
            request.begin + request.compute + request.locked,
        );
        let is_of = |actor: &Actor, name: &str| actor.name.as_deref() == Some(name);
        let waits = |segment: &Segment, reason| self.graph.reason(&path, segment) == reason;
        match (request.cause.as_str(), injection) {
            ("preempt", Some(injection)) => {
                let hog = |segment: &Segment| {
                    let by = self.graph.in_the_way(segment);
                    by.and_then(|by| self.graph.actor(by))
                        .is_some_and(|by| by.key.tid == injection.tid && is_of(by, "cpuhog"))
                };
                let window = both(own, (injection.begin, injection.end));
                (
                    self.sum(&path, window, |_, segment| hog(segment)),
                    length(window),
                )
            }
            ("lock_sleep", Some(injection)) => {
                let window = both(locked, (injection.begin, injection.end));
                let holder = |actor: &Actor, segment: &Segment| {
                    is_of(actor, "lockholder") && waits(segment, WaitReason::Timer)
                };
                (self.sum(&path, window, holder), length(window))
            }
            ("lock_run", Some(injection)) => {
                let window = both(locked, (injection.begin, injection.end));
                let holder = |actor: &Actor, segment: &Segment| {
                    is_of(actor, "lockholder") && !waits(segment, WaitReason::Timer)
                };
                (self.sum(&path, window, holder), length(window))
            }
            ("backend_sleep" | "backend_run", None) => {
                let at_work = self.backend.get(&request.id).copied();
                let window = both(own, at_work.expect("the backend was asked"));
                let sleeps = request.cause == "backend_sleep";
                let backend = |actor: &Actor, segment: &Segment| {
                    is_of(actor, "backend") && waits(segment, WaitReason::Timer) == sleeps
                };
                (self.sum(&path, window, backend), length(window))
            }
            ("disk", Some(_)) => {
                let disk = |_: &Actor, segment: &Segment| {
                    waits(segment, WaitReason::BlockDevice)
                        && self.graph.detail(&path, segment).starts_with("vdc")
                };
                (self.sum(&path, own, disk), request.stored as f64)
            }
            (cause, _) => panic!("request {}: unknown cause {cause}", request.id),
        }
    }
}

/// The intersection of two windows.
fn both(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    let begin = one.0.max(other.0);
    (begin, one.1.min(other.1).max(begin))
}

fn length(window: (i64, i64)) -> f64 {
    (window.1 - window.0) as f64
}

/// Relative error: the times of a request, by the clock that its thread reads, do not match those
/// of the path exactly.
const TOLERANCE: f64 = 0.02;

#[test]
fn paths_name_what_made_requests_slow() {
    let recording = &*RECORDING;
    let mut causes: BTreeMap<&str, u32> = BTreeMap::new();
    for request in recording
        .requests
        .iter()
        .filter(|request| request.cause != "none")
    {
        let (found, expected) = recording.found(request);
        let (id, cause) = (request.id, &request.cause);
        assert!(
            expected > 10e6,
            "request {id} is slow by {cause}: {expected}"
        );
        let error = (found - expected).abs() / expected;
        assert!(
            error <= TOLERANCE,
            "request {id}: the path contains {found} ns of {expected} ns of {cause}"
        );
        *causes.entry(cause).or_default() += 1;
    }
    let expected = [
        ("backend_run", 42),
        ("backend_sleep", 37),
        ("disk", 50),
        ("lock_run", 41),
        ("lock_sleep", 35),
        ("preempt", 61),
    ];
    assert_eq!(causes, BTreeMap::from(expected));
}

#[test]
fn who_else_used_the_disk_is_told() {
    let recording = &*RECORDING;
    for request in recording
        .requests
        .iter()
        .filter(|request| request.cause == "disk")
    {
        let summary = recording.graph.summary(&recording.path(request));
        let is_writer = |of: &&Competitor| {
            let name = of.thread.as_ref().and_then(|thread| thread.name.as_deref());
            of.device == "vdc" && name == Some("diskwriter")
        };
        let writer = summary.competitors.iter().find(is_writer);
        let time = writer.map_or(0, |writer| writer.duration_ns);
        assert!(
            time > 2_000_000,
            "request {}: {:?}",
            request.id,
            summary.competitors
        );
    }
}

/// True for the reasons of waits whose cause a path could not determine.
fn is_unresolved(reason: WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::Unknown | WaitReason::Thread | WaitReason::Futex | WaitReason::Child
    )
}

#[test]
fn nothing_slow_stays_unexplained() {
    let recording = &*RECORDING;
    let mut slow = 0;
    for request in &recording.requests {
        let path = recording.path(request);
        let window = (request.begin, request.end);
        let length = length(window);
        if length < 10e6 {
            continue;
        }
        slow += 1;
        let unresolved = recording.sum(&path, window, |_, segment| {
            is_unresolved(recording.graph.reason(&path, segment))
        });
        assert!(
            unresolved <= TOLERANCE * length,
            "request {}: {unresolved} ns of {length}",
            request.id
        );
    }
    assert!(slow > 266, "{slow}");
}
