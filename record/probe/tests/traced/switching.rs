//! Enabling and disabling event classes from outside while the program runs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use tracebraid_probe::control::{Control, end_session, switch_session, traces};

use crate::support::{Read, Session, compile, traced};

/// A program that traces on command.
struct Commanded {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Commanded {
    fn start(session: &Session) -> Commanded {
        let mut command = session.command(&traced(), &["commanded"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut commanded = Commanded { child, lines };
        commanded.answer("ready");
        commanded
    }

    fn answer(&mut self, expected: &str) {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), expected);
    }

    fn command(&mut self, line: &str) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
        self.answer("done");
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn count(read: &Read) -> [usize; 3] {
    ["test:numbered", "test:none", "plugin:traced"].map(|name| read.count(name))
}

#[test]
fn classes_are_switched_while_the_program_runs() {
    let session = Session::new("");
    let mut program = Commanded::start(&session);
    program.command("");
    let control = Control::open(&traces(session.path()).unwrap()[0]).unwrap();
    assert!(control.is_running());
    assert_eq!(control.pid(), program.child.id());
    let classes = control.classes().unwrap();
    assert!(
        classes
            .iter()
            .any(|class| class.name == "test:numbered" && class.enabled)
    );
    assert_eq!(control.switch("test:num*", false).unwrap(), 1);
    program.command("");
    let switched = control.classes().unwrap();
    assert!(
        switched
            .iter()
            .any(|class| class.name == "test:numbered" && !class.enabled)
    );
    assert_eq!(control.switch("*", false).unwrap(), classes.len() - 1);
    program.command("");
    assert_eq!(control.switch("test:none", true).unwrap(), 1);
    program.command("");
    // Rules apply to classes that are registered later.
    let plugin = compile("cc", "plugin.c", "libplugin.so", &["-shared", "-fPIC"]);
    program.command(plugin.to_str().unwrap());
    control.switch("plugin:*", true).unwrap();
    program.command("");
    program.end();
    assert!(!control.is_running());
    let read = session.read();
    assert_eq!(count(&read), [1, 5, 1]);
    assert_eq!(read.numbers("test:numbered"), [0]);
}

#[test]
fn a_session_is_switched_for_processes_to_come() {
    let session = Session::new("");
    let mut program = Commanded::start(&session);
    assert_eq!(
        switch_session(session.path(), "test:numbered", false).unwrap(),
        1
    );
    program.command("");
    let mut later = Commanded::start(&session);
    later.command("");
    program.end();
    later.end();
    for trace in session.traces() {
        assert_eq!(count(&crate::support::read(&trace)), [0, 1, 0]);
    }
}

#[test]
fn what_the_session_does_not_enable_is_off() {
    let session = Session::new("enable = test:none\n");
    let mut program = Commanded::start(&session);
    program.command("");
    program.end();
    assert_eq!(count(&session.read()), [0, 1, 0]);
}

#[test]
fn running_processes_are_left_alone() {
    let session = Session::new("");
    let mut program = Commanded::start(&session);
    program.command("");
    let finished = tracebraid_probe::finish::finish(session.path()).unwrap();
    assert_eq!((finished.traces, finished.running.len()), (0, 1));
    program.command("");
    program.end();
    assert_eq!(count(&session.read()), [2, 2, 0]);
}

#[test]
fn a_process_that_is_just_beginning_is_switched_too() {
    for round in 0..150 {
        let session = Session::new("");
        let path = session.path().to_owned();
        let switch = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(500 + round * 20));
            switch_session(&path, "test:numbered", false).unwrap();
        });
        let mut program = Commanded::start(&session);
        switch.join().unwrap();
        program.command("");
        program.end();
        assert_eq!(count(&session.read()), [0, 1, 0], "round {round}");
    }
}

#[test]
fn what_the_session_has_switched_off_stays_off() {
    let session = Session::new("disable = test:numbered\n");
    assert_eq!(
        switch_session(session.path(), "plugin:*", false).unwrap(),
        0
    );
    let mut program = Commanded::start(&session);
    program.command("");
    program.end();
    assert_eq!(count(&session.read()), [0, 1, 0]);
}

#[test]
fn processes_to_come_are_told_of_the_last_of_many_switches() {
    let session = Session::new("mode = grow");
    for round in 0..500 {
        switch_session(session.path(), "test:none", round % 2 == 0).unwrap();
    }
    let mut program = Commanded::start(&session);
    program.command("");
    program.end();
    assert_eq!(count(&session.read()), [1, 0, 0]);
}

#[test]
fn what_processes_would_not_take_is_refused() {
    let session = Session::new("");
    let conf = session.path().join("probe.conf");
    let mut before = String::new();
    let error = (0..1000).find_map(|number| {
        before = std::fs::read_to_string(&conf).unwrap();
        let pattern = format!("a_class_with_a_rather_long_name:{number}");
        switch_session(session.path(), &pattern, false).err()
    });
    assert!(error.unwrap().to_string().contains("too many patterns"));
    assert_eq!(
        std::fs::read_to_string(&conf).unwrap(),
        before,
        "all of it or nothing"
    );
    for pattern in ["", "a;b", "a#b", "a\nb"] {
        assert!(
            switch_session(session.path(), pattern, true).is_err(),
            "{pattern:?}"
        );
    }
    let mut program = Commanded::start(&session);
    program.command("");
    program.end();
    assert_eq!(count(&session.read()), [1, 1, 0]);
}

/// The contents of all files in a session's traces.
fn contents(session: &Session) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = session.traces().into_iter().flat_map(|trace| {
        let entries = std::fs::read_dir(trace).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    files
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

#[test]
fn what_goes_on_when_a_session_has_ended_writes_nothing() {
    for options in [
        "",
        "mode = ring\n",
        "enable = lttng_ust_cyg_profile:*\nenable = *\n",
    ] {
        let session = Session::new(options);
        let mut program = Commanded::start(&session);
        program.command("");
        end_session(session.path()).unwrap();
        let then = contents(&session);
        assert!(!then.is_empty());
        for _ in 0..100 {
            program.command("");
        }
        // Registering another class or enabling one does not change that, and new processes do not
        // begin.
        let plugin = compile("cc", "plugin.c", "libplugin.so", &["-shared", "-fPIC"]);
        program.command(plugin.to_str().unwrap());
        let control = Control::open(&traces(session.path()).unwrap()[0]).unwrap();
        assert!(control.switch("test:none", true).is_err());
        let error = switch_session(session.path(), "test:none", true).unwrap_err();
        assert_eq!(error.to_string(), "the recording is over");
        let mut later = Commanded::start(&session);
        later.command("");
        later.end();
        assert!(contents(&session) == then, "{options}");
        program.end();
        session.finish();
        assert_eq!(count(&crate::support::read(&session.trace())), [1, 1, 0]);
    }
}

#[test]
fn what_begins_when_a_session_ends_writes_nothing() {
    for round in 0..50 {
        let session = Session::new("");
        let path = session.path().to_owned();
        let end = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(500 + round * 60));
            end_session(&path).unwrap();
        });
        let mut program = Commanded::start(&session);
        end.join().unwrap();
        let then = contents(&session);
        program.command("");
        assert!(contents(&session) == then, "round {round}");
        program.end();
    }
}
