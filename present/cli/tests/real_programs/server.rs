//! A server that is recorded while it runs.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::programs::Program;
use crate::support::tracebraid;

/// A recording that lasts until its server ends.
pub(crate) struct Recorded {
    recorder: Child,
    said: PathBuf,
    trace: String,
}

/// Maximum time for the start and the end of a server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A free port of this machine.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener
        .local_addr()
        .expect("the listener has an address")
        .port()
}

impl Recorded {
    /// Starts recording a command that executes the program; `options` are those of `record`.
    pub(crate) fn start(
        directory: &TempDir,
        program: &Program,
        options: &[&str],
        command: &[&str],
    ) -> Recorded {
        let trace = directory.path().join("trace");
        let said = directory.path().join("said");
        let mut recorder = tracebraid();
        program.prepare(&mut recorder);
        recorder.arg("record").args(options).arg("-o").arg(&trace);
        recorder.arg("--").args(command);
        recorder.stdin(Stdio::null());
        recorder.stdout(File::create(directory.path().join("out")).expect("a file"));
        recorder.stderr(File::create(&said).expect("a file"));
        Recorded {
            recorder: recorder.spawn().expect("the binary runs"),
            said,
            trace: trace.to_str().expect("UTF-8").to_owned(),
        }
    }

    /// Waits until the server listens.
    pub(crate) fn wait_for(&mut self, port: u16) {
        self.wait_until("the server listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
    }

    /// Waits until a condition holds.
    pub(crate) fn wait_until(&mut self, what: &str, is_so: impl Fn() -> bool) {
        let since = Instant::now();
        while !is_so() {
            let ended = self.recorder.try_wait().expect("the recorder's status");
            assert!(
                ended.is_none(),
                "the recorder ended before {what}: {}",
                self.said()
            );
            assert!(
                since.elapsed() < PATIENCE,
                "too long until {what}: {}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end of the server; returns the trace, in which no event was lost.
    pub(crate) fn end(mut self) -> String {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.recorder.try_wait().expect("the recorder's status") {
                break status;
            }
            assert!(
                since.elapsed() < PATIENCE,
                "the recorder does not end: {}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(20));
        };
        let said = self.said();
        assert!(status.success(), "{status}: {said}");
        assert!(!said.contains("were lost"), "{said}");
        std::mem::take(&mut self.trace)
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // A failed test leaves no process running: the recorder ends its command, or is killed.
        if self
            .recorder
            .try_wait()
            .is_ok_and(|status| status.is_none())
        {
            let children = format!("/proc/{0}/task/{0}/children", self.recorder.id());
            let children = fs::read_to_string(children).unwrap_or_default();
            for child in children.split_whitespace() {
                signal("-TERM", child);
            }
            let _ = self.recorder.wait();
        }
    }
}

pub(crate) fn signal(signal: &str, process: &str) {
    let sent = Command::new("kill").args([signal, process]).status();
    assert!(sent.expect("kill runs").success());
}

/// The process id at the beginning of a file.
pub(crate) fn process_in(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

/// Standard output of a client, which must succeed.
pub(crate) fn client(command: &mut Command) -> String {
    let output = command.output().expect("the client runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
