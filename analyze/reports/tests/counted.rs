//! `count` and `print` agree with the reference reader for all packet heads: those without times,
//! sizes or ids, and those with wrong times.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tracebraid_ctf::clock::{ClockConversion, Timestamp};
use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::schema::{CtfVersion, FieldClass, Roles};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{CpuSet, Extent, Window};
use tracebraid_reports::count::{Count, CountReport};
use tracebraid_testkit::bare::Bare;
use tracebraid_testkit::directory;
use tracebraid_testkit::generate::{self, generate};
use tracebraid_testkit::recorded;
use tracebraid_testkit::reference;
use tracebraid_testkit::rng::Rng;
use tracebraid_testkit::value::Value;

use tracebraid_models::synthetic::{self, Shape};

/// A directory of its own below the target directory, removed when dropped.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new() -> Directory {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("counted-{}-{number}", std::process::id());
        Directory(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An event record according to the reference reader.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// Nanoseconds from the origin, if its stream has a clock.
    time: Option<i64>,
    cpu: Option<u32>,
}

impl Told {
    fn is_in(self, window: Window, cpus: Option<u32>) -> bool {
        let is_limited = window.from.is_some() || window.to.is_some();
        let is_in_time = self.time.map_or(!is_limited, |time| window.contains(time));
        is_in_time && cpus.is_none_or(|cpu| self.cpu == Some(cpu))
    }
}

/// All event records of a trace, read by the reference reader.
fn told(trace: &Path) -> Vec<Told> {
    let bare = Bare::read(trace).expect("the trace can be read");
    let reader = reference::Reader::new(&bare.class);
    let mut told = Vec::new();
    for file in &bare.files {
        let mut rest = file.data.as_slice();
        while !rest.is_empty() {
            let mut packet = reader.packet(rest).expect("a sound packet");
            let head = packet.head();
            let class = &bare.class.streams[head.stream_class];
            let cpu = cpu_of(class.packet_context.as_ref(), head.context.as_ref());
            let clock = class.default_clock.map(|clock| &bare.class.clocks[clock]);
            let clock = clock.map(ClockConversion::new);
            rest = &rest[(head.total_length / 8) as usize..];
            while let Some(event) = packet.next_event() {
                let event = event.expect("a sound event record");
                told.push(Told {
                    time: clock
                        .zip(event.time)
                        .map(|(clock, time)| clock.timestamp(time).0),
                    cpu,
                });
            }
        }
    }
    told
}

fn cpu_of(class: Option<&FieldClass>, context: Option<&Value>) -> Option<u32> {
    let (Some(FieldClass::Struct(class)), Some(Value::Struct(values))) = (class, context) else {
        return None;
    };
    let at = class
        .members
        .iter()
        .position(|member| member.name.as_str() == "cpu_id")?;
    u32::try_from(values[at].as_integer()?).ok()
}

fn counted(
    set: &TraceSet,
    window: Window,
    cpu: Option<u32>,
    (threads, chunk_bytes): (usize, u64),
) -> CountReport {
    let cpus = CpuSet(cpu.map(|cpu| [cpu].into()));
    let options = Options {
        threads,
        chunk_bytes,
        until: window.to,
        ..Options::default()
    };
    let count = Count::new(set, window, cpus, 7);
    let outcome = fold(set, &count, options, &Control::default());
    outcome.expect("not cancelled").report
}

/// Number of lines that `print` writes for the range.
fn printed(set: &TraceSet, window: Window, cpu: Option<u32>) -> u64 {
    let mut reader = MergedReader::within(set, window.from, window.to);
    let mut lines = 0;
    while let Some((time, reader)) = reader.next() {
        let layout = &reader.trace().layout.streams[reader.stream().class];
        let own = reader.packet_head().value(layout, "cpu_id");
        let is_in_time = layout.clock.is_none() || window.contains(time.0);
        lines += u64::from(is_in_time && cpu.is_none_or(|cpu| own == Some(cpu.into())));
    }
    lines
}

/// Random ranges with ends at or near times of event records.
fn windows(rng: &mut Rng, told: &[Told], count: usize) -> Vec<Window> {
    let times: Vec<i64> = told.iter().filter_map(|told| told.time).collect();
    let mut windows = vec![Window::default()];
    for _ in 0..count {
        let mut time = || match times.is_empty() {
            true => rng.below(1 << 40) as i64,
            false => rng.pick(&times) + rng.below(3) as i64 - 1,
        };
        let (a, b) = (time(), time());
        windows.extend([
            Window {
                from: Some(Timestamp(a.min(b))),
                to: Some(Timestamp(a.max(b))),
            },
            Window {
                from: Some(Timestamp(a)),
                to: None,
            },
            Window {
                from: None,
                to: Some(Timestamp(b)),
            },
        ]);
    }
    windows
}

const WAYS: [(usize, u64); 3] = [(1, u64::MAX), (2, 1), (2, 300)];

