//! Files of histories: damaged, replaced, built concurrently, and traces that are not overwritten.

use std::fs;

use crate::history_analyses::{analysis, built_with};
use crate::support::{failure, recorded, recorded_trace, text, tracebraid};

#[test]
fn damaged_histories_are_built_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = built_with(
        &directory,
        "kernel-ust-requests",
        &analysis("requests.toml"),
    );
    let good = fs::read(&file).unwrap();
    let question = ["history", "query", &file, "--at", "+0.01s"];
    let answer = text(&question);
    let mut bad = good.clone();
    // Damage in the first block.
    bad[6000] ^= 1;
    fs::write(&file, &bad).unwrap();
    let (code, said) = failure(&[&question[..], &["--no-rebuild"]].concat());
    assert!(code == 3 && said.contains("is damaged at byte"), "{said}");
    let output = tracebraid().args(question).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("is damaged at byte") && said.contains("rebuilding it from"),
        "{said}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), answer);
    assert_eq!(fs::read(&file).unwrap(), good);
    // Without its end or its beginning, the file still identifies its trace.
    let mut beheaded = good.clone();
    beheaded[20] ^= 1;
    for bad in [&good[..good.len() / 2], &good[..good.len() - 1], &beheaded] {
        fs::write(&file, bad).unwrap();
        let (code, said) = failure(&["history", "append", &file]);
        assert!(code == 3 && said.contains("is damaged at byte"), "{said}");
        assert_eq!(text(&question), answer);
        assert_eq!(fs::read(&file).unwrap(), good);
    }
    // The description of the trace may be damaged, too.
    fs::write(&file, &good[..100]).unwrap();
    let (code, said) = failure(&question);
    assert!(
        code == 3 && said.contains("the file is truncated"),
        "{said}"
    );
}

#[test]
fn what_is_no_file_is_not_replaced_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded_trace("kernel-mix-small");
    let at = |name: &str| directory.path().join(name).display().to_string();
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.unwrap().success());
    let (code, said) = failure(&["history", "build", &trace, "-o", &at("pipe")]);
    assert_eq!(code, 1);
    assert!(said.contains("this is not a regular file"), "{said}");
    assert!(!fs::metadata(at("pipe")).unwrap().is_file());
    // A symbolic link stays a link.
    fs::write(at("target"), "").unwrap();
    std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
    text(&["history", "build", &trace, "-o", &at("link")]);
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    text(&["history", "info", "--verify", &at("target")]);
    // A file of the user with the name of a temporary file is left alone.
    fs::write(at("target.part"), "mine").unwrap();
    text(&["history", "build", &trace, "-o", &at("target")]);
    assert_eq!(fs::read_to_string(at("target.part")).unwrap(), "mine");
}

#[test]
fn builds_of_one_name_do_not_disturb_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history").display().to_string();
    let traces = ["kernel-mix-small", "kernel-ust-requests"].map(recorded_trace);
    for _ in 0..3 {
        let build = |trace: &String| {
            tracebraid()
                .args(["history", "build", trace, "-o", &file])
                .spawn()
                .unwrap()
        };
        let builds: Vec<_> = traces.iter().chain(&traces).map(build).collect();
        for mut build in builds {
            assert!(build.wait().unwrap().success());
        }
        text(&["history", "info", "--verify", &file]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_history_is_built_again_from_its_own_trace_only() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let copy = |from: &str, to: &str| {
        let copied = std::process::Command::new("cp")
            .args(["-r", from, to])
            .status();
        assert!(copied.unwrap().success());
    };
    let damage = |file: &str| {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, &bytes).unwrap();
        bytes
    };
    copy(&recorded_trace("kernel-mix-small"), &at("trace"));
    text(&["history", "build", &at("trace"), "-o", &at("history")]);
    let damaged = damage(&at("history"));
    fs::remove_dir_all(at("trace")).unwrap();
    copy(&recorded_trace("kernel-ust-requests"), &at("trace"));
    let (code, said) = failure(&["history", "query", &at("history"), "thread/*"]);
    assert_eq!(code, 3);
    assert!(
        said.contains("is not the trace that it was built from"),
        "{said}"
    );
    assert_eq!(fs::read(at("history")).unwrap(), damaged);
    // Nor with other clock corrections than those with which it was built.
    let hosts = ["twohost-client", "twohost-server"].map(|name| recorded("twohost").join(name));
    let [client, server] = hosts.map(|path| path.display().to_string());
    text(&["sync", "-o", &at("clocks"), &client, &server]);
    text(&[
        "history",
        "build",
        "--sync",
        &at("clocks"),
        &client,
        &server,
        "-o",
        &at("hosts"),
    ]);
    let damaged = damage(&at("hosts"));
    let (code, said) = failure(&["history", "query", &at("hosts"), "*"]);
    assert_eq!(code, 3);
    assert!(said.contains("--sync"), "{said}");
    assert_eq!(fs::read(at("hosts")).unwrap(), damaged);
}

/// Copies a trace.
fn copy(trace: &str, to: &std::path::Path) -> String {
    let done = std::process::Command::new("cp")
        .args(["-r", trace])
        .arg(to)
        .status();
    assert!(done.unwrap().success());
    to.display().to_string()
}

/// No command overwrites its own input.
#[test]
fn traces_are_not_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let trace = copy(
        &recorded_trace("kernel-discarded"),
        &directory.path().join("trace"),
    );
    let at = |name: &str| directory.path().join(name).display().to_string();
    let set = tracebraid_ctf::trace::TraceSet::open(&[&trace]).unwrap();
    let stream = set.traces[0].streams[0].files[0].path.clone();
    let metadata = set.traces[0].paths[0].join("metadata");
    let before = [&stream, &metadata].map(|path| fs::read(path).unwrap());
    std::os::unix::fs::symlink(&metadata, at("link")).unwrap();
    fs::hard_link(&stream, at("hard")).unwrap();
    let history = at("history");
    text(&["history", "build", &trace, "-o", &history]);
    let (metadata, stream) = (metadata.display().to_string(), stream.display().to_string());
    let (link, hard) = (at("link"), at("hard"));
    for target in [&metadata, &stream, &link, &hard] {
        let query = ["history", "query", &history, "cpu/*/state", "-o", target];
        let build = ["history", "build", &trace, "-o", target];
        for command in [
            // With a hard link outside the trace, a query is not refused: its result replaces only
            // that name.
            if *target == hard { &build } else { &query[..] },
            &build,
            &["print", &trace, "-w", target],
            &[
                "critical-path",
                &trace,
                "--longest",
                "*",
                "--perfetto",
                target,
            ],
            &["sync", &trace, "-o", target],
        ] {
            let (code, said) = failure(command);
            assert!(
                code == 2
                    && said.contains(target.as_str())
                    && said.contains("refusing to overwrite"),
                "{command:?}: {code}, {said}"
            );
        }
    }
    let (code, said) = failure(&["history", "query", &history, "cpu/*/state", "-o", &history]);
    assert!(
        code == 2 && said.contains("refusing to overwrite"),
        "{code}, {said}"
    );
    let rules = analysis("running.xml");
    let own = at("own.xml");
    fs::copy(rules, &own).unwrap();
    let (code, said) = failure(&["history", "build", &trace, "--analysis", &own, "-o", &own]);
    assert!(
        code == 2 && said.contains("refusing to overwrite"),
        "{code}, {said}"
    );
    assert_eq!(
        [&stream, &metadata].map(|path| fs::read(path).unwrap()),
        before
    );
    text(&["history", "info", "--verify", &history]);
    // A file beside the trace may be replaced.
    text(&["history", "build", &trace, "-o", &history]);
}
