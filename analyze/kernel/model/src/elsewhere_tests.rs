//! Other crates do not contain names of kernel events or compare names of system calls.

use std::fs;
use std::path::{Path, PathBuf};

use syn::buffer::{Cursor, TokenBuffer};

use crate::calls::CALLS;
use crate::plain::PLAIN;

/// Prefixes of the names of system call events.
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

/// Folders of all crates except the fuzz targets, which have a workspace of their own.
const FOLDERS: [&str; 7] = [
    "analyze", "bench", "ctf", "import", "present", "record", "tests",
];

/// Paths outside of this crate that may contain names.
const ALLOWED: [&str; 7] = [
    // The recorder names the events that it writes, and attaches to tracepoints by name.
    "record/kernel/src",
    // Lists the events that an imported file lacks; `import` must not depend on analyses.
    "import/src/summary.rs",
    // Writes switches of user-level threads as the kernel's events.
    "analyze/levels/src/derived_classes.rs",
    // Follow the derived events of super-traces, whose names are fixed.
    "analyze/levels/src/exported/follow.rs",
    "present/export/src/levels/fxt.rs",
    // Plain models must not use this crate, or they would repeat its errors; generated traces need
    // names.
    "tests/models/src",
    "tests/testkit/src",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

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

/// True for a source file that does not contain only tests.
fn is_program(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let is_of_tests = stem.is_some_and(|stem| stem == "tests" || stem.ends_with("_tests"));
    !is_of_tests && path.extension().is_some_and(|extension| extension == "rs")
}

/// The tokens of a source file, without attributes, comments and test items. Brackets are tokens
/// too.
fn tokens(text: &str) -> Vec<String> {
    let stream = text.parse().expect("a program consists of tokens");
    let mut found = Vec::new();
    collect(TokenBuffer::new2(stream).begin(), &mut found);
    found
}

fn collect(mut at: Cursor<'_>, found: &mut Vec<String>) {
    while !at.eof() {
        if let Some((attribute, after)) = attribute(at) {
            at = match attribute == "cfg (test)" {
                true => after_item(after),
                false => after,
            };
        } else if let Some((inside, delimiter, _, after)) = at.any_group() {
            found.push(format!("{delimiter:?}"));
            collect(inside, found);
            found.push("End".to_owned());
            at = after;
        } else {
            let (token, after) = at.token_tree().expect("it is not the end");
            found.push(token.to_string());
            at = after;
        }
    }
}

/// The text in the brackets of an attribute, and the position after it.
fn attribute(at: Cursor<'_>) -> Option<(String, Cursor<'_>)> {
    let (_, after) = at.punct().filter(|(punct, _)| punct.as_char() == '#')?;
    // An inner attribute: `#![...]`.
    let after = match after.punct() {
        Some((punct, inner)) if punct.as_char() == '!' => inner,
        _ => after,
    };
    let (inside, _, _, after) = after.any_group()?;
    Some((inside.token_stream().to_string(), after))
}

/// The position after an item, which ends with a block, a semicolon or, for a field, a comma.
fn after_item(mut at: Cursor<'_>) -> Cursor<'_> {
    while let Some((token, after)) = at.token_tree() {
        at = after;
        let token = token.to_string();
        if token.starts_with('{') || token == ";" || token == "," {
            break;
        }
    }
    at
}

fn is_of_event(literal: &str) -> bool {
    let name = literal.rsplit(':').next().unwrap_or_default();
    let is_plain = PLAIN
        .iter()
        .any(|plain| plain.0 == name && !plain.1.iter().any(|of| is_of_programs(of)));
    let is_call = CALL_EVENTS.iter().any(|begin| literal.starts_with(begin));
    is_plain || is_call
}

/// True for the providers of events of programs, which have other names than the kernel's.
fn is_of_programs(provider: &str) -> bool {
    provider.starts_with("tracebraid") || provider.starts_with("lttng_ust")
}

/// Ignores names of calls that are common words (`read`, `exit`): [`comparisons`] finds these.
fn is_of_call(literal: &str) -> bool {
    let is_word = literal.bytes().all(|letter| letter.is_ascii_lowercase());
    !is_word && CALLS.iter().any(|call| call.0 == literal)
}

/// The content of a string literal.
fn literal(token: &str) -> Option<&str> {
    let text = token
        .trim_start_matches(['b', 'c', 'r', '#'])
        .trim_end_matches('#');
    text.strip_prefix('"')?.strip_suffix('"')
}

/// The number of statements that compare the name of a call.
fn comparisons(tokens: &[String]) -> usize {
    let statements = tokens.split(|token| matches!(&**token, ";" | "Brace"));
    let is_comparison = |statement: &&[String]| {
        let has = |token: &str| statement.iter().any(|other| other == token);
        let names = |five: &[String]| five == ["call", ".", "name", "Parenthesis", "End"];
        let is_equation = statement
            .windows(2)
            .any(|two| matches!(&*two[0], "=" | "!") && two[1] == "=");
        let is_with_text = statement.iter().any(|token| literal(token).is_some());
        let compares = has("match") || (has("matches") || is_equation) && is_with_text;
        statement.windows(5).any(names) && compares
    };
    statements.filter(is_comparison).count()
}

/// Names of events and calls in a program.
fn names(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let literals = tokens.iter().filter_map(|token| literal(token));
    let mut names: Vec<String> = literals
        .filter(|literal| is_of_event(literal) || is_of_call(literal))
        .map(str::to_owned)
        .collect();
    names.extend((0..comparisons(&tokens)).map(|_| "call.name()".to_owned()));
    names
}

#[test]
fn names_of_events_occur_nowhere_else() {
    let root = root();
    let mut files = Vec::new();
    for folder in FOLDERS {
        let before = files.len();
        sources(&root.join(folder), &mut files);
        assert!(files.len() > before, "{folder} has no files");
    }
    assert!(files.len() > 900, "{} files were read", files.len());
    let mut met = Vec::new();
    let mut needed = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).expect("a file of the repository");
        if path.starts_with("analyze/kernel/model/src") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a program is text");
        let names = names(&text);
        match ALLOWED.iter().find(|other| path.starts_with(other)) {
            Some(other) if !names.is_empty() => needed.push(*other),
            Some(_) => {}
            None => met.extend(
                names
                    .iter()
                    .map(|name| format!("{}: {name}", path.display())),
            ),
        }
    }
    assert_eq!(met, [""; 0], "names outside of the kernel model");
    for other in ALLOWED {
        assert!(
            needed.contains(&other),
            "{other} contains no names and needs no exception"
        );
    }
}

#[test]
fn names_are_recognized() {
    let text = "// \"irq_handler_exit\"\n#[key(\"irq_handler_entry\")] let a = \"sched_switch\";\n\
                #[cfg(test)]\nmod tests { fn a() { b(\"sched_migrate_task\") } }\n\
                b!(\"sched:sched_wakeup\", \"other\", r#\"sys_enter_\"#);\n\
                #[cfg(test)]\n#[path = \"other.rs\"]\nmod other;\n#[cfg(test)]\nuse a::{b, c};\nc(b\"io_uring_enter\", \"read\")";
    let expected = [
        "sched_switch",
        "sched:sched_wakeup",
        "sys_enter_",
        "io_uring_enter",
    ];
    assert_eq!(names(text), expected);
    assert!(is_of_call("io_uring_enter") && is_of_call("wait4") && !is_of_call("read"));
    let text = "match call.name() { _ => a }\nlet is = matches!(open.call.name(), \"exit\"); let name = call.name();\n\
                let is = call.name() == \"exit\"; let is = name == \"exit\";";
    assert_eq!(comparisons(&tokens(text)), 3);
}
