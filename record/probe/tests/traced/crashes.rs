//! SIGKILL at random moments, and full disks.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tracebraid_testkit::processes::until;
use tracebraid_testkit::skip::skipped;

use crate::support::{Read, Session, babeltrace, numbers, progress_in, read, traced};

/// Moment at which a program is killed.
enum When {
    /// After some microseconds, in which it may not have written any event.
    After(u64),
    /// After this number of written events.
    Written(u64),
}

/// Kills the program; returns the number of events that it had reported as written.
fn kill(session: &Session, when: When) -> u64 {
    let progress = session.path().join("progress");
    let path = progress.to_str().unwrap();
    let mut child = session
        .command(&traced(), &["killed", path])
        .spawn()
        .unwrap();
    match when {
        When::After(microseconds) => std::thread::sleep(Duration::from_micros(microseconds)),
        When::Written(events) => until("it has written", || progress_in(&progress) >= events),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    progress_in(&progress)
}

fn check_killed(read: &Read, progress: u64) {
    let numbers = read.numbers("test:numbered");
    let unfinished = read.count("tracebraid:unfinished");
    assert!(unfinished <= 1);
    let written = numbers.len() as u64;
    assert!(written >= progress, "{written} of {progress} records");
    assert!(written <= progress + 1);
    assert_eq!(numbers, Vec::from_iter(0..written));
}

#[test]
fn killed_at_random_moments() {
    let mut random = 0x1234_5678_u64;
    let (mut records, mut unfinished) = (0, 0);
    for round in 0..100 {
        let size = [512, 2048, 4096, 65536][round % 4];
        let session = Session::new(&format!("packet_size = {size}\ncorrelation = off\n"));
        let session = session.without_sequences(round % 3 == 0);
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let random = random >> 33;
        let progress = kill(
            &session,
            match round % 2 {
                0 => When::After(1500 + random % 6000),
                _ => When::Written(1000 + random % 20_000),
            },
        );
        for trace in session.traces() {
            let found = read(&trace);
            check_killed(&found, progress);
            records += progress;
            unfinished += found.count("tracebraid:unfinished");
            if round % 10 == 0 {
                assert_eq!(babeltrace(&trace).len(), found.records.len());
            }
        }
        session.finish();
        for trace in session.traces().iter().filter(|_| round % 4 == 0) {
            check_killed(&read(trace), progress);
        }
    }
    println!("{records} records before kills, {unfinished} unfinished");
    assert!(records > 50 * 1000, "{records}");
}

/// Written and lost events add up to the fired events.
fn check_no_room(session: &Session, fired: u64) {
    let read = session.read();
    let written = read.numbers("test:numbered");
    assert_eq!(written, Vec::from_iter(0..written.len() as u64));
    assert_eq!(written.len() as u64 + read.discarded, fired);
    assert!(
        read.discarded > 0 && !written.is_empty(),
        "{} lost",
        read.discarded
    );
    babeltrace(&session.trace());
}

#[test]
fn a_limit_on_file_sizes_is_not_the_programs_end() {
    // SIGXFSZ would kill the program.
    let session = Session::new("packet_size = 16K\ncorrelation = off\n");
    let fired = session.run(&["limited", "300000", "1000000"]);
    check_no_room(&session, fired[0]);
}

#[test]
fn a_limit_of_the_session_is_kept() {
    let session = Session::new("packet_size = 16K\nlimit = 2M\ncorrelation = off\n");
    let fired = session.run(&["limited", "300000"]);
    check_no_room(&session, fired[0]);
}

#[test]
fn no_room_for_a_single_buffer() {
    let session = Session::new("limit = 1K\n");
    let fired = session.run(&["limited", "1000"]);
    let read = session.read();
    assert_eq!((read.records.len(), read.discarded), (0, fired[0]));
}

/// A file system of some size, unmounted when dropped.
struct Disk<'a>(&'a Path);

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        Command::new("umount")
            .arg("-l")
            .arg(self.0)
            .status()
            .unwrap();
    }
}

#[test]
fn a_full_disk_is_not_the_programs_end() {
    let session = Session::new("");
    let size = ["-t", "tmpfs", "-o", "size=3M", "tmpfs"];
    let mounted = Command::new("mount")
        .args(size)
        .arg(session.path())
        .output()
        .unwrap();
    if !mounted.status.success() {
        return skipped("mounting a small disk needs root");
    }
    let _disk = Disk(session.path());
    std::fs::write(
        session.path().join("probe.conf"),
        "packet_size = 16K\ncorrelation = off\n",
    )
    .unwrap();
    let output = session
        .command(&traced(), &["limited", "300000"])
        .output()
        .unwrap();
    let fired = numbers(&output);
    let before = read(&session.trace());
    let written = before.numbers("test:numbered");
    assert_eq!(written, Vec::from_iter(0..written.len() as u64));
    assert_eq!(written.len() as u64 + before.discarded, fired[0]);
    assert!(before.discarded > 0 && !written.is_empty());
    // No space even for a directory: the program runs untraced.
    let rest = session.path().join("rest");
    while std::fs::write(&rest, vec![0; 4 << 20]).is_ok() {}
    let again = session
        .command(&traced(), &["limited", "1000"])
        .output()
        .unwrap();
    assert_eq!(numbers(&again), [1000]);
}
