//! A Python program that logs its own requests.

use std::collections::BTreeMap;
use std::fs;

use crate::checks::{events, field, has_stacks_of, is_sound, json, number, rows};
use crate::programs::program;
use crate::server::Recorded;
use crate::support::recording_directory;

/// Writes and reads of known sizes, some of which fail, with work in between. The program runs long
/// enough for the recorder to identify the interpreter before the end, however busy the machine is.
const PROGRAM: &str = r#"
import os, sys
log, path = sys.argv[1:]
fd = os.open(path, os.O_CREAT | os.O_RDWR)
done = []
for i in range(1500):
    size = i * 37 % 4096
    to = 999 if i % 100 == 99 else fd
    try:
        result = os.pwrite(to, b"x" * size, i * 10)
    except OSError as error:
        result = -error.errno
    done.append(f"write {to} {size} {i * 10} {result}")
    if i % 3 == 0:
        done.append(f"read {fd} {size} {i} {len(os.pread(fd, size, i))}")
    sum(range(20000))
with open(log, "w") as file:
    file.write("\n".join(done))
"#;

#[test]
fn requests_of_a_python_program_are_those_of_its_log() {
    let Some(python) = program("python3") else {
        return;
    };
    let Some(directory) = recording_directory() else {
        return;
    };
    let at = directory.path();
    let names =
        ["program.py", "log", "file"].map(|name| at.join(name).to_str().unwrap().to_owned());
    let [source, log, file] = &names;
    fs::write(source, PROGRAM).unwrap();
    let command = [python.name(), source, log, file];
    let trace = Recorded::start(&directory, &python, &["--stacks"], &command).end();
    is_sound(&trace);
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(
        requests(&trace, file),
        log.lines().map(str::to_owned).collect::<Vec<_>>()
    );
    let mut bytes = BTreeMap::from([("read", 0), ("write", 0)]);
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        *bytes.get_mut(words[0]).unwrap() += words[4].parse::<i64>().unwrap().max(0) as u64;
    }
    let report = json("files", &trace);
    let row = rows(&report["files"])
        .iter()
        .find(|row| row["path"] == **file);
    let row = row.unwrap_or_else(|| panic!("{file} is in the report"));
    assert_eq!(
        (number(&row["read_bytes"]), number(&row["written_bytes"])),
        (bytes["read"], bytes["write"])
    );
    has_stacks_of(&trace, &["<module> (program.py:1)", "Py_BytesMain"]);
}

/// Positioned reads and writes since the file was opened, in the format of the program's log.
fn requests(trace: &str, file: &str) -> Vec<String> {
    let lines = events(
        trace,
        "syscall_*_pread64,syscall_*_pwrite64,syscall_*_openat",
    );
    let begins = lines
        .iter()
        .position(|line| field(line, "filename") == Some(file));
    let mut found = Vec::new();
    let mut open = None;
    // After the end of the opening call.
    for line in &lines[begins.expect("the file is opened") + 2..] {
        let of = |name: &str| field(line, name).unwrap_or_default().to_owned();
        let kind = match () {
            () if line.contains("_pread64:") => "read",
            () if line.contains("_pwrite64:") => "write",
            () => continue,
        };
        if line.contains("_entry_") {
            open = Some(format!("{kind} {} {} {}", of("fd"), of("count"), of("pos")));
        } else {
            found.push(format!(
                "{} {}",
                open.take().expect("the call began"),
                of("ret")
            ));
        }
    }
    found
}
