//! The numbers of system calls equal those of the kernel's headers, if these are installed.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use tracebraid_kernel_model::{Abi, Syscall};
use tracebraid_testkit::skip::skipped;

/// `#define __NR_name number` in a header. The generic header uses `__NR3264_name` for numbers
/// whose meaning differs between 64-bit and 32-bit machines.
fn numbers(path: &str) -> Option<BTreeMap<String, i64>> {
    let Ok(text) = std::fs::read_to_string(path) else {
        skipped(format_args!(
            "{path} does not exist; the numbers of system calls are not compared with it"
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
        // Ends and bases of the table, and calls that this machine does not have.
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
    // Those of 32-bit machines with 64-bit times.
    let is_other =
        |name: &str| name.contains("time64") || name.ends_with("64") && name.starts_with("clock_");
    compare(
        "/usr/include/asm-generic/unistd.h",
        Abi::Generic,
        280,
        |name| is_other(name) || ["memfd_secret", "sync_file_range2"].contains(&name),
    );
}
