//! Requests that one thread accepts and others serve, through a queue: the threads on their paths,
//! compared with the ground truth.
//!
//! A program is simulated. An acceptor begins a request, parses it (sometimes waiting for the rest
//! of it), and pushes it. A waiting worker is woken; otherwise the first worker that ends its
//! request takes it, without any event. Sometimes the lock of the queue is held when a worker comes
//! for the next request. Requests also wait in the worker for other events.

use std::convert::Infallible;
use std::path::Path as Directory;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_executions::{BuildRules, Finished, Metric, Sink, Union, build};
use tracebraid_graph::{ActorId, Graph, Path, Role, Segment, WaitReason};
use tracebraid_language::Datum;
use tracebraid_language::executions::Definitions;
use tracebraid_profile::Samples;

const CLIENT: i64 = 50;
const ACCEPTOR: i64 = 100;
const WORKERS: usize = 3;
const US: u64 = 1000;

/// Ground truth of a request, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    begin: u64,
    /// Time at which it was pushed into the queue.
    pushed: u64,
    /// Time at which its worker received it.
    taken: u64,
    end: u64,
    worker: usize,
}

/// Numbers that look random (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        let (factor, term) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);
        self.0 = self.0.wrapping_mul(factor).wrapping_add(term);
        (self.0 >> 33) % bound
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least)
    }

    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Event records of a stream: time, event class, payload.
type Records = Vec<(u64, u32, Vec<u8>)>;

/// The program's actions as recorded.
#[derive(Default)]
struct Simulation {
    /// By CPU: the client's, the acceptor's, those of workers.
    kernel: Vec<Records>,
    user: Records,
    truth: Vec<Truth>,
    /// Adds system calls: `dup` at the begin of a request, `shutdown` at its end, `read` around
    /// each wait.
    has_calls: bool,
}

const SWITCH: u32 = 0;
const WAKING: u32 = 1;
const DUP_ENTRY: u32 = 2;
const SHUTDOWN_ENTRY: u32 = 4;
const READ_ENTRY: u32 = 6;
const BEGIN: u32 = 0;
const END: u32 = 1;

