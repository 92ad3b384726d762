//! `count` counts the event records that `print` prints, for all forms of packet headers.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use tracebraid_ctf::schema::{CtfVersion, Roles};
use tracebraid_testkit::bare::Bare;
use tracebraid_testkit::generate::{Options, generate};
use tracebraid_testkit::reference::Reader;
use tracebraid_testkit::rng::Rng;

use crate::support::{babeltrace2, first_difference, recorded_trace, run, text};

/// Runs the program with further arguments.
fn count(trace: &str, more: &[&str]) -> Value {
    let arguments = [&["count", "--format", "json", trace], more].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn lines(trace: &str, more: &[&str]) -> u64 {
    let arguments = [&["print", trace], more].concat();
    text(&arguments).lines().count() as u64
}

/// `count` and `print` of a range agree; returns the number.
fn same_number(trace: &str, more: &[&str]) -> u64 {
    let printed = lines(trace, more);
    for way in [&["-j", "1"][..], &["-j", "2", "--chunk-size", "1"]] {
        let report = count(trace, &[more, way].concat());
        assert_eq!(report["events"], printed, "{trace} {more:?} {way:?}");
    }
    printed
}

/// The number of event records that the reference reader reads.
fn reference(trace: &Path) -> u64 {
    let bare = Bare::read(trace).expect("the trace can be read");
    let reader = Reader::new(&bare.class);
    let streams = bare.files.iter().map(|file| reader.stream(&file.data));
    streams.map(|stream| stream.event_count() as u64).sum()
}

const DPDK: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = false; encoding = ASCII; base = 10; } := string_bounded_t;
trace {
    major = 1;
    minor = 8;
    uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f";
    byte_order = le;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; };
};
env { dpdk_version = "DPDK 23.11.0"; tracer_name = "dpdk"; };
clock { name = "dpdk"; freq = 2000000000; offset_s = 1700000000; offset = 250000000; };
typealias integer { size = 48; align = 1; signed = false; map = clock.dpdk.value; } := uint48_t;
stream {
    packet.context := struct { uint32_t cpu_id; string_bounded_t name[32]; };
    event.header := struct { uint48_t timestamp; uint16_t id; } align(64);
};
event { id = 0; name = "lib.eal.generic.u64"; fields := struct { uint64_t in; }; };
event { id = 1; name = "lib.mempool.get"; fields := struct { uint64_t pool; uint32_t count; }; };
event { id = 2; name = "lib.eal.generic.u8"; fields := struct { uint8_t in; }; };
"#;

/// The stream of a core: event records at intervals of 100 cycles from `first` on.
fn dpdk_stream(core: u32, first: u64, records: u64) -> Vec<u8> {
    let mut data = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
    data.extend(0u8..16);
    data.extend(core.to_le_bytes());
    let mut name = format!("lcore-worker-{core}").into_bytes();
    name.resize(32, 0);
    data.extend(name);
    for number in 0..records {
        data.resize(data.len().next_multiple_of(8), 0);
        let id = (number + u64::from(core)) % 3;
        data.extend(((first + number * 100) | (id << 48)).to_le_bytes());
        match id {
            0 => data.extend(number.to_le_bytes()),
            1 => data.extend([&number.to_le_bytes()[..], &[7, 0, 0, 0]].concat()),
            _ => data.push(number as u8),
        }
    }
    data
}

fn dpdk(directory: &Path) {
    std::fs::write(directory.join("metadata"), DPDK).unwrap();
    for core in 0..3 {
        let stream = dpdk_stream(core, 1000 + u64::from(core) * 70_000, 2000);
        std::fs::write(directory.join(format!("channel0_{core}")), stream).unwrap();
    }
}

