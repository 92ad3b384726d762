//! A history that grows with its trace equals one that is built from the whole trace.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tracebraid_ctf::correction::{Correction, Piece};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::write::stream::PacketSize;
use tracebraid_ctf::write::trace::{Options as WriteOptions, Session};
use tracebraid_engine::{Control, Options};
use tracebraid_history::{
    AppendError, Appended, Asked, Attribute, BuildError, Definition, History, append,
};

use crate::{Scratch, build_asked, build_with};
use tracebraid_models::traces::kernel_trace;

/// Writes the first packets of a trace, as its tracer would have left them: of each stream a share
/// in thousandths, after the packets that exist already. With `torn`, half of the next packet
/// follows.
fn grow(set: &TraceSet, to: &Path, shares: &[u16], torn: bool) {
    fs::create_dir_all(to).unwrap();
    let trace = &set.traces[0];
    fs::copy(trace.paths[0].join("metadata"), to.join("metadata")).unwrap();
    for (stream, share) in trace.streams.iter().zip(shares.iter().cycle()) {
        let count = stream.packets.len() * usize::from(*share) / 1000;
        let behind = |index: usize| {
            stream.packets[..index]
                .last()
                .map_or(0, |last| last.offset + last.bytes)
        };
        let next = stream.packets.get(count).filter(|_| torn);
        let bytes = behind(count) + next.map_or(0, |next| next.bytes / 2);
        let from = fs::read(&stream.files[0].path).unwrap();
        let name = stream.files[0].path.file_name().unwrap();
        let mut file = fs::File::options();
        file.create(true).write(true).truncate(false);
        let file = file.open(to.join(name)).unwrap();
        let old = file.metadata().unwrap().len();
        if old < bytes {
            file.write_all_at(&from[old as usize..bytes as usize], old)
                .unwrap();
        }
    }
}

/// The same trace in smaller packets, since small recordings have few packets.
fn in_small_packets(place: &Scratch, name: &str) -> TraceSet {
    smaller(place, &kernel_trace(name).unwrap())
}

fn smaller(place: &Scratch, set: &TraceSet) -> TraceSet {
    let session = Session::create(&place.file("small")).unwrap();
    let options = WriteOptions {
        packet_size: PacketSize::UpTo(1 << 14),
        index: false,
        ..WriteOptions::default()
    };
    tracebraid_testkit::rewrite::copy(&set.traces[0].paths[0], session, options).unwrap();
    open(&place.file("small"))
}

fn open(directory: &Path) -> TraceSet {
    TraceSet::open(&[directory.to_owned()]).unwrap()
}

fn options(threads: usize, chunk_bytes: u64) -> Options {
    Options {
        threads,
        chunk_bytes,
        ..Options::default()
    }
}

fn append_to(file: &Path, trace: &Path, options: Options) -> Result<Appended, AppendError> {
    append(
        &open(trace),
        &["trace".into()],
        file,
        options,
        &Control::default(),
    )
}

/// Asserts that two histories are equal: metadata, all values at random times, all changes, and
/// samples.
fn assert_same(found: &History, expected: &History, times: usize) {
    assert_eq!(found.meta(), expected.meta());
    assert_eq!(found.blocks().0, expected.blocks().0);
    let (begin, end) = (expected.meta().begin, expected.meta().end);
    let attributes = expected.met(begin, end + 1, |_| true).unwrap();
    assert_eq!(found.met(begin, end + 1, |_| true).unwrap(), attributes);
    for time in crate::law::random_times(begin, end, times) {
        let values = |history: &History| history.at(time, |_| true).unwrap();
        let (now, all) = (values(found), values(expected));
        let mut differs = now.iter().zip(&all).filter(|(now, all)| now != all);
        let differs = differs
            .next()
            .map(|(now, all)| (found.path(now.0).to_string(), now, all));
        assert!(
            now == all,
            "at {time}, first {differs:?}, {} and {}",
            now.len(),
            all.len()
        );
    }
    for &attribute in &attributes {
        let changes = |history: &History| history.changes(attribute, begin - 1, end + 1).unwrap();
        assert_eq!(
            changes(found),
            changes(expected),
            "{}",
            found.path(attribute)
        );
    }
    let chosen: Vec<Attribute> = attributes.iter().copied().step_by(7).take(60).collect();
    for samples in [1, 3, 40, 700, 5000] {
        let sampled =
            |history: &History| history.sampled(&chosen, (begin, end + 1), samples).unwrap();
        assert_eq!(sampled(found), sampled(expected), "{samples} samples");
    }
}