/// Counts and prints a trace in random ranges.
fn check(what: &str, trace: &Path, rng: &mut Rng, ranges: usize) {
    let told = told(trace);
    let set = TraceSet::open(&[trace]).expect("the trace can be opened");
    let cpus: std::collections::BTreeSet<u32> = told.iter().filter_map(|told| told.cpu).collect();
    let mut chosen = vec![None];
    // Large traces are counted once.
    chosen.extend(
        cpus.into_iter()
            .take(if ranges > 0 { 2 } else { 0 })
            .map(Some),
    );
    for window in windows(rng, &told, ranges) {
        for &cpu in &chosen {
            let is_in = |told: &&Told| told.is_in(window, cpu);
            let expected = told.iter().filter(is_in).count() as u64;
            let times = || told.iter().filter(is_in).filter_map(|told| told.time);
            let what = format!("{what}, {window:?}, CPU {cpu:?}");
            assert_eq!(printed(&set, window, cpu), expected, "printed: {what}");
            for way in WAYS {
                let report = counted(&set, window, cpu, way);
                assert_eq!(report.events, expected, "counted in {way:?}: {what}");
                let seen = (report.first, report.last);
                assert_eq!(
                    seen,
                    (times().min(), times().max()),
                    "when, in {way:?}: {what}"
                );
                assert_eq!(
                    report.rate.counts.iter().sum::<u64>(),
                    times().count() as u64,
                    "{what}"
                );
            }
        }
    }
    let times = || told.iter().filter_map(|told| told.time);
    let extent = Extent::of(&set, |_| true);
    assert_eq!(
        extent.map(|extent| (extent.first.0, extent.last.0)),
        times().min().zip(times().max()),
        "{what}"
    );
}

/// Fields that heads may lack: each alone, and together.
fn lacks() -> Vec<(&'static [Roles], bool)> {
    const BEGIN: Roles = Roles::CLOCK_TIMESTAMP;
    const END: Roles = Roles::PACKET_END_TIMESTAMP;
    const CONTENT: Roles = Roles::PACKET_CONTENT_LENGTH;
    const TOTAL: Roles = Roles::PACKET_TOTAL_LENGTH;
    vec![
        (&[], true),
        (&[BEGIN], true),
        (&[END], true),
        (&[CONTENT], true),
        (&[TOTAL], true),
        (&[Roles::STREAM_CLASS_ID], true),
        (&[Roles::STREAM_ID], true),
        (&[], false),
        (&[BEGIN, END], true),
        (&[CONTENT, TOTAL], true),
        (&[BEGIN, END, CONTENT, TOTAL], true),
        (
            &[
                BEGIN,
                END,
                CONTENT,
                TOTAL,
                Roles::STREAM_ID,
                Roles::STREAM_CLASS_ID,
            ],
            true,
        ),
        (&[BEGIN, END, CONTENT, TOTAL, Roles::STREAM_ID], false),
    ]
}

/// Counts a trace with fewer and fewer fields in its packet heads; returns the number of variants.
fn check_without(what: &str, bare: &Bare, rng: &mut Rng) -> usize {
    let mut checked = 0;
    for (roles, has_clock) in lacks() {
        let Some(less) = bare.without(roles, has_clock) else {
            continue;
        };
        let directory = Directory::new();
        less.save(&directory.0).expect("the trace can be written");
        check(
            &format!("{what} without {roles:?}, clock: {has_clock}"),
            &directory.0,
            rng,
            2,
        );
        checked += 1;
    }
    checked
}

fn generated(seed: u64, version: CtfVersion, events: u64) -> Bare {
    let options = generate::Options {
        seed,
        version,
        events,
        ..generate::Options::default()
    };
    let directory = Directory::new();
    let trace = generate(&options).expect("a trace");
    trace.save(&directory.0).expect("the trace can be written");
    Bare::read(&directory.0).expect("the trace can be read")
}

/// All traces of the test data.
#[test]
fn recorded_traces() {
    let archives = std::fs::read_dir(recorded::archive("x").parent().expect("a directory"));
    let archives = archives
        .expect("the tests' data")
        .map(|entry| entry.expect("an entry").path());
    let archives =
        archives.filter(|path| path.extension().is_some_and(|extension| extension == "xz"));
    let mut checked = 0;
    for archive in archives {
        // Some archives contain files of other tools only.
        let Ok(traces) = directory::find_traces(&recorded::kept(&archive)) else {
            let name = archive
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            assert!(
                ["go-traces", "perf-files", "perf-chains", "trace-cmd-files"]
                    .contains(&name.trim_end_matches(".tar.xz")),
                "{name}"
            );
            continue;
        };
        for trace in traces {
            let files = directory::stream_files(&trace).expect("stream files");
            let size: u64 = files
                .iter()
                .map(|file| file.metadata().expect("a file").len())
                .sum();
            let ranges = if size < 1 << 20 { 3 } else { 0 };
            check(
                &trace.display().to_string(),
                &trace,
                &mut Rng::new(size),
                ranges,
            );
            checked += 1;
        }
    }
    assert!(checked > 12, "only {checked} traces");
}

