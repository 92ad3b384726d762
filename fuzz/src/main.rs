//! Fuzz targets for all code that reads untrusted input: metadata of both languages and in packets,
//! index files, packets, whole traces, blocks of state histories, definitions of analyses,
//! databases of executions, files of other tools, and stacks with the unwind tables of programs.
//!
//! `FUZZ_TARGET` names the target, see [`TARGETS`]; the arguments are those of libFuzzer. A single
//! program contains all targets, so that only one program must be built.
#![no_main]

mod database;
mod import;
mod trace;
mod unwind;

use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::OnceLock;

type Target = fn(&[u8]) -> Corpus;

const TARGETS: &[(&str, Target)] = &[
    ("tsdl", tsdl),
    ("ctf2", ctf2),
    ("packetized", packetized),
    ("index", trace::index),
    ("packets", trace::packets),
    ("trace", trace::trace),
    ("history", history),
    ("definition", definition),
    ("import", import::import),
    ("format", import::format),
    ("database", database::file),
    ("rows", database::rows),
    ("unwind", unwind::unwind),
];

fn target() -> Target {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        match TARGETS.iter().find(|(known, _)| *known == name) {
            Some((_, target)) => *target,
            None => {
                eprintln!("FUZZ_TARGET must be one of {}", names.join(", "));
                std::process::exit(2);
            }
        }
    })
}

fuzz_target!(|data: &[u8]| -> Corpus { target()(data) });

fn tsdl(data: &[u8]) -> Corpus {
    if let Ok(class) = tracebraid_ctf::tsdl::parse(data) {
        trace::compile(class);
    }
    Corpus::Keep
}

fn ctf2(data: &[u8]) -> Corpus {
    if let Ok(class) = tracebraid_ctf::ctf2::parse(data) {
        trace::compile(class);
    }
    Corpus::Keep
}

fn packetized(data: &[u8]) -> Corpus {
    match tracebraid_ctf::metadata::parse(data) {
        Ok(class) => trace::compile(class),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Corpus::Keep
}

/// The definition of an analysis, in either form.
fn definition(data: &[u8]) -> Corpus {
    let Ok(text) = std::str::from_utf8(data) else {
        return Corpus::Reject;
    };
    if let Err(error) = tracebraid_history::Definition::parse(text) {
        assert!(error.line > 0 && error.column > 0, "{error}");
    }
    Corpus::Keep
}

/// A block of a state history: a flag byte (whether it has a snapshot), then its body.
fn history(data: &[u8]) -> Corpus {
    let Some((&flag, body)) = data.split_first() else {
        return Corpus::Reject;
    };
    tracebraid_history::fuzzing::block(body, flag & 3);
    Corpus::Keep
}
