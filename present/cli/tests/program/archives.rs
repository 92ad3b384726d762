//! Archives of traces are read as the traces in them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tracebraid_testkit::recorded as testkit;

use crate::support::{failure, recorded, recorded_trace, run, succeeds, text, tracebraid};

const TRACE: &str = "kernel-mix-small";

/// The files of the trace, with their paths in an archive.
fn files() -> Vec<(String, PathBuf)> {
    let directory = recorded(TRACE);
    let mut found = Vec::new();
    let mut open = vec![directory.join(TRACE)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else {
            let name = path.strip_prefix(&directory).expect("below it");
            found.push((name.to_str().expect("UTF-8").to_owned(), path));
        }
    }
    found
}

fn tar() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, path) in files() {
        archive.append_path_with_name(path, name).expect("added");
    }
    archive.into_inner().expect("complete")
}

fn zip(path: &Path) {
    let mut archive = zip::ZipWriter::new(File::create(path).expect("a file"));
    for (name, path) in files() {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(name, options).expect("begun");
        archive
            .write_all(&fs::read(path).expect("read"))
            .expect("written");
    }
    archive.finish().expect("complete");
}

#[test]
fn all_kinds_of_archives_give_what_their_traces_give() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.tar"), tar()).expect("written");
    fs::write(
        at("a.tar.zst"),
        zstd::encode_all(&tar()[..], 1).expect("packed"),
    )
    .expect("written");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar()).expect("packed");
    // A name says nothing.
    fs::write(at("gzip"), gzip.finish().expect("packed")).expect("written");
    zip(&at("a.zip"));
    let expected = text(&["count", "--format", "csv", &recorded_trace(TRACE)]);
    let archives = ["a.tar", "a.tar.zst", "gzip", "a.zip"].map(at);
    for archive in archives.into_iter().chain([testkit::archive(TRACE)]) {
        let temporary = TempDir::new_in(directory.path()).expect("a temporary directory");
        let mut command = tracebraid();
        command.env("TMPDIR", temporary.path());
        let output = command
            .args(["count", "--format", "csv"])
            .arg(&archive)
            .output();
        let output = output.expect("the binary runs");
        assert_eq!(succeeds(&output), expected, "{}", archive.display());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(" files unpacked, 6."), "{said}");
        let left = fs::read_dir(temporary.path()).expect("a directory").count();
        assert_eq!(left, 0, "{}", archive.display());
    }
}

#[test]
fn a_compressed_file_of_perf_is_imported() {
    let perf = recorded("perf-files")
        .join("perf-files")
        .join("tracepoints.data");
    let directory = TempDir::new().expect("a temporary directory");
    let packed = directory.path().join("perf.data.zst");
    let bytes = fs::read(&perf).expect("read");
    fs::write(&packed, zstd::encode_all(&bytes[..], 1).expect("packed")).expect("written");
    let count = |path: &Path| text(&["count", "--format", "csv", path.to_str().expect("UTF-8")]);
    assert_eq!(count(&packed), count(&perf));
}

#[test]
fn archives_without_a_trace_and_damaged_ones_are_errors() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let path = |name: &str| at(name).to_str().expect("UTF-8").to_owned();
    let whole = fs::read(testkit::archive(TRACE)).expect("read");
    fs::write(at("cut.tar.xz"), &whole[..whole.len() / 2]).expect("written");
    let (code, said) = failure(&["count", &path("cut.tar.xz")]);
    let cut = format!(
        "the file is truncated at {} bytes; copy it again",
        grouped(whole.len() / 2)
    );
    assert!(code == 3 && said.contains(&cut), "{said}");
    fs::write(
        at("text.zst"),
        zstd::encode_all(&b"no trace"[..], 1).expect("packed"),
    )
    .expect("written");
    let (code, said) = failure(&["count", &path("text.zst")]);
    assert!(
        code == 3 && said.contains("trace-cmd or Nsight Systems, but text"),
        "{said}"
    );
    let mut empty = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(5);
    empty
        .append_data(&mut header, "notes.txt", &b"hello"[..])
        .expect("added");
    fs::write(at("other.tar"), empty.into_inner().expect("complete")).expect("written");
    let (code, said) = failure(&["count", &path("other.tar")]);
    assert!(
        code == 3 && said.contains("other.tar: no trace") && said.contains("but notes.txt"),
        "{said}"
    );
    fs::write(at("empty.tar"), [0; 10240]).expect("written");
    fs::write(at("packed.bz2"), b"BZh91AY&SY").expect("written");
    let mut nested = tar::Builder::new(Vec::new());
    nested
        .append_path_with_name(at("text.zst"), "in/text.zst")
        .expect("added");
    fs::write(at("nested.tar"), nested.into_inner().expect("complete")).expect("written");
    for (name, why) in [
        ("empty.tar", "empty.tar: no trace found: it is empty"),
        (
            "packed.bz2",
            "bzip2 is not supported: unpack the file with `bunzip2`",
        ),
        (
            "nested.tar",
            "it contains an archive; unpack it and give the path: in/text.zst",
        ),
    ] {
        let (code, said) = failure(&["count", &path(name)]);
        assert!(code == 3 && said.contains(why), "{said}");
    }
}