#[test]
fn generated_traces_with_less_in_their_heads() {
    let mut checked = 0;
    for seed in 0..40 {
        for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
            let mut rng = Rng::new(seed);
            let bare = generated(seed, version, 80);
            checked += check_without(&format!("seed {seed} of {version:?}"), &bare, &mut rng);
        }
    }
    assert!(checked > 500, "only {checked} traces");
}

#[test]
fn generated_traces_with_odd_times_in_their_heads() {
    let mut changed = 0;
    for seed in 0..150 {
        for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
            let mut rng = Rng::new(seed);
            let mut bare = generated(seed, version, 120);
            let odd = bare.make_odd(&mut rng);
            changed += odd;
            if odd > 0 {
                let directory = Directory::new();
                bare.save(&directory.0).expect("the trace can be written");
                check(
                    &format!("odd seed {seed} of {version:?}"),
                    &directory.0,
                    &mut rng,
                    3,
                );
            }
        }
    }
    assert!(changed > 1000, "only {changed} times are odd");
}

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 3000,
    packet: 900,
    ties: true,
    ..Shape::PLAIN
};

/// Packets of several CPUs in one file, which only their contexts distinguish.
#[test]
fn cpus_that_share_a_file() {
    let (path, _) = synthetic::trace(5, SHAPE);
    let mut bare = Bare::read(&path).expect("the trace can be read");
    let whole = bare.files.clone();
    bare.files.truncate(1);
    for file in &whole[1..] {
        bare.files[0].data.extend(&file.data);
    }
    let directory = Directory::new();
    bare.save(&directory.0).expect("the trace can be written");
    check("CPUs that share a file", &directory.0, &mut Rng::new(5), 4);
    let set = TraceSet::open(&[&directory.0]).expect("the trace can be opened");
    let report = counted(&set, Window::default(), None, WAYS[1]);
    assert_eq!(report.by_cpu.values().sum::<u64>(), report.events);
    assert_eq!(report.by_cpu.len(), 3);
    let _ = std::fs::remove_dir_all(path);
}

#[test]
fn kernel_traces_with_less_or_odd_heads() {
    for seed in 0..3 {
        let (path, _) = synthetic::trace(seed, SHAPE);
        let bare = Bare::read(&path).expect("the trace can be read");
        let mut rng = Rng::new(seed);
        assert!(check_without(&format!("kernel {seed}"), &bare, &mut rng) > 9);
        for round in 0..4 {
            let mut odd = bare.clone();
            assert!(odd.make_odd(&mut rng) > 20);
            let directory = Directory::new();
            odd.save(&directory.0).expect("the trace can be written");
            check(
                &format!("odd kernel {seed}.{round}"),
                &directory.0,
                &mut rng,
                4,
            );
        }
        let _ = std::fs::remove_dir_all(path);
    }
}

fn counted_by(set: &TraceSet, count: &Count<'_>) -> CountReport {
    let outcome = fold(set, count, Options::default(), &Control::default());
    outcome.expect("not cancelled").report
}

#[test]
fn ends_that_are_guessed_are_the_ends() {
    let place = Directory::new();
    tracebraid_testkit::layouts::write("dpdk", 60_000, &place.0).expect("written");
    let set = TraceSet::open(&[&place.0]).expect("it opens");
    let (guessed, ends) = Extent::of_packets_guessed(&set);
    assert_eq!((guessed, ends.len()), (Extent::of_packets(&set), 2));
    let count = counted_by(&set, &Count::with_guessed_ends(&set, 7));
    assert!(!count.has_wrong_guess);
    assert_eq!(count, counted(&set, Window::default(), None, (1, 0)));
}

/// The timestamp of the first event record exceeds all others, so the 48-bit timestamps wrap after
/// it: all later event records are later than guessed.
#[test]
fn ends_that_are_guessed_wrong_are_noticed() {
    let place = Directory::new();
    tracebraid_testkit::layouts::write("dpdk", 60_000, &place.0).expect("written");
    let path = place.0.join("stream_1");
    let mut data = std::fs::read(&path).expect("written");
    // The first event record follows 40 bytes of magic number, CPU and name; its timestamp has six
    // bytes.
    data[40 + 5] = 0x7f;
    std::fs::write(&path, data).expect("written");
    let set = TraceSet::open(&[&place.0]).expect("it opens");
    let count = counted_by(&set, &Count::with_guessed_ends(&set, 7));
    let exact = counted(&set, Window::default(), None, (1, 0));
    assert!(count.has_wrong_guess && !exact.has_wrong_guess);
    assert_eq!((count.events, count.last), (exact.events, exact.last));
    assert!(count.rate.to < exact.rate.to);
}
