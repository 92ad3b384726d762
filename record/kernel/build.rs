//! Compiles the BPF programs. Definitions shared with user space exist once: ids of event classes
//! in `src/events.tsdl`, from which a header and Rust code are generated, and numbers in
//! `bpf/shared.h`, from which Rust code is generated.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=src/events.tsdl");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let events = fs::read_to_string("src/events.tsdl").expect("src/events.tsdl can be read");
    let shared = fs::read_to_string("bpf/shared.h").expect("bpf/shared.h can be read");
    let kinds = kinds(&events);
    let header = |(name, id): &(String, String)| format!("#define KIND_{name} {id}\n");
    let write =
        |file: &str, text: String| fs::write(out.join(file), text).expect("OUT_DIR can be written");
    write("kinds.h", kinds.iter().map(header).collect());
    write("kinds.rs", constants(&kinds, "u16"));
    write("shared.rs", constants(&numbers(&shared), "usize"));
    compile(&out);
}

/// Names and ids of event classes.
fn kinds(events: &str) -> Vec<(String, String)> {
    let classes = events.split("event { name = \"").skip(1);
    let kind = |class: &str| {
        let (name, rest) = class.split_once("\"; id = ")?;
        let (id, _) = rest.split_once(';')?;
        Some((name.to_owned(), id.to_owned()))
    };
    classes.filter_map(kind).collect()
}

/// Names and values of the macros in a header that are numbers.
fn numbers(header: &str) -> Vec<(String, String)> {
    let lines = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    let number = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.trim().to_owned()))
    };
    lines.filter_map(number).collect()
}

/// The numbers as Rust constants.
fn constants(numbers: &[(String, String)], class: &str) -> String {
    let line = |(name, number): &(String, String)| {
        let name = name.to_uppercase();
        format!("pub(crate) const {name}: {class} = {number};\n")
    };
    numbers.iter().map(line).collect()
}

fn compile(out: &Path) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    let machine = match machine.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => panic!("recording kernel events supports x86-64 and arm64, not {other}"),
    };
    let status = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf"])
        // Atomic operations with a result (Linux 5.12; on arm64 5.18).
        .args(["-mcpu=v3", "-I"])
        .arg(out)
        .arg(format!("-D__TARGET_ARCH_{machine}"))
        .args(["-c", "bpf/recorder.bpf.c", "-o"])
        .arg(out.join("recorder.bpf.o"))
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} failed ({status}): see its messages above"),
        Err(error) => panic!("cannot run {clang} ({error}): install clang, or set CLANG"),
    }
}
