//! Traces with impossible packet times: a flipped bit, or times out of range.

use std::path::Path;

use crate::support::{recorded_trace, run, text};

/// Size of the recording's packets, and offset of the begin timestamp in a packet.
const PACKET: usize = 262_144;
const BEGIN: usize = 32;

/// The recording without its index, and with one file changed.
fn changed(to: &Path, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let kernel = Path::new(&recorded_trace("kernel-mix-small")).join("kernel");
    for entry in std::fs::read_dir(&kernel).expect("the recording") {
        let entry = entry.expect("a file");
        if entry.file_type().expect("its type").is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
    let path = to.join(file);
    let mut bytes = std::fs::read(&path).expect("the copy");
    change(&mut bytes);
    std::fs::write(&path, bytes).expect("the copy");
    to.to_str().expect("UTF-8").to_owned()
}

/// Every report equals that of the intact trace, whichever bit of a packet's begin timestamp is
/// wrong, and the damage is reported.
#[test]
fn one_wrong_bit_moves_nothing() {
    let sound = tempfile::tempdir().expect("a directory");
    let sound = changed(sound.path(), "kchan_1", |_| ());
    let reports = ["count", "cpu", "waits"];
    let expected =
        reports.map(|report| text(&[report, "--format", "json", &sound]).replace(&sound, "TRACE"));
    for (packet, bit) in [(2, 33), (1, 40), (3, 59), (2, 63)] {
        let directory = tempfile::tempdir().expect("a directory");
        let trace = changed(directory.path(), "kchan_1", |bytes| {
            bytes[packet * PACKET + BEGIN + bit / 8] ^= 1 << (bit % 8);
        });
        for (report, expected) in reports.iter().zip(&expected) {
            for threads in ["1", "3"] {
                let output = run(&[
                    report, "--strict", "-j", threads, "--format", "json", &trace,
                ]);
                let errors = String::from_utf8_lossy(&output.stderr);
                assert_eq!(
                    output.status.code(),
                    Some(1),
                    "{report}, bit {bit}: {errors}"
                );
                assert!(
                    errors.contains("does not fit between the packets around it"),
                    "{errors}"
                );
                let found = String::from_utf8_lossy(&output.stdout).replace(&trace, "TRACE");
                assert!(found == *expected, "{report}, packet {packet}, bit {bit}");
            }
        }
        assert!(
            text(&["print", &trace]) == text(&["print", &sound]),
            "packet {packet}, bit {bit}"
        );
    }
}

/// Events after April 2262 are counted.
#[test]
fn times_beyond_the_last_one_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = changed(directory.path(), "metadata", |bytes| {
        let (from, to) = (
            b"offset = 1795225380915133022",
            b"offset = 9223372036854775000",
        );
        let at = bytes
            .windows(from.len())
            .position(|window| window == from)
            .expect("the clock's offset");
        bytes[at..at + to.len()].copy_from_slice(to);
    });
    let count = text(&["count", "--format", "json", &trace]);
    assert!(count.contains("\"events\": 233991"), "{}", &count[..200]);
    let output = run(&["cpu", "--strict", "--format", "json", &trace]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["total"]["switches"], 9433);
}

/// A last packet that begins too late fits after the others. If the rest of the trace contradicts
/// it, a note reports that.
#[test]
fn a_last_packet_that_is_far_later_than_the_trace_is_told() {
    let end = BEGIN + 8;
    let far = |bit: usize| {
        let directory = tempfile::tempdir().expect("a directory");
        let trace = changed(directory.path(), "kchan_1", |bytes| {
            let packet = (bytes.len() - 1) / PACKET * PACKET;
            for at in [BEGIN, end] {
                bytes[packet + at + bit / 8] ^= 1 << (bit % 8);
            }
        });
        let output = run(&["count", "--format", "json", "--strict", &trace]);
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    for bit in [42, 45] {
        let message = far(bit);
        let told = "s after the end of the rest of the trace, which is 3.";
        assert!(
            message.contains("kchan_1") && message.contains(told),
            "{bit}: {message}"
        );
    }
    // A trace in which a stream continues for less time than the rest lasted.
    let message = far(30);
    assert!(!message.contains("the rest of the trace"), "{message}");
}

/// A dangling link may have led to a trace, or to a stream of a trace.
#[test]
fn links_that_lead_nowhere_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = changed(directory.path(), "kchan_1", |_| ());
    std::os::unix::fs::symlink("nowhere", directory.path().join("kchan_9")).expect("a link");
    let output = run(&["count", "--strict", "--format", "json", &trace]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("kchan_9: cannot be read"), "{message}");
    assert_eq!(output.status.code(), Some(1), "{message}");

    let above = tempfile::tempdir().expect("a directory");
    std::fs::rename(directory.path(), above.path().join("trace")).expect("the trace moves");
    let directory = above.path().join("trace");
    std::fs::remove_file(directory.join("kchan_9")).expect("no link any more");
    std::os::unix::fs::symlink("nowhere", above.path().join("latest")).expect("a link");
    let output = run(&[
        "count",
        "--strict",
        "--format",
        "json",
        above.path().to_str().expect("UTF-8"),
    ]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("latest: dangling symbolic link"),
        "{message}"
    );
    assert_eq!(output.status.code(), Some(1), "{message}");
}

