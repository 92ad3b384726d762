//! The conformance cases and the real CTF 2 metadata among the shared traces, if present.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracebraid_ctf::ctf2;
use tracebraid_ctf::error::MetadataError;
use tracebraid_ctf::schema::TraceClass;
use tracebraid_testkit::skip::skipped;

/// The shared traces, or `None` after a message that the test cannot run without them.
fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared")
        .join(path);
    if path.is_dir() {
        return Some(path);
    }
    skipped(format_args!(
        "there is no {}: nothing was tested",
        path.display()
    ));
    None
}

/// A case: its metadata and, for a case that must fail, the position of the innermost message that
/// the project of the cases expects, as line and column in the fragment.
struct Case {
    name: String,
    metadata: Vec<u8>,
    place: Option<(u32, u32)>,
}

fn cases(dir: &Path) -> Vec<Case> {
    let mut cases: Vec<Case> = fs::read_dir(dir)
        .expect("readable")
        .map(|entry| {
            let path = entry.expect("readable").path();
            let name = path
                .file_name()
                .expect("named")
                .to_string_lossy()
                .into_owned();
            case(name, fs::read(path).expect("readable"))
        })
        .collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

fn case(name: String, text: Vec<u8>) -> Case {
    let Some(rest) = text.strip_prefix(b"---\n") else {
        return Case {
            name,
            metadata: text,
            place: None,
        };
    };
    let end = rest
        .windows(5)
        .rposition(|bytes| bytes == b"\n---\n")
        .expect("an expected error");
    let expected = String::from_utf8_lossy(&rest[end + 5..]).into_owned();
    let place = expected.lines().rev().find_map(|line| {
        let (line, column) = line.strip_prefix('[')?.split_once(']')?.0.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?))
    });
    Case {
        name,
        metadata: rest[..=end].to_vec(),
        place,
    }
}

#[test]
fn shared_cases_get_the_right_verdict() {
    let Some(dir) = shared("traces/public/metadata-cases/ctf-2") else {
        return;
    };
    let (mut passed, mut failed) = (0, 0);
    for case in cases(&dir) {
        match ctf2::parse(&case.metadata) {
            Ok(_) => {
                assert!(case.name.starts_with("pass-"), "{}: accepted", case.name);
                passed += 1;
            }
            Err(error) => {
                assert!(case.name.starts_with("fail-"), "{}: {error}", case.name);
                failed += 1;
            }
        }
    }
    assert!(
        passed > 0 && failed > 0,
        "{passed} passed, {failed} failed: the cases are incomplete"
    );
}

/// The line and column of an error within its fragment, counted like the cases: from the byte after
/// the record separator.
fn place_in_fragment(metadata: &[u8], error: &MetadataError) -> (u32, u32) {
    let before = &metadata[..error.offset];
    let start = before
        .iter()
        .rposition(|&byte| byte == 0x1e)
        .expect("a fragment")
        + 1;
    let lines = before[start..]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count() as u32;
    // Only for this front end, the record separator is a character of the first line.
    (
        lines + 1,
        if lines == 0 {
            error.column - 1
        } else {
            error.column
        },
    )
}

#[test]
fn shared_cases_fail_at_the_value_that_is_wrong() {
    let Some(dir) = shared("traces/public/metadata-cases/ctf-2") else {
        return;
    };
    let mut compared = 0;
    for case in cases(&dir) {
        let Some(place) = case.place else { continue };
        let error = ctf2::parse(&case.metadata).expect_err(&case.name);
        // For these errors, the reference names the dependent field or the target; this parser
        // names the wrong location.
        if error.message.starts_with("field location") {
            continue;
        }
        assert_eq!(
            place_in_fragment(&case.metadata, &error),
            place,
            "{}: {error}",
            case.name
        );
        compared += 1;
    }
    assert!(compared > 0, "no case was compared");
}

/// The output of `tar` for an archive, or `None` if it cannot be run.
fn tar(archive: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("tar")
        .arg("-f")
        .arg(archive)
        .args(arguments)
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

#[test]
fn real_metadata_is_accepted() {
    let Some(dir) = shared("traces/ctf2") else {
        return;
    };
    let mut count = 0;
    for entry in fs::read_dir(dir).expect("readable") {
        let archive = entry.expect("readable").path();
        if archive
            .extension()
            .is_none_or(|extension| extension != "xz")
        {
            continue;
        }
        let Some(list) = tar(&archive, &["-tJ"]) else {
            skipped(format_args!("tar cannot read {}", archive.display()));
            continue;
        };
        for name in String::from_utf8(list)
            .expect("names")
            .lines()
            .filter(|name| name.ends_with("/metadata"))
        {
            let text = tar(&archive, &["-xJO", name]).expect("the file that tar has listed");
            check_real(&text, name);
            count += 1;
        }
    }
    assert!(count > 0, "no metadata was tested");
}

/// Parses the metadata of a real trace and counts its event record classes with another method.
fn check_real(text: &[u8], name: &str) {
    let trace: TraceClass = ctf2::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(
        trace.packet_header.is_some() && trace.uuid.is_some(),
        "{name}"
    );
    let parsed: usize = trace.streams.iter().map(|stream| stream.events.len()).sum();
    let events = text
        .split(|&byte| byte == 0x1e)
        .filter(|fragment| {
            fragment
                .windows(27)
                .any(|bytes| bytes == b"\"type\":\"event-record-class\"")
        })
        .count();
    assert!(
        parsed > 0 && parsed == events,
        "{name}: {parsed} event record classes, not {events}"
    );
}
