//! Returns of functions: all are recorded, with their values, and the program behaves as without
//! the recorder.

use std::path::Path;
use std::process::Command;

use crate::chosen::{chosen, compiled_go, events};
use crate::record;
use crate::support::{
    compiled_by, compiled_with, reads_alike, recording_directory, skipped, succeeds, text,
    tracebraid,
};

/// Skips the test on machines where only the kernel's return probes are used.
macro_rules! directory {
    () => {{
        if !cfg!(target_arch = "x86_64") {
            return skipped("instructions at which functions return are found on x86-64");
        }
        let Some(directory) = recording_directory() else {
            return;
        };
        directory
    }};
}

/// Records the returns of functions of a program, whose output must be the same as unrecorded;
/// returns the recorder's messages and the trace.
fn returns(directory: &Path, program: &Path, functions: &[&str]) -> (String, String) {
    let program = program.to_str().unwrap();
    let alone = Command::new(program).output().unwrap();
    assert!(alone.status.success(), "{alone:?}");
    let wanted: Vec<String> = functions
        .iter()
        .flat_map(|function| {
            [
                format!("uprobe:{program}:{function}"),
                format!("uretprobe:{program}:{function}"),
            ]
        })
        .collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let (said, trace) = chosen(
        directory,
        &wanted,
        &["sh", "-c", &format!("{program} > {program}.out")],
    );
    let printed = std::fs::read(format!("{program}.out")).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&printed),
        String::from_utf8_lossy(&alone.stdout)
    );
    reads_alike(&trace);
    (said, trace)
}

/// Values that a function returned, in order.
fn values(trace: &str, function: &str) -> Vec<i64> {
    let returns = events(trace, &format!("uretprobe:{function}"));
    let value = |event: &std::collections::BTreeMap<String, String>| {
        let digits = event["ret"].trim_start_matches("0x");
        u64::from_str_radix(digits, 16).unwrap().cast_signed()
    };
    returns.iter().map(value).collect()
}

/// 300 calls, of which 100 end by an exception that passes through two functions, one of them with
/// code for it.
const EXCEPTIONS: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
extern "C" {
__attribute__((noinline)) long thrower(long n) {
    if (n % 3 == 0) throw std::runtime_error("third");
    return n;
}
__attribute__((noinline)) long passes(long n) { return thrower(n) + 1; }
__attribute__((noinline)) long cleans(long n) {
    std::string text(100 + n, 'x');
    return passes(n) + text.size() - 100;
}
}
int main() {
    long caught = 0, sum = 0;
    for (long n = 0; n < 300; n++) {
        try { sum += cleans(n); } catch (const std::exception &) { caught++; }
    }
    printf("%ld %ld\n", caught, sum);
}
"#;

#[test]
fn exceptions_pass_through_functions_whose_returns_are_recorded() {
    let directory = directory!();
    let program = compiled_by("c++", directory.path(), "throws.cpp", EXCEPTIONS, &[]);
    let (_, trace) = returns(directory.path(), &program, &["thrower", "passes", "cleans"]);
    let returning: Vec<i64> = (0..300).filter(|n| n % 3 != 0).collect();
    assert_eq!(events(&trace, "uprobe:thrower").len(), 300);
    // A call that is left by an exception does not return.
    assert_eq!(values(&trace, "thrower"), returning);
    let passed: Vec<i64> = returning.iter().map(|n| n + 1).collect();
    assert_eq!(values(&trace, "passes"), passed);
    let cleaned: Vec<i64> = returning.iter().map(|n| 2 * n + 1).collect();
    assert_eq!(values(&trace, "cleans"), cleaned);
}

