//! `history append` as users call it, on a recorded trace that grows.

use std::fs;
use std::path::Path;

use crate::support::{failure, recorded, recorded_trace, text};
use tracebraid_ctf::trace::TraceSet;

/// Writes the first packets of each stream of a trace, `share` hundredths of them, as its tracer
/// would have left them.
fn grow(trace: &str, to: &Path, share: usize) {
    let set = TraceSet::open(&[trace]).unwrap();
    fs::create_dir_all(to).unwrap();
    let trace = &set.traces[0];
    fs::copy(trace.paths[0].join("metadata"), to.join("metadata")).unwrap();
    for stream in &trace.streams {
        let path = &stream.files[0].path;
        let count = stream.packets.len() * share / 100;
        let end = stream.packets[..count]
            .last()
            .map_or(0, |last| last.offset + last.bytes);
        let bytes = fs::read(path).unwrap();
        fs::write(to.join(path.file_name().unwrap()), &bytes[..end as usize]).unwrap();
    }
}

#[test]
fn a_history_follows_its_trace() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (trace, file, whole) = (path("trace"), path("history"), path("whole"));
    let source = recorded_trace("kernel-discarded");
    grow(&source, trace.as_ref(), 30);
    text(&["history", "build", &trace, "-o", &file]);
    assert_eq!(
        text(&["history", "append", &file]),
        format!("{file}: nothing is new\n")
    );
    for share in [50, 51, 100] {
        grow(&source, trace.as_ref(), share);
        let said = text(&["history", "append", &file, "-j", "2"]);
        assert!(
            said.contains(" new, ") && said.contains("packets read"),
            "{said}"
        );
        text(&["history", "build", &trace, "-o", &whole]);
        assert!(text(&["history", "info", "--verify", &file]).contains("whole"));
        for question in [
            &["--at", "+0.2s"][..],
            &["*"],
            &["cpu/*", "--samples", "50"],
            &["thread/1/state", "--from", "+0.1s"],
        ] {
            let ask = |file: &str| {
                let head = ["history", "query", file, "--format", "json"];
                text(&[&head, question].concat())
            };
            assert_eq!(ask(&file), ask(&whole), "{share} % {question:?}");
        }
    }
    // The trace has moved.
    fs::rename(&trace, path("moved")).unwrap();
    let (code, said) = failure(&["history", "append", &file]);
    assert!(
        code == 3 && said.contains("history append"),
        "{code}: {said}"
    );
    let question = ["history", "query", &file, "--at", "+0.2s"];
    let answer = text(&question);
    text(&["history", "append", &file, &path("moved")]);
    // The history now contains the new path.
    assert!(text(&["history", "info", "--verify", &file]).contains(&path("moved")));
    assert_eq!(text(&question), answer);
    assert_eq!(
        text(&["history", "append", &file]),
        format!("{file}: nothing is new\n")
    );
}

#[test]
fn failures_name_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (trace, file) = (path("trace"), path("history"));
    let source = recorded_trace("kernel-discarded");
    grow(&source, trace.as_ref(), 50);
    text(&["history", "build", &trace, "-o", &file]);
    let before = fs::read(&file).unwrap();
    let is = |arguments: &[&str], code, what: &str| {
        let (found, said) = failure(&[&["history", "append"], arguments].concat());
        assert!(
            found == code && said.contains(what),
            "{arguments:?}: {found}, {said}"
        );
    };
    is(
        &[&file, &recorded_trace("kernel-mix-small")],
        2,
        "is a history of another trace",
    );
    grow(&source, path("shorter").as_ref(), 40);
    is(&[&file, &path("shorter")], 2, "packets, but had");
    is(&[&path("none")], 3, "No such file");
    assert!(fs::read(&file).unwrap() == before);

    let mut other = before.clone();
    other[8] = 9;
    fs::write(&file, &other).unwrap();
    is(&[&file], 3, "version 9");

    let rules = path("rules.toml");
    fs::write(&rules, RULES).unwrap();
    text(&[
        "history",
        "build",
        &trace,
        "--analysis",
        &rules,
        "-o",
        &file,
    ]);
    is(&[&file, "--sync", "auto"], 2, "sync -o");
}

#[test]
fn what_was_asked_for_besides_is_gone_on_with() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (trace, file, whole, rules) = (
        path("trace"),
        path("history"),
        path("whole"),
        path("rules.toml"),
    );
    fs::write(&rules, RULES).unwrap();
    let source = recorded_trace("kernel-discarded");
    let build = |to: &str| {
        text(&[
            "history",
            "build",
            &trace,
            "--analysis",
            &rules,
            "--files",
            "-o",
            to,
        ]);
    };
    grow(&source, trace.as_ref(), 40);
    build(&file);
    for share in [70, 100] {
        grow(&source, trace.as_ref(), share);
        assert!(text(&["history", "append", &file]).contains(" new, "));
        build(&whole);
        let ask = |file: &str| {
            text(&[
                "history", "query", file, "--format", "json", "who/*", "file/*",
            ])
        };
        let answer = ask(&file);
        assert!(
            answer.contains("\"who/") && answer == ask(&whole),
            "{share} %"
        );
    }
}

#[test]
fn hosts_with_one_time_go_on_with_the_same_file() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let hosts = ["twohost-server", "twohost-client"];
    let sources = hosts.map(|name| recorded("twohost").join(name).display().to_string());
    let [server, client] = &hosts.map(path);
    let (sync, file, whole) = (path("sync"), path("history"), path("whole"));
    text(&["sync", &sources[0], &sources[1], "-o", &sync]);
    let grow_both = |share| {
        grow(&sources[0], server.as_ref(), share);
        grow(&sources[1], client.as_ref(), share);
    };
    let build = |to: &str| {
        text(&[
            "history", "build", server, client, "--sync", &sync, "-o", to,
        ])
    };
    grow_both(50);
    build(&file);
    grow_both(100);
    let (code, said) = failure(&["history", "append", &file]);
    assert!(code == 2 && said.contains("--sync"), "{code}: {said}");
    text(&["history", "append", &file, "--sync", &sync]);
    build(&whole);
    let ask = |file: &str| text(&["history", "query", file, "--format", "json", "*"]);
    let answer = ask(&file);
    assert!(answer.contains("srv/cpu/0") && answer == ask(&whole));
}

const RULES: &str = r#"
name = "switches"

[[on]]
event = "sched_switch"
change = [{ set = "who/{prev_tid}", to = "{next_tid}" }]
"#;

#[test]
fn a_damaged_history_is_not_said_to_be_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history");
    let path = file.display().to_string();
    text(&[
        "history",
        "build",
        &recorded_trace("kernel-mix-small"),
        "-o",
        &path,
    ]);
    let said = text(&["history", "append", &path]);
    assert!(said.contains("nothing is new"), "{said}");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (code, said) = failure(&["history", "append", &path]);
    assert_eq!(code, 3);
    assert!(said.contains("damaged at byte"), "{said}");
}
