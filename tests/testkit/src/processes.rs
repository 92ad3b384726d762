//! Waiting for other processes, and measuring the CPU time of processes and threads.
//!
//! Tests that wait for a fixed time assume that the machine is idle. These functions wait for the
//! condition itself, and measure work in CPU time, which does not advance while other processes
//! run.

use std::time::{Duration, Instant};

/// How long [`until`] waits. The limit only affects failing tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// Clock ticks in a second, as `/proc` counts CPU time (`USER_HZ`; 100 on every architecture but
/// Alpha).
const TICKS: u64 = 100;

/// Waits until `is_so` holds, polling every few milliseconds.
///
/// # Panics
/// With `what`, if it does not hold within two minutes.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// Waits until `find` returns a value, and returns that.
///
/// # Panics
/// With `what`, if there is no value within two minutes.
pub fn until_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// CPU time of all threads of a process so far, in steps of 10 ms; `None` if the process does not
/// exist.
pub fn cpu_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The command is in parentheses, and may contain any character.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1000 / TICKS))
}

/// CPU time of the calling thread so far.
///
/// # Panics
/// If the kernel does not count it (`CONFIG_SCHED_INFO`).
pub fn thread_time() -> Duration {
    let stat =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts CPU time");
    let nanoseconds = stat.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.expect("nanoseconds"))
}

/// The state of a thread as one letter (`R`, `S`, `D`, `T`, `Z`, …); `None` if it has ended.
pub fn state(thread: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Children that any thread of a process has started and that have not been waited for yet.
pub fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let listed =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |listed: String| -> Vec<u32> {
        listed
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    listed.flat_map(numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_cpu_time_and_sleep_takes_none() {
        let (thread, process) = (
            thread_time(),
            cpu_time(std::process::id()).expect("this process"),
        );
        until("this thread has worked", || {
            (0..1_000_000_u64).for_each(|number| {
                std::hint::black_box(number);
            });
            thread_time() >= thread + Duration::from_millis(50)
        });
        let worked = cpu_time(std::process::id()).expect("this process");
        assert!(worked > process, "{process:?} to {worked:?}");
        let before = thread_time();
        std::thread::sleep(Duration::from_millis(100));
        assert!(thread_time() - before < Duration::from_millis(100));
        assert_eq!(cpu_time(u32::MAX), None);
    }

    #[test]
    fn children_are_found_in_their_states() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep runs");
        assert!(children(std::process::id()).contains(&child.id()));
        until("it sleeps", || state(child.id()) == Some('S'));
        child.kill().expect("the child exists");
        until("it is a zombie", || state(child.id()) == Some('Z'));
        child.wait().expect("it has ended");
        assert_eq!(state(child.id()), None);
    }
}
