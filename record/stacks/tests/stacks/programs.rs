//! What happens to programs: threads, forks, signals, waits, interpreters.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tracebraid_testkit::skip::skipped;

use crate::support::{Session, chains};

const CPU: &str = "tracebraid:cpu_stack";
const WAIT: &str = "tracebraid:syscall_stack";

fn numbers(text: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(text);
    text.split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

/// Samples of a period that may be there of a time: a thread has at least those of its CPU time, but for some
/// that fall into signal handlers. More are possible, since the clock of samples goes on while a host
/// takes the CPU from a virtual machine, but never more than the time that passes.
fn samples_of(cpu_time: Duration, passed: Duration, period: Duration) -> std::ops::RangeInclusive<u64> {
    let most = |time: Duration| (time.as_nanos() / period.as_nanos()) as u64;
    most(cpu_time) * 85 / 100..=most(passed) + 2
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn all_threads_are_sampled_by_their_cpu_time() {
    let session = Session::new();
    let begun = Instant::now();
    let output = session.run(&["threads"], "");
    let passed = begun.elapsed();
    let process = session.read_one();
    let mut samples: HashMap<u64, u64> = HashMap::new();
    for record in process.of(CPU) {
        *samples.entry(record.tid).or_default() += 1;
    }
    let threads = numbers(&output.stdout);
    assert_eq!(threads.len(), 8);
    for pair in threads.chunks(2) {
        let found = samples.get(&pair[0]).copied().unwrap_or(0);
        let expected = samples_of(Duration::from_nanos(pair[1]), passed, MILLISECOND);
        assert!(expected.contains(&found), "{found} samples, not {expected:?}");
    }
    // Threads share the CPUs.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u128;
    let all: u64 = samples.values().sum();
    assert!(
        u128::from(all) <= passed.as_millis() * cpus + 20,
        "{all} samples in {passed:?}"
    );
}

#[test]
fn a_session_that_is_not_there_is_told_of_once() {
    let session = Session::new();
    let mut command = session.command(Path::new("sh"), "");
    command
        .args(["-c", "sh -c true; true"])
        .env("TRACEBRAID_SESSION", "/there/is/no/such/place");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "libtracebraid_stacks: nothing is recorded: there is no directory /there/is/no/such/place\n"
    );
}

#[test]
fn forked_children_have_traces_of_their_own() {
    let session = Session::new();
    session.run(&["fork"], "");
    let mut processes = session.read("chains");
    // The child works, and its parent waits for it.
    processes.sort_by_key(|process| process.of(CPU).count());
    let [parent, child] = &processes[..] else {
        panic!("{} processes", processes.len());
    };
    assert!(child.of(CPU).count() > 150);
    let stack = child.of(CPU).nth(100).unwrap();
    assert_eq!(
        child
            .functions(stack)
            .iter()
            .filter(|&name| name == "recurse")
            .count(),
        11
    );
    assert!(
        parent
            .of(WAIT)
            .any(|record| record.values["wait_ns"] > 100_000_000)
    );
}

#[test]
fn own_sigprof_timers_go_on() {
    let session = Session::new();
    let begun = Instant::now();
    let output = session.run(&["profiled"], "");
    // The program waits for ten of them. They come every 10 ms of its time: the library's own signals, one each
    // millisecond, are not the program's.
    let count = numbers(&output.stdout)[0];
    let most = begun.elapsed().as_millis() / 10 + 1;
    assert!(
        count >= 10 && u128::from(count) <= most,
        "{count} of at most {most}"
    );
    assert!(session.read_one().of(CPU).count() > 450);
}

#[test]
fn threads_that_block_all_signals_are_sampled() {
    let session = Session::new();
    session.run(&["blocked"], "");
    assert!(session.read_one().of(CPU).count() > 180);
}

#[test]
fn threads_that_fork_from_the_beginning_come_to_an_end() {
    for _ in 0..20 {
        let session = Session::new();
        let mut child = session.command(&chains(), "").arg("forking").spawn().unwrap();
        let begun = std::time::Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if begun.elapsed().as_secs() > 30 => break None,
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        if status.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}

#[test]
fn own_sigtrap_handlers_get_their_signals_and_not_ours() {
    let session = Session::new();
    let output = session.run(&["traps"], "");
    assert_eq!(numbers(&output.stdout), [1, 2, 1]);
    assert!(session.read_one().of(CPU).count() > 80);
}

#[test]
fn a_breakpoint_without_a_handler_still_kills() {
    let status = Session::new()
        .command(&chains(), "")
        .arg("int3")
        .status()
        .unwrap();
    let signal = status.signal().or(status.code().map(|code| code - 128));
    assert_eq!(signal, Some(libc::SIGTRAP));
}

#[test]
fn no_wait_is_interrupted_and_all_are_seen() {
    let session = Session::new();
    let output = session.run(&["waits"], "period_us=100");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "end\n");
    let processes = session.read("chains");
    let parent = processes
        .iter()
        .max_by_key(|process| process.records.len())
        .unwrap();
    let seen: Vec<i64> = parent
        .of(WAIT)
        .map(|record| i64::from(record.values["syscall"] as i32))
        .collect();
    let wanted = [
        libc::SYS_poll,
        libc::SYS_clock_nanosleep,
        libc::SYS_read,
        libc::SYS_epoll_wait,
        libc::SYS_ppoll,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_connect,
        libc::SYS_wait4,
    ];
    for number in wanted {
        assert!(seen.contains(&number), "system call {number} in {seen:?}");
    }
}

#[test]
fn without_a_session_nothing_happens() {
    let session = Session::new();
    let mut command = session.command(&chains(), "");
    let output = command
        .env_remove("TRACEBRAID_SESSION")
        .arg("deep")
        .output()
        .unwrap();
    assert!(output.status.success() && session.read("").is_empty());
}

#[test]
fn waits_may_be_left_alone() {
    let session = Session::new();
    let begun = Instant::now();
    session.run(&["deep"], "waits=off,period_us=2000");
    let process = session.read_one();
    let count = process.of(CPU).count() as u64;
    let expected = samples_of(200 * MILLISECOND, begun.elapsed(), 2 * MILLISECOND);
    assert!(expected.contains(&count), "{count} samples, not {expected:?}");
    assert_eq!(process.of(WAIT).count(), 0);
    let state = process.of("tracebraid:stacks_state").next().unwrap();
    assert_eq!(state.values["wait_error"] as i32, -1);
}

/// Without privileges there is no counting of switches, and none of time in the kernel; it must be said.
#[test]
fn without_privileges_cpu_stacks_remain() {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let is_root = std::fs::File::open("/proc/1/environ").is_ok();
    if !is_root {
        return skipped("stacks without privileges: only root can give privileges up");
    }
    if level.trim() != "2" {
        return skipped(format_args!(
            "stacks without privileges need a perf_event_paranoid of 2, not {}",
            level.trim()
        ));
    }
    let session = Session::new();
    let script = format!(
        "setpriv --bounding-set -all --inh-caps -all {} deep",
        chains().display()
    );
    let output = session
        .command(Path::new("sh"), "")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let process = &session.read("chains")[0];
    assert!(process.of(CPU).count() > 150);
    let state = process.of("tracebraid:stacks_state").next().unwrap();
    assert_eq!(
        (state.values["cpu_error"], state.values["wait_error"]),
        (0, libc::EACCES as u64)
    );
    assert_eq!(state.values["kernel_time"], 0);
}

#[test]
fn in_cpython() {
    let script = "
import functools, time
def f(n):
    if n == 0:
        end = time.thread_time() + 0.4
        while time.thread_time() < end: sorted(range(1000))
        return 0
    return functools.reduce(lambda a, b: f(n - 1), [1, 2])if n == 1 else list(map(f, [n - 1]))[0]
f(10)
print(time.thread_time_ns())
";
    let session = Session::new();
    let begun = Instant::now();
    let output = session
        .command(Path::new("python3"), "")
        .args(["-c", script])
        .output()
        .unwrap();
    let passed = begun.elapsed();
    assert!(output.status.success(), "this test needs python3: {output:?}");
    let used = Duration::from_nanos(numbers(&output.stdout)[0]);
    let processes = session.read("python");
    let process = processes
        .iter()
        .max_by_key(|process| process.records.len())
        .expect("a trace of python3");
    let stacks: Vec<_> = process.of(CPU).collect();
    let complete = stacks
        .iter()
        .filter(|record| record.values["status"] == 0)
        .count();
    // Functions used before the library was loaded have no samples.
    let expected = samples_of(used.min(400 * MILLISECOND), passed, MILLISECOND);
    let found = stacks.len() as u64;
    assert!(expected.contains(&found), "{found} samples, not {expected:?}");
    assert!(complete * 100 >= stacks.len() * 95, "{complete} of {found}");
    // Each level of the recursion goes through the evaluation loop and through `map`.
    let deep = stacks.iter().filter(|record| record.frames.len() > 30).count();
    assert!(deep * 100 >= stacks.len() * 80, "{deep} of {}", stacks.len());
    let names = process.functions(stacks[stacks.len() / 2]);
    assert!(names.iter().any(|name| name == "_start"), "{names:?}");
}

/// Context switches in the system call that becomes another program must not kill that.
#[test]
fn programs_that_become_others_live() {
    let session = Session::new();
    let script =
        "for i in 1 2 3 4 5 6 7 8 9 10; do (exec sleep 0.001) & (exec true) & done; wait; exec echo end";
    for _ in 0..5 {
        let output = session
            .command(Path::new("sh"), "period_us=20")
            .args(["-c", script])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "end\n", "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
    let output = session.run(&["lists"], "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "failed 1 2 3 4 5 6 7 8 X=y\n"
    );
    let process = &session.read("chains")[0];
    assert!(process.of(CPU).count() > 80, "events go on after a failed exec");
}

#[test]
fn options_that_are_not_understood_are_told_of_once() {
    let session = Session::new();
    let mut command = session.command(Path::new("sh"), "waits=foo,period_us=0");
    command.args(["-c", "sh -c 'echo $TRACEBRAID_STACKS'; true"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "libtracebraid_stacks: not understood, and passed over, in TRACEBRAID_STACKS: waits=foo\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "period_us=0,\n");
}
