//! Recording the kernel with the real binary: what a program did stands in the trace, once each.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{can_record_kernel, compiled, compiled_with, recording_directory, run, text, tracebraid};
use tempfile::TempDir;

/// Records a command with some options, and gives its output and the directory of the trace.
fn record(directory: &Path, options: &[&str], command: &[&str]) -> (Output, String) {
    let trace = directory.join("trace").to_str().expect("UTF-8").to_owned();
    let mut record = tracebraid();
    record
        .arg("record")
        .args(options)
        .args(["-o", &trace, "--"])
        .args(command);
    (record.output().expect("the binary runs"), trace)
}

fn succeeds(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Writes of known sizes to a file, and what became of them on standard output.
const WRITER: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char bytes[4096];
    int fd = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (int i = 0; i < 2000; i++) {
        size_t size = i % 17 == 0 ? 0 : (i * 37) % 4096;
        int to = i % 100 == 99 ? 999 : fd;
        long result = write(to, bytes, size);
        printf("%d %zu %ld\n", to, size, result < 0 ? -9 : result);
    }
    return 0;
}
"#;

/// Values of an event's fields, by name, of a line that `print` gives.
fn fields(line: &str) -> BTreeMap<String, String> {
    let payload = line
        .rsplit("}, { ")
        .next()
        .unwrap_or_default()
        .trim_end_matches(" }");
    let fields = payload.split(", ").filter_map(|field| field.split_once(" = "));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn every_call_of_a_program_is_there_once_with_its_arguments_and_its_result() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let writer = compiled(directory.path(), "writer", WRITER);
    let file = directory.path().join("file");
    let command = [writer.to_str().unwrap(), file.to_str().unwrap()];
    let (output, trace) = record(directory.path(), &["--syscalls", "write,openat"], &command);
    succeeds(&output);
    // What it did itself, without what it printed.
    let log = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<String> = log.lines().map(str::to_owned).collect();
    assert_eq!(expected.len(), 2000);
    let printed = text(&["print", "--name", "syscall_*_write", &trace]);
    let mut found = Vec::new();
    let mut open = None;
    for line in printed.lines() {
        let fields = fields(line);
        match (open.take(), fields.get("ret")) {
            (None, None) => open = Some((fields["fd"].clone(), fields["count"].clone())),
            (Some((fd, count)), Some(result)) if fd != "1" => found.push(format!("{fd} {count} {result}")),
            (Some(_), Some(_)) => {}
            _ => panic!("an entry without an exit, or an exit without an entry: {line}"),
        }
    }
    assert_eq!(found, expected);
    let opened = text(&["print", "--name", "syscall_entry_openat", &trace]);
    assert!(
        opened.contains(&format!("filename = \"{}\"", file.display())),
        "{opened}"
    );
}

#[test]
fn babeltrace2_reads_the_same_without_a_warning() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let script = "ls / > /dev/null; cat /etc/passwd | wc -l > /dev/null; sleep 0.01";
    let (output, trace) = record(directory.path(), &["--kernel", "all"], &["sh", "-c", script]);
    succeeds(&output);
    let peer = Command::new("babeltrace2").env("TZ", "UTC").arg(&trace).output();
    let Ok(peer) = peer else {
        return support::skipped("babeltrace2 does not run");
    };
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let theirs = String::from_utf8(peer.stdout).unwrap();
    // babeltrace2 2.0.4 shows an earlier text where one is empty.
    let has_text = |line: &&str| !line.contains("\"\"");
    let ours = text(&["print", &trace]);
    let mut compared = 0;
    for (ours, theirs) in ours
        .lines()
        .zip(theirs.lines())
        .filter(|(ours, _)| has_text(ours))
    {
        assert_eq!(ours, theirs);
        compared += 1;
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    assert!(compared > 500, "{compared}");
}

#[test]
fn only_the_command_and_what_it_starts_are_followed() {
    let Some(directory) = recording_directory() else {
        return;
    };
    // Others make calls all the while.
    let mut other = Command::new("sh")
        .args(["-c", "while :; do umask 0123; done"])
        .spawn()
        .unwrap();
    let script = "umask 022; (umask 027; sh -c 'umask 077')";
    let (output, trace) = record(directory.path(), &["--syscalls", "umask"], &["sh", "-c", script]);
    other.kill().unwrap();
    other.wait().unwrap();
    succeeds(&output);
    let printed = text(&["print", "--name", "syscall_entry_umask", &trace]);
    let mut masks: Vec<String> = printed.lines().map(|line| fields(line)["mask"].clone()).collect();
    // Shells look at the mask by setting it to 0 and back.
    masks.retain(|mask| mask != "0");
    masks.dedup();
    assert_eq!(masks, ["18", "23", "63"]);
}