fn ints(values: &[i64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

impl Simulation {
    fn goes(&mut self, cpu: usize, time: u64, from: i64, to: i64) {
        // Idle threads are always runnable; all others leave to sleep.
        self.kernel[cpu].push((time, SWITCH, ints(&[from, i64::from(from != 0), to])));
    }

    /// A thread waits on its CPU until a thread on the CPU `by` wakes it.
    fn waits(&mut self, (cpu, tid): (usize, i64), (from, until): (u64, u64), by: usize) {
        self.goes(cpu, from, tid, 0);
        self.kernel[by].push((until, WAKING, ints(&[tid, cpu as i64])));
        self.goes(cpu, until + 2 * US, 0, tid);
        self.call(cpu, READ_ENTRY, (from - 100, until + 2 * US + 100), 0);
    }

    /// Records a system call: class `entry` at `begin`, class `entry + 1` at `end` (nanoseconds).
    fn call(&mut self, cpu: usize, entry: u32, (begin, end): (u64, u64), argument: usize) {
        if self.has_calls {
            self.kernel[cpu].push((begin, entry, ints(&[argument as i64])));
            self.kernel[cpu].push((end, entry + 1, ints(&[0])));
        }
    }

    fn span(&mut self, class: u32, time: u64, tid: i64, id: usize, name: &str) {
        let mut payload = [7i32.to_le_bytes(), (tid as i32).to_le_bytes()].concat();
        payload.extend((id as u64).to_le_bytes());
        if class == BEGIN {
            payload.extend(name.bytes().chain([0]));
        }
        self.user.push((time, class, payload));
    }

    fn new(count: usize, seed: u64, has_calls: bool) -> Simulation {
        let mut random = Random(seed);
        let mut simulation = Simulation {
            has_calls,
            kernel: vec![Records::new(); 2 + WORKERS],
            ..Simulation::default()
        };
        simulation.goes(0, 10, 0, CLIENT);
        simulation.goes(1, 20, 0, ACCEPTOR);
        for worker in 0..WORKERS {
            simulation.goes(2 + worker, 30, 0, worker_tid(worker));
        }
        let holds = simulation.accepts(count, &mut random);
        simulation.serves(&holds, &mut random);
        simulation
    }

    /// The acceptor's work; returns the times in which it holds the lock of the queue.
    fn accepts(&mut self, count: usize, random: &mut Random) -> Vec<(u64, u64)> {
        let acceptor = (1, ACCEPTOR);
        let (mut arrives, mut free) = (50 * US, 5 * US);
        let mut holds = Vec::new();
        for id in 0..count {
            arrives += match random.is_one_in(6) {
                true => random.between(900 * US, 4000 * US),
                false => random.between(20 * US, 500 * US),
            };
            let mut at = free;
            if arrives > free + 5 * US {
                self.waits(acceptor, (free, arrives), 0);
                at = arrives + 3 * US;
            }
            let begin = at;
            self.span(BEGIN, begin, ACCEPTOR, id, "request");
            self.call(1, DUP_ENTRY, (begin, begin + 100), id);
            at += random.between(5 * US, 30 * US);
            if random.is_one_in(12) {
                let rest = random.between(100 * US, 600 * US);
                self.waits(acceptor, (at, at + rest), 0);
                at += rest + random.between(4 * US, 9 * US);
            }
            let held = if random.is_one_in(5) { 20 * US } else { US };
            let pushed = at + held;
            holds.push((at, pushed));
            self.truth.push(Truth {
                begin,
                pushed,
                ..Truth::default()
            });
            free = pushed + random.between(2 * US, 5 * US);
        }
        holds
    }

    fn serves(&mut self, holds: &[(u64, u64)], random: &mut Random) {
        let mut free = [6 * US; WORKERS];
        for id in 0..self.truth.len() {
            let Truth { pushed, .. } = self.truth[id];
            let (worker, since) = (0..WORKERS)
                .map(|of| (of, free[of]))
                .min_by_key(|of| of.1)
                .unwrap();
            let thread = (2 + worker, worker_tid(worker));
            let mut at = since;
            let taken = if since + 2 * US < pushed {
                self.waits(thread, (since + US, pushed), 1);
                at = pushed + 2 * US;
                pushed
            } else {
                // The worker comes for the next request while the acceptor pushes another.
                let held = holds.partition_point(|hold| hold.1 <= since + US);
                if let Some(hold) = holds.get(held).filter(|hold| hold.0 <= since) {
                    self.waits(thread, (since + US, hold.1), 1);
                    at = hold.1 + 2 * US;
                }
                at.max(pushed)
            };
            at = at.max(taken) + random.between(50 * US, 400 * US);
            if random.is_one_in(3) {
                let wait = random.between(100 * US, 2000 * US);
                self.waits(thread, (at, at + wait), 0);
                at += wait + random.between(10 * US, 100 * US);
            }
            self.span(END, at, worker_tid(worker), id, "");
            self.call(2 + worker, SHUTDOWN_ENTRY, (at, at + 100), id);
            free[worker] = at + US;
            let truth = &mut self.truth[id];
            (truth.taken, truth.end, truth.worker) = (taken, at, worker);
        }
    }

    /// Writes a kernel trace and a trace of the program to a directory.
    fn write(mut self, directory: &Directory) -> Vec<Truth> {
        let kernel = [
            "sched_switch\"; fields := struct { i64 prev_tid; i64 prev_state; i64 next_tid; }",
            "sched_waking\"; fields := struct { i64 tid; i64 target_cpu; }",
            "syscall_entry_dup\"; fields := struct { i64 fildes; }",
            "syscall_exit_dup\"; fields := struct { i64 ret; }",
            "syscall_entry_shutdown\"; fields := struct { i64 fd; }",
            "syscall_exit_shutdown\"; fields := struct { i64 ret; }",
            "syscall_entry_read\"; fields := struct { i64 fd; }",
            "syscall_exit_read\"; fields := struct { i64 ret; }",
        ];
        let user = [
            "tracebraid:span_begin\"; fields := struct { u64 id; string name; }",
            "tracebraid:span_end\"; fields := struct { u64 id; }",
        ];
        let streams = self.kernel.iter_mut().chain([&mut self.user]);
        streams.for_each(|records| records.sort_by_key(|record| record.0));
        let kernel = if self.has_calls {
            &kernel[..]
        } else {
            &kernel[..2]
        };
        write(
            &directory.join("kernel"),
            "kernel",
            "",
            kernel,
            &self.kernel,
        );
        let context = "event.context := struct { i32 vpid; i32 vtid; };";
        write(&directory.join("ust"), "ust", context, &user, &[self.user]);
        self.truth
    }
}

fn worker_tid(worker: usize) -> i64 {
    200 + worker as i64
}

fn write(
    directory: &Directory,
    domain: &str,
    context: &str,
    classes: &[&str],
    streams: &[Records],
) {
    std::fs::create_dir_all(directory).expect("a directory");
    let mut metadata = format!(
        "/* CTF 1.8 */
        typealias integer {{ size = 32; align = 8; }} := u32;
        typealias integer {{ size = 32; align = 8; signed = true; }} := i32;
        typealias integer {{ size = 64; align = 8; }} := u64;
        typealias integer {{ size = 64; align = 8; signed = true; }} := i64;
        trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 magic; u32 stream_id; }}; }};
        env {{ hostname = \"box\"; domain = \"{domain}\"; sysname = \"Linux\"; tracer_name = \"lttng-modules\"; }};
        clock {{ name = c; freq = 1000000000; }};
        typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := stamp;
        stream {{ id = 0;
            packet.context := struct {{ stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u32 cpu_id; }};
            event.header := struct {{ u32 id; stamp timestamp; }}; {context} }};\n"
    );
    for (id, class) in classes.iter().enumerate() {
        metadata.push_str(&format!(
            "event {{ id = {id}; stream_id = 0; name = \"{class}; }};\n"
        ));
    }
    std::fs::write(directory.join("metadata"), metadata).expect("a file");
    for (cpu, records) in streams.iter().enumerate() {
        let mut bytes = Vec::new();
        for records in records.chunks(40) {
            let mut body: Vec<u8> = Vec::new();
            for (time, id, payload) in records {
                body.extend(id.to_le_bytes());
                body.extend(time.to_le_bytes());
                body.extend(payload);
            }
            let size = (8 + 36 + body.len()) as u64 * 8;
            bytes.extend(0xc1fc_1fc1_u32.to_le_bytes());
            bytes.extend(0u32.to_le_bytes());
            for value in [records[0].0, records[records.len() - 1].0, size, size] {
                bytes.extend(value.to_le_bytes());
            }
            bytes.extend((cpu as u32).to_le_bytes());
            bytes.extend(body);
        }
        std::fs::write(directory.join(format!("stream_{cpu}")), bytes).expect("a file");
    }
}

