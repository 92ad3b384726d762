//! Compiles the programs, runs them in a session, reads their traces.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::{DisplayBase, Encoding, IntClass};
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::walk::Visitor;

/// The directory of the shared library that cargo built along with this test.
pub fn library_directory() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let directories = executable.ancestors().skip(1).take(2);
    directories
        .map(Path::to_owned)
        .find(|directory| directory.join("libtracebraid_probe.so").exists())
        .expect("cargo builds libtracebraid_probe.so with the tests")
}

pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// Compiles a program once for all tests; returns its path.
pub fn compile(compiler: &str, name: &str, out: &str, options: &[&str]) -> PathBuf {
    static DONE: OnceLock<Mutex<HashMap<String, PathBuf>>> = OnceLock::new();
    let mut done = DONE
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = done.get(out) {
        return path.clone();
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(out);
    let libraries = library_directory();
    let mut command = Command::new(compiler);
    command
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&path)
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(source(name))
        .args(options);
    if !options.contains(&"-DALONE") {
        command
            .arg("-L")
            .arg(&libraries)
            .args(["-ltracebraid_probe", "-ldl"])
            .arg(format!("-Wl,-rpath,{}", libraries.display()));
    }
    let output = command.output().expect("a C compiler");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    done.insert(out.into(), path.clone());
    path
}

/// The program that most tests trace.
pub fn traced() -> PathBuf {
    compile("cc", "traced.c", "traced", &["-std=c11"])
}

/// Number of events that the program `killed` has reported as written.
pub fn progress_in(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A directory for a session, and its options.
pub struct Session {
    pub directory: tempfile::TempDir,
    without_sequences: bool,
}

impl Session {
    pub fn new(options: &str) -> Session {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("probe.conf"), options).unwrap();
        Session {
            directory,
            without_sequences: false,
        }
    }

    /// Disables restartable sequences in the C library of traced programs.
    pub fn without_sequences(mut self, without: bool) -> Session {
        self.without_sequences = without;
        self
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("TRACEBRAID_SESSION", self.path());
        command.env_remove("TRACEBRAID_PROBE");
        // Cargo's value would lead to an older library from a build without tests.
        command.env_remove("LD_LIBRARY_PATH");
        if self.without_sequences {
            command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        }
        command
    }

    /// Runs the program, which must succeed; returns the numbers that it printed.
    pub fn run(&self, arguments: &[&str]) -> Vec<u64> {
        numbers(&self.command(&traced(), arguments).output().unwrap())
    }

    /// The traces in the session.
    pub fn traces(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.path().join("ust/pid")) else {
            return Vec::new();
        };
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| {
            !path
                .file_name()
                .unwrap()
                .as_encoded_bytes()
                .starts_with(b".")
        });
        found.sort();
        found
    }

    /// The only trace.
    pub fn trace(&self) -> PathBuf {
        let traces = self.traces();
        assert_eq!(traces.len(), 1, "{traces:?}");
        traces[0].clone()
    }

    /// Reads the only trace before and after completion, which must not change its content.
    pub fn read(&self) -> Read {
        let before = read(&self.trace());
        self.finish();
        let after = read(&self.trace());
        assert_eq!(
            before.records, after.records,
            "finishing changed event records"
        );
        assert_eq!(before.discarded, after.discarded);
        after
    }

    pub fn finish(&self) {
        let finished = tracebraid_probe::finish::finish(self.path()).unwrap();
        assert!(finished.failed.is_empty(), "{finished:?}");
        assert!(finished.running.is_empty(), "{finished:?}");
    }
}

pub fn numbers(output: &Output) -> Vec<u64> {
    assert!(
        output.status.success(),
        "{:?}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

/// An event record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub stream: u64,
    pub tid: u64,
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    pub name: String,
    /// Formatted as by babeltrace2.
    pub fields: String,
    pub values: HashMap<String, u64>,
}

impl Record {
    pub fn value(&self, field: &str) -> u64 {
        self.values[field]
    }
}

/// The content of a trace.
#[derive(Debug, Default)]
pub struct Read {
    /// Stream by stream.
    pub records: Vec<Record>,
    pub discarded: u64,
    pub packets: usize,
    pub streams: usize,
}

impl Read {
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Record> {
        self.records
            .iter()
            .filter(move |record| record.name == name)
    }

    pub fn count(&self, name: &str) -> usize {
        self.of(name).count()
    }

    /// Numbers of the records with a number and a check value, all of which must be intact.
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let numbers = self.of(name).map(|record| {
            let n = record.value("n");
            assert_eq!(
                record.value("check"),
                check_of(n),
                "a torn record: {record:?}"
            );
            n
        });
        numbers.collect()
    }
}

pub fn check_of(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1)
}

