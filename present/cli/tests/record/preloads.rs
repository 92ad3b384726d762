//! Libraries that the recorder preloads into a command, to record programs that are not prepared
//! for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::programs::unprivileged;
use crate::record;
use crate::support::{self, compiled, compiled_with, succeeds, text};

/// Fires ten events; with `TB_OPTIONAL` the program need not be linked with a library.
const TEN: &str = r"
#include <tracebraid/probe.h>
TB_EVENT(my, event, TB_INT32(n));
int main(void) {
    for (int n = 0; n < 10; n++)
        tb_trace(my, event, n);
    return 0;
}
";

const INSTRUMENTED: &str = r"
__attribute__((noinline)) int leaf(int n) { return n + 1; }
int main(void) { return leaf(1) + leaf(2) != 5; }
";

/// Records no kernel events, with these options.
fn record_alone(directory: &Path, options: &[&str], command: &[&str]) -> (String, String) {
    let (output, trace) = record(
        directory,
        &[&["--kernel", "none", "--syscalls", "none"], options].concat(),
        command,
    );
    succeeds(&output);
    (said(&output), trace)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program of ten events, compiled with these options.
fn ten(directory: &Path, options: &[&str]) -> PathBuf {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/probe/include");
    let include = format!("-I{}", include.display());
    compiled_with(directory, "ten", TEN, &[&[&*include], options].concat())
}

/// Number of lines of a trace that contain a text; all lines must differ.
fn count(trace: &str, part: &str) -> usize {
    let printed = text(&["print", "--strict", trace]);
    printed.lines().filter(|line| line.contains(part)).count()
}

/// Number of traces of processes in a recording.
fn traces(trace: &str) -> usize {
    fs::read_dir(Path::new(trace).join("ust/pid")).map_or(0, Iterator::count)
}

#[test]
fn probes_that_are_optional_are_recorded_where_patterns_name_them() {
    let directory = TempDir::new().unwrap();
    let program = ten(directory.path(), &["-DTB_OPTIONAL"]);
    let shell = format!("{0}; {0} & wait", program.display());
    let (said, trace) = record_alone(
        directory.path(),
        &["--probes", "my:*"],
        &["sh", "-c", &shell],
    );
    assert_eq!(count(&trace, "my:event"), 20);
    // The shell has no events and leaves no trace.
    assert_eq!(traces(&trace), 2);
    assert!(
        said.contains("Probes of 2 processes as well: 22 events, 0 lost"),
        "{said}"
    );
    // Stacks were not requested.
    assert!(
        said.contains("See it with: tracebraid print --symbols"),
        "{said}"
    );
    assert!(!said.contains("tracebraid stacks"), "{said}");
}

#[test]
fn nothing_is_preloaded_without_patterns() {
    for (options, expected) in [
        (&[][..], "none"),
        // Stacks come from the kernel.
        (&["--probes", "none", "--stacks"], "none"),
        (&["--probes", "*"], "libtracebraid_modules.so"),
        (
            &["--probes", "my:*", "--snapshot"],
            "libtracebraid_modules.so",
        ),
        (
            &["--probes", "my:*", "--stacks"],
            "libtracebraid_modules.so",
        ),
        (
            &["--probes", "lttng_ust_cyg_profile:*"],
            "libtracebraid_modules.so",
        ),
    ] {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("preloaded");
        let shell = format!("echo ${{LD_PRELOAD:-none}} > {}", file.display());
        record_alone(directory.path(), options, &["sh", "-c", &shell]);
        let preloaded = fs::read_to_string(file).unwrap();
        assert_eq!(
            preloaded.trim().rsplit('/').next(),
            Some(expected),
            "{options:?}"
        );
    }
}

/// Changes the root by a raw system call, and then executes a program by the function named in the
/// second argument.
const CHANGES_ROOT: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    char *program = words[3], *again[] = {program, 0}, other[4200] = "LD_PRELOAD=", *own[] = {"A=1", other, 0};
    int is = 0, status;
    pid_t child;
#define IS(name) (is = strcmp(words[2], name) == 0)
    strcat(other, getenv("LD_PRELOAD"));
    if (IS("vfork")) {
        child = vfork();
        if (child == 0) {
            if (chdir(words[1]) || syscall(SYS_chroot, "."))
                _exit(1);
            execv(program, again);
            _exit(2);
        }
        waitpid(child, &status, 0);
        /* The parent's environment, whose root is the old one, is unchanged. */
        if (strcmp(other + 11, getenv("LD_PRELOAD")))
            return 3;
        return WEXITSTATUS(status);
    }
    if (chdir(words[1]) || syscall(SYS_chroot, "."))
        return 1;
    if (IS("execve")) execve(program, again, environ);
    if (IS("own")) execve(program, again, own);
    if (IS("execv")) execv(program, again);
    if (IS("execvp")) execvp(program, again);
    if (IS("execvpe")) execvpe(program, again, own);
    if (IS("fexecve")) fexecve(open(program, O_RDONLY), again, own);
    if (IS("execveat")) execveat(AT_FDCWD, program, again, own, 0);
    if (IS("spawn") && posix_spawn(&child, program, 0, 0, again, environ) == 0 ||
        IS("spawnp") && posix_spawnp(&child, program, 0, 0, again, environ) == 0) {
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    return 4;
}
"#;

/// A program that prints nothing and exits with 7, in a root with a loader and a C library, but
/// without the recorder's libraries.
fn other_root(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    let user = std::process::Command::new("id")
        .arg("-u")
        .output()
        .unwrap()
        .stdout;
    if user != b"0\n" {
        support::skipped("only root can change the root");
        return None;
    }
    let root = directory.join("root");
    let program = compiled_with(directory, "inside", "int main(void) { return 7; }", &[]);
    let ldd = std::process::Command::new("ldd")
        .arg(&program)
        .output()
        .unwrap()
        .stdout;
    let ldd = String::from_utf8(ldd).unwrap();
    let needed = ldd.split_whitespace().filter(|word| word.starts_with('/'));
    for file in needed.map(Path::new).chain([program.as_path()]) {
        let to = root.join(file.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }
    Some((root, program))
}

/// Records a command with a preloaded library; the command must exit with 7 and print nothing.
#[track_caller]
fn says_nothing(directory: &Path, command: &[&str]) {
    let options = [
        "--quiet",
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--probes",
        "my:*",
    ];
    let (output, trace) = record(directory, &options, command);
    assert_eq!(
        (output.status.code(), said(&output)),
        (Some(7), String::new()),
        "{command:?}"
    );
    // The directory may be used again.
    let _ = fs::remove_dir_all(trace);
}

#[test]
fn nothing_is_preloaded_in_another_root() {
    let directory = TempDir::new().unwrap();
    let Some((root, program)) = other_root(directory.path()) else {
        return;
    };
    let (root, program) = (root.to_str().unwrap(), program.to_str().unwrap());
    says_nothing(directory.path(), &["chroot", root, program]);
    let pivots = "mount --bind $0 $0 && cd $0 && mkdir -p old && pivot_root . old && exec $1";
    says_nothing(
        directory.path(),
        &["unshare", "--mount", "sh", "-c", pivots, root, program],
    );
}

#[test]
fn nothing_is_preloaded_in_another_root_whatever_executes_the_program() {
    let directory = TempDir::new().unwrap();
    let Some((root, program)) = other_root(directory.path()) else {
        return;
    };
    let changes = compiled(directory.path(), "changes", CHANGES_ROOT);
    for function in [
        "execve", "own", "execv", "execvp", "execvpe", "fexecve", "execveat", "spawn", "spawnp",
        "vfork",
    ] {
        let words = [changes.as_path(), &root, Path::new(function), &program];
        let words = words.map(|word| word.to_str().unwrap());
        says_nothing(directory.path(), &words);
    }
}

#[test]
fn programs_that_have_the_library_already_are_recorded_once() {
    let libraries = support::libraries().display().to_string();
    let archive = format!("{libraries}/libtracebraid_probe.a");
    let (places, found) = (format!("-L{libraries}"), format!("-Wl,-rpath,{libraries}"));
    let copies = TempDir::new().unwrap();
    let name = "libtracebraid_probe.so";
    fs::copy(support::libraries().join(name), copies.path().join(name)).unwrap();
    let copied = format!("-Wl,-rpath,{}", copies.path().display());
    for options in [
        &[&*places, &*found, "-ltracebraid_probe"][..],
        // Another file of the same library.
        &[&places, &copied, "-ltracebraid_probe"],
        &[&archive, "-ldl", "-lm"],
        &["-static", &archive, "-ldl", "-lm"],
        // Other libraries also find the program's own copy.
        &["-rdynamic", &archive, "-ldl", "-lm"],
    ] {
        for snapshot in [&[][..], &["--snapshot"]] {
            let directory = TempDir::new().unwrap();
            let program = ten(directory.path(), options);
            let wanted = [&["--probes", "my:*"], snapshot].concat();
            let (_, trace) = record_alone(directory.path(), &wanted, &[program.to_str().unwrap()]);
            assert_eq!(
                (count(&trace, "my:event"), traces(&trace)),
                (10, 1),
                "{options:?}"
            );
        }
    }
}

#[test]
fn the_newest_functions_are_recorded_without_names() {
    let directory = TempDir::new().unwrap();
    let options = ["-O0", "-finstrument-functions"];
    let program = compiled_with(directory.path(), "program", INSTRUMENTED, &options);
    let wanted = ["--snapshot", "--probes", "lttng_ust_cyg_profile:*"];
    let (said, trace) = record_alone(directory.path(), &wanted, &[program.to_str().unwrap()]);
    assert_eq!(count(&trace, "func_entry"), 3, "{said}");
    assert_eq!(count(&trace, "func_exit"), 3, "{said}");
    assert!(!said.contains("tracebraid stacks"), "{said}");
}

#[test]
fn what_loads_no_library_is_told_by_what_was_asked_for() {
    let static_program = |directory: &Path| {
        let options = ["-O0", "-static", "-finstrument-functions"];
        compiled_with(directory, "program", INSTRUMENTED, &options)
    };
    for (options, expected) in [
        (
            &["--probes", "lttng_ust_cyg_profile:*"][..],
            "warning: no functions were recorded: ",
        ),
        (
            &["--probes", "lttng_ust_cyg_profile:*", "--snapshot"],
            "warning: no functions were recorded: ",
        ),
        (
            &["--probes", "my:*"],
            "warning: no events of probes were recorded: ",
        ),
    ] {
        let directory = TempDir::new().unwrap();
        let program = static_program(directory.path());
        let (said, _) = record_alone(directory.path(), options, &[program.to_str().unwrap()]);
        assert!(said.contains(expected), "{said}");
        assert!(
            said.contains("(static and setuid programs do not)"),
            "{said}"
        );
        assert!(
            !said.contains("CAP_BPF") && !said.contains("stacks"),
            "{said}"
        );
    }
}

#[test]
fn stacks_are_told_of_where_there_are_some() {
    let spin = "int main(void) { volatile long n = 0; while (n < 200000000) n++; return 0; }";
    let directory = TempDir::new().unwrap();
    let program = compiled(directory.path(), "spin", spin);
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    // The kernel recorder, if available, does not take part.
    let trace = directory.path().join("trace");
    let mut record = unprivileged();
    record.env("TRACEBRAID_LIBRARIES", support::libraries());
    record.args(["record", "--stacks", "-o"]).arg(&trace);
    let output = record.arg("--").arg(program).output().unwrap();
    succeeds(&output);
    let said = said(&output);
    let has_cpu = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .is_ok_and(|level| level.trim() == "2");
    if has_cpu {
        assert!(said.contains("See it with: tracebraid stacks "), "{said}");
        assert!(
            said.contains("stacks of waits were not recorded, which needs CAP_BPF and CAP_PERFMON"),
            "{said}"
        );
        let stacks = text(&["stacks", "--format", "folded", trace.to_str().unwrap()]);
        assert!(stacks.contains("main"), "{stacks}");
    }
}