/// Threads that are cancelled in a function whose caller has a destructor.
const CANCELLED: &str = r#"
#include <cstdio>
#include <pthread.h>
#include <unistd.h>
static int cleaned;
struct Guard { ~Guard() { cleaned++; } };
extern "C" {
__attribute__((noinline)) int reads(int *pipe) { char byte; return read(pipe[0], &byte, 1) + 1; }
__attribute__((noinline)) int guarded(int *pipe) { Guard guard; return reads(pipe) + 1; }
static void *body(void *pipe) { guarded((int *)pipe); return nullptr; }
}
int main() {
    int ends[2];
    if (pipe(ends)) return 1;
    for (int n = 0; n < 20; n++) {
        pthread_t thread;
        pthread_create(&thread, nullptr, body, ends);
        pthread_cancel(thread);
        pthread_join(thread, nullptr);
    }
    printf("%d\n", cleaned > 0);
}
"#;

#[test]
fn threads_can_be_cancelled_in_functions_whose_returns_are_recorded() {
    let directory = directory!();
    let program = compiled_by("c++", directory.path(), "cancels.cpp", CANCELLED, &[]);
    let (_, trace) = returns(directory.path(), &program, &["reads", "guarded"]);
    assert!(values(&trace, "reads").is_empty());
    assert!(values(&trace, "guarded").is_empty());
}

/// Calls that are nested 200 deep, and nested calls that are left by `longjmp`.
const DEEP: &str = r#"
#include <setjmp.h>
#include <stdio.h>
static jmp_buf target;
__attribute__((noinline)) long nested(long n) { return n ? nested(n - 1) * 3 % 1000 + 1 : 0; }
__attribute__((noinline)) long jumps(long n) {
    if (n == 0) longjmp(target, 1);
    return jumps(n - 1) * 3 + 1;
}
__attribute__((noinline)) void *caller(void) { return __builtin_return_address(0); }
int main(void) {
    long back = 0;
    for (int n = 0; n < 100; n++)
        if (setjmp(target)) back++; else jumps(9);
    unsigned long distance = (unsigned long)caller() - (unsigned long)main;
    printf("%ld %ld %d\n", back, nested(200), distance < 1000);
}
"#;

#[test]
fn calls_of_any_depth_return() {
    let directory = directory!();
    let options = ["-fno-optimize-sibling-calls"];
    let program = compiled_with(directory.path(), "deep", DEEP, &options);
    let (said, trace) = returns(directory.path(), &program, &["nested", "jumps", "caller"]);
    assert!(!said.contains("warning"), "{said}");
    let mut wanted = vec![0];
    for n in 0..200 {
        wanted.push(wanted[n] * 3 % 1000 + 1);
    }
    assert_eq!(values(&trace, "nested"), wanted);
    // The calls that were jumped over did not return.
    assert!(values(&trace, "jumps").is_empty());
    assert_eq!(events(&trace, "uprobe:jumps").len(), 1000);
    // `ip` is the return address that the function itself reads.
    let caller = &events(&trace, "uretprobe:caller")[0];
    assert_eq!(caller["ip"], caller["ret"]);
}

/// Functions with several exits: returns, direct and indirect tail calls, a `switch` with a jump
/// table, cold code.
const EXITS: &str = r#"
#include <stdio.h>
#define APART __attribute__((noinline, noclone))
volatile long sink;
APART long other(long n) { sink = n; return n * 1000; }
APART __attribute__((cold)) long rare(long n) { sink = n; return n * 7; }
APART long several(long n) {
    if (n < 0) return -1;
    for (long i = 0; i < n; i++) sink = i;
    if (n == 5) return other(n) + 5;
    return n + 1;
}
APART long tails(long n) {
    if (n & 1) return other(n);
    sink = n;
    return n;
}
long (*volatile computed)(long) = other;
APART long indirect(long n) { return computed(n + 1); }
APART long table(long n) {
    switch (n) {
    case 0: sink = 1; return 3;
    case 1: sink = 9; return 4;
    case 2: sink = 5; return 1;
    case 3: sink = 2; return 5;
    case 4: sink = 6; return 9;
    case 5: sink = 0; return 2;
    case 6: sink = 4; return 6;
    case 7: return other(n);
    default: return -1;
    }
}
APART long unlikely(long n) {
    if (__builtin_expect(n == 3, 0)) {
        long value = rare(n) + rare(n + 1);
        if (value == 12) __builtin_abort();
        return value;
    }
    return n;
}
int main(void) {
    long sum = 0;
    for (long n = -2; n < 8; n++)
        sum += several(n) + tails(n) + indirect(n) + table(n) + unlikely(n);
    printf("%ld\n", sum);
}
"#;

