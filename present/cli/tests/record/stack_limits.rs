//! Stacks that exceed a limit, and the remedies that are printed.

use std::path::Path;

use serde_json::Value;

use crate::support::{compiled_with, recording_directory, succeeds, text};
use crate::{record, stack_profile, stacks_that_are};

/// Computes for 300 ms, called through frames of 40,000 bytes each.
const LARGE_FRAMES: &str = r#"
#include <stdlib.h>
#include <time.h>
static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
__attribute__((noinline)) static long computes(void) {
    volatile long sum = 0;
    for (double begin = used(); used() - begin < 0.3;) for (int i = 0; i < 10000; i++) sum += i;
    return sum;
}
__attribute__((noinline)) static long descends(int number) {
    volatile char frame[40000];
    frame[number] = number;
    return (number ? descends(number - 1) : computes()) + frame[number];
}
int main(int count, char **words) { return descends(atoi(words[1])) == 1; }
"#;

fn profile(trace: &str) -> (Value, String) {
    (stack_profile(trace), text(&["stacks", trace]))
}

/// Records the program with options of `--stacks`; returns its profile as JSON and as text.
fn recorded(directory: &Path, options: &str, levels: &str) -> (Value, String) {
    let program = compiled_with(
        directory,
        "large",
        LARGE_FRAMES,
        &["-fno-optimize-sibling-calls"],
    );
    let directory = directory.join(options.replace('=', "-"));
    std::fs::create_dir(&directory).unwrap();
    let options = format!("--stacks=waits=off,{options}");
    let command = [program.to_str().unwrap(), levels];
    let (output, trace) = record(&directory, &["--syscalls", "none", &options], &command);
    succeeds(&output);
    profile(&trace)
}

#[test]
fn a_stack_that_was_copied_in_part_names_the_option_for_bytes() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (usual, said) = recorded(directory.path(), "depth=1024", "8");
    assert!(stacks_that_are(&usual, "cut_by_bytes") > 50, "{usual}");
    assert_eq!(usual["stack_bytes"], 65536);
    assert!(
        said.contains(
            "are cut after 65,536 bytes: copy more of each stack with --stacks=stack_bytes=SIZE"
        ),
        "{said}"
    );
    assert!(!said.contains("depth=N"), "{said}");
    // The remedy works: eight frames are 320,000 bytes.
    let (larger, said) = recorded(directory.path(), "stack_bytes=1M", "8");
    assert_eq!(stacks_that_are(&larger, "cut"), 0, "{said}");
    assert!(stacks_that_are(&larger, "whole") > 50, "{said}");
    let functions = larger["functions"].as_array().unwrap();
    let main = functions.iter().find(|function| function["name"] == "main");
    assert!(main.is_some(), "{larger}");
    assert!(!said.contains("are cut"), "{said}");
}

#[test]
fn a_stack_that_is_too_deep_names_the_option_for_frames() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (profile, said) = recorded(directory.path(), "depth=2", "1");
    assert!(stacks_that_are(&profile, "cut") > 50, "{profile}");
    assert_eq!(stacks_that_are(&profile, "cut_by_bytes"), 0, "{profile}");
    assert!(
        said.contains("are cut at 2 frames: raise the limit with --stacks=depth=N"),
        "{said}"
    );
    assert!(!said.contains("stack_bytes"), "{said}");
}
