//! `levels export`: all formats, from the traces of a program's scheduler to the files.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{failure, recorded_trace, text};

/// A trace of FxT with a user-level thread.
const FXT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fuzz/corpus/import/fxt-64"
);

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).display().to_string()
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names
}

#[test]
fn all_formats_are_written_at_once() {
    let directory = TempDir::new().expect("a directory");
    let [perfetto, paje, fxt, otf2] =
        ["a.perfetto-trace", "b.paje", "c.fxt", "d"].map(|name| path(&directory, name));
    let formats = [
        "--perfetto",
        &perfetto,
        "--paje",
        &paje,
        "--fxt",
        &fxt,
        "--otf2",
        &otf2,
    ];
    let arguments = [&["levels", "export"][..], &formats, &[FXT]].concat();
    text(&arguments);
    let names = entries(directory.path());
    assert_eq!(names, ["a.perfetto-trace", "b.paje", "c.fxt", "d"]);
    assert!(
        fs::read_to_string(&paje)
            .expect("Pajé")
            .contains("User-level thread")
    );
    let archive = Path::new(&otf2);
    assert!(archive.join("traces.otf2").is_file() && archive.join("traces.def").is_file());
    // The file is a trace of FxT again.
    let printed = text(&["print", &fxt]);
    for name in [
        "tracebraid:ult_create",
        "tracebraid:ult_switch",
        "fxt:code_99",
    ] {
        assert!(printed.contains(name), "no {name}: {printed}");
    }
    for (tool, file) in [
        ("pj_dump", &paje),
        ("otf2-print", &format!("{otf2}/traces.otf2")),
    ] {
        match Command::new(tool).arg(file).output() {
            Ok(output) => assert!(output.status.success(), "{tool}"),
            Err(_) => tracebraid_testkit::skip::skipped(format_args!("{tool} is missing")),
        }
    }
}

#[test]
fn nothing_is_left_of_an_export_that_fails() {
    let directory = TempDir::new().expect("a directory");
    let missing = path(&directory, "missing/out.paje");
    let (code, message) = failure(&["levels", "export", "--paje", &missing, FXT]);
    assert_eq!(code, 1, "{message}");
    let there = path(&directory, "there");
    fs::create_dir(&there).expect("a directory");
    let (code, message) = failure(&["levels", "export", "--otf2", &there, FXT]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("exists already"), "{message}");
    assert_eq!(entries(directory.path()), ["there"]);
    let (code, message) = failure(&["levels", "export", FXT]);
    assert_eq!(code, 2, "{message}");
}

#[test]
fn damage_is_told() {
    let directory = TempDir::new().expect("a directory");
    let merged = path(&directory, "SUPER");
    text(&[
        "levels",
        "merge",
        &recorded_trace("user-level"),
        "-o",
        &merged,
    ]);
    let stream = Path::new(&merged).join("cpu_0");
    let mut bytes = fs::read(&stream).expect("a stream");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4000].fill(0xff);
    fs::write(&stream, bytes).expect("written");
    let file = path(&directory, "out");
    for format in ["--perfetto", "--paje", "--fxt"] {
        let export = ["levels", "export", "--strict", format, &file, &merged];
        let (code, said) = failure(&export);
        assert_eq!(code, 1, "{format}: {said}");
        assert!(said.contains("cpu_0"), "{format}: {said}");
    }
}

#[test]
fn several_super_traces_are_refused() {
    let directory = TempDir::new().expect("a directory");
    let [one, other] = ["ONE", "OTHER"].map(|name| path(&directory, name));
    for (recording, merged) in [("user-level", &one), ("affinity", &other)] {
        text(&["levels", "merge", &recorded_trace(recording), "-o", merged]);
    }
    let file = path(&directory, "out");
    let (code, said) = failure(&["levels", "export", "--paje", &file, &one, &other]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("one super-trace at a time"), "{said}");
    assert!(!Path::new(&file).exists());
}
