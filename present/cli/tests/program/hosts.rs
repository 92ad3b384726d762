//! Names of hosts in reports on several traces.

use std::path::Path;

use crate::support::{recorded, recorded_trace, text, tracebraid};

fn cpu(traces: &[&Path]) -> String {
    let output = tracebraid()
        .env("TRACEBRAID_COLUMNS", "120")
        .arg("cpu")
        .args(traces)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn traces_of_one_machine_are_told_apart() {
    let one = recorded_trace("kernel-mix-small");
    let other = recorded_trace("kernel-discarded");
    let (one, other) = (Path::new(&one), Path::new(&other));
    let both = cpu(&[one, other]);
    for name in [
        " 0 @ vm1/kernel-mix-small ",
        " 0 @ vm1/kernel-discarded ",
        "nginx @ vm1/kernel-mix-small ",
    ] {
        assert!(both.contains(name), "{name}\n{both}");
    }
    let alone = cpu(&[one]);
    assert!(!alone.contains("vm1/") && !alone.contains(" @ "), "{alone}");
    let json = text(&["cpu", "--format", "json", one.to_str().unwrap()]);
    assert!(json.contains("\"name\": \"vm1\""));
}

/// A UUID as in metadata.
fn uuid_text(uuid: &[u8]) -> Vec<u8> {
    let digits =
        |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let parts = [0..4, 4..6, 6..8, 8..10, 10..16].map(|range| digits(&uuid[range]));
    parts.join("-").into_bytes()
}

/// Copies the files of a trace with another UUID, because files with the same UUID form one trace.
fn copy_trace(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let metadata = std::fs::read(from.join("metadata")).unwrap();
    let uuid = &metadata[4..20];
    let other = [&[!uuid[0]], &uuid[1..]].concat();
    for file in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            let bytes = std::fs::read(file.path()).unwrap();
            let bytes = replaced(&bytes, uuid, &other);
            let bytes = replaced(&bytes, &uuid_text(uuid), &uuid_text(&other));
            std::fs::write(to.join(file.file_name()), bytes).unwrap();
        }
    }
}

fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(old.len()) {
        if bytes[at..].starts_with(old) {
            bytes[at..at + new.len()].copy_from_slice(new);
        }
    }
    bytes
}

/// Two recordings of one session have the same name and are distinguished by their directories.
#[test]
fn traces_of_one_name_are_told_apart_by_their_directories() {
    let trace = recorded("kernel-discarded").join("kernel-discarded/kernel");
    let copies = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| copies.path().join(name).join("kernel"));
    copy_trace(&trace, &first);
    copy_trace(&first, &second);
    let both = cpu(&[copies.path()]);
    for name in [" 0 @ vm1/first ", " 0 @ vm1/second "] {
        assert!(both.contains(name), "{name}\n{both}");
    }
}

#[test]
fn machines_of_their_own_keep_their_names() {
    let root = recorded("twohost");
    let both = cpu(&[&root.join("twohost-client"), &root.join("twohost-server")]);
    for name in [" 0 @ cli ", " 0 @ srv "] {
        assert!(both.contains(name), "{both}");
    }
}
