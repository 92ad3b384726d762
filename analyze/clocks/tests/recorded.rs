//! Recordings of two machines, compared with their true offset and with the results of Trace
//! Compass.

use std::path::{Path as FilePath, PathBuf};

use tracebraid_clocks::{
    Accuracy, Machines, Matches, PacketAnalysis, Path, Relation, Synchronization, Transformations,
};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_testkit::recorded;
use tracebraid_testkit::skip::skipped;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The messages between the machines of the traces.
fn messages(set: &TraceSet) -> (Machines, Matches) {
    let analysis = PacketAnalysis::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    let packets = outcome.expect("the pass is not cancelled").report;
    let machines = Machines::of(set);
    let matches = Matches::of(&packets, &machines);
    (machines, matches)
}

/// The recordings of a client and a server, unpacked below the target directory.
fn two_hosts() -> [PathBuf; 2] {
    let directory = recorded::unpacked("twohost");
    ["twohost-server", "twohost-client"].map(|name| directory.join(name))
}

/// Checks every message of both directions by corrected times.
fn none_arrives_before_it_was_sent(found: &Synchronization, matches: &Matches) {
    let corrections: Vec<_> = found
        .hosts
        .iter()
        .map(|host| host.correction().unwrap())
        .collect();
    for (from, to) in [(0, 1), (1, 0)] {
        for message in matches.between(from, to) {
            let sent = corrections[from].apply(Timestamp(message.sent));
            let received = corrections[to].apply(Timestamp(message.received));
            assert!(sent <= received, "{from} to {to}: {sent:?}, {received:?}");
        }
    }
}

/// The true offset was recorded with the traces (`tests/data/README.md`): by the times of the
/// traces, the client is between 3.716590 and 3.717036 s ahead.
#[test]
fn the_offset_of_two_hosts_is_the_true_one() {
    let set = TraceSet::open(&two_hosts()).expect("the traces can be opened");
    let (machines, matches) = messages(&set);
    assert_eq!(
        (machines.name(0), machines.name(1)),
        ("srv".to_owned(), "cli".to_owned())
    );
    assert_eq!(
        (matches.between(1, 0).len(), matches.between(0, 1).len()),
        (2968, 2833)
    );
    let found = Synchronization::of(machines.clone(), &matches, None).unwrap();
    none_arrives_before_it_was_sent(&found, &matches);
    let pair = &found.pairs[0];
    assert_eq!((pair.accuracy, pair.stretches), (Accuracy::Accurate, 1));
    let offset = pair.offset_ns.unwrap();
    assert!(
        (-3_717_036_000..=-3_716_590_000).contains(&offset),
        "{offset}"
    );
    assert!(pair.offset_min_ns.unwrap() <= offset && offset <= pair.offset_max_ns.unwrap());
    assert!(pair.drift_min_ppm.unwrap() < 0.0 && 0.0 < pair.drift_max_ppm.unwrap());
    // The same relation with the other machine as reference.
    let other = Synchronization::of(machines, &matches, Some("cli")).unwrap();
    none_arrives_before_it_was_sent(&other, &matches);
    let (there, back) = (
        found.hosts[1].offset_ns.unwrap(),
        other.hosts[0].offset_ns.unwrap(),
    );
    assert!((there + back).abs() < 1_000, "{there} {back}");
}

