//! Descriptors: file, bytes read and bytes written, compared with a plain pass over all events in
//! the order of time.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_history::{Asked, AttributeKind, History, Subject};

use crate::law::{SHAPE, random_times};
use crate::model::Values;
use crate::{Scratch, build_asked};
use tracebraid_models::events::{Entry, ModelEvent, Record, by_cpu, merged};
use tracebraid_models::model_fds::{Descriptors, Held};
use tracebraid_models::model_io::{Call, call_of};
use tracebraid_models::synthetic::{Shape, trace};
use tracebraid_models::traces::kernel_trace;

type Table = (u32, i32);

const READS: &str = "read pread64 readv preadv preadv2 recvfrom recvmsg recvmmsg";
const WRITES: &str = "write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg";
const COPIES: &str = "sendfile64 splice tee copy_file_range";
const SYNCS: &str = "fsync fdatasync syncfs sync_file_range";

#[derive(Default)]
struct Model {
    running: HashMap<(u32, u32), i32>,
    open: HashMap<(u32, i32), (String, i64, Record)>,
    descriptors: Descriptors,
    /// Files of descriptors when they were last checked.
    held: HashMap<(Table, i32), Held>,
    /// Calls, bytes read and written.
    sums: BTreeMap<(Table, i32), [i64; 3]>,
    /// By thread: bytes read and written.
    moved: BTreeMap<(u32, i32), [i64; 2]>,
    /// The values that the history contains: sums of a closed descriptor are absent until it is
    /// used again.
    seen: BTreeMap<(u32, i32, usize), i64>,
}

fn is_one_of(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|of| of == name)
}

impl Model {
    fn step(&mut self, entry: Entry) {
        let (time, trace, cpu) = (entry.time, entry.trace, entry.cpu);
        let event = match entry.what {
            ModelEvent::Packet { lost, .. } => return assert!(!lost, "nothing was lost"),
            ModelEvent::Event(event) => event,
            ModelEvent::Cut => return,
        };
        let tid = self
            .running
            .get(&(trace, cpu))
            .copied()
            .filter(|&tid| tid != 0);
        match (event.name.as_str(), call_of(&event.name), tid) {
            ("sched_switch", ..) => {
                self.running
                    .insert((trace, cpu), event.id("next_tid").unwrap());
            }
            ("sched_process_exec", ..) => {
                let (old, new) = (event.id("old_tid").unwrap(), event.id("tid").unwrap());
                if old != new {
                    self.running.insert((trace, cpu), new);
                    self.seen.retain(|key, _| (key.0, key.1) != (trace, old));
                    let open = self.open.remove(&(trace, old));
                    self.open.extend(open.map(|open| ((trace, new), open)));
                }
                self.other(trace, new, time, &event);
            }
            (_, None, _) => self.other(trace, tid.unwrap_or(-1), time, &event),
            (_, Some((true, Some(name))), Some(tid)) => self.enters(trace, tid, time, name, event),
            (_, Some((false, Some(name))), Some(tid)) => {
                let open = self
                    .open
                    .remove(&(trace, tid))
                    .filter(|open| open.0 == name);
                let Some((name, entry_time, entry)) = open else {
                    return;
                };
                let call = Call {
                    trace,
                    tid,
                    name,
                    entry_time,
                    exit_time: time,
                    cpu,
                    entry,
                    exit: event,
                };
                self.used(&call);
                self.descriptors.call(&call);
                self.copied(&call);
                self.look(
                    self.descriptors.table(trace, tid, i64::MAX),
                    call.name == "connect",
                );
            }
            _ => {}
        }
    }