/// A trace of three event records with these clock values, and with the packet's times if
/// `has_bounds`.
fn small_trace(to: &Path, clock: &str, has_bounds: bool, times: &[u64]) -> String {
    let context = if has_bounds {
        "packet.context := struct { time timestamp_begin; time timestamp_end; };"
    } else {
        ""
    };
    let metadata = format!(
        "/* CTF 1.8 */
        typealias integer {{ size = 8; }} := u8;
        trace {{ major = 1; minor = 8; byte_order = le; }};
        clock {{ name = c; {clock} }};
        typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;
        stream {{ {context} event.header := struct {{ time timestamp; }}; }};
        event {{ name = e; fields := struct {{ u8 a; }}; }};"
    );
    std::fs::write(to.join("metadata"), metadata).expect("metadata");
    let (first, last) = (times[0], times[times.len() - 1]);
    let mut bytes = Vec::new();
    if has_bounds {
        bytes.extend([first, last].iter().flat_map(|time| time.to_le_bytes()));
    }
    for time in times {
        bytes.extend(time.to_le_bytes());
        bytes.push(7);
    }
    std::fs::write(to.join("stream"), bytes).expect("a stream");
    to.to_str().expect("UTF-8").to_owned()
}

const FAR: &str = "freq = 1000000000; offset_s = 9300000000;";
const FAR_BACK: &str = "freq = 1000000000; offset_s = -9300000000;";

#[test]
fn times_out_of_range_are_told_as_damage() {
    for clock in [FAR, FAR_BACK] {
        for (has_bounds, commands) in [
            (
                true,
                &[&["print"][..], &["count"], &["count", "-j", "3"]][..],
            ),
            (false, &[&["print"]]),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            let trace = small_trace(directory.path(), clock, has_bounds, &[1, 5, 1_000_000_000]);
            for command in commands {
                let arguments = [command, &["--strict", &trace][..]].concat();
                let output = run(&arguments);
                let errors = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
                assert_eq!(
                    errors.matches("292 years").count(),
                    1,
                    "{arguments:?}: {errors}"
                );
                assert!(errors.contains("stream: byte 0: "), "{errors}");
            }
            assert_eq!(text(&["print", &trace]).lines().count(), 3);
            if has_bounds {
                let count = text(&["count", "--format", "json", &trace]);
                assert!(count.contains("\"events\": 3"), "{count}");
            }
        }
    }
}

/// Only the zero of the clock is out of range, not the times.
#[test]
fn a_clock_that_begins_out_of_range_has_right_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let times = [12_000_000_000_000_000_000, 12_000_000_000_000_000_007];
    let trace = small_trace(directory.path(), FAR_BACK, true, &times);
    let output = run(&["print", "--strict", "--clock-seconds", &trace]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "[2700000000.000000000] (+?.?????????) e: { a = 7 }\n[2700000000.000000007] (+0.000000007) e: { a = 7 }\n"
    );
}

#[test]
fn clock_offsets_out_of_range_are_refused() {
    for has_bounds in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let trace = small_trace(directory.path(), "freq = 1000000000;", has_bounds, &[1, 5]);
        for offset in [
            "9300000000",
            "-9300000000",
            "9223372036854775807",
            "-9223372036854775808",
        ] {
            let output = run(&["print", "--clock-offset", offset, &trace]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{offset}: {errors}");
            assert!(
                errors.contains("--clock-offset") && errors.contains("292 years"),
                "{errors}"
            );
            assert!(output.stdout.is_empty());
        }
        let output = run(&["print", "--clock-offset-ns", "9223372036854775806", &trace]);
        assert_eq!(output.status.code(), Some(2));
        let shown = text(&["print", "--clock-seconds", "--clock-offset", "-7", &trace]);
        assert!(shown.starts_with("[-6.999999999]"), "{shown}");
    }
}