/// Calls as fast as it can.
const STORM: &str = r"
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 300000; i++) syscall(SYS_getppid);
    return 0;
}
";

#[test]
fn what_finds_no_room_is_counted_to_the_last_event() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let options = [
        "--kernel",
        "none",
        "--syscalls",
        "getppid",
        "--buffer-size",
        "64K",
        "--no-state-dump",
    ];
    let (output, trace) = record(directory.path(), &options, &[storm.to_str().unwrap()]);
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("found no room"), "{said}");
    let report: serde_json::Value =
        serde_json::from_str(&text(&["count", "--format", "json", &trace])).unwrap();
    let recorded = report["events"].as_u64().unwrap();
    let lost = report["discarded_events"].as_u64().unwrap();
    assert!(recorded > 0 && lost > 0, "{recorded} {lost}");
    assert_eq!(recorded + lost, 600_000);
}

/// Fires a probe between two system calls, a thousand times.
const PROBED: &str = r#"
#include <sys/syscall.h>
#include <tracebraid/probe.h>
#include <unistd.h>
TB_EVENT(test, between, TB_INT32(number), TB_STRING(text));
int main(void) {
    for (int i = 0; i < 1000; i++) {
        syscall(SYS_getppid);
        tb_trace(test, between, i, "here");
        syscall(SYS_getuid);
    }
    return 0;
}
"#;

/// A program with probes, linked with their library as it was built beside the program that is tested.
fn probed_program(directory: &Path) -> PathBuf {
    let built = support::libraries();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/probe/include");
    let include = format!("-I{}", include.display());
    let library = built.join("libtracebraid_probe.a").display().to_string();
    compiled_with(
        directory,
        "probed",
        PROBED,
        &[&include, &library, "-lpthread", "-ldl", "-lm"],
    )
}

#[test]
fn probes_and_kernel_are_one_recording_in_the_order_of_time() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = probed_program(directory.path());
    let (output, trace) = record(
        directory.path(),
        &["--syscalls", "getppid,getuid"],
        &[program.to_str().unwrap()],
    );
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Probes of 1 process"), "{said}");
    let names = ["syscall_entry_get*", "syscall_exit_get*", "test:between"];
    let arguments: Vec<&str> = names.iter().flat_map(|name| ["--name", name]).collect();
    let printed = text(&[&["print"][..], &arguments, &[&trace]].concat());
    let mut order = printed.lines().map(|line| {
        let name = line
            .split_whitespace()
            .find(|word| word.ends_with(':') && !word.contains("(+"));
        (name.unwrap_or_default().to_owned(), fields(line).remove("number"))
    });
    for number in 0..1000 {
        let mut next = |expected: &str| {
            let (name, field) = order.next().expect("there are more");
            assert!(
                name.ends_with(expected),
                "{name} instead of {expected} in round {number}"
            );
            field
        };
        next("syscall_entry_getppid:");
        next("syscall_exit_getppid:");
        assert_eq!(next("between:"), Some(number.to_string()));
        next("syscall_entry_getuid:");
        next("syscall_exit_getuid:");
    }
    assert!(order.next().is_none());
    let peer = Command::new("babeltrace2").env("TZ", "UTC").arg(&trace).output();
    let Ok(peer) = peer else {
        return support::skipped("babeltrace2 does not run");
    };
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let count = String::from_utf8(peer.stdout).unwrap().lines().count();
    assert_eq!(count, text(&["print", &trace]).lines().count());
}

#[test]
fn without_privileges_the_probes_of_a_program_are_recorded() {
    let directory = TempDir::new().unwrap();
    let program = probed_program(directory.path());
    let trace = directory.path().join("trace");
    fs::set_permissions(
        directory.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    let mut command = unprivileged();
    command.args(["record", "-o"]).arg(&trace).arg("--").arg(&program);
    let output = command.output().expect("setpriv runs");
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("CAP_PERFMON and CAP_BPF"), "{said}");
    let printed = text(&["print", "--name", "test:between", trace.to_str().unwrap()]);
    assert_eq!(printed.lines().count(), 1000);
}