#[test]
fn every_exit_of_a_function_is_recorded_once() {
    let directory = directory!();
    for (name, options) in [
        ("plain", &["-fcf-protection=none"][..]),
        ("checked", &["-fcf-protection=full"]),
        ("small", &["-Os"]),
        ("absolute", &["-no-pie", "-fcf-protection=none"]),
        ("unoptimized", &["-O0"]),
        ("stripped", &["-rdynamic", "-s"]),
    ] {
        let program = compiled_with(directory.path(), name, EXITS, options);
        let functions = ["several", "tails", "indirect", "table", "unlikely"];
        let _ = std::fs::remove_dir_all(directory.path().join("trace"));
        let (said, trace) = returns(directory.path(), &program, &functions);
        assert!(!said.contains("cannot all be found"), "{name}: {said}");
        for function in functions {
            // One return for each call, in the order of calls.
            let count = |kind| events(&trace, &format!("{kind}:{function}")).len();
            assert_eq!(
                (count("uprobe"), count("uretprobe")),
                (10, 10),
                "{name}: {function}"
            );
        }
        if name == "stripped" {
            // Without its name, a cold part looks like another function.
            continue;
        }
        assert_eq!(
            values(&trace, "several"),
            [-1, -1, 1, 2, 3, 4, 5, 5005, 7, 8],
            "{name}"
        );
        assert_eq!(
            values(&trace, "unlikely"),
            [-2, -1, 0, 1, 2, 49, 4, 5, 6, 7],
            "{name}"
        );
        if name == "unoptimized" {
            assert_eq!(
                values(&trace, "tails"),
                [-2, -1000, 0, 1000, 2, 3000, 4, 5000, 6, 7000]
            );
            continue;
        }
        assert!(
            said.contains("uretprobe:tails: 1 of the "),
            "{name}: {said}"
        );
        for (n, exit) in (-2i64..).zip(events(&trace, "uretprobe:tails")) {
            match n & 1 {
                0 => assert_eq!(exit["ret"], format!("0x{n:X}"), "{name}"),
                _ => assert!(
                    exit.contains_key("tail_call") && !exit.contains_key("ret"),
                    "{name}: {exit:?}"
                ),
            }
        }
        let table = events(&trace, "uretprobe:table");
        let table: Vec<Option<&str>> = table
            .iter()
            .map(|exit| exit.get("ret").map(String::as_str))
            .collect();
        let end = "0xFFFFFFFFFFFFFFFF";
        let wanted = [end, end, "0x3", "0x4", "0x1", "0x5", "0x9", "0x2", "0x6"];
        assert_eq!(table[..9], wanted.map(Some), "{name}");
        assert_eq!(table[9], None, "{name}");
    }
}

#[test]
fn two_recorders_have_the_same_returns() {
    let directory = directory!();
    let options = ["-fno-optimize-sibling-calls", "-no-pie"];
    let program = compiled_with(directory.path(), "shared", DEEP, &options);
    let program = program.to_str().unwrap();
    let inner = directory.path().join("inner").display().to_string();
    let events_wanted = format!("uretprobe:{program}:nested");
    let alone = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--event",
        &events_wanted,
    ];
    let own = tracebraid().get_program().to_str().unwrap().to_owned();
    let command = [
        &[own.as_str(), "record"],
        &alone[..],
        &["-o", &inner, "--", program],
    ]
    .concat();
    let (output, outer) = record(directory.path(), &alone, &command);
    let printed = succeeds(&output);
    assert!(printed.starts_with("100 "), "{printed}");
    let of = |trace: &str| {
        let returns = events(trace, "uretprobe:nested");
        returns
            .iter()
            .map(|event| [event["ret"].clone(), event["ip"].clone()])
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&inner).len(), 201);
    assert_eq!(of(&inner), of(&outer));
}