    fn other(&mut self, trace: u32, running: i32, time: i64, event: &Record) {
        let names = [
            "tid",
            "pid",
            "parent_tid",
            "parent_pid",
            "child_tid",
            "child_pid",
        ];
        let mut threads: Vec<i32> = names.iter().filter_map(|name| event.id(name)).collect();
        threads.push(running);
        let tables = |descriptors: &Descriptors| -> Vec<Table> {
            let own = threads.iter().map(|&tid| (trace, tid));
            let theirs = threads
                .iter()
                .map(|&tid| descriptors.table(trace, tid, i64::MAX));
            own.chain(theirs).collect()
        };
        let before = tables(&self.descriptors);
        if event.name == "sched_process_exit" {
            let table = self
                .descriptors
                .table(trace, event.id("tid").unwrap(), i64::MAX);
            if self.descriptors.others(table) == 0 {
                self.close(table, 0, i32::MAX);
            }
        }
        if event.name == "sched_process_fork" {
            let child = (trace, event.id("child_tid").unwrap());
            self.open.remove(&child);
            self.moved.remove(&child);
            self.seen.retain(|key, _| (key.0, key.1) != child);
        }
        if event.name == "sched_process_free" {
            let gone = (trace, event.id("tid").unwrap());
            self.seen.retain(|key, _| (key.0, key.1) != gone);
        }
        let learns = match event.name.as_str() {
            "lttng_statedump_process_state" => event.id("tid"),
            "sched_process_fork" => event.id("parent_tid"),
            _ => None,
        };
        let table_of = |descriptors: &Descriptors, tid| descriptors.table(trace, tid, i64::MAX);
        let alone = learns.filter(|&tid| table_of(&self.descriptors, tid) == (trace, tid));
        self.descriptors.event(trace, running, time, event);
        // The thread belongs to a process, which has the descriptors.
        if let Some(tid) = alone.filter(|&tid| table_of(&self.descriptors, tid) != (trace, tid)) {
            self.close((trace, tid), 0, i32::MAX);
        }
        if event.name == "sched_process_fork" {
            let child = (trace, event.id("child_tid").unwrap());
            let is_own = self.descriptors.table(trace, child.1, i64::MAX) == child;
            if is_own && self.descriptors.others(child) == 0 {
                self.close(child, 0, i32::MAX);
            }
        }
        let mut changed: Vec<Table> = before
            .into_iter()
            .chain(tables(&self.descriptors))
            .collect();
        if event.name == "lttng_statedump_file_descriptor" {
            changed = self.descriptors.tables().collect();
        }
        for table in changed {
            self.look(table, false);
        }
    }

    fn enters(&mut self, trace: u32, tid: i32, time: i64, name: String, event: Record) {
        if ["close", "close_range", "clone", "clone3", "fork", "vfork"].contains(&name.as_str()) {
            let table = self.descriptors.table(trace, tid, i64::MAX);
            match name.as_str() {
                "close" => self.close(table, event.id("fd").unwrap(), event.id("fd").unwrap()),
                // A thread that receives its own copy closes descriptors in the copy.
                "close_range"
                    if event.int("flags").unwrap() & 2 != 0
                        && self.descriptors.others(table) > 0 => {}
                "close_range" if event.int("flags").unwrap() & 4 == 0 => {
                    // Some tracers record a signed number.
                    let last = event.int("max_fd").unwrap() as u32;
                    self.close(
                        table,
                        event.id("fd").unwrap(),
                        last.min(i32::MAX as u32) as i32,
                    );
                }
                _ => {}
            }
            self.descriptors.entry(trace, tid, time, &name, &event);
            self.look(self.descriptors.table(trace, tid, i64::MAX), false);
        }
        self.open.insert((trace, tid), (name, time, event));
    }

    /// Adds a call to the sums.
    fn used(&mut self, call: &Call) {
        let name = call.name.as_str();
        let argument = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| call.entry.id(name))
                .unwrap_or(-1)
        };
        let (from, to) = match name {
            _ if is_one_of(READS, name) || is_one_of(SYNCS, name) => {
                (argument(&["fd", "sockfd"]), -1)
            }
            _ if is_one_of(WRITES, name) => (-1, argument(&["fd", "sockfd"])),
            _ if is_one_of(COPIES, name) => (
                argument(&["in_fd", "fd_in", "fdin"]),
                argument(&["out_fd", "fd_out", "fdout"]),
            ),
            _ => return,
        };
        let moves = !is_one_of(SYNCS, name) && !name.ends_with("mmsg");
        let bytes = call.exit.int("ret").filter(|_| moves).unwrap_or(0).max(0);
        let table = self
            .descriptors
            .table(call.trace, call.tid, call.entry_time);
        let is_its = self.descriptors.table(call.trace, call.tid, i64::MAX) == table;
        let thread = (call.trace, call.tid);
        for (at, is_side) in [(0, !is_one_of(WRITES, name)), (1, !is_one_of(READS, name))] {
            if is_side && bytes > 0 {
                let sum = &mut self.moved.entry(thread).or_default()[at];
                *sum += bytes;
                self.seen.insert((thread.0, thread.1, at), *sum);
            }
        }
        for (fd, place) in [(from, 1), (to, 2)] {
            if fd >= 0 && is_its && self.descriptors.is_same(table, fd, call.entry_time) {
                let sums = self.sums.entry((table, fd)).or_default();
                sums[0] += 1;
                sums[place] += bytes;
            }
        }
    }

    /// A copy of an unknown descriptor is a new descriptor under its number.
    fn copied(&mut self, call: &Call) {
        let made = call.exit.id("ret").unwrap();
        let is_copy = match call.name.as_str() {
            "dup" => true,
            "dup2" | "dup3" => call.entry.id("oldfd") != Some(made),
            "fcntl" => matches!(call.entry.int("cmd"), Some(0 | 1030)),
            _ => false,
        };
        let table = self.descriptors.table(call.trace, call.tid, i64::MAX);
        if made >= 0 && is_copy && self.descriptors.held(table, made, i64::MAX).0.name == "unknown"
        {
            self.close(table, made, made);
        }
    }

    fn close(&mut self, table: Table, first: i32, last: i32) {
        if first <= last {
            self.sums
                .retain(|(of, fd), _| *of != table || !(first..=last).contains(fd));
        }
    }

    /// Updates the files of the descriptors in a table.
    fn look(&mut self, table: Table, is_same: bool) {
        for fd in self.descriptors.fds(table) {
            let now = self.descriptors.held(table, fd, i64::MAX).0;
            let before = self.held.get(&(table, fd));
            if now.name == "unknown" {
                if before.is_some() {
                    self.close(table, fd, fd);
                    self.held.remove(&(table, fd));
                }
            } else if before != Some(&now) {
                if before.is_some() && !is_same {
                    self.close(table, fd, fd);
                }
                self.held.insert((table, fd), now);
            }
        }
    }

    fn values(&self) -> Values {
        let mut values = Values::new();
        let path = |((_, process), fd): &(Table, i32), name: &str| {
            (*process >= 0).then(|| format!("file/{process}:{fd}/{name}"))
        };
        let mut put = |of: &(Table, i32), name: &str, value: String| {
            values.extend(path(of, name).map(|path| (path, value)));
        };
        for (of, held) in &self.held {
            put(of, "name", held.name.clone());
            put(of, "kind", held.kind.name().to_owned());
        }
        for ((_, tid, at), sum) in &self.seen {
            let name = ["read", "written"][*at];
            values.insert(format!("thread/{tid}/{name}"), sum.to_string());
        }
        let mut put = |of: &(Table, i32), name: &str, value: String| {
            values.extend(path(of, name).map(|path| (path, value)));
        };
        for (of, sums) in &self.sums {
            for (name, sum) in ["calls", "read", "written"].into_iter().zip(sums) {
                if *sum > 0 {
                    put(of, name, sum.to_string());
                }
            }
        }
        values
    }
}

