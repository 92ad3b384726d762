//! Traces of FxT: imported records equal those that libfxt's own `fxt_print` prints.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;
use tracebraid_ctf::trace::Trace;
use tracebraid_import::{Summary, import, is_importable};
use tracebraid_testkit::reference::Reader;
use tracebraid_testkit::rng::Rng;
use tracebraid_testkit::skip::skipped;
use tracebraid_testkit::value::Value;

/// A program that records with libfxt: user-level threads, functions, texts, and kernel threads.
const PROGRAM: &str = r#"
#define CONFIG_FUT
#include <fxt/fxt.h>
#include <fxt/fut.h>
#include <pthread.h>

static void *work(void *number) {
    for (long i = 0; i < 2000; i++) FUT_DO_PROBE2(0x1234, number, i);
    return 0;
}

void function(void) {
    FUT_DO_PROBE1(FUT_GCC_INSTRUMENT_ENTRY_CODE, function);
    FUT_DO_PROBE1(FUT_GCC_INSTRUMENT_EXIT_CODE, function);
}

int main(int count, char **arguments) {
    pthread_t threads[3];
    fut_enable_tid_logging();
    if (fut_setup(1 << 20, FUT_KEYMASKALL, 1) < 0) return 1;
    FUT_DO_PROBE2(FUT_NEW_LWP_CODE, 0, 4711);
    FUT_DO_PROBE1(FUT_THREAD_BIRTH_CODE, 77);
    FUT_DO_PROBE5(FUT_SET_THREAD_NAME_CODE, 77, 0x64636261UL, 0, 0, 0);
    FUT_DO_PROBE1(FUT_SWITCH_TO_CODE, 77);
    for (long i = 0; i < 3; i++) pthread_create(threads + i, 0, work, (void *)i);
    function();
    FUT_DO_PROBESTR(0x99, "a text of more than one word");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    FUT_DO_PROBE1(FUT_THREAD_DEATH_CODE, 77);
    fut_endup(arguments[1]);
    return 0;
}
"#;

/// A record as `fxt_print -d` prints it: time, thread, code and parameters.
type Printed = (u64, u64, u64, Vec<u64>);

fn has_tools() -> bool {
    let has_print = Command::new("fxt_print").arg("-?").output().is_ok();
    let has_library = Path::new("/usr/include/fxt/fut.h").exists();
    if !has_print || !has_library {
        skipped("fxt_print or libfxt is missing: run scripts/setup test");
    }
    has_print && has_library
}

/// Records a trace by libfxt.
fn record(directory: &Path) -> PathBuf {
    let (source, program) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&source, PROGRAM).expect("written");
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&program).arg(&source);
    let compiled = compiler.args(["-lfxt", "-lpthread"]).status();
    assert!(compiled.expect("a compiler").success());
    let trace = directory.join("trace.fxt");
    let ran = Command::new(&program).arg(&trace).output();
    assert!(ran.expect("it runs").status.success());
    trace
}

/// The records that fxt_print prints, in the order of time.
fn printed(file: &Path) -> Vec<Printed> {
    let output = Command::new("fxt_print")
        .args(["-d", "-f"])
        .arg(file)
        .output();
    let output = String::from_utf8(output.expect("fxt_print").stdout).expect("text");
    let mut records: Vec<Printed> = output.lines().filter_map(line).collect();
    records.sort_by_key(|record| record.0);
    records
}

/// `75602620262770u [ 7f44167976c0] 4294967295 1234(2) 1x 1x`, separated by tabs.
fn line(line: &str) -> Option<Printed> {
    let mut words = line.split('\t');
    let time = words.next()?.trim().strip_suffix('u')?.parse().ok()?;
    let thread = words.next()?.trim_matches(['[', ']', ' ']);
    let thread = u64::from_str_radix(thread, 16).ok()?;
    let code = words.nth(1)?.split('(').next()?.trim();
    let code = u64::from_str_radix(code, 16).ok()?;
    let params = words.map(|word| word.trim_end_matches('x').parse().expect("a number"));
    Some((time, thread, code, params.collect()))
}

