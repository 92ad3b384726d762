//! Programs whose functions are probed may contain arbitrary bytes: damage leads to an error or to
//! events, and never to a panic, a hang or unbounded memory.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tracebraid_kernel_recorder::{ChosenEvents, EventSpec};
use tracebraid_testkit::skip::skipped;

/// With a jump table, a tail call, several returns, and a SystemTap probe.
const PROGRAM: &str = r#"
__attribute__((noinline)) long inner(long n) { return n * 3; }
__attribute__((noinline)) long choose(long n) {
    switch (n) {
    case 0: return 7; case 1: return inner(n) + 1; case 2: return 11; case 3: return n - 5;
    case 4: return 13; case 5: return inner(n) - 2; case 6: return 17; default: return inner(n + 1);
    }
}
__asm__(".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 8, 2f-1f, 3\n.asciz \"stapsdt\"\n"
        "1: .8byte choose, 0, 0\n.asciz \"own\"\n.asciz \"point\"\n.asciz \"8@%rdi\"\n2: .balign 4\n.popsection");
int main(int count, char **words) { return (int)choose(count); }
"#;

fn compiled(directory: &Path) -> Option<Vec<u8>> {
    let (source, program) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&source, PROGRAM).expect("the source can be written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).arg(&source);
    let is_made = compiler.status().is_ok_and(|status| status.success());
    is_made.then(|| std::fs::read(&program).expect("the program was compiled"))
}

/// Resolves events of each type in a file with these bytes.
fn look(file: &Path, bytes: &[u8]) -> usize {
    std::fs::write(file, bytes).expect("the file can be written");
    let file = file.display();
    let specs = [
        format!("uprobe:{file}:choose"),
        format!("uprobe:{file}:choose+4"),
        format!("uretprobe:{file}:choose"),
        format!("usdt:{file}:*"),
        format!("go:{file}"),
    ];
    let found = specs.iter().filter(|spec| {
        let spec: EventSpec = spec.parse().expect("a specification");
        let begin = Instant::now();
        let events = ChosenEvents::resolve(&[spec]);
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{:?}",
            begin.elapsed()
        );
        events.is_ok()
    });
    found.count()
}

#[test]
fn damage_in_a_program_is_an_error_at_most() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(whole) = compiled(directory.path()).filter(|_| cfg!(target_arch = "x86_64")) else {
        return skipped("the C compiler, or an x86-64 processor, is missing");
    };
    let file = directory.path().join("damaged");
    // All except the offset inside an instruction and the Go event.
    assert!(look(&file, &whole) >= 3);
    let position = prop_oneof![0..64_usize, 0..whole.len()];
    let change = (position, prop_oneof![Just(0_u8), Just(0xff), any::<u8>()]);
    let damage = (
        prop::collection::vec(change, 1..12),
        prop::option::weighted(0.1, 0..whole.len()),
    );
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(4000)
    };
    proptest!(config, |((changes, length) in damage)| {
        let mut bytes = whole.clone();
        for (at, value) in changes {
            bytes[at] = value;
        }
        bytes.truncate(length.unwrap_or(bytes.len()));
        look(&file, &bytes);
    });
}