/// The blocks of all changes in a history's file.
fn fine_blocks(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let index: serde_json::Value = serde_json::from_slice(&bytes[word(16)..][..word(24)]).unwrap();
    let blocks = index["blocks"].as_array().unwrap().iter();
    let fine = blocks.filter(|block| block["level"] == 0);
    let place = |block: &serde_json::Value| {
        ["offset", "length"].map(|name| block[name].as_u64().unwrap() as usize)
    };
    fine.map(place)
        .map(|[offset, length]| bytes[offset..offset + length].to_vec())
        .collect()
}

/// The history of the trace in its present state, built at once.
fn whole(place: &Scratch, trace: &Path) -> History {
    whole_asked(place, trace, Asked::default())
}

fn whole_asked(place: &Scratch, trace: &Path, asked: Asked) -> History {
    let file = place.file("whole");
    build_asked(&open(trace), asked, &file, 2, 100_000);
    History::open(&file).unwrap()
}

/// Stacks, sums, texts of earlier events, and running threads.
const FOLLOWS: &str = r#"
name = "follows"
[[on]]
event = "syscall_entry_*"
let = { last = "last/{tid}" }
when = "!(last == \"syscall_entry_read\")"
change = [
  { set = "last/{tid}", to = "{name}" },
  { push = "stack/{tid}", to = "{name}" },
  { push = "open/{cpu}", key = "{tid}", to = "{tid}" },
  { add = "calls/{tid}" },
]
[[on]]
event = "syscall_exit_*"
change = [{ pop = "stack/{tid}" }, { drop = "{tid}" }, { set = "ended/{cpu}", to = "{time}" }]
[[on]]
event = "irq_handler_entry"
change = [{ add = "interrupted/{tid}", by = 3 }]
[[segment]]
name = "reads"
key = "{tid}"
begin = { event = "syscall_entry_read" }
end = { event = "syscall_exit_read" }
"#;

/// Grows a history in steps, with two numbers of threads and chunk sizes, and compares each with a
/// history of the whole trace. Returns the bytes that the appends read, and the total.
fn grows(set: &TraceSet, asked: &Asked, steps: &[u16]) -> (u64, u64) {
    let place = Scratch::new();
    let (trace, files) = (
        place.file("trace"),
        [place.file("history"), place.file("other")],
    );
    let (mut read, mut all) = (0, 0);
    for (number, share) in steps.iter().enumerate() {
        grow(set, &trace, &[*share, share.saturating_sub(3)], false);
        for (file, (threads, chunk)) in files.iter().zip([(3, 40_000), (1, u64::MAX)]) {
            if number == 0 {
                build_asked(&open(&trace), asked.clone(), file, threads, chunk);
            } else {
                let appended = append_to(file, &trace, options(threads, chunk)).unwrap();
                read += appended.read;
                all += appended.built.meta.bytes;
            }
        }
        assert!(
            fs::read(&files[0]).unwrap() == fs::read(&files[1]).unwrap(),
            "{share}"
        );
        let history = History::open(&files[0]).unwrap();
        history.verify().unwrap();
        assert_same(&history, &whole_asked(&place, &trace, asked.clone()), 100);
        assert!(
            fine_blocks(&files[0]) == fine_blocks(&place.file("whole")),
            "{share}"
        );
    }
    (read, all)
}

const STEPS: [u16; 7] = [400, 600, 610, 615, 800, 990, 1000];

#[test]
fn what_analyses_say_is_gone_on_with() {
    let place = Scratch::new();
    let set = in_small_packets(&place, "kernel-mix-small");
    let running = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/analyses/running.xml"
    );
    for text in [FOLLOWS, &fs::read_to_string(running).unwrap()] {
        let asked = Asked {
            definition: Some(Definition::parse(text).unwrap()),
            files: false,
        };
        let (read, all) = grows(&set, &asked, &STEPS);
        assert!(
            read > 0 && read < all / 2,
            "{read} of {all} bytes were read"
        );
    }
}

/// Descriptors, and calls in progress.
#[test]
fn what_descriptors_are_is_gone_on_with() {
    let own = Definition::parse(FOLLOWS).unwrap();
    for (name, definition) in [
        ("kernel-mix-small", None),
        ("kernel-mix-small", Some(own)),
        // With losses of events.
        ("kernel-discarded", None),
    ] {
        let place = Scratch::new();
        let set = in_small_packets(&place, name);
        let asked = Asked {
            definition,
            files: true,
        };
        let (read, all) = grows(&set, &asked, &STEPS);
        if name == "kernel-mix-small" {
            assert!(
                read > 0 && read < all / 2,
                "{read} of {all} bytes were read"
            );
        }
    }
}

