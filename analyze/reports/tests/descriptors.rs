//! Descriptors of threads: scripted events, and the types that `io` finds.

use std::collections::BTreeMap;

use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::KernelAnalysis;
use tracebraid_kernel_model::FdType::{self, Anonymous, File, Network, Pipe, Unknown};
use tracebraid_models::naming::{Field, Maker, TEXT, Value};
use tracebraid_models::plain::{IoReport, IoType, plain};
use tracebraid_models::synthetic::{Scripted, Shape, scripted};
use tracebraid_reports::io::IoAnalysis;

use Value::{Int, List, Text};

const SHAPE: Shape = Shape {
    cpus: 1,
    threads: 0,
    steps: 0,
    packet: 500,
    told_threads: true,
    tid_context: true,
    ..Shape::PLAIN
};

const FILES: i64 = 0x400;
const THREAD: i64 = 0x1_0000;
const CLOSE_ON_EXEC: i64 = 0x8_0000;

/// Scripted events, and the calls that the report must contain.
#[derive(Default)]
struct Script {
    events: Vec<Scripted<'static>>,
    /// Bytes read by thread and type; another power of two for each call.
    expected: BTreeMap<(i32, FdType), u64>,
    reads: u32,
}

impl Script {
    fn event(&mut self, tid: i32, name: &'static str, fields: Vec<Field<'static>>) {
        let time = 1000 + 10 * self.events.len() as u64;
        self.events
            .push((0, time, Maker { tid, pid: tid }, name, fields));
    }

    fn call(&mut self, tid: i32, name: &str, fields: Vec<Field<'static>>, result: i64) {
        let leaked = |way| format!("{way} {name}").leak();
        self.event(tid, leaked("entry"), fields);
        let mut fields = vec![("ret", 64, Int(result))];
        if name == "pipe2" {
            fields = vec![
                ("ret", 64, Int(0)),
                ("fildes", 32, List(vec![result, result + 1])),
            ];
        }
        self.event(tid, leaked("exit"), fields);
    }

    /// A thread reads from a descriptor, which must have the given type.
    fn reads(&mut self, tid: i32, fd: i64, kind: FdType) {
        let bytes = 1u64 << self.reads;
        self.reads += 1;
        self.call(tid, "read", vec![("fd", 32, Int(fd))], bytes as i64);
        *self.expected.entry((tid, kind)).or_default() += bytes;
    }

    fn opens(&mut self, tid: i32, fd: i64) {
        self.call(tid, "openat", vec![("flags", 32, Int(0))], fd);
    }

    fn closes(&mut self, tid: i32, fd: i64) {
        self.call(tid, "close", vec![("fd", 32, Int(fd))], 0);
    }

    fn makes_thread(&mut self, parent: (i32, i32), child: (i32, i32), flags: i64) {
        self.event(
            parent.0,
            "entry clone",
            vec![("clone_flags", 64, Int(flags))],
        );
        self.forks(parent, child);
        self.event(
            parent.0,
            "exit clone",
            vec![("ret", 64, Int(child.0.into()))],
        );
    }

    fn forks(&mut self, parent: (i32, i32), child: (i32, i32)) {
        let fields = vec![
            ("parent_tid", 32, Int(parent.0.into())),
            ("parent_pid", 32, Int(parent.1.into())),
            ("child_tid", 32, Int(child.0.into())),
            ("child_pid", 32, Int(child.1.into())),
        ];
        self.event(parent.0, "sched_process_fork", fields);
    }

    fn executes(&mut self, tid: i32) {
        let id = || Int(tid.into());
        let fields = vec![
            ("filename", TEXT, Text("/bin/x")),
            ("tid", 32, id()),
            ("old_tid", 32, id()),
        ];
        self.event(tid, "sched_process_exec", fields);
    }

    fn ends(&mut self, tid: i32) {
        self.event(
            tid,
            "sched_process_exit",
            vec![("tid", 32, Int(tid.into()))],
        );
    }

