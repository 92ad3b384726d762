//! Probes at offsets: accepted at the beginning of an instruction, refused elsewhere, where they
//! would corrupt the program.

use std::path::Path;
use std::process::Command;

use crate::chosen::{chosen, events};
use crate::support::{compiled_with, recording_directory, skipped, tracebraid};

/// A function whose instructions are known: at 0, 5, 6, 10 (with a prefix that the kernel refuses
/// to probe), 14 and 15; then padding, and symbols of all kinds.
const PROGRAM: &str = r#"
#include <stdio.h>
__asm__(
    ".text\n"
    ".globl known, sizeless, untyped, table, after\n"
    ".type known, @function\n"
    "known:\n"
    ".byte 0xb8, 1, 0, 0, 0\n"       // mov $1, %eax
    ".byte 0x90\n"                   // nop
    ".byte 0x48, 0x83, 0xec, 0x10\n" // sub $16, %rsp
    ".byte 0xf0, 0xff, 0x04, 0x24\n" // lock incl (%rsp)
    ".byte 0x90\n"
    ".byte 0x48, 0x83, 0xc4, 0x10\n" // add $16, %rsp
    "ret\n"
    ".size known, .-known\n"
    ".fill 12, 1, 0xcc\n"
    ".type sizeless, @function\n" "sizeless: mov $2, %eax\n ret\n"
    "untyped: mov $3, %eax\n ret\n"
    // A byte that is jumped over, and that decodes as the beginning of an instruction.
    ".type table, @function\n"
    "table: jmp 1f\n .byte 0xb8\n 1: nop\n nop\n nop\n nop\n mov $4, %eax\n ret\n" ".size table, .-table\n"
);
int known(void), sizeless(void), untyped(void), table(void);
int constant[4] = {1, 2, 3, 4};
__thread int own = 5;
static int chosen_one(void) { return 6; }
static int (*choose(void))(void) { return chosen_one; }
int indirect(void) __attribute__((ifunc("choose")));
int main(void) {
    int sum = 0;
    for (int n = 0; n < 50; n++) sum += known() + sizeless() + untyped() + table() + constant[n & 3] + indirect() + own;
    printf("%d\n", sum);
}
"#;