/// Location of a request, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Acceptor,
    Queue,
    Worker,
    Unseen,
}

fn phase(path: &Path, first: ActorId, segment: &Segment) -> Phase {
    match path.role(segment) {
        Role::Busy => return Phase::Queue,
        Role::Unseen => return Phase::Unseen,
        Role::Own => {}
        Role::Lwp => panic!("no user-level threads are recorded"),
    }
    let outermost = path.way(segment.hop).find(|hop| hop.parent == Some(0));
    let is_accepted =
        outermost.is_some_and(|hop| hop.actor == first && hop.begin == path.hops[0].begin);
    if is_accepted {
        Phase::Acceptor
    } else {
        Phase::Worker
    }
}

/// Nanoseconds of a path with a wrong location of the request, and nanoseconds with an unknown one.
fn wrong(path: &Path, first: ActorId, truth: &Truth) -> (u64, u64) {
    let times = [truth.begin, truth.pushed, truth.taken, truth.end].map(|time| time as i64);
    let (mut wrong, mut unknown) = (0, 0);
    for segment in &path.segments {
        let found = phase(path, first, segment);
        let phases = [Phase::Acceptor, Phase::Queue, Phase::Worker].into_iter();
        for (phase, window) in phases.zip(times.windows(2)) {
            let common = segment.end.min(window[1]) - segment.begin.max(window[0]);
            match common.max(0) as u64 {
                common if found == Phase::Unseen => unknown += common,
                common if found != phase => wrong += common,
                _ => {}
            }
        }
    }
    (wrong, unknown)
}