    /// The state dump contains a process with its table and, optionally, a descriptor in it.
    fn is_dumped(&mut self, pid: i32, address: i64, fd: Option<(i64, &'static str)>) {
        let id = || Int(pid.into());
        let fields = vec![
            ("tid", 32, id()),
            ("pid", 32, id()),
            ("file_table_address", 64, Int(address)),
        ];
        self.event(1, "lttng_statedump_process_state", fields);
        if let Some((fd, path)) = fd {
            let fields = vec![
                ("file_table_address", 64, Int(address)),
                ("fd", 32, Int(fd)),
                ("flags", 32, Int(0)),
                ("filename", TEXT, Text(path)),
            ];
            self.event(1, "lttng_statedump_file_descriptor", fields);
        }
    }

    /// Checks the expectations with chunks of several sizes.
    fn holds(mut self) {
        let (directory, set) = scripted(SHAPE, std::mem::take(&mut self.events));
        let analysis = IoAnalysis::new(&set, Default::default());
        for chunk_bytes in [1, u64::MAX] {
            let options = Options {
                threads: 1,
                chunk_bytes,
                ..Options::default()
            };
            let done = fold(&set, &analysis, options, &Control::default()).expect("not cancelled");
            let mut found = BTreeMap::new();
            let report: IoReport = plain(&done.report);
            for row in &report.threads {
                let of_type = |row: &IoType| (row.kind, row.stats.read_bytes);
                for (kind, bytes) in row.types.iter().map(of_type) {
                    found.insert((row.thread.tid.unwrap_or(-1), kind), bytes);
                }
            }
            assert_eq!(self.expected, found, "in chunks of {chunk_bytes} bytes");
        }
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
}

#[test]
fn processes_that_share_see_what_the_other_opens_and_closes() {
    let mut script = Script::default();
    script.opens(100, 3);
    script.makes_thread((100, 100), (200, 200), FILES);
    script.opens(200, 5);
    script.reads(100, 5, File);
    script.call(100, "pipe2", vec![("flags", 32, Int(0))], 6);
    script.reads(200, 6, Pipe);
    script.closes(100, 3);
    script.reads(200, 3, Unknown);
    script.ends(200);
    script.reads(100, 5, File);
    script.holds();
}

#[test]
fn without_the_flag_a_process_has_a_copy() {
    let mut script = Script::default();
    script.opens(100, 3);
    script.makes_thread((100, 100), (200, 200), 17);
    script.opens(200, 5);
    script.reads(100, 5, Unknown);
    script.closes(100, 3);
    script.reads(200, 3, File);
    script.holds();
}

#[test]
fn exec_ends_the_sharing() {
    let mut script = Script::default();
    script.makes_thread((100, 100), (200, 200), FILES);
    script.call(100, "pipe2", vec![("flags", 32, Int(CLOSE_ON_EXEC))], 6);
    script.opens(100, 3);
    // The previous owner leaves: the other process keeps all descriptors.
    script.executes(100);
    script.reads(100, 6, Unknown);
    script.reads(100, 3, File);
    script.reads(200, 6, Pipe);
    script.opens(200, 8);
    script.reads(100, 8, Unknown);
    // A new process of that id does not get the descriptors that the other one still has.
    script.ends(100);
    script.makes_thread((1, 1), (100, 100), 17);
    script.reads(100, 8, Unknown);
    script.opens(100, 9);
    script.reads(200, 9, Unknown);
    script.reads(200, 8, File);
    script.holds();
}

#[test]
fn who_unshares_has_a_copy() {
    for call in ["unshare", "close_range"] {
        let mut script = Script::default();
        script.makes_thread((100, 100), (101, 100), FILES | THREAD);
        script.opens(101, 3);
        script.reads(100, 3, File);
        match call {
            "unshare" => script.call(101, call, vec![("unshare_flags", 64, Int(FILES))], 0),
            _ => {
                let fields = vec![
                    ("fd", 32, Int(50)),
                    ("max_fd", 32, Int(-1)),
                    ("flags", 32, Int(2)),
                ];
                script.call(101, call, fields, 0);
            }
        }
        script.reads(101, 3, File);
        script.closes(101, 3);
        script.reads(100, 3, File);
        script.opens(100, 4);
        script.reads(101, 4, Unknown);
        script.holds();
    }
}

#[test]
fn a_thread_may_have_a_copy_too() {
    let mut script = Script::default();
    script.opens(100, 3);
    script.makes_thread((100, 100), (101, 100), THREAD);
    script.closes(101, 3);
    script.reads(100, 3, File);
    script.reads(101, 3, Unknown);
    script.holds();
}

#[test]
fn a_failed_clone_tells_nothing_of_the_next_one() {
    let mut script = Script::default();
    script.call(100, "clone", vec![("clone_flags", 64, Int(FILES))], -11);
    script.event(100, "entry clone3", vec![("size", 64, Int(88))]);
    script.forks((100, 100), (200, 200));
    script.opens(200, 5);
    script.reads(100, 5, Unknown);
    script.holds();
}

#[test]
fn the_state_dump_tells_who_shares() {
    let mut script = Script::default();
    script.is_dumped(100, 0xAA00, Some((3, "/tmp/file")));
    script.is_dumped(200, 0xAA00, Some((4, "anon_inode:[eventpoll]")));
    script.is_dumped(300, 0xBB00, None);
    for tid in [100, 200] {
        script.reads(tid, 3, File);
        script.reads(tid, 4, Anonymous);
    }
    script.reads(300, 3, Unknown);
    let family = vec![("family", 32, Int(2)), ("type", 32, Int(1))];
    script.call(200, "socket", family, 7);
    script.reads(100, 7, Network);
    script.holds();
}

#[test]
fn all_of_an_argument_that_counts_is_its_lower_half() {
    // A caller may leave any bits in the rest of a register; LTTng records the bits that the kernel
    // uses.
    let mut script = Script::default();
    script.opens(100, 3);
    script.call(
        100,
        "close_range",
        vec![("fd", 64, Int(3)), ("max_fd", 64, Int(-1))],
        0,
    );
    script.reads(100, 3, Unknown);
    script.holds();
}