/// The program under test, without any privilege.
fn unprivileged() -> Command {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        return tracebraid();
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
        "--reuid",
        "65534",
        "--clear-groups",
    ]);
    command.arg(env!("CARGO_BIN_EXE_tracebraid")).env("TZ", "UTC");
    command
}

#[test]
fn reports_know_what_the_program_did() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let zeros = directory.path().join("zeros");
    let target = format!("of={}", zeros.display());
    let (output, trace) = record(
        directory.path(),
        &[],
        &["dd", "if=/dev/zero", &target, "bs=64k", "count=40"],
    );
    succeeds(&output);
    let io: serde_json::Value =
        serde_json::from_str(&text(&["io", "--procname", "dd", "--format", "json", &trace])).unwrap();
    let process = &io["processes"][0];
    assert_eq!(process["name"], "dd");
    assert!(process["written_bytes"].as_u64().unwrap() >= 40 << 16);
    let files = text(&["files", "--procname", "dd", "--format", "csv", &trace]);
    assert!(files.contains(zeros.to_str().unwrap()), "{files}");
    let processes = text(&["processes", "--format", "csv", &trace]);
    assert!(processes.contains(",dd,"), "{processes}");
    let cpu: serde_json::Value = serde_json::from_str(&text(&["cpu", "--format", "json", &trace])).unwrap();
    assert!(
        cpu["processes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["name"] == "dd")
    );
}

#[test]
fn ctf_2_has_the_same_events() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(directory.path(), &["--ctf2"], &["sh", "-c", "ls / > /dev/null"]);
    succeeds(&output);
    let info = text(&["info", &trace]);
    assert!(info.contains("CTF 2"), "{info}");
    let printed = text(&["print", "--name", "sched_process_exec", &trace]);
    assert!(printed.contains("/ls\""), "{printed}");
}

#[test]
fn the_exit_code_is_the_command_s() {
    if !can_record_kernel() {
        return;
    }
    let code = |command: &[&str]| {
        let directory = TempDir::new().unwrap();
        record(directory.path(), &[], command).0.status.code()
    };
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["/there/is/no/such/program"]), Some(127));
    assert_eq!(code(&["/etc/passwd"]), Some(126));
}

/// Waits until something has been recorded, which is written at least each second.
fn begun(trace: &Path) {
    for _ in 0..600 {
        let written = fs::metadata(trace.join("kernel/channel0_0"));
        if written.is_ok_and(|file| file.len() > 0) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("nothing is recorded");
}

#[test]
fn an_interrupted_recording_is_whole() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut record = tracebraid();
    record
        .arg("record")
        .args(["--system", "--syscalls", "none", "-o"])
        .arg(&trace);
    let mut child = record.spawn().unwrap();
    begun(&trace);
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupt.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let trace = trace.to_str().unwrap();
    let output = run(&["count", "--strict", trace]);
    succeeds(&output);
}

#[test]
fn what_is_there_is_told_to_the_end_however_short_the_command() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(directory.path(), &[], &["true"]);
    succeeds(&output);
    let printed = text(&["print", "--name", "lttng_statedump_*", &trace]);
    for event in [
        "start",
        "end",
        "block_device",
        "network_interface",
        "process_state",
    ] {
        let name = format!("lttng_statedump_{event}:");
        assert!(printed.contains(&name), "{name}");
    }
}

/// Calls with numbers that no call has, and ways back from signal handlers.
const ODD: &str = r"
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static void handler(int signal) { (void)signal; }
int main(void) {
    syscall(65536 + SYS_getpid);
    syscall(999);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 5; i++) kill(getpid(), SIGUSR1);
    /* An address that ends where memory ends. */
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(0x7f000001)}};
    memcpy(page + 4096 - sizeof to, &to, sizeof to);
    connect(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)(page + 4096 - sizeof to), sizeof to);
    /* Nobody is there to be accepted. */
    int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in own = {.sin_family = AF_INET};
    bind(server, (struct sockaddr *)&own, sizeof own);
    listen(server, 1);
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(6666)};
    socklen_t size = sizeof peer;
    accept(server, (struct sockaddr *)&peer, &size);
    return 0;
}
";

