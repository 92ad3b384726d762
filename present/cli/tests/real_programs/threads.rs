//! A program whose threads pass a turn to each other, and use the CPU for known times.

use std::fs;

use crate::checks::{events, field, has_stacks_of, is_sound, json, number, rows};
use crate::programs::Program;
use crate::server::Recorded;
use crate::support::{compiled, recording_directory};

/// Number of turns of each thread.
const TURNS: u64 = 150;

/// Logs each thread's id, its CPU time, and how often it slept, as counted by the kernel.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static struct { long thread, slept; double used; } counts[3];
static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}
__attribute__((noinline)) void burn_cpu(double seconds) {
    double until = used() + seconds;
    // used() is a system call: few of them, or they alone would fill the recorder's buffers.
    while (used() < until) for (volatile int i = 0; i < 100000; i++);
}
static void *work(void *argument) {
    int number = (int)(long)argument;
    struct rusage usage;
    burn_cpu(0.1 * (number + 1));
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 3 != number) pthread_cond_wait(&changed, &mutex);
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    // After this a thread does nothing but end.
    counts[number].thread = syscall(SYS_gettid);
    counts[number].used = used();
    getrusage(RUSAGE_THREAD, &usage);
    counts[number].slept = usage.ru_nvcsw;
    return 0;
}
int main(int argc, char **argv) {
    pthread_t threads[3];
    FILE *log_file = fopen(argv[1], "w");
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 3; i++)
        fprintf(log_file, "%ld %.0f %ld\n", counts[i].thread, counts[i].used * 1e9, counts[i].slept);
    return fclose(log_file);
}
"#;

#[test]
fn threads_run_and_wait_as_they_say() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let source = PROGRAM.replace("TURNS", &TURNS.to_string());
    let path = compiled(directory.path(), "threads", &source);
    let program = Program::installed(path);
    let log = directory.path().join("log");
    let command = [program.name(), log.to_str().unwrap()];
    let trace = Recorded::start(&directory, &program, &["--stacks"], &command).end();
    is_sound(&trace);
    let log = fs::read_to_string(&log).unwrap();
    assert_eq!(log.lines().count(), 3);
    let (cpu, waits) = (json("cpu", &trace), json("waits", &trace));
    for line in log.lines() {
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [thread, used, slept] = words[..] else {
            panic!("three numbers: {line}");
        };
        let of = |table: &serde_json::Value| {
            let row = rows(table).iter().find(|row| row["tid"] == thread);
            row.unwrap_or_else(|| panic!("thread {thread} is in the report"))
                .clone()
        };
        // Active time includes interrupts and, on a virtual machine, the time in which the host ran
        // other work. The only upper bound is the elapsed time, which is checked for all
        // recordings.
        let active = number(&of(&cpu["threads"])["active_ns"]);
        let unknown = number(&cpu["total"]["unknown_ns"]);
        assert!((active + unknown) * 100 >= used * 99, "{active} of {used}");
        let calls = of_call(&waits, thread);
        let left = switches(&trace, thread);
        assert!((slept..=slept + 2).contains(&left), "{left} and {slept}");
        // A call may sleep twice, and the end of the thread once more.
        assert!(calls <= slept + 2, "{calls} and {slept}");
        assert!(calls + slept / 10 + 5 >= slept, "{calls} and {slept}");
    }
    has_stacks_of(&trace, &["burn_cpu", "work"]);
}

/// Number of times that a thread left its CPU to sleep.
fn switches(trace: &str, thread: u64) -> u64 {
    let is_of = |line: &&String| field(line, "prev_tid") == Some(&thread.to_string());
    let sleeps = |line: &&String| matches!(field(line, "prev_state"), Some("1" | "2"));
    events(trace, "sched_switch")
        .iter()
        .filter(is_of)
        .filter(sleeps)
        .count() as u64
}

/// Number of a thread's futex calls that waited.
fn of_call(waits: &serde_json::Value, thread: u64) -> u64 {
    let reasons = rows(&waits["thread_reasons"]).iter();
    let futex = reasons.filter(|row| row["tid"] == thread && row["why"] == "futex");
    futex.map(|row| number(&row["count"])).sum()
}