/// Packet headers without times and sizes: the first defect that users reported was "0 event
/// records".
#[test]
fn dpdk_traces() {
    let directory = TempDir::new().unwrap();
    dpdk(directory.path());
    let trace = directory.path().to_str().unwrap();
    assert_eq!(reference(directory.path()), 6000);
    assert_eq!(same_number(trace, &[]), 6000);
    assert_eq!(same_number(trace, &["--cpu", "1"]), 2000);
    let ranges = [("+40us", "+90us"), ("+0us", "+10us"), ("+99us", "+1s")];
    for (from, to) in ranges {
        let part = same_number(trace, &["--from", from, "--to", to]);
        assert!((1..6000).contains(&part), "{part} of {from} to {to}");
        same_number(trace, &["--from", from, "--to", to, "--cpu", "0,2"]);
    }
    if let Some(theirs) = babeltrace2(&["--clock-seconds", trace]) {
        let ours = run(&["print", "--clock-seconds", trace]).stdout;
        assert_eq!(first_difference(&ours, &theirs), None);
    }
    let report = count(trace, &[]);
    let columns: Vec<u64> = report["rate"]["counts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert_eq!(columns.iter().sum::<u64>(), 6000);
    assert!(
        columns.iter().all(|&column| (30..300).contains(&column)),
        "{columns:?}"
    );
    // 2000 records at 50 ns; the last stream begins 70 us after the first.
    assert_eq!(
        report["last"].as_i64().unwrap() - report["first"].as_i64().unwrap(),
        169_950
    );
    let info: Value = serde_json::from_str(&text(&["info", "--format", "json", trace])).unwrap();
    assert_eq!(info["duration"], 169_950, "{info}");
}

/// The last packets of a killed tracer have an end of 0 (`lttng-crash`).
#[test]
fn packets_without_an_end() {
    let bare = Bare::read(
        Path::new(&recorded_trace("kernel-mix-small"))
            .join("kernel")
            .as_path(),
    )
    .unwrap();
    let whole = TempDir::new().unwrap();
    bare.save(whole.path()).unwrap();
    let mut killed = bare.clone();
    let reader = Reader::new(&bare.class);
    for (file, of) in killed.files.iter_mut().zip(&bare.files) {
        let packets = reader.stream(&of.data).packets;
        let last = packets.last().expect("a packet");
        let end = last
            .head
            .marks
            .iter()
            .find(|mark| mark.roles.contains(Roles::PACKET_END_TIMESTAMP));
        let at = (last.offset + end.expect("an end").position / 8) as usize;
        file.data[at..at + 8].fill(0);
    }
    let directory = TempDir::new().unwrap();
    killed.save(directory.path()).unwrap();
    let (trace, whole) = (
        directory.path().to_str().unwrap(),
        whole.path().to_str().unwrap(),
    );
    let events = same_number(trace, &[]);
    assert_eq!(events, same_number(whole, &[]));
    let report = count(trace, &[]);
    let duration = report["last"].as_i64().unwrap() - report["first"].as_i64().unwrap();
    for part in [3, 6, 9] {
        let middle = format!("+{}ns", duration * part / 10);
        let before = same_number(trace, &["--to", &middle]);
        let after = same_number(trace, &["--from", &middle]);
        assert!(before > 0 && after > 0);
        assert_eq!(before, same_number(whole, &["--to", &middle]));
        assert_eq!(after, same_number(whole, &["--from", &middle]));
    }
    let most = report["rate"]["counts"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .as_u64()
        .unwrap();
    assert!(
        most < events / 4,
        "{most} of {events} are in the chart's last column"
    );
    let info = |trace| -> Value {
        serde_json::from_str(&text(&["info", "--format", "json", trace])).unwrap()
    };
    let (ours, theirs) = (
        info(trace)["duration"].as_i64(),
        info(whole)["duration"].as_i64(),
    );
    assert!(
        ours <= theirs && ours >= Some(duration),
        "{ours:?} {theirs:?} {duration}"
    );
}

/// The end of a packet that claims to end hours after the next one begins is its last event record.
#[test]
fn packets_with_an_end_that_is_far_too_late() {
    let bare = Bare::read(&Path::new(&recorded_trace("kernel-mix-small")).join("kernel")).unwrap();
    let reader = Reader::new(&bare.class);
    let mut late = bare.clone();
    for (file, of) in late.files.iter_mut().zip(&bare.files) {
        let packets = reader.stream(&of.data).packets;
        let packet = packets
            .get(packets.len() / 2 - 1)
            .expect("a packet before the last");
        let mut marks = packet.head.marks.iter();
        let end = marks.find(|mark| mark.roles.contains(Roles::PACKET_END_TIMESTAMP));
        let at = (packet.offset + end.expect("an end").position / 8) as usize;
        let bytes = &mut file.data[at..at + 8];
        let told = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        bytes.copy_from_slice(&(told + 18_000_000_000_000).to_le_bytes());
    }
    let seen = |bare: &Bare| {
        let directory = TempDir::new().unwrap();
        bare.save(directory.path()).unwrap();
        let trace = directory.path().to_str().unwrap();
        let info: Value =
            serde_json::from_str(&text(&["info", "--format", "json", trace])).unwrap();
        (info["duration"].clone(), count(trace, &[])["rate"].clone())
    };
    assert_eq!(seen(&late), seen(&bare));
}

/// Reports on a kernel trace do not depend on the ends and sizes in packet headers.
#[test]
fn reports_on_kernel_traces_with_less_in_their_heads() {
    let whole = format!("{}/kernel", recorded_trace("disk-contention"));
    let bare = Bare::read(Path::new(&whole)).unwrap();
    for roles in [
        &[Roles::PACKET_END_TIMESTAMP][..],
        &[Roles::PACKET_TOTAL_LENGTH],
    ] {
        let less = bare
            .without(roles, true)
            .expect("the trace is readable without these fields");
        let directory = TempDir::new().unwrap();
        less.save(directory.path()).unwrap();
        let less = directory.path().to_str().unwrap();
        assert_eq!(same_number(less, &[]), count(&whole, &[])["events"]);
        let period = [
            "--period",
            r#"run : sched_switch : sched_switch && cpu == $begin.cpu"#,
        ];
        let commands: [&[&str]; 7] = [
            &["sched"],
            &["io"],
            &["syscalls"],
            &["irq"],
            &["report"],
            &["files"],
            &[&["periods"][..], &period].concat(),
        ];
        for command in commands {
            let of = |trace: &str, threads: &str| {
                text(
                    &[
                        command,
                        &[
                            "--format",
                            "json",
                            "-j",
                            threads,
                            "--chunk-size",
                            "1",
                            trace,
                        ],
                    ]
                    .concat(),
                )
                // The summary's commands name the trace.
                .replace(trace, "TRACE")
            };
            let expected = of(&whole, "1");
            for threads in ["1", "2"] {
                assert_eq!(
                    first_difference(of(less, threads).as_bytes(), expected.as_bytes()),
                    None,
                    "{command:?}"
                );
            }
        }
        let histories = [(whole.as_str(), "whole"), (less, "less")].map(|(trace, name)| {
            let file = directory.path().join(name).display().to_string();
            text(&["history", "build", trace, "-o", &file]);
            text(&["history", "query", &file, "--at", "+1s", "cpu/*/thread"])
        });
        assert_eq!(histories[0], histories[1]);
        assert!(!histories[0].is_empty());
    }
}

/// Odd and missing times in generated traces, through the whole program.
#[test]
fn generated_traces() {
    for seed in [3, 8, 21, 34] {
        let options = Options {
            seed,
            version: [CtfVersion::V1_8, CtfVersion::V2_0][seed as usize % 2],
            events: 150,
            ..Options::default()
        };
        let directory = TempDir::new().unwrap();
        generate(&options).unwrap().save(directory.path()).unwrap();
        let mut bare = Bare::read(directory.path()).unwrap();
        let mut rng = Rng::new(seed);
        bare.make_odd(&mut rng);
        let directory = TempDir::new().unwrap();
        bare.save(directory.path()).unwrap();
        let trace = directory.path().to_str().unwrap();
        assert_eq!(
            same_number(trace, &[]),
            reference(directory.path()),
            "seed {seed}"
        );
        let report = count(trace, &[]);
        let (Some(first), Some(last)) = (report["first"].as_i64(), report["last"].as_i64()) else {
            // Without a clock no event record is in a range, and both warn of that.
            for command in ["print", "count"] {
                let output = run(&[command, "--from", "1ns", trace]);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(said.contains("no clock: "), "{command}: {said}");
            }
            assert_eq!(same_number(trace, &["--from", "1ns"]), 0);
            continue;
        };
        for _ in 0..2 {
            let mut time = || first + rng.below(last.abs_diff(first) + 1) as i64;
            let (a, b) = (time(), time());
            let (from, to) = (format!("{}ns", a.min(b)), format!("{}ns", a.max(b)));
            same_number(trace, &["--from", &from]);
            same_number(trace, &["--to", &to]);
            same_number(trace, &["--from", &from, "--to", &to]);
        }
    }
}
