//! The law on traces where an index entry in the middle contradicts its stream file: no report
//! depends on chunks, since a fold that meets the wrong entry gives no report.

use tracebraid_ctf::index::IndexCheck;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, FoldError, Options, fold};
use tracebraid_follow::CpuSet;
use tracebraid_graph::GraphAnalysis;
use tracebraid_reports::count::Count;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::waits::WaitAnalysis;
use tracebraid_testkit::partial::PartialTrace;
use tracebraid_testkit::wrong_index::{WAYS, WRONG};

use tracebraid_models::law::{ALL, Asked, LARGE, Lawful, as_told, folded};

const FILE: &str = "kchan_3";

fn checked(trace: &PartialTrace) -> TraceSet {
    TraceSet::open_checking(&[trace.path()], IndexCheck::Every).expect("the trace can be opened")
}

fn without_index() -> PartialTrace {
    PartialTrace::of(&[0, 1, 2, 3], false)
}

/// Asserts that every fold ends because of the index of [`FILE`], whatever its threads and chunks.
fn refuses<A: Lawful>(what: &str, set: &TraceSet, asked: Asked) {
    for &(threads, chunk_bytes) in LARGE {
        let options = Options {
            threads,
            chunk_bytes,
            until: asked.selection().window.to,
            ..Options::default()
        };
        let outcome = fold(set, &asked.analysis::<A>(set), options, &Control::default());
        let what = format!("{}, {what}, {options:?}", A::NAME);
        match outcome.map(|_| ()) {
            Err(FoldError::WrongIndexes(files)) => {
                assert!(
                    files.len() == 1 && files[0].ends_with(FILE),
                    "{what}: {files:?}"
                );
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// For a wrong value in any field of the entry, [`IndexCheck::Every`] ignores the index, and the
/// packets are those of the trace without an index. The other indexes are used.
#[test]
fn a_wrong_index_is_not_used_when_every_entry_is_checked() {
    let bare = without_index();
    let expected = bare.open();
    for way in WAYS {
        let trace = PartialTrace::with_changed_index(way.name, way.change);
        let set = checked(&trace);
        let damage: Vec<String> = set.damage().map(ToString::to_string).collect();
        let [damage] = &damage[..] else {
            panic!("{}: {damage:?}", way.name);
        };
        let message = format!("{FILE}: byte {}: its index is not used", WRONG << 18);
        assert!(damage.contains(&message), "{}: {damage}", way.name);
        let streams = set.traces[0]
            .streams
            .iter()
            .zip(&expected.traces[0].streams);
        for (stream, expected) in streams {
            assert_eq!(stream.packets, expected.packets, "{}", way.name);
            let file = &stream.files[0];
            assert_eq!(file.indexed, !file.path.ends_with(FILE), "{}", way.name);
        }
    }
    let sound = PartialTrace::with_changed_index("not-at-all", |_| ());
    assert_eq!(checked(&sound).damage().count(), 0);
}

/// A fold finds each wrong entry that opening the trace does not find.
#[test]
fn folds_end_where_an_index_is_wrong() {
    for way in WAYS {
        let trace = PartialTrace::with_changed_index(way.name, way.change);
        let set = trace.open();
        match way.shows {
            true => assert_eq!(set.damage().count(), 1, "{}", way.name),
            false => {
                refuses::<WaitAnalysis>(way.name, &set, ALL);
            }
        }
    }
}

fn holds<A: Lawful>(what: &str, sets: [&TraceSet; 3]) {
    let [indexed, checked, bare] = sets;
    refuses::<A>(what, indexed, ALL);
    let expected = folded(bare, &ALL.analysis::<A>(bare), (1, u64::MAX));
    as_told::<A>(what, checked, ALL, &expected, LARGE);
}

#[test]
fn reports_are_those_without_the_index() {
    let bare = without_index();
    let bare_set = bare.open();
    for way in &WAYS[..2] {
        let trace = PartialTrace::with_changed_index(way.name, way.change);
        let sets = [&trace.open(), &checked(&trace), &bare_set];
        holds::<WaitAnalysis>(way.name, sets);
        holds::<ProcessAnalysis>(way.name, sets);
        holds::<GraphAnalysis>(way.name, sets);
    }
}

/// For a range of time, the first packet after the range is compared, too, so that a wrong time
/// does not leave out packets of the range.
#[test]
fn packets_are_not_left_out_by_a_wrong_time() {
    let trace = PartialTrace::with_changed_index("later-begin", WAYS[0].change);
    let set = trace.open();
    let bare = without_index().open();
    let stream = bare.traces[0].streams.iter();
    let stream = stream
        .rev()
        .find(|stream| stream.files[0].path.ends_with(FILE));
    let stream = stream.expect("the stream");
    let clock = bare.traces[0].clock(stream).expect("its clock");
    let packet = stream.packets[WRONG];
    let (begin, end) = (packet.begin.expect("a begin"), packet.end.expect("an end"));
    let part = |parts: u64| clock.timestamp(begin + (end - begin) * parts / 8).0;
    let to_its_middle = Asked {
        range: (i64::MIN, part(3)),
        ..ALL
    };
    refuses::<WaitAnalysis>("a begin after the range", &set, to_its_middle);
}

/// A fold whose report does not depend on packet times may continue.
#[test]
fn a_wrong_index_can_be_accepted() {
    let (trace, bare) = (
        PartialTrace::with_changed_index("later-begin", WAYS[0].change),
        without_index(),
    );
    let count = |set: &TraceSet| {
        let options = Options {
            accepts_wrong_indexes: true,
            ..Options::default()
        };
        let count = Count::new(set, ALL.selection().window, CpuSet::default(), 1);
        fold(set, &count, options, &Control::default()).expect("it is accepted")
    };
    let counted = count(&trace.open());
    assert_eq!(counted.report.by_name, count(&bare.open()).report.by_name);
    let [damage] = &counted.damage[..] else {
        panic!("{:?}", counted.damage);
    };
    assert!(damage.contradicts_index, "{damage}");
    assert!(
        damage.message == "the index entry contradicts the packet's head",
        "{damage}"
    );
}