#[test]
fn odd_calls_are_told_as_they_are() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let odd = compiled(directory.path(), "odd", ODD);
    let (output, trace) = record(directory.path(), &["--kernel", "none"], &[odd.to_str().unwrap()]);
    succeeds(&output);
    let count = |name: &str| text(&["print", "--name", name, &trace]).lines().count();
    assert_eq!(count("syscall_entry_unknown"), 2);
    assert_eq!(count("syscall_exit_unknown"), 2);
    assert_eq!(count("syscall_entry_getpid"), 5);
    assert_eq!(
        (
            count("syscall_entry_rt_sigreturn"),
            count("syscall_exit_rt_sigreturn")
        ),
        (5, 5)
    );
    let connected = text(&["print", "--name", "syscall_entry_connect", &trace]);
    assert!(connected.contains("family = 2, dport = 9,"), "{connected}");
    assert!(
        connected.contains("[0] = 127, [1] = 0, [2] = 0, [3] = 1"),
        "{connected}"
    );
    let asked = text(&["print", "--name", "syscall_entry_accept", &trace]);
    assert!(asked.contains("upeer_addrlen = 16"), "{asked}");
    let accepted = text(&["print", "--name", "syscall_exit_accept", &trace]);
    assert!(
        accepted.contains("ret = -11,") && accepted.contains("sport = 0,"),
        "{accepted}"
    );
}

#[test]
fn nothing_lasts_from_before_the_recording() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(
        directory.path(),
        &["--kernel", "all", "--system"],
        &["sleep", "0.2"],
    );
    succeeds(&output);
    // Interrupts that take a tenth of a second would be ones whose end was not seen.
    let report: serde_json::Value =
        serde_json::from_str(&text(&["irq", "--format", "json", &trace])).unwrap();
    let rows = report["interrupts"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["max_ns"].as_u64().unwrap() < 100_000_000, "{row}");
    }
    // One for each kind on each CPU at most.
    assert!(
        report["total"]["unknown_begin"].as_u64().unwrap() < 20,
        "{}",
        report["total"]
    );
}