/// Attributes of probes, in a program with spans that are open at all times.
#[test]
fn what_probes_tell_is_gone_on_with() {
    let session = Scratch::new();
    let set = smaller(&session, &crate::probes::many(&session));
    let (read, all) = grows(&set, &Asked::default(), &STEPS);
    assert!(
        read > 0 && read < all / 2,
        "{read} of {all} bytes were read"
    );
}

/// Traces of two machines; the clock of one is corrected, as `--sync` does.
#[test]
fn several_traces_are_gone_on_with() {
    let sources = [Scratch::new(), Scratch::new()];
    let first = in_small_packets(&sources[0], "kernel-mix-small");
    let second = in_small_packets(&sources[1], "kernel-discarded");
    let begin = |set: &TraceSet| {
        let trace = &set.traces[0];
        let of = |stream: &Stream| {
            let clock = trace.clock(stream).unwrap();
            clock.timestamp(stream.packets[0].begin.unwrap())
        };
        trace.streams.iter().map(of).min().unwrap()
    };
    let piece = Piece {
        from: begin(&second),
        offset_ns: begin(&first).0 - begin(&second).0 + 12_345,
        drift_e18: 30_000_000_000_000,
        ..Piece::default()
    };
    let correction: &'static Correction =
        Box::leak(Box::new(Correction::new([&[piece][..]]).unwrap()));
    let place = Scratch::new();
    let traces = ["one", "two"].map(|name| place.file(name));
    let set = |corrected: bool| {
        let mut set = TraceSet::open(&traces).unwrap();
        if corrected {
            set.traces[1].correction = Some(correction);
            set.traces[1].is_synchronized = true;
        }
        set
    };
    let own = Definition::parse(FOLLOWS).unwrap();
    for definition in [None, Some(own)] {
        let asked = Asked {
            definition,
            files: false,
        };
        let (file, whole) = (place.file("history"), place.file("whole"));
        traces
            .iter()
            .for_each(|trace| drop(fs::remove_dir_all(trace)));
        let steps = [(300, 200), (500, 300), (520, 310), (700, 900), (1000, 1000)];
        for (number, (of_first, of_second)) in steps.into_iter().enumerate() {
            grow(&first, &traces[0], &[of_first], false);
            grow(&second, &traces[1], &[of_second], false);
            if number == 0 {
                build_asked(&set(true), asked.clone(), &file, 2, 50_000);
            } else {
                let go_on = |set: &TraceSet| {
                    append(
                        set,
                        &["trace".into()],
                        &file,
                        options(2, 50_000),
                        &Control::default(),
                    )
                };
                // Without the correction, it is a different trace.
                let refused = go_on(&set(false)).unwrap_err();
                assert!(matches!(refused, AppendError::Other { .. }), "{refused}");
                assert!(go_on(&set(true)).unwrap().packets > 0);
            }
            build_asked(&set(true), asked.clone(), &whole, 1, 0);
            let [found, expected] = [&file, &whole].map(|file| History::open(file).unwrap());
            assert_same(&found, &expected, 50);
            assert!(fine_blocks(&file) == fine_blocks(&whole), "{number}");
        }
    }
}

/// If no checkpoint is intact and of this version, the whole trace is read.
#[test]
fn without_what_an_analysis_knew_everything_is_read() {
    let place = Scratch::new();
    let set = in_small_packets(&place, "kernel-mix-small");
    let (trace, file) = (place.file("trace"), place.file("history"));
    let asked = Asked {
        definition: Some(Definition::parse(FOLLOWS).unwrap()),
        files: false,
    };
    grow(&set, &trace, &[900], false);
    build_asked(&open(&trace), asked.clone(), &file, 2, 0);
    let mut bytes = fs::read(&file).unwrap();
    let at: Vec<usize> = (0..bytes.len() - 20)
        .filter(|&at| bytes[at..].starts_with(b"{\"program\":\"tracebraid "))
        .collect();
    assert!(at.len() > 1, "{}", at.len());
    // The last occurrence is in the index.
    at[..at.len() - 1]
        .iter()
        .for_each(|&at| bytes[at + 15] = b'X');
    fs::write(&file, &bytes).unwrap();
    grow(&set, &trace, &[1000], false);
    let appended = append_to(&file, &trace, options(2, 0)).unwrap();
    assert!(appended.read >= appended.built.meta.bytes);
    assert_same(
        &History::open(&file).unwrap(),
        &whole_asked(&place, &trace, asked),
        100,
    );
}