/// Functions with conditional tail calls, with an argument on the stack, and with an exit in the
/// middle of another function.
const ASSEMBLY: &str = r#"
#include <stdio.h>
__asm__(
    ".text\n"
    ".globl zero, branch, odd, odd_part, pops, popped\n"
    ".type pops, @function\n" "pops: mov 8(%rsp), %rax\n inc %rax\n ret $8\n" ".size pops, .-pops\n"
    ".type popped, @function\n"
    "popped: push %rbx\n mov %rsp, %rbx\n push %rdi\n call pops\n sub %rsp, %rbx\n add %rbx, %rax\n pop %rbx\n ret\n"
    ".size popped, .-popped\n"
    ".type zero, @function\n" "zero: mov $7, %eax\n ret\n" ".size zero, .-zero\n"
    ".type branch, @function\n"
    "branch: mov %edi, %eax\n test %edi, %edi\n je zero\n cmp $5, %edi\n jg zero\n ret\n"
    ".size branch, .-branch\n"
    ".type odd, @function\n"
    "odd: mov %edi, %eax\n test %edi, %edi\n je 1f\n dec %edi\n call odd\n inc %eax\n jmp 2f\n 1: ret\n"
    ".size odd, .-odd\n"
    ".type odd_part, @function\n" "odd_part: xor %eax, %eax\n 2: ret\n" ".size odd_part, .-odd_part\n"
);
int branch(int n);
int odd(int n);
long popped(long n);
int main(void) {
    int sum = 0;
    for (int n = 0; n < 10; n++) sum += branch(n);
    printf("%d %d %ld\n", sum, odd(199), popped(41));
}
"#;

#[test]
fn conditional_tail_calls_and_unknown_code_are_right() {
    let directory = directory!();
    let program = compiled_with(directory.path(), "assembly", ASSEMBLY, &[]);
    let (said, trace) = returns(directory.path(), &program, &["branch", "odd", "pops"]);
    assert_eq!(values(&trace, "pops"), [42]);
    let exits = events(&trace, "uretprobe:branch");
    let returned: Vec<Option<&str>> = exits
        .iter()
        .map(|exit| exit.get("ret").map(String::as_str))
        .collect();
    let wanted = ["", "0x1", "0x2", "0x3", "0x4", "0x5", "", "", "", ""];
    assert_eq!(
        returned,
        wanted.map(|value| Some(value).filter(|value| !value.is_empty()))
    );
    // The kernel's return probe tracks 64 nested calls; the summary counts the others.
    assert!(
        said.contains("uretprobe:odd: the instructions at which the function returns"),
        "{said}"
    );
    assert!(said.contains("the middle of odd_part"), "{said}");
    assert_eq!(events(&trace, "uprobe:odd").len(), 200);
    let odd = values(&trace, "odd");
    assert_eq!(odd.len(), 64);
    assert!(
        said.contains("136 function returns (uretprobe) were lost"),
        "{said}"
    );
}

/// Goroutines whose stacks grow, and are moved, during calls.
const GROWING: &str = r#"
package main

import "fmt"

//go:noinline
func nested(n int) int {
	var space [64]byte
	space[n%64] = 1
	if n == 0 {
		return 0
	}
	return nested(n-1) + int(space[n%64])
}

//go:noinline
func recovers(n int) (result int) {
	defer func() {
		if recover() != nil {
			result = -n
		}
	}()
	if n%2 == 0 {
		panic("even")
	}
	return n
}

func main() {
	results := make(chan int)
	for n := range 8 {
		go func() { results <- nested(1000) + recovers(n) }()
	}
	sum := 0
	for range 8 {
		sum += <-results
	}
	fmt.Println(sum)
}
"#;