#[test]
fn a_recording_that_is_terminated_is_whole() {
    if !can_record_kernel() {
        return;
    }
    for signal in ["-TERM", "-HUP"] {
        let directory = TempDir::new().unwrap();
        let trace = directory.path().join("trace");
        let mut record = tracebraid();
        record
            .arg("record")
            .args(["--system", "--syscalls", "none", "-o"])
            .arg(&trace);
        let mut child = record.spawn().unwrap();
        begun(&trace);
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        let counted = text(&["count", "--strict", "--format", "json", trace.to_str().unwrap()]);
        let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
        assert!(counted["events"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_killed_recorder_leaves_what_it_had_written() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut record = tracebraid();
    record.arg("record").args(["--system", "-o"]).arg(&trace);
    let mut child = record.spawn().unwrap();
    begun(&trace);
    child.kill().unwrap();
    child.wait().unwrap();
    let counted = text(&["count", "--strict", "--format", "json", trace.to_str().unwrap()]);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert!(counted["events"].as_u64().unwrap() > 0);
}

#[test]
fn whoever_is_not_there_cannot_be_recorded() {
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("trace");
    let failing = |options: &[&str]| {
        let mut record = tracebraid();
        let output = record.arg("record").args(options).arg("-o").arg(&trace).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(failing(&["--pid", "4000000000"]).contains("no process 4000000000"));
    let said = failing(&["--system", "--kernel", "none", "--syscalls", "none"]);
    assert!(said.contains("nothing is to be recorded"), "{said}");
}

/// Uses the CPU in one function, and waits in another one.
const STACKED: &str = r"
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) long burn(long n) { volatile long x = 0; for (long i = 0; i < n; i++) x += i; return x; }
__attribute__((noinline)) long work(void) { return burn(20000000) + 1; }
__attribute__((noinline)) int rest(void) { struct timespec t = {0, 5000000}; return nanosleep(&t, 0) + 1; }
int main(void) { long x = 0; for (int i = 0; i < 10; i++) x += work() + rest(); return x == 42; }
";

#[test]
fn stacks_of_a_command_are_recorded_and_named() {
    let directory = TempDir::new().unwrap();
    let stacked = compiled(directory.path(), "stacked", STACKED);
    let (output, trace) = record(directory.path(), &["--stacks"], &[stacked.to_str().unwrap()]);
    succeeds(&output);
    let report: serde_json::Value =
        serde_json::from_str(&text(&["stacks", "--format", "json", &trace])).unwrap();
    let samples = report["cpu_samples"].as_u64().unwrap();
    if samples == 0 {
        return support::skipped("perf events are refused here: no stacks");
    }
    let of = |name: &str| {
        let functions = report["functions"].as_array().unwrap();
        functions
            .iter()
            .find(|row| row["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    let burned = of("burn")["own"]["cpu_samples"].as_u64().unwrap_or(0);
    assert!(burned * 10 > samples * 8, "{burned} of {samples}");
    assert!(of("work")["total"]["cpu_samples"].as_u64().unwrap_or(0) >= burned);
    let folded = text(&["stacks", "--format", "folded", &trace]);
    let line = folded.lines().find(|line| line.contains("work;burn "));
    assert!(line.is_some_and(|line| line.starts_with("stacked;")), "{folded}");
    let waited = of("rest")["total"]["waits"].as_u64().unwrap_or(0);
    // Waits need a privilege, or a kernel that lets everybody see switches.
    if can_record_kernel() {
        assert!(waited >= 8, "{waited}");
    }
}

#[test]
fn limits_end_a_recording() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(
        directory.path(),
        &["--duration", "200ms"],
        &["sh", "-c", "exec sleep 5 > /dev/null 2>&1"],
    );
    succeeds(&output);
    let info: serde_json::Value = serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let length = info["traces"][0]["duration"].as_u64().unwrap();
    assert!((200_000_000..10_000_000_000).contains(&length), "{length}");
}

#[test]
fn wrong_usage_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("trace");
    for options in [
        &["--syscalls", "reed"][..],
        &["--kernel", "shed"],
        &["--buffer-size", "5000"],
        &["--pid", "x"],
    ] {
        let mut record = tracebraid();
        let output = record
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(&trace)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(!trace.exists());
    }
    assert_eq!(run(&["record"]).status.code(), Some(2));
}

#[test]
fn without_privileges_it_says_which_are_missing() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut drop = unprivileged();
    drop.args(["record", "--system", "-o"]).arg(&trace);
    fs::set_permissions(
        directory.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    let output = drop.output().expect("setpriv runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("CAP_PERFMON and CAP_BPF"), "{said}");
    assert!(!trace.exists());
}

/// Opens the file that it is told, of a path as long as paths can be.
const OPENER: &str = r"
#include <fcntl.h>
#include <string.h>
int main(void) {
    static char path[4096];
    memset(path, 'x', sizeof path - 1);
    for (int i = 0; i < 4090; i += 100) path[i] = '/';
    open(path, O_RDONLY);
    path[300] = 0;
    execl(path, path, (char *)0);
    return 0;
}
";

#[test]
fn paths_are_told_whole() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let source = OPENER.replace("<string.h>", "<string.h>\n#include <unistd.h>");
    let opener = compiled(directory.path(), "opener", &source);
    let (output, trace) = record(
        directory.path(),
        &["--syscalls", "openat", "--kernel", "none"],
        &[opener.to_str().unwrap()],
    );
    succeeds(&output);
    let printed = text(&["print", "--name", "syscall_entry_openat", &trace]);
    let longest = printed.lines().map(|line| fields(line)["filename"].len()).max();
    // With its quotes.
    assert_eq!(longest, Some(4095 + 2));
}

/// Bytes of all files of a trace.
fn file_bytes(trace: &Path) -> u64 {
    let entries = fs::read_dir(trace).unwrap().flatten();
    let bytes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => file_bytes(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    bytes.sum()
}

#[test]
fn a_trace_is_not_larger_than_it_may_be() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let storm = format!("{0} & {0} & {0}; wait", storm.display());
    let (output, trace) = record(directory.path(), &["--max-size", "3M"], &["sh", "-c", &storm]);
    succeeds(&output);
    let bytes = file_bytes(Path::new(&trace));
    // Room is kept for the gaps of what is lost, which nobody knows before.
    assert!((3 << 19..=3 << 20).contains(&bytes), "{bytes}");
    let counted = text(&["count", "--strict", "--format", "json", &trace]);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert!(counted["events"].as_u64().unwrap() > 10_000);
    // All CPUs end at one time.
    let info: serde_json::Value = serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let streams = info["traces"][0]["streams"].as_array().unwrap();
    let mut ends: Vec<&serde_json::Value> = streams.iter().map(|stream| &stream["end"]).collect();
    assert!(!ends[0].is_null(), "{}", streams[0]);
    ends.dedup();
    assert_eq!(ends.len(), 1, "{ends:?}");
    let mut small = tracebraid();
    let output = small
        .args(["record", "--max-size", "100K", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn nobody_waits_for_a_recorder_that_was_killed() {
    let directory = TempDir::new().unwrap();
    let gate = directory.path().join(".gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // A shell launches a command as the recorder does, and is killed before it says go.
    let script = r#""$0" __launch "$1" $$ = true & echo $!; wait"#;
    let mut recorder = Command::new("sh");
    recorder
        .args(["-c", script, env!("CARGO_BIN_EXE_tracebraid")])
        .arg(&gate);
    let mut recorder = recorder.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut number = String::new();
    let said = recorder.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut number).unwrap();
    let waits = || {
        let status = fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
        // A process that nobody has waited for yet is none any more.
        status.contains("tracebraid") && !status.contains(") Z ")
    };
    let until = |is_so: &dyn Fn() -> bool| {
        for _ in 0..200 {
            if is_so() {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        false
    };
    assert!(until(&waits));
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(waits());
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(until(&|| !waits()));
}

/// Makes system calls as 32-bit programs do; such programs have pointers of 32 bits.
const NARROW: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c)
        : "r8", "r9", "r10", "r11", "memory");
    return result;
}
int main(int argc, char **argv) {
    char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    strcpy(low, argv[1]);
    long fd = call(5, (long)low, 0101, 0600);
    if (fd < 0) return 1;
    for (int i = 0; i < 10; i++) call(4, fd, (long)low, 100);
    call(6, fd, 0, 0);
    call(480, 0, 0, 0);
    return 0;
}
"#;

#[test]
fn calls_of_32_bit_programs_have_names() {
    let Some(directory) = recording_directory() else {
        return;
    };
    if !cfg!(target_arch = "x86_64") {
        return support::skipped("only x86-64 has calls of i386");
    }
    let narrow = compiled(directory.path(), "narrow", NARROW);
    let file = directory.path().join("file");
    let (output, trace) = record(
        directory.path(),
        &[],
        &[narrow.to_str().unwrap(), file.to_str().unwrap()],
    );
    if output.status.code() != Some(0) {
        return support::skipped("this kernel has no calls of 32-bit programs");
    }
    let opened = text(&["print", "--name", "compat_syscall_entry_open", &trace]);
    let opened = fields(opened.lines().next().unwrap());
    assert_eq!(opened["filename"], format!("\"{}\"", file.display()));
    assert_eq!((&*opened["flags"], &*opened["mode"]), ("65", "384"));
    let report = |name: &str| -> serde_json::Value {
        serde_json::from_str(&text(&[name, "--format", "json", &trace])).unwrap()
    };
    let io = report("files");
    let rows = io["files"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["path"] == *file.to_str().unwrap())
        .unwrap();
    assert_eq!(row["written_bytes"], 1000);
    let syscalls = report("syscalls");
    let rows = syscalls["syscalls"].as_array().unwrap();
    let count = |name: &str| {
        let of_name = rows.iter().filter(|row| row["syscall"] == name);
        of_name.map(|row| row["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(count("open") >= 1 && count("write") >= 10, "{rows:?}");
    // No call has that number.
    let unknown = text(&["print", "--name", "compat_syscall_entry_unknown", &trace]);
    assert_eq!(unknown.lines().count(), 1);
    assert_eq!(count("other"), 1, "{rows:?}");
}

#[test]
fn the_recorder_can_be_left_out() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(directory.path(), &["--system"], &["sleep", "0.3"]);
    succeeds(&output);
    let info: serde_json::Value = serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let recorder = &info["traces"][0]["environment"]["tracebraid_pid"];
    let pid = recorder.to_string();
    // Of whatever table, a row with its number.
    let has = |options: &[&str]| {
        let shown = text(&[options, &["--format", "json", &*trace]].concat());
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let is_its = |row: &serde_json::Value| row["pid"] == *recorder;
        let tables = shown.as_object().unwrap().values();
        let rows = tables.filter_map(serde_json::Value::as_array);
        rows.flatten().any(is_its)
    };
    // In the tree of processes it stays, as its command's parent.
    for report in ["cpu", "syscalls", "sched", "io", "waits"] {
        assert!(has(&[report]), "{report}");
        assert!(!has(&[report, "--no-recorder"]), "{report}");
    }
    let count = |options: &[&str]| {
        let printed = text(&[&["print"], options, &[&*trace]].concat());
        printed.lines().count()
    };
    let own = count(&["--pid", &pid]);
    assert!(own > 0);
    assert_eq!(count(&["--no-recorder"]), count(&[]) - own);
    let counted = text(&["count", "--no-recorder", "--format", "json", &trace]);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert_eq!(counted["events"], count(&["--no-recorder"]));
}