/// The records of an imported trace, and the names of their classes.
fn read(trace: &Path) -> (Vec<Printed>, Vec<String>) {
    let opened = Trace::open(trace).expect("a trace");
    let class = &opened.layout.class;
    let reader = Reader::new(class);
    let (mut records, mut names) = (Vec::new(), Vec::new());
    for stream in &opened.streams {
        let data = std::fs::read(&stream.files[0].path).expect("a stream");
        let stream = reader.stream(&data);
        assert!(stream.first_error().is_none());
        for event in stream.packets.iter().flat_map(|packet| &packet.events) {
            let Some(Value::Struct(context)) = &event.common_context else {
                panic!("no context");
            };
            let Some(Value::Struct(payload)) = &event.payload else {
                panic!("no payload");
            };
            let thread = match &context[..] {
                [Value::Int(_), Value::UInt(thread)] => *thread,
                [Value::Int(thread)] => *thread as u64,
                _ => panic!("{context:?}"),
            };
            let [.., Value::UInt(code), Value::UInt(_), Value::Array(params)] = &payload[..] else {
                panic!("{payload:?}");
            };
            let params = params.iter().map(|param| match param {
                Value::UInt(value) => *value,
                _ => panic!("{param:?}"),
            });
            records.push((event.time.expect("a time"), thread, *code, params.collect()));
            names.push(class.streams[0].events[event.class].name.to_string());
        }
    }
    (records, names)
}

fn imported(file: &Path) -> (TempDir, Summary) {
    assert!(is_importable(file));
    let directory = TempDir::new().expect("a directory");
    let to = directory.path().join("to");
    let summary = import(file, &to, &AtomicBool::new(false)).expect("it is imported");
    (directory, summary)
}

#[test]
fn a_trace_of_libfxt_is_imported_as_fxt_print_prints_it() {
    if !has_tools() {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let file = record(directory.path());
    let (to, summary) = imported(&file);
    assert_eq!(summary.damage, [] as [&str; 0]);
    let expected = printed(&file);
    let (found, names) = read(&to.path().join("to/ust"));
    assert!(expected.len() > 6000, "{}", expected.len());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    for name in [
        "tracebraid:ult_create",
        "tracebraid:ult_name",
        "tracebraid:ult_switch",
        "tracebraid:ult_exit",
        "tracebraid:lwp_begin",
        "tracebraid:prof_in",
        "tracebraid:prof_out",
        "fxt:fut_setup",
        "fxt:code_1234",
        "fxt:code_99",
    ] {
        assert!(names.iter().any(|of| of == name), "no {name}");
    }
}

/// A file of a made-up machine.
struct Made {
    is_big: bool,
    bytes: Vec<u8>,
}

impl Made {
    fn number(&mut self, value: u64, size: usize) {
        let bytes = value.to_be_bytes();
        let start = self.bytes.len();
        self.bytes.extend(&bytes[8 - size..]);
        if !self.is_big {
            self.bytes[start..].reverse();
        }
    }

    fn block(&mut self, kind: u64, content: impl FnOnce(&mut Made)) {
        let start = self.bytes.len();
        self.number(0, 8);
        self.number(kind, 4);
        self.number(0, 4);
        content(self);
        let size = (self.bytes.len() - start) as u64;
        let mut patch = Made {
            is_big: self.is_big,
            bytes: Vec::new(),
        };
        patch.number(size, 8);
        self.bytes[start..start + 8].copy_from_slice(&patch.bytes);
    }

    /// A head of a program's trace on a machine of 1 GHz.
    fn new(arch: u32, space: u64) -> Made {
        let mut made = Made {
            is_big: arch >= 0x1_0000,
            bytes: arch.to_be_bytes().to_vec(),
        };
        made.block(1, |made| {
            made.block(0x10, |made| {
                for value in [space, 1, 1000, 7, 7] {
                    made.number(value, 4);
                }
                for value in [1_700_000_000, 1_700_000_001, 5, 6] {
                    made.number(value, 8);
                }
                made.number(4096, 4);
            });
            made.block(0x12, |made| {
                made.number(0, 4);
                made.number(1, 4);
            });
            made.block(0x11, |made| {
                made.number(12, 4);
                made.bytes.extend(b"Linux host 6");
            });
            made.block(0x13, |made| {
                made.number(0x40_1000, 8);
                made.number(4, 4);
                made.bytes.extend(b"work");
                made.number(0, 8);
            });
            made.block(0x14, |made| made.number(0, 8));
        });
        made
    }

    /// Random records of a program.
    fn records(&mut self, is_64: bool, random: &mut Rng) {
        let word = if is_64 { 8 } else { 4 };
        let kind = if is_64 { 0x201 } else { 0x200 };
        self.block(kind, |made| {
            for time in 0..500 {
                let count = random.below(6);
                // Not 0xfff6: libfxt allocates as much memory as its parameter asks for.
                let codes = [0x31a, 0xfff9, 0xfff8, 0x320, 0x77, 0xabc];
                let code = codes[random.below(6) as usize];
                made.number(1_000_000 + 10 * time, 8);
                made.number(1 + random.below(5), word);
                made.number(code << 8 | (count + 1), word);
                for _ in 0..count {
                    made.number(1 + random.below(1 << 31), word);
                }
            }
        });
    }
}

#[test]
fn word_sizes_and_byte_orders_are_read_as_libfxt_does() {
    let has_tools = has_tools();
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("trace.fxt");
    let mut random = Rng::new(7);
    for (arch, is_64) in [(0, false), (2, true), (0x1_0000, false), (0x2_0000, true)] {
        let mut made = Made::new(arch, 1);
        made.records(is_64, &mut random);
        std::fs::write(&file, &made.bytes).expect("written");
        let (to, summary) = imported(&file);
        assert_eq!(summary.damage, [] as [&str; 0], "{arch:x}");
        let (found, _) = read(&to.path().join("to/ust"));
        assert_eq!(found.len(), 500, "{arch:x}");
        if !has_tools {
            continue;
        }
        let mut expected = printed(&file);
        if arch >= 0x1_0000 {
            // libfxt leaves parameters in the byte order of the file (`READRAW` of ev.c).
            let swap = |param: &mut u64| match is_64 {
                true => *param = param.swap_bytes(),
                false => *param = u64::from((*param as u32).swap_bytes()),
            };
            expected.iter_mut().flat_map(|of| &mut of.3).for_each(swap);
        }
        assert_eq!(expected.len(), 500, "fxt_print, {arch:x}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{arch:x}");
        }
    }
}