#[test]
fn a_history_that_grew_says_what_one_of_the_whole_trace_says() {
    for (name, steps) in [
        (
            "kernel-mix-small",
            &[
                [300, 300, 300, 300],
                [450, 450, 450, 450],
                [900, 900, 900, 900],
            ][..],
        ),
        (
            "kernel-mix-small",
            &[
                [100, 0, 700, 300],
                [500, 600, 700, 300],
                [1000, 650, 900, 1000],
            ],
        ),
        ("kernel-ust-requests", &[[500, 510, 490, 505]]),
        (
            "kernel-discarded",
            &[[200, 900, 400, 10], [400, 900, 900, 600]],
        ),
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let place = Scratch::new();
        let (trace, file) = (place.file("trace"), place.file("history"));
        for (number, shares) in steps.iter().chain([&[1000; 4]]).enumerate() {
            grow(&set, &trace, shares, false);
            match number {
                0 => drop(build_with(&open(&trace), &file, 2, 50_000)),
                _ => {
                    let appended = append_to(&file, &trace, options(2, 50_000)).unwrap();
                    assert!(appended.packets > 0);
                    assert_eq!(appended.built.bytes, fs::metadata(&file).unwrap().len());
                }
            }
            let history = History::open(&file).unwrap();
            history.verify().unwrap();
            assert_same(&history, &whole(&place, &trace), 300);
        }
        assert_same(&History::open(&file).unwrap(), &whole(&place, &trace), 2000);
        assert!(
            fine_blocks(&file) == fine_blocks(&place.file("whole")),
            "{name}"
        );
    }
}

#[test]
fn little_is_read_again() {
    let place = Scratch::new();
    let set = in_small_packets(&place, "kernel-mix-small");
    let (trace, file) = (place.file("trace"), place.file("history"));
    grow(&set, &trace, &[900], false);
    let built = build_with(&open(&trace), &file, 1, 0);
    grow(&set, &trace, &[910], false);
    let appended = append_to(&file, &trace, options(1, 0)).unwrap();
    assert!(
        appended.packets > 0 && appended.read < built.meta.bytes / 4,
        "{} of {} bytes were read",
        appended.read,
        built.meta.bytes
    );
    let before = fs::read(&file).unwrap();
    let again = append_to(&file, &trace, options(1, 0)).unwrap();
    assert_eq!((again.packets, again.read), (0, 0));
    assert!(fs::read(&file).unwrap() == before);
}