/// Reads a trace, which must be undamaged and in the order of time.
pub fn read(directory: &Path) -> Read {
    let trace = Trace::open(directory).unwrap_or_else(|error| panic!("{error}"));
    assert!(trace.damage.is_empty(), "{:?}", trace.damage);
    let mut read = Read {
        streams: trace.streams.len(),
        ..Read::default()
    };
    for stream in &trace.streams {
        read.packets += stream.packets.len();
        for packet in &stream.packets {
            assert!(packet.begin <= packet.end, "{packet:?}");
        }
        for pair in stream.packets.windows(2) {
            assert!(pair[0].end <= pair[1].begin, "packets overlap: {pair:?}");
            assert!(pair[0].discarded <= pair[1].discarded);
        }
        read.discarded += stream
            .packets
            .last()
            .and_then(|packet| packet.discarded)
            .unwrap_or(0);
        let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 1 << 17);
        let mut last = 0;
        while reader.peek().is_some() {
            let record = next_record(&mut reader, stream.id.unwrap_or(u64::MAX));
            assert!(record.time >= last, "time goes backwards at {record:?}");
            assert!(
                Some(record.time) <= reader.packet().unwrap().end,
                "after the packet's end: {record:?}"
            );
            last = record.time;
            read.records.push(record);
            reader.advance();
        }
        let damage = reader.take_damage();
        assert!(damage.is_empty(), "{damage:?}");
    }
    read
}

fn next_record(reader: &mut StreamReader<'_>, stream: u64) -> Record {
    let mut context = Shown::default();
    let event = reader.event().unwrap();
    let mut shown = Shown::default();
    let (name, time) = (event.class.name.as_str().to_owned(), event.clock);
    { event }.walk_body(&mut shown, |_, _| {}).unwrap();
    reader.walk_packet_context(&mut context).unwrap();
    Record {
        stream,
        tid: context.values["tid"],
        time,
        name,
        fields: shown.text,
        values: shown.values,
    }
}

/// Formats fields as babeltrace2 does.
#[derive(Default)]
struct Shown {
    text: String,
    values: HashMap<String, u64>,
    depth: usize,
    members: Vec<Option<u64>>,
}

impl Shown {
    fn begin(&mut self, node: &Node) {
        match self.members.last_mut() {
            Some(Some(index)) => {
                let comma = if *index > 0 { ", " } else { "" };
                write!(self.text, "{comma}[{index}] = ").unwrap();
                *index += 1;
            }
            Some(None) => {
                let comma = if self.text.ends_with("{ ") { "" } else { ", " };
                write!(self.text, "{comma}{} = ", node.name.as_str()).unwrap();
            }
            None => {}
        }
    }
}

impl Visitor for Shown {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        self.begin(node);
        self.values.insert(node.name.as_str().to_owned(), raw);
        let bits = class.length;
        match class.base {
            DisplayBase::Hexadecimal => write!(self.text, "0x{raw:X}").unwrap(),
            _ if class.signed => {
                write!(self.text, "{}", (raw << (64 - bits)) as i64 >> (64 - bits)).unwrap()
            }
            _ => write!(self.text, "{raw}").unwrap(),
        }
    }
    fn float(&mut self, node: &Node, _: u32, value: f64) {
        self.begin(node);
        self.text.push_str(&general(value));
    }
    fn string(&mut self, node: &Node, _: Encoding, bytes: &[u8]) {
        self.begin(node);
        let text = String::from_utf8_lossy(bytes);
        let text = text
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        write!(self.text, "\"{text}\"").unwrap();
    }
    fn begin_struct(&mut self, node: &Node, _: usize) {
        if self.depth > 0 {
            self.begin(node);
        }
        self.depth += 1;
        self.text.push_str("{ ");
        self.members.push(None);
    }
    fn end_struct(&mut self, _: &Node) {
        self.members.pop();
        self.text
            .push_str(if self.text.ends_with("{ ") { "}" } else { " }" });
    }
    fn begin_array(&mut self, node: &Node, _: u64) {
        self.begin(node);
        self.text.push_str("[ ");
        self.members.push(Some(0));
    }
    fn end_array(&mut self, _: &Node) {
        self.members.pop();
        self.text
            .push_str(if self.text.ends_with("[ ") { "]" } else { " ]" });
    }
}

/// A number as C's `%g` prints it.
fn general(value: f64) -> String {
    let mut text = [0u8; 64];
    // SAFETY: the buffer and its length; the format takes one double.
    let length =
        unsafe { libc::snprintf(text.as_mut_ptr().cast(), text.len(), c"%g".as_ptr(), value) };
    String::from_utf8_lossy(&text[..length as usize]).into_owned()
}

/// Event records of a trace as babeltrace2 prints them: (clock value, name, fields). babeltrace2
/// may complain about lost events only.
pub fn babeltrace(directory: &Path) -> Vec<(u64, String, String)> {
    let output = Command::new("babeltrace2")
        .args([
            "--clock-cycles",
            "--no-delta",
            "--fields=loglevel",
            "--names=payload",
        ])
        .arg(directory)
        .output()
        .expect("babeltrace2 must be installed for this test: scripts/setup test");
    let errors = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = errors
        .lines()
        .filter(|line| !line.is_empty() && !line.contains("racer discarded"))
        .collect();
    assert!(
        output.status.success() && complaints.is_empty(),
        "babeltrace2: {errors}"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter(|line| !line.is_empty())
        .map(line_of_babeltrace)
        .collect()
}

fn line_of_babeltrace(line: &str) -> (u64, String, String) {
    let (time, rest) = line.split_once("] ").unwrap_or_else(|| panic!("{line}"));
    let time = time
        .trim_start_matches('[')
        .parse()
        .unwrap_or_else(|_| panic!("{line}"));
    let (name, fields) = rest.split_once(": {").unwrap_or_else(|| panic!("{line}"));
    // The packet's context comes first, without names.
    let payload = fields.split_once("}, ").map_or("", |(_, payload)| payload);
    (time, name.to_owned(), payload.to_owned())
}
