//! Executions of random traces: databases are identical, byte for byte, for all ways to read the
//! trace.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_executions::database::{About, Database, Writer};
use tracebraid_executions::{BuildRules, Built, Finished, Sink, Union, build};
use tracebraid_graph::Graph;
use tracebraid_language::executions::Definitions;
use tracebraid_models::synthetic::{Shape, trace};
use tracebraid_profile::Samples;

/// Definitions of several families, and executions that go from one thread to another.
const MIXED: &[&str] = &[
    "call *",
    "call read",
    "process other : *",
    "period away : $evt.$name == \"sched_switch\" && $evt.prev_tid != 0 :
        $evt.$name == \"sched_switch\" && $evt.next_tid == $begin.$evt.prev_tid",
    "period hop : $evt.$name == \"sched_switch\" && $evt.prev_tid != 0 && $evt.next_tid != 0 :
        $evt.$name == \"sched_switch\" && $evt.prev_tid == $begin.$evt.next_tid",
];

/// Definitions of calls only, which are found in slices of time.
const CALLS: &[&str] = &["call *", "call write"];

/// Threads, bytes of a chunk, and bytes of a slice.
const WAYS: [(usize, u64, u64); 7] = [
    (1, 1, 1),
    (2, 1, 1),
    (4, 1, 6000),
    (3, 20_000, 20_000),
    (1, 20_000, u64::MAX),
    (2, u64::MAX, 0),
    (4, 5000, 0),
];

fn rules(texts: &[&str], (behind_ns, interval_bytes): (u64, u64)) -> BuildRules {
    let mut definitions = Definitions::default();
    texts
        .iter()
        .for_each(|text| definitions.file(text).expect("a definition"));
    BuildRules {
        definitions,
        behind_ns,
        interval_bytes,
        ..BuildRules::default()
    }
}

/// The bytes of a database, its number of executions, and the summary of the build.
fn database(set: &TraceSet, rules: &BuildRules, options: Options) -> (Vec<u8>, u64, Built) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("executions.db");
    let about = About::new(
        set,
        |_| "random".to_owned(),
        &rules.definitions,
        "as in the test",
    );
    let mut writer = Writer::create(&path, &about).expect("a writer");
    let how = (options, &Control::default());
    let built = build(
        set,
        rules,
        &Samples::default(),
        Union::default(),
        how,
        &mut writer,
    );
    let built = built.expect("it is made");
    writer.finish(&built).expect("it is written");
    let kinds = Database::open(&path).expect("a database").kinds;
    let executions = kinds.iter().map(|kind| kind.executions).sum();
    (
        std::fs::read(&path).expect("it is there"),
        executions,
        built,
    )
}

/// Checks that the databases of a trace are identical for all ways to read it. Returns the number
/// of executions.
fn check_that_ways_agree(set: &TraceSet, texts: &[&str], behind: &[u64]) -> u64 {
    let mut count = 0;
    for behind in behind
        .iter()
        .flat_map(|&behind| INTERVAL_BYTES.map(|bytes| (behind, bytes)))
    {
        let rules = rules(texts, behind);
        let options = |(threads, chunk_bytes, slice_bytes)| Options {
            threads,
            chunk_bytes,
            slice_bytes,
            ..Options::default()
        };
        let (expected, executions, _) = database(set, &rules, options((1, u64::MAX, u64::MAX)));
        count = executions;
        for way in WAYS {
            let (found, executions, built) = database(set, &rules, options(way));
            assert_eq!(
                (executions, built.given_up),
                (count, 0),
                "{way:?}, {behind:?}"
            );
            assert!(found == expected, "{way:?}, {behind:?}");
        }
    }
    count
}

/// Delays, from all executions made at their deadline to all made with complete knowledge of the
/// trace.
const BEHIND: [u64; 4] = [0, 20_000, 2_000_000, u64::MAX];

/// The shortest possible intervals, and several intervals in each trace.
const INTERVAL_BYTES: [u64; 2] = [0, 10_000];

#[test]
fn databases_of_random_traces_are_the_same_in_every_way() {
    let shape = Shape {
        steps: 1_500,
        ..Shape::PLAIN
    };
    let shapes = [
        shape,
        Shape {
            told_threads: true,
            ties: true,
            ..shape
        },
        Shape {
            cpus: 2,
            threads: 5,
            silent_losses: 20,
            lost_packets: 20,
            counted_losses: 20,
            ..shape
        },
    ];
    for (seed, shape) in (0..).zip(shapes) {
        let (directory, set) = trace(seed, shape);
        let (mixed, calls) = (
            check_that_ways_agree(&set, MIXED, &BEHIND),
            check_that_ways_agree(&set, CALLS, &BEHIND),
        );
        std::fs::remove_dir_all(directory).expect("it was made");
        assert!(calls > 100 && mixed > calls, "{calls} {mixed}");
    }
}

/// Gives a writer one execution at a time.
struct OneByOne(Writer);

impl Sink for OneByOne {
    type Error = <Writer as Sink>::Error;

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Self::Error> {
        self.0.take(graph, finished)
    }
}

#[test]
fn executions_that_are_given_one_by_one_make_the_same_database() {
    let (directory, set) = trace(7, Shape::PLAIN);
    let rules = rules(MIXED, (BuildRules::BEHIND_NS, BuildRules::INTERVAL_BYTES));
    let (expected, executions, _) = database(&set, &rules, Options::default());
    assert!(executions > 2_000, "{executions}");
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("executions.db");
    let about = About::new(
        &set,
        |_| "random".to_owned(),
        &rules.definitions,
        "as in the test",
    );
    let mut sink = OneByOne(Writer::create(&path, &about).expect("a writer"));
    let how = (Options::default(), &Control::default());
    let built = build(
        &set,
        &rules,
        &Samples::default(),
        Union::default(),
        how,
        &mut sink,
    );
    sink.0
        .finish(&built.expect("it is made"))
        .expect("it is written");
    std::fs::remove_dir_all(directory).expect("it was made");
    assert!(std::fs::read(&path).expect("it is there") == expected);
}
