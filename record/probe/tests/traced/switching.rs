//! Event classes are switched on and off from outside, while the program runs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use tracebraid_probe::control::{Control, switch_session, traces};

use crate::support::{Read, Session, compile, traced};

/// The program that traces when it is told to.
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
    // Rules hold for classes that come later.
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
    assert_eq!(switch_session(session.path(), "test:numbered", false).unwrap(), 1);
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
