//! Probes of Python programs, with a real interpreter and the real library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{libraries, reads_alike, skipped, succeeds, text};
use tempfile::TempDir;

/// Events of all types, some at their limits; nested spans, threads, and a child process.
const PROGRAM: &str = r#"
import os, threading
import tracebraid
assert tracebraid.is_recording()
order = tracebraid.event("shop:order", number=int, paid=bool, total=float, customer=str, key=bytes)
for i in range(100):
    order(number=i - 50, paid=i % 2 == 0, total=i / 4, customer=f"Ada {i}", key=bytes(range(i % 5)))
tracebraid.probe("shop:limits", least=-2**63, most=2**63 - 1, wraps=2**64 + 7)
tracebraid.probe("shop:text", long="é" * 3000, nul="a\0b", odd="\udc80", none=None)
tracebraid.probe("shop:nothing")
for wrong in (dict(number=1), dict(number=1, paid=0, total=0, customer="", key=b"", more=2)):
    try:
        order(**wrong)
    except TypeError as error:
        tracebraid.probe("shop:error", said=str(error))
with tracebraid.span("outer"):
    with tracebraid.span("inner"):
        tracebraid.counter("orders", 100)
@tracebraid.traced
def work(): return 7
assert work() == 7
def many(of):
    for i in range(200): tracebraid.probe("shop:thread", of=of, i=i)
threads = [threading.Thread(target=many, args=(of,)) for of in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
if child == 0:
    tracebraid.probe("shop:child", number=1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"#;

/// The directory of the module.
fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/python")
}

/// Runs a program, with or without a session; `None` without an interpreter or the library.
fn python(program: &str, session: Option<&Path>) -> Option<Output> {
    if !libraries().join("libtracebraid_probe.so").is_file() {
        skipped("libtracebraid_probe.so has not been built");
        return None;
    }
    let mut command = Command::new("python3");
    command.args(["-c", program]).env("PYTHONPATH", module());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
        .env("TRACEBRAID_LIBRARIES", libraries())
        .env_remove("TRACEBRAID_SESSION");
    command.envs(session.map(|session| ("TRACEBRAID_SESSION", session)));
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            skipped(format_args!("python3 does not run: {error}"));
            None
        }
    }
}