/// A correction survives being written and read, and traces opened with it have corrected times.
#[test]
fn traces_are_corrected_as_they_are_read() {
    let mut set = TraceSet::open(&two_hosts()).expect("the traces can be opened");
    let (machines, matches) = messages(&set);
    let found = Synchronization::of(machines, &matches, None).unwrap();
    let text = serde_json::to_vec(&found.transformations()).unwrap();
    let read = Transformations::parse(&text).unwrap();
    assert_eq!(read, found.transformations());
    assert_eq!(read.apply(&mut set).unwrap(), []);
    assert!(set.traces.iter().all(|trace| trace.is_synchronized));
    // By corrected times, no correction remains and the order of messages holds.
    let (machines, matches) = messages(&set);
    assert!(!matches.between(0, 1).is_empty() && !matches.between(1, 0).is_empty());
    for message in [(0, 1), (1, 0)]
        .iter()
        .flat_map(|&(from, to)| matches.between(from, to))
    {
        assert!(message.sent <= message.received);
    }
    let again = Synchronization::of(machines, &matches, None).unwrap();
    assert!(again.pairs[0].offset_ns.unwrap().abs() <= 1);
    assert!(again.pairs[0].drift_ppm.unwrap().abs() < 0.001);
}

/// The result of Trace Compass for these traces: `ExperimentSyncTest.testExperimentSync`
/// (org.eclipse.tracecompass.lttng2.kernel.core.tests, event.matchandsync) asserts that times of
/// scp_src are converted to those of scp_dest by `TmfTimestampTransformLinearFast [ slope =
/// 0.9999413783703139011056845831168394, offset = 79796507913179.33347660124688298171 ]`.
const TRACE_COMPASS: (f64, f64) = (0.999_941_378_370_313_9, 79_796_507_913_179.33);

#[test]
fn the_scp_pair_is_related_as_trace_compass_relates_it() {
    let directory = FilePath::new(ROOT).join("../shared/traces/public/synctraces");
    if !directory.exists() {
        return skipped(format_args!("{} is not there", directory.display()));
    }
    let paths = ["scp_src", "scp_dest"].map(|name| directory.join(name));
    let set = TraceSet::open(&paths).expect("the traces can be opened");
    let (machines, matches) = messages(&set);
    let (source, destination) = (0, 1);
    // Trace Compass does not assume a range of clock drifts. Without that assumption the line
    // equals its line: the inverse of the mean of the flattest and the steepest line from the
    // destination's time to the source's.
    let mut relation = Relation::default();
    for message in matches.between(source, destination) {
        relation.not_before(message.received, message.sent);
    }
    for message in matches.between(destination, source) {
        relation.not_after(message.sent, message.received);
    }
    let (flattest, steepest) = (
        relation.flattest().unwrap().unwrap(),
        relation.steepest().unwrap().unwrap(),
    );
    let slope = 2.0 / (flattest.value() + steepest.value());
    assert!((slope - TRACE_COMPASS.0).abs() < 1e-12, "{slope}");

    let found = Synchronization::of(machines, &matches, Some("VM3")).unwrap();
    none_arrives_before_it_was_sent(&found, &matches);
    // The trace is too short for its packets to bound the drift more tightly than the assumed range
    // of clock drifts.
    assert_eq!(found.pairs[0].accuracy, Accuracy::Approximate);
    // The drift that Trace Compass found, and its offset while packets were exchanged, are within
    // our bounds.
    let path = Path::of(&matches.timeline(source, destination))
        .unwrap()
        .unwrap();
    let (low, high) = path.slopes().unwrap();
    assert!(low.value() <= TRACE_COMPASS.0 && TRACE_COMPASS.0 <= high.value());
    let (first, last) = path.extent();
    for x in (0..=20).map(|step| first + (last - first) / 20 * step) {
        // The product needs more than 64 bits, so only the fraction below 1 is multiplied.
        let theirs = x as f64 * (TRACE_COMPASS.0 - 1.0) + TRACE_COMPASS.1;
        let (low, high) = path.bounds(x);
        let bound = |y: tracebraid_clocks::Fixed| (y.round() - x) as f64;
        let slack = 100.0;
        assert!(bound(low.unwrap()) - slack <= theirs && theirs <= bound(high.unwrap()) + slack);
        let ours = (path.at(x).unwrap().round() - x) as f64;
        assert!((ours - theirs).abs() < 60_000.0, "{ours} {theirs}");
    }
}