/// Numbers of requests with right paths, and the executions.
#[derive(Debug, Default, PartialEq)]
struct Judged {
    requests: u64,
    right_now: u64,
    right_before: u64,
    unknown: u64,
    queued: u64,
    finished: Vec<Finished>,
}

struct Judge<'t> {
    /// By number of the request.
    truth: &'t [Truth],
    judged: Judged,
}

impl Sink for Judge<'_> {
    type Error = Infallible;

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Infallible> {
        let execution = &finished.execution;
        let Some(Datum::Integer(id)) = execution.values.get(1) else {
            panic!("a span has its number: {:?}", execution.values);
        };
        let truth = &self.truth[*id as usize];
        let times = [execution.begin as u64, execution.end as u64];
        assert!(
            times[0]
                .abs_diff(truth.begin)
                .max(times[1].abs_diff(truth.end))
                <= MOST_APART
        );
        let (first, last) = (
            execution.first.expect("a thread"),
            execution.last.expect("a worker"),
        );
        let path = execution.path(graph).expect("a path");
        assert!(path.tiles(execution.begin, execution.end), "{path:?}");
        // A path begins in the thread in which the request begins.
        let begins = path
            .segments
            .first()
            .map(|segment| phase(&path, first, segment));
        assert!(begins == Some(Phase::Acceptor), "{truth:?} {path:?}");
        let alone = graph.path(last, execution.begin, execution.end);
        let is_right = |(wrong, _): (u64, u64)| wrong <= (execution.duration() / 50).max(20 * US);
        let found = wrong(&path, first, truth);
        let judged = &mut self.judged;
        judged.requests += 1;
        judged.right_now += u64::from(is_right(found));
        judged.right_before += u64::from(is_right(wrong(&alone, first, truth)));
        judged.unknown += u64::from(found.1 > 0);
        let queued = Metric::all().position(|metric| metric == Metric::Time(WaitReason::Queued));
        judged.queued += finished.metrics[queued.unwrap()].unwrap();
        judged.finished.push(finished);
        Ok(())
    }
}

/// Nanoseconds by which a program's own clock may differ from event records: it may be preempted
/// between them.
const MOST_APART: u64 = 20_000_000;

fn judged(directory: &Directory, truth: &[Truth], definition: &str, options: Options) -> Judged {
    let set = TraceSet::open(&[directory.to_owned()]).expect("traces");
    let mut definitions = Definitions::default();
    definitions.file(definition).expect("a definition");
    let rules = BuildRules {
        definitions,
        ..BuildRules::default()
    };
    let mut judge = Judge {
        truth,
        judged: Judged::default(),
    };
    let (samples, union, control) = (Samples::default(), Union::default(), Control::default());
    let built = build(
        &set,
        &rules,
        &samples,
        union,
        (options, &control),
        &mut judge,
    );
    assert_eq!(built.expect("it is made").unfinished, [0]);
    let Judged {
        requests,
        right_now,
        right_before,
        unknown,
        queued,
        ..
    } = judge.judged;
    let in_queue: u64 = truth.iter().map(|of| of.taken - of.pushed).sum();
    println!(
        "{requests} requests: {right_before} right paths of the last thread alone, {right_now} from the first one on, \
         {unknown} with an unknown part; {queued} ns queued, in truth {in_queue}"
    );
    judge.judged
}

const SPANS: &str = "span request";

/// The same requests, delimited by system calls. The second captured value is the number of the
/// request, as with spans.
const CALLS: &str = "
period request : $evt.$name == \"syscall_entry_dup\"
  : $evt.$name == \"syscall_entry_shutdown\" && $evt.fd == $begin.$evt.fildes
captures request : what = $evt.$name, id = $evt.fildes
";