fn files(set: &TraceSet, (threads, chunk): (usize, u64)) -> (Scratch, History) {
    let place = Scratch::new();
    let file = place.file("history");
    let asked = Asked {
        files: true,
        ..Asked::default()
    };
    build_asked(set, asked, &file, threads, chunk);
    let history = History::open(&file).unwrap();
    (place, history)
}

#[test]
fn descriptors_are_what_a_plain_pass_says() {
    for (name, count) in [("kernel-mix-small", 1000), ("kernel-ust-requests", 200)] {
        if let Some(set) = kernel_trace(name) {
            let most = as_a_plain_pass_says(name, &set, count, (2, 100_000));
            assert!(most > 3, "{name}: {most}");
        }
    }
}

/// Unnamed descriptors are read, receive flags and are copied; threads migrate during calls.
#[test]
fn made_up_descriptors_are_what_a_plain_pass_says() {
    for seed in [0, 1, 2, 5, 10, 11, 16, 38, 75] {
        let shape = Shape {
            told_threads: seed % 2 == 1,
            ..SHAPE
        };
        let (directory, set) = trace(seed, shape);
        let cut = [(1, u64::MAX), (1, 1), (3, 5000)][seed as usize % 3];
        let most = as_a_plain_pass_says(&format!("seed {seed}, {cut:?}"), &set, 400, cut);
        assert!(most > 3, "seed {seed}: {most}");
        fs::remove_dir_all(directory).unwrap();
    }
}

/// Returns the maximum number of descriptors that were read.
fn as_a_plain_pass_says(name: &str, set: &TraceSet, count: usize, cut: (usize, u64)) -> usize {
    let (_place, history) = files(set, cut);
    let meta = history.meta();
    assert!(meta.files);
    let mut model = Model::default();
    let mut entries = merged(by_cpu(set, |_| true)).into_iter().peekable();
    let mut most = 0;
    for time in random_times(meta.begin, meta.end, count) {
        while let Some(entry) = entries.next_if(|entry| entry.time <= time) {
            model.step(entry);
        }
        let found = history.at(time, |attribute| {
            let kind = attribute.kind();
            kind.subject() == Subject::File
                || matches!(
                    kind,
                    AttributeKind::ThreadRead | AttributeKind::ThreadWritten
                )
        });
        let found: Values = found
            .unwrap()
            .iter()
            .map(|(attribute, value)| (attribute.path().to_string(), value.to_string()))
            .collect();
        let expected = model.values();
        let differs = |path: &&String| found.get(*path) != expected.get(*path);
        let paths = found.keys().chain(expected.keys());
        let wrong: Vec<_> = paths
            .filter(differs)
            .map(|path| (path, found.get(path), expected.get(path)))
            .take(8)
            .collect();
        assert!(wrong.is_empty(), "{name} at {time}: {wrong:?}");
        most = most.max(
            expected
                .keys()
                .filter(|path| path.ends_with("/read"))
                .count(),
        );
    }
    most
}