/// Asserts success without any message.
fn succeeds_quietly(output: &Output) {
    succeeds(output);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn events_of_a_python_program_are_what_it_gave() {
    let session = TempDir::new().unwrap();
    let Some(output) = python(PROGRAM, Some(session.path())) else {
        return;
    };
    succeeds_quietly(&output);
    let trace = session.path().to_str().unwrap();
    let payloads = |name: &str| -> Vec<String> {
        let printed = text(&["print", "--name", name, trace]);
        let payload = |line: &str| line.rsplit_once("}, ").unwrap_or_default().1.to_owned();
        printed.lines().map(payload).collect()
    };
    let orders = payloads("shop:order");
    assert_eq!(orders.len(), 100);
    assert_eq!(
        orders[3],
        "{ number = -47, paid = 0, total = 0.75, customer = \"Ada 3\", _key_length = 3, key = [ [0] = 0, [1] = 1, [2] = 2 ] }"
    );
    assert_eq!(
        payloads("shop:limits"),
        ["{ least = -9223372036854775808, most = 9223372036854775807, wraps = 7 }"]
    );
    // An é takes two bytes: one of the 4095 is left.
    let long = format!(
        "{{ long = \"{}\", nul = \"a\\?b\", odd = \"\\\\udc80\", none = \"(null)\" }}",
        "é".repeat(2047)
    );
    assert_eq!(payloads("shop:text"), [long]);
    assert_eq!(payloads("shop:nothing").len(), 1);
    assert_eq!(
        payloads("shop:error"),
        [
            "{ said = \"shop:order: missing field paid\" }",
            "{ said = \"shop:order: unknown fields: more\" }"
        ]
    );
    let threads = payloads("shop:thread");
    for of in 0..3 {
        let own = threads
            .iter()
            .filter(|line| line.contains(&format!("of = {of},")));
        assert_eq!(own.count(), 200);
    }
    assert_eq!(payloads("shop:child").len(), 1);
    let spans = payloads("tracebraid:span_begin");
    let names: Vec<bool> = ["outer", "inner", "work"]
        .iter()
        .zip(&spans)
        .map(|(name, span)| span.contains(name))
        .collect();
    assert_eq!((names, spans.len()), (vec![true; 3], 3));
    assert_eq!(payloads("tracebraid:span_end").len(), 3);
    assert_eq!(payloads("tracebraid:counter").len(), 1);
    reads_alike(trace);
}

#[test]
fn user_level_threads_of_a_python_program_are_recorded() {
    let program = r#"
import tracebraid as t
t.lwp_begin("asyncio"); t.lwp_processor(3)
t.ult_create(1, "é"); t.ult_switch(0, 1); t.ult_block(1, "sleep"); t.ult_wake(1)
t.ult_name(1, "b"); t.ult_state(2, -1, t.ULT_BLOCKED, reason="future")
t.ult_call_begin(1); t.ult_call_end(1); t.ult_exit(1); t.ult_switch(1, 0); t.lwp_end()
"#;
    let session = TempDir::new().unwrap();
    let Some(output) = python(program, Some(session.path())) else {
        return;
    };
    succeeds_quietly(&output);
    let wanted = "tracebraid:ult_*,tracebraid:lwp_*";
    let printed = text(&["print", "--name", wanted, session.path().to_str().unwrap()]);
    let shown = |line: &str| {
        let (head, fields) = line.rsplit_once(", { ").expect("fields");
        let (_, class) = head.split_once("tracebraid:").expect("a class");
        let (class, _) = class.split_once(':').expect("a context");
        format!("{class} {{ {fields}")
    };
    let printed: Vec<String> = printed.lines().map(shown).collect();
    let expected = [
        "lwp_begin { runtime = \"asyncio\" }",
        "lwp_processor { processor = 3 }",
        "ult_create { ult = 1, name = \"é\" }",
        "ult_switch { prev_ult = 0, next_ult = 1 }",
        "ult_block { ult = 1, reason = \"sleep\" }",
        "ult_wake { ult = 1 }",
        "ult_name { ult = 1, name = \"b\" }",
        "ult_state { ult = 2, lwp = -1, state = 2, name = \"\", reason = \"future\" }",
        "ult_call_begin { ult = 1 }",
        "ult_call_end { ult = 1 }",
        "ult_exit { ult = 1 }",
        "ult_switch { prev_ult = 1, next_ult = 0 }",
        "lwp_end { }",
    ];
    assert_eq!(printed, expected);
}

#[test]
fn a_program_that_has_loaded_a_library_already_uses_that() {
    let libraries = libraries();
    let copies = TempDir::new().unwrap();
    let name = "libtracebraid_probe.so";
    if fs::copy(libraries.join(name), copies.path().join(name)).is_err() {
        return skipped("libtracebraid_probe.so has not been built");
    }
    for preloaded in ["libtracebraid_modules.so", name] {
        let session = TempDir::new().unwrap();
        let program = r#"
import tracebraid
for number in range(3): tracebraid.probe("shop:order", number=number)
for number in range(3): tracebraid.probe("shop:visit", name="x")
"#;
        let mut command = Command::new("python3");
        command.args(["-c", program]).env("PYTHONPATH", module());
        // The module finds another file with the same name.
        command
            .env("TRACEBRAID_LIBRARIES", copies.path())
            .env("TRACEBRAID_SESSION", session.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("LD_PRELOAD", libraries.join(preloaded));
        let Ok(output) = command.output() else {
            return skipped("python3 does not run");
        };
        succeeds_quietly(&output);
        let printed = text(&["print", "--strict", session.path().to_str().unwrap()]);
        for event in ["shop:order", "shop:visit"] {
            let lines = printed.lines().filter(|line| line.contains(event));
            assert_eq!(lines.count(), 3, "{preloaded}: {printed}");
        }
    }
}

#[test]
fn without_a_session_a_program_runs_as_ever() {
    let program = r#"
import tracebraid
assert not tracebraid.is_recording()
tracebraid.probe("shop:order", number=1)
order = tracebraid.event("shop:order", number=int)
order(number=1)
assert not order.is_enabled()
with tracebraid.span("outer"): tracebraid.counter("orders", 1)
def work(): pass
assert tracebraid.traced(work) is work
for name, fields in (("order", {}), ("shop:or der", {}), ("shop:order", dict(number=list)), ("shop:order", dict(number=str))):
    try:
        tracebraid.event(name, **fields)
    except (TypeError, ValueError):
        continue
    raise AssertionError(name)
"#;
    if let Some(output) = python(program, None) {
        succeeds_quietly(&output);
    }
}

#[test]
fn what_a_session_does_not_enable_is_not_recorded() {
    let session = TempDir::new().unwrap();
    fs::write(session.path().join("probe.conf"), "enable = shop:wanted\n").unwrap();
    let program = r#"
import tracebraid
wanted, other = tracebraid.event("shop:wanted", a=int), tracebraid.event("shop:other", a=int)
assert wanted.is_enabled() and not other.is_enabled()
wanted(a=1); other(a=2)
"#;
    let Some(output) = python(program, Some(session.path())) else {
        return;
    };
    succeeds_quietly(&output);
    let printed = text(&["print", session.path().to_str().unwrap()]);
    let names: Vec<bool> = ["shop:wanted", "shop:other"]
        .iter()
        .map(|name| printed.contains(name))
        .collect();
    assert_eq!(names, [true, false], "{printed}");
}
