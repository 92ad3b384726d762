//! No other crate compares names of kernel events and of system calls.

use std::fs;
use std::path::{Path, PathBuf};

use crate::calls::CALLS;
use crate::plain::PLAIN;

/// Beginnings of the names of system calls' events.
const CALL_EVENTS: [&str; 8] = [
    "syscall_entry_",
    "syscall_exit_",
    "compat_sys",
    "sys_enter",
    "sys_exit",
    "exit_syscall",
    "raw_syscalls:",
    "syscalls:",
];

/// Literals that are names of something else, too: keys of tables and of attributes.
const OTHERS: [&str; 0] = [];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_of_sources = path.components().any(|part| part.as_os_str() == "src");
        if path.is_dir() {
            sources(&path, found);
        } else if is_of_sources && is_program(&path) {
            found.push(path);
        }
    }
}

/// A source file that is not of tests alone.
fn is_program(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let is_of_tests = stem.is_some_and(|stem| stem == "tests" || stem.ends_with("_tests"));
    !is_of_tests && path.extension().is_some_and(|extension| extension == "rs")
}

/// The literals of a program's text that stand in one line, without those of its tests.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    let program = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = program
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2))
}

fn is_of_event(literal: &str) -> bool {
    let name = literal.rsplit(':').next().unwrap_or_default();
    let is_plain = PLAIN.iter().any(|plain| plain.0 == name);
    let is_call = CALL_EVENTS.iter().any(|begin| literal.starts_with(begin));
    (is_plain || is_call) && !OTHERS.contains(&literal)
}

/// Names of calls that are words of other languages, too (`read`, `exit`), are recognized by what is compared only.
fn is_of_call(literal: &str) -> bool {
    let is_word = literal.bytes().all(|letter| letter.is_ascii_lowercase());
    !is_word && CALLS.iter().any(|call| call.0 == literal)
}

/// Lines that compare the name of a call with anything.
fn comparisons(text: &str) -> impl Iterator<Item = &str> {
    let program = text.split("#[cfg(test)]").next().unwrap_or_default();
    let begins = ["matches!(", "match ", "match (", "== ", "!= "];
    program.lines().filter(move |line| {
        let of_name = line.contains("call.name()") && line.contains(['"', '{']);
        of_name && begins.iter().any(|begin| line.contains(begin))
    })
}

#[test]
fn names_of_events_stand_nowhere_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files = Vec::new();
    for folder in ["analyze", "present"] {
        sources(&root.join(folder), &mut files);
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let own = fs::canonicalize(own).expect("the crate is there");
    files.retain(|file| !fs::canonicalize(file).is_ok_and(|file| file.starts_with(&own)));
    assert!(files.len() > 400, "{} files were read", files.len());
    let mut met = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a program is text");
        let is_name = |literal: &&str| is_of_event(literal) || is_of_call(literal);
        let names = literals(&text).filter(is_name).chain(comparisons(&text));
        let names: Vec<&str> = names.collect();
        met.extend(
            names
                .into_iter()
                .map(|name| format!("{}: {name}", file.display())),
        );
    }
    assert_eq!(met, [""; 0], "compared outside of the kernel model");
}

#[test]
fn names_are_recognized() {
    let text = "// \"irq_handler_exit\"\nlet a = \"sched_switch\"; b(\"sched:sched_wakeup\", \"other\", \"sys_enter_\")\n\
                #[cfg(test)]\n\"sched_migrate_task\"";
    let found: Vec<&str> = literals(text).filter(|literal| is_of_event(literal)).collect();
    assert_eq!(found, ["sched_switch", "sched:sched_wakeup", "sys_enter_"]);
    assert!(is_of_call("io_uring_enter") && is_of_call("wait4") && !is_of_call("read"));
    let text = "match call.name() {\nmatches!(open.call.name(), \"exit\")\nlet name = call.name();";
    assert_eq!(comparisons(text).count(), 2);
}
