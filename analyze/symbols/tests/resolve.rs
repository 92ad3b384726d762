//! Functions of real programs, compiled by the test, at addresses from the linker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tracebraid_symbols::{BuildId, Frame, Module, Placed, Symbols};

const C: &str = "
static inline __attribute__((always_inline)) int inner(volatile int *p) {
    return *p + 40; /* line 3 */
}
static inline __attribute__((always_inline)) int middle(volatile int *p) {
    return inner(p) * 2; /* line 6 */
}
__attribute__((noinline)) int outer(volatile int *p) {
    return middle(p) - 1; /* line 9 */
}
int main(void) { volatile int x = 1; return outer(&x); }
";

const CPP: &str = "
namespace shop { template <class T> struct Cart { __attribute__((noinline)) T total(T x) { return x * 3; } }; }
int main(int argc, char **) { shop::Cart<int> cart; return cart.total(argc); }
";

const RUST: &str = "
mod shop { pub struct Cart; impl Cart { #[inline(never)] pub fn total(&self, x: u64) -> u64 { std::hint::black_box(x) * 3 } } }
fn main() { std::process::exit(shop::Cart.total(std::env::args().count() as u64) as i32) }
";

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn compile(directory: &Path, compiler: &str, file: &str, text: &str, flags: &[&str]) -> PathBuf {
    let (source, program) = (directory.join(file), directory.join("program"));
    fs::write(&source, text).unwrap();
    run(Command::new(compiler)
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(&source));
    program
}

/// Address of the first symbol whose name contains `part`, and the executable segment of the file.
fn place(program: &Path, part: &str) -> (u64, Module) {
    let symbols = run(Command::new("nm").arg(program));
    let line = symbols
        .lines()
        .find(|line| line.contains(part))
        .unwrap_or_else(|| panic!("{part} in {symbols}"));
    let address = u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap();
    // The executable segment.
    let headers = run(Command::new("readelf").args(["-lW"]).arg(program));
    let load = headers
        .lines()
        .find(|line| line.contains("LOAD") && line.contains("R E"))
        .unwrap();
    let numbers: Vec<u64> = load
        .split_whitespace()
        .filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let (offset, virtual_address, size) = (numbers[0], numbers[1], numbers[3]);
    // Mapped at a distant address, like position-independent programs.
    let bias = 0x5555_0000_0000;
    let module = Module {
        begin: bias + virtual_address,
        end: bias + virtual_address + size,
        placed: Placed::Part(offset),
        path: program.to_owned(),
        build_id: Some(build_id(program)),
    };
    (bias + address, module)
}

fn build_id(program: &Path) -> BuildId {
    let notes = run(Command::new("readelf").arg("-n").arg(program));
    let line = notes
        .lines()
        .find_map(|line| line.trim().strip_prefix("Build ID: "))
        .unwrap();
    let digit = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
    BuildId((0..line.len() / 2).map(|byte| digit(byte * 2)).collect())
}

fn names(frames: &[Frame]) -> Vec<(&str, Option<u32>, bool)> {
    let name = |frame: &'_ Frame| {
        (
            frame.line.as_ref().and_then(|line| line.number),
            frame.is_inlined,
        )
    };
    frames
        .iter()
        .map(|frame| {
            let (line, inlined) = name(frame);
            (frame.function.as_str(), line, inlined)
        })
        .collect()
}

/// The frames at an instruction of `outer` that is inlined from `inner`.
fn inlined_frames(symbols: &mut Symbols, address: u64, module: &Module) -> Vec<Frame> {
    let deepest = (0..32)
        .map(|at| symbols.frames(module, address + at))
        .max_by_key(Vec::len);
    deepest.unwrap()
}

const INLINED: [(&str, Option<u32>, bool); 3] = [
    ("inner", Some(3), true),
    ("middle", Some(6), true),
    ("outer", Some(9), false),
];

#[test]
fn inlined_functions_are_told_with_their_lines() {
    let directory = TempDir::new().unwrap();
    let flags = ["-O2", "-g", "-Wl,--build-id"];
    let program = compile(directory.path(), "cc", "program.c", C, &flags);
    let (address, module) = place(&program, " outer");
    let mut symbols = Symbols::default();
    let frames = inlined_frames(&mut symbols, address, &module);
    assert_eq!(names(&frames), INLINED);
    assert!(frames[0].line.as_ref().unwrap().file.ends_with("program.c"));
}

#[test]
fn without_debug_information_there_are_names() {
    let directory = TempDir::new().unwrap();
    let program = compile(
        directory.path(),
        "cc",
        "program.c",
        C,
        &["-O2", "-Wl,--build-id"],
    );
    let (address, module) = place(&program, " outer");
    assert_eq!(
        names(&Symbols::default().frames(&module, address)),
        [("outer", None, false)]
    );
}

#[test]
fn names_of_cpp_and_rust_are_readable() {
    let directory = TempDir::new().unwrap();
    let cpp = compile(
        directory.path(),
        "c++",
        "program.cc",
        CPP,
        &["-O1", "-Wl,--build-id"],
    );
    let (address, module) = place(&cpp, "total");
    let frames = Symbols::default().frames(&module, address);
    assert!(
        frames[0].function.contains("shop::Cart<int>::total"),
        "{frames:?}"
    );
    let flags = ["--edition=2021", "-O", "-C", "link-arg=-Wl,--build-id"];
    let rust = compile(directory.path(), "rustc", "program.rs", RUST, &flags);
    let (address, module) = place(&rust, "total");
    let frames = Symbols::default().frames(&module, address);
    assert!(
        frames
            .last()
            .unwrap()
            .function
            .contains("shop::Cart::total"),
        "{frames:?}"
    );
}

#[test]
fn separate_debug_information_is_found_by_build_id() {
    let directory = TempDir::new().unwrap();
    let flags = ["-O2", "-g", "-Wl,--build-id"];
    let program = compile(directory.path(), "cc", "program.c", C, &flags);
    let (address, module) = place(&program, " outer");
    let id = build_id(&program).to_string();
    let debug = directory.path().join("debug/.build-id").join(&id[..2]);
    fs::create_dir_all(&debug).unwrap();
    let file = debug.join(format!("{}.debug", &id[2..]));
    run(Command::new("objcopy")
        .arg("--only-keep-debug")
        .arg(&program)
        .arg(&file));
    run(Command::new("strip").arg(&program));
    assert_eq!(names(&Symbols::default().frames(&module, address)), []);
    let mut symbols = Symbols::new(vec![directory.path().join("debug")]);
    assert_eq!(
        names(&inlined_frames(&mut symbols, address, &module)),
        INLINED
    );
    // The program is deleted: the debug information with its build id remains.
    fs::remove_file(&program).unwrap();
    let mut symbols = Symbols::new(vec![directory.path().join("debug")]);
    assert_eq!(
        names(&inlined_frames(&mut symbols, address, &module)),
        INLINED
    );
}

#[test]
fn a_whole_image_is_as_good_as_its_parts() {
    let directory = TempDir::new().unwrap();
    // A position-independent program, and one with fixed addresses.
    for kind in ["-pie", "-no-pie"] {
        let flags = ["-O2", "-g", "-Wl,--build-id", kind];
        let program = compile(directory.path(), "cc", "program.c", C, &flags);
        let (address, part) = place(&program, " outer");
        let first = if kind == "-pie" { 0 } else { 0x40_0000 };
        let base = 0x5555_0000_0000 + first;
        let image = Module {
            begin: base,
            placed: Placed::Image(base),
            ..part
        };
        let frames = inlined_frames(&mut Symbols::default(), address, &image);
        assert_eq!(names(&frames), INLINED, "{kind}");
    }
}

#[test]
fn a_file_that_has_changed_names_nothing() {
    let directory = TempDir::new().unwrap();
    let flags = ["-O2", "-g", "-Wl,--build-id"];
    let program = compile(directory.path(), "cc", "program.c", C, &flags);
    let (address, mut module) = place(&program, " outer");
    module.build_id = Some(BuildId(vec![1; 20]));
    assert_eq!(Symbols::default().frames(&module, address), []);
    module.path = directory.path().join("program.c");
    module.build_id = None;
    assert_eq!(Symbols::default().frames(&module, address), []);
    module.path = directory.path().join("nothing");
    assert_eq!(Symbols::default().frames(&module, address), []);
}

/// Names at each address of a function.
fn all_names(mut symbols: Symbols, address: u64, module: &Module) -> Vec<Vec<String>> {
    (0..32)
        .map(|at| symbols.names(module, address + at))
        .collect()
}

#[test]
fn names_that_are_kept_are_those_that_are_found() {
    let directory = TempDir::new().unwrap();
    let flags = ["-O2", "-g", "-Wl,--build-id"];
    let program = compile(directory.path(), "cc", "program.c", C, &flags);
    let (address, module) = place(&program, " outer");
    let function = |frame: &Frame| frame.function.clone();
    let mut symbols = Symbols::default();
    let expected: Vec<Vec<String>> = (0..32)
        .map(|at| {
            symbols
                .frames(&module, address + at)
                .iter()
                .map(function)
                .collect()
        })
        .collect();
    assert!(
        expected
            .iter()
            .any(|names| *names == INLINED.map(|(name, ..)| name))
    );
    assert_eq!(all_names(Symbols::default(), address, &module), expected);
    let kept = directory.path().join("kept");
    let keeping = || Symbols::default().keep_in(Some(kept.clone()));
    assert_eq!(all_names(keeping(), address, &module), expected);
    assert_eq!(all_names(keeping(), address, &module), expected);
    // The names come from the cache.
    let [file] = &fs::read_dir(&kept)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect::<Vec<_>>()[..]
    else {
        panic!("one file of names");
    };
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, text.replace("middle", "centre")).unwrap();
    let found = all_names(keeping(), address, &module);
    assert!(
        found.iter().flatten().any(|name| name == "centre"),
        "{found:?}"
    );
    // A rebuilt program is a different file.
    let program = compile(
        directory.path(),
        "cc",
        "program.c",
        &C.replace("middle", "other"),
        &flags,
    );
    let (address, module) = place(&program, " outer");
    let found = all_names(keeping(), address, &module);
    assert!(
        found.iter().flatten().any(|name| name == "other"),
        "{found:?}"
    );
}

#[test]
fn what_takes_no_time_is_not_kept() {
    let directory = TempDir::new().unwrap();
    let program = compile(
        directory.path(),
        "cc",
        "program.c",
        C,
        &["-O2", "-Wl,--build-id"],
    );
    let (address, module) = place(&program, " outer");
    let kept = directory.path().join("kept");
    let names = Symbols::default()
        .keep_in(Some(kept.clone()))
        .names(&module, address);
    assert_eq!(names, ["outer"]);
    assert!(!kept.exists());
}