/// The file does not depend on how streams grow, nor on the number of threads and chunks.
#[test]
fn the_way_in_which_it_grows_does_not_matter() {
    let place = Scratch::new();
    let set = in_small_packets(&place, "kernel-mix-small");
    let steps = prop::collection::vec(prop::array::uniform4(0u16..=1000), 2..=5);
    let chunks = prop::sample::select(vec![1, 20_000, 300_000, 0]);
    let config = ProptestConfig {
        cases: 12,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let ways = (steps, any::<bool>(), chunks);
    let tried = TestRunner::new(config).run(&ways, |(steps, torn, chunk)| {
        grown_in_steps(&set, steps, torn, chunk);
        Ok(())
    });
    tried.unwrap();
}

fn grown_in_steps(set: &TraceSet, mut steps: Vec<[u16; 4]>, torn: bool, chunk: u64) {
    let place = Scratch::new();
    for stream in 0..4 {
        let mut shares: Vec<u16> = steps.iter().map(|step| step[stream]).collect();
        shares.sort_unstable();
        steps
            .iter_mut()
            .zip(shares)
            .for_each(|(step, share)| step[stream] = share);
    }
    // A history needs at least one event.
    steps.iter_mut().for_each(|step| step[0] = step[0].max(50));
    let (trace, files) = (
        place.file("trace"),
        [place.file("history"), place.file("other")],
    );
    for (number, shares) in steps.iter().enumerate() {
        grow(set, &trace, shares, torn);
        for (file, (threads, chunk)) in files.iter().zip([(3, chunk), (1, u64::MAX)]) {
            match number {
                0 => drop(build_with(&open(&trace), file, threads, chunk)),
                _ => drop(append_to(file, &trace, options(threads, chunk)).unwrap()),
            }
        }
    }
    assert!(fs::read(&files[0]).unwrap() == fs::read(&files[1]).unwrap());
    let history = History::open(&files[0]).unwrap();
    history.verify().unwrap();
    assert_same(&history, &whole(&place, &trace), 300);
    assert!(fine_blocks(&files[0]) == fine_blocks(&place.file("whole")));
}

#[test]
fn an_append_that_fails_leaves_what_was() {
    let set = kernel_trace("kernel-mix-small").unwrap();
    let place = Scratch::new();
    let (trace, file) = (place.file("trace"), place.file("history"));
    grow(&set, &trace, &[500], false);
    build_with(&open(&trace), &file, 2, 0);
    let before = fs::read(&file).unwrap();
    grow(&set, &trace, &[800], false);
    let control = Control::default();
    control.cancel();
    let cancelled = append(
        &open(&trace),
        &["trace".into()],
        &file,
        options(2, 0),
        &control,
    );
    assert!(matches!(
        cancelled,
        Err(AppendError::Build(BuildError::Fold(_)))
    ));
    assert!(fs::read(&file).unwrap() == before);
    // An interrupted append leaves data after the old state, but the head does not refer to it.
    append_to(&file, &trace, options(2, 0)).unwrap();
    let mut after = fs::read(&file).unwrap();
    for length in [
        before.len() + 1,
        (before.len() + after.len()) / 2,
        after.len(),
    ] {
        after[..64].copy_from_slice(&before[..64]);
        fs::write(&file, &after[..length]).unwrap();
        let old = History::open(&file).unwrap();
        old.verify().unwrap();
        grow(&set, &place.file("half"), &[500], false);
        assert_same(&old, &whole(&place, &place.file("half")), 100);
        append_to(&file, &trace, options(2, 0)).unwrap();
        assert_same(&History::open(&file).unwrap(), &whole(&place, &trace), 100);
    }
}

#[test]
fn whoever_reads_meanwhile_sees_the_old_state_to_the_end() {
    let set = kernel_trace("kernel-mix-small").unwrap();
    let place = Scratch::new();
    let (trace, file) = (place.file("trace"), place.file("history"));
    grow(&set, &trace, &[400], false);
    build_with(&open(&trace), &file, 2, 0);
    let old = History::open(&file).unwrap();
    grow(&set, &place.file("half"), &[400], false);
    for share in (450..=1000).step_by(50) {
        grow(&set, &trace, &[share], false);
        append_to(&file, &trace, options(2, 0)).unwrap();
    }
    assert_same(&old, &whole(&place, &place.file("half")), 100);
}

/// Unused data does not accumulate.
#[test]
fn many_appends_take_no_more_than_some_times_the_room() {
    let place = Scratch::new();
    let set = in_small_packets(&place, "kernel-mix-small");
    let (trace, file) = (place.file("trace"), place.file("history"));
    grow(&set, &trace, &[30], false);
    build_with(&open(&trace), &file, 2, 0);
    for share in (40..1000).step_by(16) {
        grow(&set, &trace, &[share], false);
        append_to(&file, &trace, options(2, 0)).unwrap();
    }
    grow(&set, &trace, &[1000], false);
    append_to(&file, &trace, options(2, 0)).unwrap();
    let history = whole(&place, &trace);
    assert_same(&History::open(&file).unwrap(), &history, 500);
    let (grown, built) = (
        fs::metadata(&file).unwrap().len(),
        fs::metadata(place.file("whole")).unwrap().len(),
    );
    assert!(grown < 3 * built + (2 << 20), "{grown} and {built} bytes");
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 4);
}

#[test]
fn what_is_no_longer_that_trace_is_refused() {
    let set = kernel_trace("kernel-mix-small").unwrap();
    let other = kernel_trace("kernel-ust-requests").unwrap();
    let place = Scratch::new();
    let (trace, file) = (place.file("trace"), place.file("history"));
    grow(&set, &trace, &[500], false);
    build_with(&open(&trace), &file, 2, 0);
    let before = fs::read(&file).unwrap();
    let refused = |directory: &Path, what: &str| {
        let error = append_to(&file, directory, options(1, 0))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(what) && error.contains("history build"),
            "{error}"
        );
    };
    grow(&other, &place.file("other"), &[1000], false);
    refused(&place.file("other"), "contains other packets");
    // The message names the trace.
    refused(
        &place.file("other"),
        &place.file("other").display().to_string(),
    );
    grow(&set, &place.file("less"), &[500, 400], false);
    refused(&place.file("less"), "packets, but had");
    grow(&set, &place.file("fewer"), &[600], false);
    fs::remove_file(place.file("fewer").join("kchan_2")).unwrap();
    refused(&place.file("fewer"), "kchan_2 is missing");
    let held = fs::File::open(&file).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = append_to(&file, &trace, options(1, 0)).unwrap_err();
    assert!(matches!(error, AppendError::Busy { .. }));
    assert!(fs::read(&file).unwrap() == before);
}