/// The error message for an event that the recorder refuses.
fn refusal(directory: &Path, event: &str) -> String {
    let trace = directory.join("none");
    let mut record = tracebraid();
    record.args([
        "record",
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--event",
        event,
    ]);
    let output = record
        .arg("-o")
        .arg(&trace)
        .args(["--", "true"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{event}: {said}");
    said
}

#[test]
fn offsets_that_would_corrupt_the_program_are_refused() {
    if !cfg!(target_arch = "x86_64") {
        return skipped("the program is for x86-64");
    }
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled_with(directory.path(), "offsets", PROGRAM, &[])
        .display()
        .to_string();
    let inside = "inside an instruction of known: a probe there would corrupt the program; the nearest instructions begin at";
    for (place, wanted) in [
        (
            "known+1",
            &[
                inside,
                "known+0x0 and known+0x5",
                "offsets: known+0x1 (offset 0x",
            ][..],
        ),
        ("known+4", &[inside, "known+0x0 and known+0x5"]),
        ("known+8", &[inside, "known+0x6 and known+0xa"]),
        ("known+11", &[inside, "known+0xa and known+0xe"]),
        // Padding after the function, and the next function.
        (
            "known+20",
            &["beyond the end of known, which has 0x14 bytes"],
        ),
        ("known+4096", &["beyond the end of known"]),
        ("known+0xffffffffffffffff", &["outside the program"]),
        (
            "sizeless+1",
            &["neither a symbol with a size nor .eh_frame contains it"],
        ),
        ("table+3", &["contains data at table+0x3"]),
        (
            "untyped",
            &[
                "does not have the type of a function",
                ".type NAME, @function",
            ],
        ),
        ("constant", &["constant is data, not a function"]),
        ("own", &["own is thread-local data, not a function"]),
        ("indirect", &["indirect is an indirect function (IFUNC)"]),
        // The kernel checks an instruction only if a process has it in memory.
        (
            "known+10",
            &[
                "uprobe:known+0xa",
                "the kernel cannot probe this instruction",
            ],
        ),
    ] {
        let said = refusal(directory.path(), &format!("uprobe:{program}:{place}"));
        for wanted in wanted {
            assert!(said.contains(wanted), "{place}: {said}");
        }
    }
    let alone = Command::new(&program).output().unwrap();
    assert!(alone.status.success());
    let places = [
        "known",
        "known+5",
        "known+6",
        "known+0xe",
        "known+0x13",
        "sizeless",
    ];
    let wanted = places.map(|place| format!("uprobe:{program}:{place}"));
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let output = directory.path().join("printed").display().to_string();
    let (_, trace) = chosen(
        directory.path(),
        &wanted,
        &["sh", "-c", &format!("{program} > {output}")],
    );
    assert_eq!(std::fs::read(output).unwrap(), alone.stdout);
    for place in [
        "known",
        "known+0x5",
        "known+0x6",
        "known+0xe",
        "known+0x13",
        "sizeless",
    ] {
        assert_eq!(
            events(&trace, &format!("uprobe:{place}")).len(),
            50,
            "{place}"
        );
    }
}

#[test]
fn symbols_of_functions_among_data_are_refused() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let source = r#"
__asm__(".data\n.globl disguised\n.type disguised, %function\ndisguised: .8byte 5\n.size disguised, 8\n.text\n");
extern long disguised;
int main(void) { return disguised != 5; }
"#;
    let program = compiled_with(directory.path(), "disguised", source, &[])
        .display()
        .to_string();
    for kind in ["uprobe", "uretprobe"] {
        let said = refusal(directory.path(), &format!("{kind}:{program}:disguised"));
        assert!(said.contains("not in executable memory"), "{said}");
    }
}

/// A static function `same`, for each of two files.
const SAME: &str = r#"
__attribute__((noinline)) static int same(int n) { __asm__ volatile("nop"); return n + NUMBER; }
int ENTRY(int n) { return same(n) * 2; }
"#;

#[test]
fn all_functions_of_a_name_are_recorded() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let other = directory.path().join("other.c");
    let entry = |number: &str, name: &str| SAME.replace("NUMBER", number).replace("ENTRY", name);
    std::fs::write(&other, entry("2", "second")).unwrap();
    let source = entry("1", "first")
        + "int second(int);\nint main(void) { int sum = 0; for (int n = 0; n < 10; n++) sum += first(n) + second(n);\n\
           return sum != 240; }\n";
    let program = compiled_with(
        directory.path(),
        "same",
        &source,
        &[other.to_str().unwrap()],
    );
    let program = program.display().to_string();
    let wanted = [
        format!("uprobe:{program}:same"),
        format!("uretprobe:{program}:same"),
    ];
    let (_, trace) = chosen(directory.path(), &[&wanted[0], &wanted[1]], &[&program]);
    assert_eq!(events(&trace, "uprobe:same").len(), 20);
    let returned = events(&trace, "uretprobe:same");
    let returned: Vec<&str> = returned.iter().map(|event| event["ret"].as_str()).collect();
    assert_eq!(returned[..4], ["0x1", "0x2", "0x2", "0x3"]);
}

/// A USDT probe note whose address, depending on OFFSET, is inside an instruction.
const DAMAGED: &str = r#"
__asm__(
    ".text\n.type probed, @function\n"
    "probed: mov $1, %eax\n nop\n ret\n .size probed, .-probed\n"
    ".pushsection .note.stapsdt,\"\",\"note\"\n"
    ".balign 4\n.4byte 8, 1f-0f, 3\n.asciz \"stapsdt\"\n"
    "0: .8byte probed + OFFSET, 0, 0\n.asciz \"shop\"\n.asciz \"item\"\n.asciz \"\"\n1: .balign 4\n.popsection\n"
);
int probed(void);
int main(void) { return probed() - 1; }
"#;

#[test]
fn usdt_probes_are_at_instructions() {
    if !cfg!(target_arch = "x86_64") {
        return skipped("the program is for x86-64");
    }
    let Some(directory) = recording_directory() else {
        return;
    };
    for offset in ["0", "2", "5"] {
        let source = DAMAGED.replace("OFFSET", offset);
        let name = format!("usdt{offset}");
        let program = compiled_with(directory.path(), &name, &source, &["-no-pie"])
            .display()
            .to_string();
        let event = format!("usdt:{program}:shop:item");
        if offset == "2" {
            let said = refusal(directory.path(), &event);
            assert!(said.contains("the USDT probe shop:item (offset"), "{said}");
            assert!(said.contains("inside an instruction of probed"), "{said}");
            continue;
        }
        let _ = std::fs::remove_dir_all(directory.path().join("trace"));
        let (_, trace) = chosen(directory.path(), &[&event], &[&program]);
        assert_eq!(events(&trace, "shop:item").len(), 1);
    }
}