#[test]
fn functions_of_go_return_while_their_stacks_move() {
    let directory = directory!();
    for options in [&[][..], &["-ldflags=-s -w"]] {
        let Some(program) = compiled_go(directory.path(), GROWING, options) else {
            return;
        };
        let _ = std::fs::remove_dir_all(directory.path().join("trace"));
        let (said, trace) = returns(
            directory.path(),
            &program,
            &["main.nested", "main.recovers"],
        );
        assert!(!said.contains("warning"), "{said}");
        let mut nested = values(&trace, "main.nested");
        nested.sort_unstable();
        let wanted: Vec<i64> = (0..=1000).flat_map(|n| [n; 8]).collect();
        assert_eq!(nested, wanted);
        let mut recovered = values(&trace, "main.recovers");
        recovered.sort_unstable();
        assert_eq!(recovered, [-6, -4, -2, 0, 1, 3, 5, 7]);
    }
}

#[test]
fn returns_that_would_harm_are_refused() {
    let directory = directory!();
    // `strange` has a destructor that exceptions run, and contains a byte that does not decode.
    let source = r#"
#include <cstdio>
struct Guard { ~Guard() { puts("end"); } };
__attribute__((noinline)) void other(int n) { if (n) throw 1; }
extern "C" __attribute__((noinline)) void strange(int n) { Guard guard; other(n); __asm__ volatile(".byte 6"); }
extern "C" [[noreturn]] __attribute__((noinline)) void never() { for (;;) __asm__ volatile(""); }
int main(int count, char **) { if (count > 5) never(); try { strange(count); } catch (int) {} }
"#;
    let program = compiled_by("c++", directory.path(), "strange.cpp", source, &[]);
    for (function, wanted) in [
        ("strange", "aborts the program at an exception"),
        ("never", "never returns"),
    ] {
        let mut record = tracebraid();
        let event = format!("uretprobe:{}:{function}", program.display());
        record
            .args(["record", "--event", &event, "-o"])
            .arg(directory.path().join("none"));
        let output = record.args(["--", "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{said}");
    }
}

/// Computes in a function that is called by `known`, whose exits are all found, or by `odd`, which
/// ends in the middle of another function.
const WORKING: &str = r#"
__asm__(
    ".text\n.globl known, odd\n"
    ".type known, @function\n"
    "known: .cfi_startproc\n sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call busy\n"
    "add $8, %rsp\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n.size known, .-known\n"
    ".type odd, @function\n"
    "odd: .cfi_startproc\n sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call busy\n"
    "add $8, %rsp\n .cfi_adjust_cfa_offset -8\n jmp 1f\n .cfi_endproc\n.size odd, .-odd\n"
    ".type part, @function\n part: nop\n 1: ret\n.size part, .-part\n"
);
void known(void), odd(void);
__attribute__((noinline)) void busy(void) {
    for (volatile long n = 0; n < 300000000; n++) {}
}
int main(int count, char **arguments) {
    if (arguments[1][0] == 'k') known(); else odd();
    return 0;
}
"#;

#[test]
fn stacks_go_on_above_functions_whose_returns_are_recorded() {
    let directory = directory!();
    let program = compiled_with(directory.path(), "working", WORKING, &["-no-pie"]);
    let program = program.to_str().unwrap();
    // Numbers of all and of broken stacks of `busy`, recognized by its address in the program.
    let statuses = |function: &str| {
        let _ = std::fs::remove_dir_all(directory.path().join("trace"));
        let event = format!("uretprobe:{program}:{function}");
        let options = [
            "--kernel",
            "none",
            "--syscalls",
            "none",
            "--stacks=period_us=1000",
            "--event",
            &event,
        ];
        let (output, trace) = record(directory.path(), &options, &[program, function]);
        succeeds(&output);
        let printed = text(&["print", &trace]);
        let stacks = printed
            .lines()
            .filter(|line| line.contains("tracebraid_cpu_stack: "));
        let stacks = stacks.filter(|line| line.contains("[0] = 0x401"));
        let broken = |line: &&str| !line.contains("status = 0");
        let all = stacks.clone().count();
        assert!(all > 20, "{function}: {all}");
        (all, stacks.filter(broken).count())
    };
    assert_eq!(statuses("known").1, 0);
    let (all, broken) = statuses("odd");
    assert_eq!(broken, all);
}