/// A number with a separator between thousands.
fn grouped(number: usize) -> String {
    let text = number.to_string();
    let (thousands, rest) = text.split_at(text.len() - 3);
    format!("{thousands},{rest}")
}

#[test]
fn the_only_file_of_perf_is_read_and_otherwise_archives_are_named() {
    let perf = recorded("perf-files")
        .join("perf-files")
        .join("tracepoints.data");
    let directory = TempDir::new().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let path = |name: &str| at(name).to_str().expect("UTF-8").to_owned();
    fs::create_dir_all(at("one/below")).expect("made");
    fs::copy(&perf, at("one/below/perf.data")).expect("copied");
    fs::write(at("one/notes.txt"), "no trace").expect("written");
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_dir_all("one", at("one")).expect("added");
    fs::write(at("one.tar"), archive.into_inner().expect("complete")).expect("written");
    let expected = text(&["count", "--format", "csv", perf.to_str().expect("UTF-8")]);
    for name in ["one", "one.tar"] {
        assert_eq!(
            text(&["count", "--format", "csv", &path(name)]),
            expected,
            "{name}"
        );
    }
    fs::create_dir(at("packed")).expect("made");
    fs::copy(at("one.tar"), at("packed/a.tar")).expect("copied");
    fs::copy(at("one.tar"), at("packed/b.tar")).expect("copied");
    let (code, said) = failure(&["count", &path("packed")]);
    let why = format!(
        "it contains 2 archives; give the path of one: {}, {}",
        path("packed/a.tar"),
        path("packed/b.tar")
    );
    assert!(
        code == 3 && said.replace("\n  ", " ").contains(&why),
        "{said}"
    );
}

/// The commands that read the traces of a database later unpack the archive again.
#[test]
fn databases_contain_the_path_of_the_archive() {
    let archive = testkit::archive("kernel-ust-requests")
        .canonicalize()
        .expect("a file");
    let archive = archive.to_str().expect("UTF-8");
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("requests.db");
    let file = file.to_str().expect("UTF-8");
    let period = "request : app:request_begin : app:request_end && id == $begin.id";
    text(&[
        "executions",
        "build",
        archive,
        "-o",
        file,
        "--period",
        period,
    ]);
    let sources = text(&[
        "sql",
        "--format",
        "csv",
        file,
        "SELECT path, label FROM source",
    ]);
    for source in sources.lines().skip(1) {
        assert!(
            source.starts_with(&format!("{archive}/kernel-ust-requests/")),
            "{source}"
        );
        assert!(source.ends_with(",kernel-ust-requests.tar.xz"), "{source}");
    }
    let joined = "SELECT count(*) > 0 FROM executions AS one JOIN intervals AS i
        ON i.trace = one.trace AND i.tid = one.tid WHERE one.id = 1";
    assert_eq!(
        text(&["sql", "--format", "csv", file, joined])
            .lines()
            .nth(1),
        Some("1")
    );
    let shown = text(&["executions", "show", file, "1"]);
    let command = shown
        .lines()
        .find_map(|line| line.split_once("tracebraid critical-path "));
    let (_, arguments) = command.expect("a command");
    let mut all = vec!["critical-path"];
    all.extend(arguments.split(' '));
    assert!(!text(&all).is_empty());
}

/// Two archives beside each other, and quietly.
#[test]
fn several_archives_are_read_together() {
    let archive = testkit::archive(TRACE);
    let archive = archive.to_str().expect("UTF-8");
    let output = run(&["count", "--quiet", "--format", "json", archive, archive]);
    assert!(output.stderr.is_empty());
    let count: serde_json::Value = serde_json::from_str(&succeeds(&output)).expect("JSON");
    let one: serde_json::Value =
        serde_json::from_str(&text(&["count", "--format", "json", archive])).expect("JSON");
    assert_eq!(count["events"], one["events"]);
}
