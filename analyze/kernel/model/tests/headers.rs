//! The numbers of system calls are those of the kernel's headers, where these are installed.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use tracebraid_kernel_model::{Abi, Syscall};
use tracebraid_testkit::skip::skipped;

/// `#define __NR_name number` of a header. The generic one calls numbers that mean one thing on
/// machines of 64 bits and another on those of 32 `__NR3264_name`.
fn numbers(path: &str) -> Option<BTreeMap<String, i64>> {
    let Ok(text) = std::fs::read_to_string(path) else {
        skipped(format_args!(
            "{path} is not there; nobody compares the numbers of system calls with it"
        ));
        return None;
    };
    let define = |line: &str| {
        let mut words = line
            .split_whitespace()
            .skip_while(|word| *word != "#define")
            .skip(1);
        let name = words.next()?;
        let name = name
            .strip_prefix("__NR_")
            .or_else(|| name.strip_prefix("__NR3264_"))?;
        Some((name.to_owned(), words.next()?.parse().ok()?))
    };
    Some(text.lines().filter_map(define).collect())
}

fn compare(path: &str, abi: Abi, least: usize, is_other: impl Fn(&str) -> bool) {
    let Some(numbers) = numbers(path) else { return };
    let mut compared = 0;
    for (name, number) in &numbers {
        // Ends and bases of the table, and calls that this machine has not.
        if name.ends_with("syscalls") || name.starts_with("arch_specific") || is_other(name) {
            continue;
        }
        let call =
            Syscall::by_number(abi, *number).unwrap_or_else(|| panic!("{path}: {name} = {number}"));
        let base = |name: &str| {
            let name = name.trim_start_matches('_').to_owned();
            let is_id = |name: &str| name.ends_with("32") || name.ends_with("16");
            if is_id(&name) {
                name[..name.len() - 2].to_owned()
            } else {
                name
            }
        };
        let names = [call.name(), call.user_name()].map(base);
        let found = names.iter().any(|found| {
            *found == base(name) || name.contains(found.as_str()) || found.contains(name.as_str())
        });
        assert!(found, "{path}: {number} is {name}, not {}", call.name());
        compared += 1;
    }
    assert!(compared >= least, "{path}: {compared} numbers only");
}

#[test]
fn x86_64() {
    compare(
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        Abi::X86_64,
        350,
        |_| false,
    );
}

#[test]
fn i386() {
    // `mmap` of i386 is `old_mmap`, `readdir` is `old_readdir`: contained.
    compare(
        "/usr/include/x86_64-linux-gnu/asm/unistd_32.h",
        Abi::I386,
        400,
        |_| false,
    );
}

#[test]
fn generic() {
    // Those of machines of 32 bits, whose times have 64.
    let is_other =
        |name: &str| name.contains("time64") || name.ends_with("64") && name.starts_with("clock_");
    compare(
        "/usr/include/asm-generic/unistd.h",
        Abi::Generic,
        280,
        |name| is_other(name) || ["memfd_secret", "sync_file_range2"].contains(&name),
    );
}
