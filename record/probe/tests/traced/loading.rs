//! Programs with and without a session or the library; libraries that are loaded and unloaded.

use std::process::Command;

use crate::support::{Session, babeltrace, compile, library_directory, source, traced};

fn plugin() -> String {
    let path = compile("cc", "plugin.c", "libplugin.so", &["-shared", "-fPIC"]);
    path.to_str().unwrap().to_owned()
}

#[test]
fn without_a_session_nothing_happens() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(traced());
    command
        .arg("values")
        .current_dir(directory.path())
        .env_remove("TRACEBRAID_SESSION");
    assert!(command.status().unwrap().success());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_session_that_cannot_be_written_is_none() {
    for session in ["/proc/no/such/place", "/dev/null", &"/x".repeat(3000)] {
        let status = Command::new(traced())
            .arg("values")
            .env("TRACEBRAID_SESSION", session)
            .status();
        assert!(status.unwrap().success(), "{session}");
    }
}

#[test]
fn a_relative_directory_is_that_of_the_beginning() {
    let session = Session::new("");
    let mut command = session.command(&traced(), &["values"]);
    command
        .current_dir(session.path())
        .env("TRACEBRAID_SESSION", ".");
    assert!(command.status().unwrap().success());
    assert_eq!(session.read().count("test:none"), 1);
}

#[test]
fn libraries_come_and_go() {
    let session = Session::new("");
    session.run(&["loads", &plugin()]);
    let read = session.read();
    let numbers: Vec<u64> = read
        .of("plugin:traced")
        .map(|record| record.value("n"))
        .collect();
    assert_eq!(numbers, [0, 1, 2]);
    let metadata = std::fs::read_to_string(session.trace().join("metadata")).unwrap();
    assert_eq!(
        metadata.matches("\"plugin:traced\"").count(),
        1,
        "one event class for all loads of the library"
    );
    babeltrace(&session.trace());
}

/// User-level threads have small stacks, and may be the first to record.
#[test]
fn events_fit_on_small_stacks() {
    let program = compile("cc", "small_stacks.c", "small_stacks", &["-std=c11"]);
    for without in [false, true] {
        let session = Session::new("packet_size = 4K\n").without_sequences(without);
        let output = session.command(&program, &[]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let read = session.read();
        assert_eq!(read.count("tracebraid:ult_wake"), 10_001);
        for class in ["ult_create", "ult_state", "counter", "prof_out", "ult_exit"] {
            assert_eq!(read.count(&format!("tracebraid:{class}")), 1, "{class}");
        }
    }
}

#[test]
fn the_library_is_optional() {
    let program = compile("cc", "optional.c", "optional", &["-DALONE"]);
    let session = Session::new("");
    assert!(session.command(&program, &[]).status().unwrap().success());
    assert!(session.traces().is_empty());
    let mut command = session.command(&program, &[]);
    command.env(
        "LD_PRELOAD",
        library_directory().join("libtracebraid_probe.so"),
    );
    assert!(command.status().unwrap().success());
    assert_eq!(
        session
            .read()
            .of("optional:traced")
            .next()
            .unwrap()
            .value("n"),
        42
    );
}

#[test]
fn functions_are_traced_where_a_pattern_names_them() {
    let program = compile(
        "cc",
        "functions.c",
        "functions",
        &["-finstrument-functions", "-no-pie", "-Wl,--no-as-needed"],
    );
    for (options, expected) in [
        ("enable = *\n", None),
        ("enable = lttng_ust_cyg_profile:*\n", Some(4)),
    ] {
        let session = Session::new(options);
        assert!(session.command(&program, &[]).status().unwrap().success());
        let traces = session.traces();
        let read = if expected.is_some() {
            session.read()
        } else {
            crate::support::Read::default()
        };
        assert_eq!(
            read.count("lttng_ust_cyg_profile:func_entry"),
            expected.unwrap_or(0),
            "{traces:?}"
        );
        assert_eq!(
            read.count("lttng_ust_cyg_profile:func_exit"),
            expected.unwrap_or(0)
        );
    }
    let symbols = Command::new("nm").arg(&program).output().unwrap();
    let text = String::from_utf8(symbols.stdout).unwrap();
    let leaf = text.lines().find(|line| line.ends_with(" leaf")).unwrap();
    let leaf = u64::from_str_radix(leaf.split(' ').next().unwrap(), 16).unwrap();
    let session = Session::new("enable = lttng_ust_cyg_profile:*\n");
    assert!(session.command(&program, &[]).status().unwrap().success());
    let read = session.read();
    let addresses = read
        .of("lttng_ust_cyg_profile:func_entry")
        .map(|record| record.value("addr"));
    assert_eq!(addresses.filter(|&address| address == leaf).count(), 2);
}

#[test]
fn a_static_library_serves_as_well() {
    let archive = library_directory().join("libtracebraid_probe.a");
    let options = [
        "-std=c11",
        "-DALONE",
        archive.to_str().unwrap(),
        "-ldl",
        "-lm",
    ];
    let program = compile("cc", "traced.c", "traced-static", &options);
    let session = Session::new("");
    assert!(
        session
            .command(&program, &["values"])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(session.read().count("test:none"), 1);
    assert!(source("traced.c").exists());
}
