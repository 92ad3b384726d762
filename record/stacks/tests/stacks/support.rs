//! Compiles the programs, runs them with the library, reads their traces and finds symbols.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::{Encoding, IntClass};
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::walk::Visitor;

/// Where cargo put the shared library.
fn library() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let directories = executable.ancestors().skip(1).take(2);
    directories
        .map(|directory| directory.join("libtracebraid_stacks.so"))
        .find(|path| path.exists())
        .expect("cargo builds libtracebraid_stacks.so with the tests")
}

/// Compiles a program; gives where it is.
pub fn compile(source: &str, out: &str, options: &[&str]) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    // Tests of other crates have that directory too.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stacks");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(out);
    if !path.exists() || std::fs::metadata(&path).unwrap().modified().unwrap() < modified(source) {
        let output = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
            .arg(&path)
            .arg(program_source(source))
            .args(options)
            .output()
            .expect("a C compiler");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    path
}

fn program_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

fn modified(source: &str) -> std::time::SystemTime {
    std::fs::metadata(program_source(source))
        .unwrap()
        .modified()
        .unwrap()
}

/// The usual program: optimised, without frame pointers.
pub fn chains() -> PathBuf {
    compile(
        "chains.c",
        "chains",
        &["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"],
    )
}

/// The library that it loads.
pub fn plugin() -> PathBuf {
    compile(
        "plugin.c",
        "libplugin.so",
        &["-O2", "-fPIC", "-shared", "-fomit-frame-pointer"],
    )
}

/// A directory for a session.
pub struct Session(tempfile::TempDir);

impl Session {
    pub fn new() -> Session {
        Session(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn command(&self, program: &Path, options: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "60"]);
        command
            .arg("env")
            .arg(format!("LD_PRELOAD={}", library().display()));
        command.arg(program);
        command
            .env("TRACEBRAID_SESSION", self.0.path())
            .env("TRACEBRAID_STACKS", options);
        command
    }

    /// Runs the usual program to a good end.
    pub fn run(&self, arguments: &[&str], options: &str) -> Output {
        let output = self.command(&chains(), options).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        output
    }

    /// Whether a process whose name begins like that records. It may be read when it has ended: what describes its events grows
    /// meanwhile.
    pub fn is_recording(&self, name: &str) -> bool {
        let entries = std::fs::read_dir(self.0.path().join("ust/pid"));
        let mut entries = entries.into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_str().unwrap().starts_with(name))
    }

    /// The records of all processes whose name begins like that.
    pub fn read(&self, name: &str) -> Vec<Process> {
        let Ok(entries) = std::fs::read_dir(self.0.path().join("ust/pid")) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name));
        paths.sort();
        paths.iter().map(|path| read(path)).collect()
    }

    /// The records of the only process.
    pub fn read_one(&self) -> Process {
        let mut all = self.read("chains");
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

/// An event record.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub tid: u64,
    pub time: u64,
    pub name: String,
    pub values: HashMap<String, u64>,
    pub text: String,
    pub frames: Vec<u64>,
}

/// What a process has recorded, in the order of time.
pub struct Process {
    pub records: Vec<Record>,
    modules: Vec<Record>,
}

fn read(directory: &Path) -> Process {
    let trace = Trace::open(directory).unwrap_or_else(|error| panic!("{error}"));
    assert!(trace.damage.is_empty(), "{:?}", trace.damage);
    let mut records = Vec::new();
    for stream in &trace.streams {
        let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 1 << 17);
        while reader.peek().is_some() {
            let event = reader.event().unwrap();
            let mut shown = Shown(Record {
                name: event.class.name.as_str().to_owned(),
                time: event.clock,
                ..Record::default()
            });
            { event }.walk_body(&mut shown, |_, _| {}).unwrap();
            let mut context = Shown::default();
            reader.walk_packet_context(&mut context).unwrap();
            shown.0.tid = context.0.values["tid"];
            records.push(shown.0);
            reader.advance();
        }
        let damage = reader.take_damage();
        assert!(damage.is_empty(), "{damage:?}");
    }
    records.sort_by_key(|record| record.time);
    let modules = records
        .iter()
        .filter(|record| record.name.starts_with("lttng_ust_lib:"))
        .cloned()
        .collect();
    Process { records, modules }
}

