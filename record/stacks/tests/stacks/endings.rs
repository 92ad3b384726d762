//! What is left in a program when the recording is over: nothing that takes its time.
#![allow(unsafe_code)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use tracebraid_probe::control::end_session;
use tracebraid_testkit::processes::{children, cpu_time, until};

use crate::support::Session;

/// What the perf events of another process have counted, in all.
fn counted(pid: u32) -> u64 {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let numbers = descriptors.flatten().filter_map(|entry| {
        let is_event =
            fs::read_link(entry.path()).is_ok_and(|link| link == Path::new("anon_inode:[perf_event]"));
        let number = entry.file_name().to_str()?.parse::<i32>().ok()?;
        is_event.then_some(number)
    });
    numbers.map(|number| count_of(pid, number)).sum()
}

fn count_of(pid: u32, number: i32) -> u64 {
    let mut count = 0_u64;
    // SAFETY: descriptors are our own and are closed; as many bytes are read as there are.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        let event = libc::syscall(libc::SYS_pidfd_getfd, process, number, 0) as i32;
        assert!(event >= 0, "{}", std::io::Error::last_os_error());
        assert_eq!(libc::read(event, (&raw mut count).cast(), 8), 8);
        libc::close(event);
        libc::close(process);
    }
    count
}

/// Waits until a process has used this much more CPU time: on a busy machine it may not run at all for a
/// while.
fn work(pid: u32, more: Duration) {
    let used = || cpu_time(pid).expect("it is there");
    let before = used();
    until("it has worked", || used() >= before + more);
}

#[test]
fn no_signals_come_any_more() {
    let session = Session::new();
    let mut command = session.command(Path::new("sh"), "");
    command.args(["-c", "while :; do :; done"]);
    let mut timeout = command.spawn().unwrap();
    let mut pid = 0;
    until("it is recorded", || {
        pid = children(timeout.id()).first().copied().unwrap_or(0);
        pid != 0 && counted(pid) > 0 && session.is_recording("sh")
    });
    end_session(session.path()).unwrap();
    // The next signal finds the session ended; signals come each millisecond that it works.
    work(pid, Duration::from_millis(100));
    let since = counted(pid);
    work(pid, Duration::from_millis(300));
    let later = counted(pid);
    // SAFETY: our own child, which passes it on.
    unsafe { libc::kill(timeout.id() as i32, libc::SIGTERM) };
    timeout.wait().unwrap();
    assert_eq!(later, since, "it computes, and nobody counts");
}