/// The result, which must be the same for all ways to read the traces.
fn same_in_every_way(directory: &Directory, truth: &[Truth], definition: &str) -> Judged {
    let whole = judged(directory, truth, definition, Options::default());
    for (threads, chunk_bytes) in [(1, 1 << 20), (2, 5000), (1, 700)] {
        let options = Options {
            threads,
            chunk_bytes,
            ..Options::default()
        };
        let other = judged(directory, truth, definition, options);
        assert!(other == whole, "{threads} threads, {chunk_bytes} bytes");
    }
    whole
}

/// Requests of a simulation, with the ground truth.
fn simulated(definition: &str, has_calls: bool) -> (Judged, Vec<Truth>) {
    const REQUESTS: usize = 2300;
    let directory = tempfile::tempdir().expect("a directory");
    let truth = Simulation::new(REQUESTS, 3, has_calls).write(directory.path());
    let found = same_in_every_way(directory.path(), &truth, definition);
    assert_eq!(found.requests, REQUESTS as u64);
    // The simulation must produce enough queued requests.
    assert!(
        found.right_before * 10 < found.requests * 9,
        "{}",
        found.right_before
    );
    (found, truth)
}

#[test]
fn requests_are_followed_from_the_thread_that_accepts_to_the_one_that_serves() {
    let (found, truth) = simulated(SPANS, false);
    let in_queue: u64 = truth.iter().map(|of| of.taken - of.pushed).sum();
    assert!(
        found.right_now * 100 >= found.requests * 99,
        "{}",
        found.right_now
    );
    assert!(found.unknown <= WORKERS as u64, "{}", found.unknown);
    assert!(
        found.queued.abs_diff(in_queue) * 50 < in_queue,
        "{}, not {in_queue}",
        found.queued
    );
}

/// The thread that makes a system call records it, so a call begins an execution as a span does.
#[test]
fn requests_that_begin_with_a_system_call_are_followed() {
    let (spans, _) = simulated(SPANS, true);
    let (calls, _) = simulated(CALLS, true);
    assert!(
        calls.right_now * 100 >= calls.requests * 98,
        "{}",
        calls.right_now
    );
    let of = |judged: &Judged| (judged.right_now, judged.unknown, judged.queued);
    assert_eq!(of(&calls), of(&spans));
}

/// The program's own records of its requests: see `tests/data/oracle/worker-pool/pool.c`.
fn recorded_truth(file: &Directory) -> Vec<Truth> {
    let text = std::fs::read_to_string(file).expect("the truth");
    let mut truth = vec![Truth::default()];
    for line in text.lines() {
        let values: Vec<u64> = line
            .split(',')
            .map(|value| value.parse().expect("a number"))
            .collect();
        assert_eq!(values[0], truth.len() as u64);
        truth.push(Truth {
            begin: values[1],
            pushed: values[2],
            taken: values[3],
            end: values[4],
            worker: values[6] as usize,
        });
    }
    // A waiting worker receives a request when it is pushed, a busy worker when it has ended its
    // previous request.
    let ends: Vec<(usize, u64)> = truth.iter().map(|of| (of.worker, of.end)).collect();
    for of in &mut truth {
        let before = ends
            .iter()
            .filter(|end| end.0 == of.worker && end.1 <= of.taken);
        of.taken = before.map(|end| end.1).max().unwrap_or(0).max(of.pushed);
    }
    truth
}

#[test]
fn requests_of_a_recorded_pool_are_followed() {
    let directory = tracebraid_testkit::recorded::unpacked("worker-pool");
    let truth = recorded_truth(&directory.join("worker-pool.truth.csv"));
    let found = same_in_every_way(&directory.join("worker-pool"), &truth, SPANS);
    let right = [found.right_before, found.right_now];
    assert_eq!(found.requests, truth.len() as u64 - 1);
    assert!(right[0] * 100 < found.requests * 95, "{right:?}");
    assert!(right[1] * 100 >= found.requests * 98, "{right:?}");
    // Only the worker's activity before its first request, and little more, is unknown.
    assert!(found.unknown <= 6, "{}", found.unknown);
}