#[derive(Default)]
struct Shown(Record);

impl Visitor for Shown {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        if class.length == 64 && node.name.as_str().is_empty() {
            self.0.frames.push(raw);
        } else {
            self.0.values.insert(node.name.as_str().to_owned(), raw);
        }
    }
    fn float(&mut self, _: &Node, _: u32, _: f64) {}
    fn string(&mut self, _: &Node, _: Encoding, bytes: &[u8]) {
        self.0.text = String::from_utf8_lossy(bytes).into_owned();
    }
    fn begin_struct(&mut self, _: &Node, _: usize) {}
    fn end_struct(&mut self, _: &Node) {}
    fn begin_array(&mut self, _: &Node, _: u64) {}
    fn end_array(&mut self, _: &Node) {}
}

impl Process {
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(move |record| record.name == name)
    }

    /// Modules that were there at a time: first address, length, path.
    fn modules(&self, time: u64) -> Vec<(u64, u64, &str)> {
        let mut modules = Vec::new();
        for record in self.modules.iter().take_while(|record| record.time <= time) {
            match record.name.as_str() {
                "lttng_ust_lib:load" => {
                    modules.push((
                        record.values["baddr"],
                        record.values["memsz"],
                        record.text.as_str(),
                    ));
                }
                "lttng_ust_lib:unload" => modules.retain(|module| module.0 != record.values["baddr"]),
                _ => {}
            }
        }
        modules
    }

    /// The functions of a stack, innermost first; those of stripped modules by their file's name.
    pub fn functions(&self, record: &Record) -> Vec<String> {
        let modules = self.modules(record.time);
        let mut asked: HashMap<&str, Vec<(usize, u64)>> = HashMap::new();
        let mut functions = vec!["?".to_owned(); record.frames.len()];
        for (index, address) in record.frames.iter().enumerate() {
            let address = address - u64::from(index > 0);
            let module = modules
                .iter()
                .find(|module| (module.0..module.0 + module.1).contains(&address));
            if let Some((base, _, path)) = module {
                asked.entry(path).or_default().push((index, address - base));
            }
        }
        for (path, places) in asked {
            for ((index, _), name) in places.iter().zip(symbols(path, &places)) {
                functions[*index] = name;
            }
        }
        functions
    }
}

/// Names of functions by module and offset: most are asked for again and again.
static NAMES: Mutex<BTreeMap<(String, u64), String>> = Mutex::new(BTreeMap::new());

fn symbols(path: &str, places: &[(usize, u64)]) -> Vec<String> {
    let mut names = NAMES.lock().unwrap_or_else(|error| error.into_inner());
    let offsets = places.iter().map(|place| place.1);
    let new: BTreeSet<u64> = offsets
        .clone()
        .filter(|&offset| !names.contains_key(&(path.to_owned(), offset)))
        .collect();
    if !new.is_empty() {
        for (&offset, name) in new.iter().zip(look_up(path, &new)) {
            names.insert((path.to_owned(), offset), name);
        }
    }
    offsets
        .map(|offset| names[&(path.to_owned(), offset)].clone())
        .collect()
}

fn look_up(path: &str, offsets: &BTreeSet<u64>) -> Vec<String> {
    let file = Path::new(path).file_name().unwrap().to_str().unwrap();
    // Not everybody has its symbols.
    if file.starts_with("libc.so") {
        return vec![file.to_owned(); offsets.len()];
    }
    let shown = offsets.iter().map(|offset| format!("{offset:#x}"));
    let output = Command::new("addr2line")
        .args(["-f", "-e", path])
        .args(shown)
        .output();
    let output = output.expect("addr2line, of binutils");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<String> = text
        .lines()
        .step_by(2)
        .map(|name| name.replace("??", file))
        .collect();
    names.resize(offsets.len(), file.to_owned());
    names
}
