//! Records of a program's system calls.

use std::process::Command;

use crate::support::{self, compiled, recording_directory, succeeds, text};
use crate::{fields, record};

/// Writes of known sizes to a file, with their results on standard output.
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
    // The program's own calls, without its output.
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
            (Some((fd, count)), Some(result)) if fd != "1" => {
                found.push(format!("{fd} {count} {result}"))
            }
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
fn only_the_command_and_what_it_starts_are_followed() {
    let Some(directory) = recording_directory() else {
        return;
    };
    // Other processes make calls all the time.
    let mut other = Command::new("sh")
        .args(["-c", "while :; do umask 0123; done"])
        .spawn()
        .unwrap();
    let script = "umask 022; (umask 027; sh -c 'umask 077')";
    let (output, trace) = record(
        directory.path(),
        &["--syscalls", "umask"],
        &["sh", "-c", script],
    );
    other.kill().unwrap();
    other.wait().unwrap();
    succeeds(&output);
    let printed = text(&["print", "--name", "syscall_entry_umask", &trace]);
    let mut masks: Vec<String> = printed
        .lines()
        .map(|line| fields(line)["mask"].clone())
        .collect();
    // Shells read the mask by setting it to 0 and back.
    masks.retain(|mask| mask != "0");
    masks.dedup();
    assert_eq!(masks, ["18", "23", "63"]);
}

/// Calls with invalid numbers, and returns from signal handlers.
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
    /* There is no client to accept. */
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
    let (output, trace) = record(
        directory.path(),
        &["--kernel", "none"],
        &[odd.to_str().unwrap()],
    );
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

/// Opens a file whose path has the maximum length.
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
    let longest = printed
        .lines()
        .map(|line| fields(line)["filename"].len())
        .max();
    // Including the quotes.
    assert_eq!(longest, Some(4095 + 2));
}

/// Makes system calls as 32-bit programs do, whose pointers have 32 bits.
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
        of_name
            .map(|row| row["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(count("open") >= 1 && count("write") >= 10, "{rows:?}");
    // No call has this number, so the name contains the number.
    let unknown = text(&["print", "--name", "compat_syscall_entry_unknown", &trace]);
    assert_eq!(unknown.lines().count(), 1);
    assert_eq!(count("compat_syscall_480"), 1, "{rows:?}");
}