#[test]
fn records_of_the_kernel_are_read_from_pages() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("trace.fxt");
    let mut made = Made::new(0, 0);
    made.block(0x100, |made| {
        let padding = 4096 - (made.bytes.len() + 8) % 4096;
        made.number(padding as u64, 8);
        made.bytes.resize(made.bytes.len() + padding, 0);
        for page in 0..3u64 {
            let start = made.bytes.len();
            made.number(4 + 2 * 12 + 4, 4);
            // The clock's low half overflows between the pages.
            made.number((0xffff_fff0 + 16 * page) & 0xffff_ffff, 4);
            made.number(42, 2);
            made.number(1, 2);
            made.number(0x31a << 8 | 4, 4);
            made.number(43, 4);
            made.number((0xffff_fff8 + 16 * page) & 0xffff_ffff, 4);
            made.number(43, 2);
            made.number(1, 2);
            made.number(4, 4);
            made.bytes.resize(start + 4096, 0);
        }
        made.number(0xfefe_fefe, 4);
    });
    std::fs::write(&file, &made.bytes).expect("written");
    let (to, summary) = imported(&file);
    assert_eq!(summary.damage, [] as [&str; 0]);
    let (found, names) = read(&to.path().join("to/kernel"));
    let mut expected = Vec::new();
    for page in 0..3 {
        expected.push((0xffff_fff0 + 16 * page, 42, 0x31a, vec![43]));
        expected.push((0xffff_fff8 + 16 * page, 43, 4, vec![]));
    }
    assert_eq!(found, expected);
    assert_eq!(names[..2], ["fkt:switch_to", "fkt:system_call"]);
}

#[test]
fn records_out_of_order_are_sorted() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("trace.fxt");
    let mut made = Made::new(2, 1);
    made.block(0x201, |made| {
        for time in [20u64, 10, 40, 30] {
            for value in [time, 5, 0x77 << 8 | 1] {
                made.number(value, 8);
            }
        }
    });
    std::fs::write(&file, &made.bytes).expect("written");
    let (to, _) = imported(&file);
    let (found, _) = read(&to.path().join("to/ust"));
    let times: Vec<u64> = found.iter().map(|record| record.0).collect();
    assert_eq!(times, [10, 20, 30, 40]);
}

#[test]
fn a_file_that_ends_anywhere_is_read_up_to_there_or_refused() {
    let directory = TempDir::new().expect("a directory");
    let (file, to) = (directory.path().join("file"), directory.path().join("to"));
    let mut made = Made::new(2, 1);
    made.records(true, &mut Rng::new(1));
    let mut said = String::new();
    for length in (20..made.bytes.len()).step_by(211) {
        std::fs::write(&file, &made.bytes[..length]).expect("written");
        match import(&file, &to, &AtomicBool::new(false)) {
            Ok(summary) => {
                assert!(
                    !summary.damage.is_empty() || summary.events == 0,
                    "{length} bytes"
                );
                std::fs::remove_dir_all(&to).expect("removed");
            }
            Err(error) => writeln!(said, "{error}").expect("text"),
        }
        assert!(!to.exists() && !directory.path().join("to.part").exists());
    }
    assert!(said.contains("but the file has only"), "{said}");
}
