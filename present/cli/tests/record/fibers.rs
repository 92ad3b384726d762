//! Stacks of fibers, which may be in any memory and end at the fiber's entry function.

use crate::support::{compiled, recording_directory, succeeds};
use crate::{record, stack_profile, stacks_that_are, unwhole_stacks};

/// Computes and waits in fibers whose stacks lie in the heap, in a separate mapping, in static
/// memory, and on the thread's stack.
const FIBERS: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
static ucontext_t outside, inside;
static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
__attribute__((noinline)) static long computes(void) {
    volatile long sum = 0;
    for (double begin = used(); used() - begin < 0.1;) for (int i = 0; i < 10000; i++) sum += i;
    return sum;
}
__attribute__((noinline)) static void waits(void) {
    struct timespec time = {0, 2000000};
    for (int i = 0; i < 20; i++) nanosleep(&time, 0);
}
__attribute__((noinline)) static void fiber(void) {
    volatile long sum = computes();
    waits();
    swapcontext(&inside, &outside);
    sum += computes();
}
static void run(char *stack, size_t size) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = size;
    inside.uc_link = &outside;
    makecontext(&inside, fiber, 0);
    swapcontext(&outside, &inside);
    swapcontext(&outside, &inside);
}
int main(void) {
    size_t size = 1 << 16;
    static char fixed[1 << 16];
    char local[1 << 16];
    run(malloc(size), size);
    run(mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size);
    run(fixed, size);
    run(local, size);
    return 0;
}
"#;

#[test]
fn stacks_of_fibers_end_where_they_begin() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "fibers", FIBERS);
    let options = ["--syscalls", "none", "--stacks"];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    succeeds(&output);
    let profile = stack_profile(&trace);
    let completeness = &profile["completeness"];
    let broken = unwhole_stacks(&trace);
    let count = |name: &str| stacks_that_are(&profile, name);
    // Within swapcontext, between two stacks, a stack has no end.
    let all = count("whole");
    assert!(
        all > 400 && (count("broken") + count("cut")) * 100 <= all,
        "{completeness}: {broken:#?}"
    );
    let functions = profile["functions"].as_array().unwrap();
    let fiber = functions
        .iter()
        .find(|function| function["name"] == "fiber");
    assert!(fiber.is_some(), "{functions:?}");
}
