//! Compiles the BPF programs. The ids of event classes, which both sides must agree upon, stand in
//! `src/events.tsdl` only: they become a header here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=src/events.tsdl");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let events = fs::read_to_string("src/events.tsdl").expect("src/events.tsdl can be read");
    fs::write(out.join("kinds.h"), kinds(&events)).expect("OUT_DIR can be written");
    compile(&out);
}

/// A line for each event class: `KIND_name id`.
fn kinds(events: &str) -> String {
    let classes = events.split("event { name = \"").skip(1);
    let line = |class: &str| {
        let (name, rest) = class.split_once("\"; id = ")?;
        let (id, _) = rest.split_once(';')?;
        Some(format!("#define KIND_{name} {id}\n"))
    };
    classes.filter_map(line).collect()
}

fn compile(out: &Path) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    let machine = match machine.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => panic!("recording kernel events is for x86-64 and arm64, not for {other}"),
    };
    let status = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-I"])
        .arg(out)
        .arg(format!("-D__TARGET_ARCH_{machine}"))
        .args(["-c", "bpf/recorder.bpf.c", "-o"])
        .arg(out.join("recorder.bpf.o"))
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} fails ({status}): see what it says above"),
        Err(error) => panic!("{clang} cannot be run ({error}): install clang, or set CLANG"),
    }
}
