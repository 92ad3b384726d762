//! Stacks that are taken while a program starts or ends.

use crate::support::{compiled, recording_directory, succeeds, text};
use crate::{record, stack_profile, stacks_that_are, unwhole_stacks};

/// Starts short programs as shells do: the parent waits in `vfork` until the child has executed
/// another program.
const STARTER: &str = r#"
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 150; i++) {
        if (!vfork()) { execl("/bin/true", "true", (char *)0); _exit(1); }
        wait(0);
    }
    return 0;
}
"#;

#[test]
fn stacks_of_starting_and_ending_programs_are_whole() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "starter", STARTER);
    let options = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--stacks=period_us=100",
    ];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    succeeds(&output);
    let profile = stack_profile(&trace);
    let count = |name: &str| stacks_that_are(&profile, name);
    let broken = unwhole_stacks(&trace);
    assert!(count("whole") > 500, "{}", profile["completeness"]);
    // A copy of the program's mappings may be late on a busy machine.
    assert!(
        count("broken") * 200 <= count("whole") && count("cut") == 0,
        "{} {broken:#?}",
        profile["completeness"]
    );
    let folded = text(&["stacks", "--format", "folded", &trace]);
    let is_fork = |line: &str| line.contains(";main;") && line.contains("vfork");
    assert!(folded.lines().any(is_fork), "{folded}");
}

/// The main thread ends at once; another thread computes for 300 ms.
const WITHOUT_FIRST_THREAD: &str = r#"
#include <pthread.h>
#include <time.h>
static void *computes(void *none) {
    struct timespec now;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); while (now.tv_sec == 0 && now.tv_nsec < 300000000);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, computes, 0);
    pthread_exit(0);
}
"#;

#[test]
fn a_process_goes_on_when_its_first_thread_has_ended() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "threads", WITHOUT_FIRST_THREAD);
    let options = ["--kernel", "none", "--syscalls", "none", "--stacks"];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    succeeds(&output);
    let profile = stack_profile(&trace);
    let count = |name: &str| stacks_that_are(&profile, name);
    let all = count("whole");
    assert!(
        all > 100 && count("broken") * 50 <= all,
        "{}",
        profile["completeness"]
    );
}
