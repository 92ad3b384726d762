//! The calls of the files report, by one plain pass over all events in the order of time that keeps
//! all state.

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_kernel_model::{FdType, errno_name};

use crate::events::{ModelEvent, Record, by_cpu, merged};
use crate::model_fds::{Descriptors, anonymous, peer, socket};
use crate::model_io::{Call, call_of};

/// A call, as a row of the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub end: i64,
    pub trace: u32,
    pub tid: i32,
    pub begin: i64,
    pub class: &'static str,
    pub syscall: String,
    pub bytes: Option<i64>,
    pub result: String,
    pub failed: bool,
    /// Path of the file that the call reads, creates or names; path of the file to which it writes,
    /// if another.
    pub paths: (Option<String>, Option<String>),
    pub fd: Option<i64>,
}

impl Row {
    pub fn duration(&self) -> i64 {
        self.end - self.begin
    }
}

const CLASSES: &[(&str, &str)] = &[
    (
        "open",
        "open openat openat2 creat socket pipe pipe2 socketpair dup dup2 dup3 eventfd eventfd2 \
         epoll_create epoll_create1 timerfd_create signalfd signalfd4 inotify_init inotify_init1 \
         memfd_create pidfd_open perf_event_open",
    ),
    ("accept", "accept accept4"),
    (
        "read",
        "read pread64 readv preadv preadv2 recvfrom recvmsg recvmmsg",
    ),
    (
        "write",
        "write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg",
    ),
    ("copy", "sendfile64 splice tee copy_file_range"),
    ("sync", "sync fsync fdatasync syncfs sync_file_range"),
    ("close", "close"),
];
/// Calls that only change descriptors.
const OTHERS: &str = "fcntl unshare connect close_range clone clone3 fork vfork";

fn class(name: &str, entry: &Record) -> Option<&'static str> {
    if name == "fcntl" {
        return matches!(entry.int("cmd"), Some(0 | 1030)).then_some("open");
    }
    let named = |names: &str| names.split_whitespace().any(|of| of == name);
    CLASSES
        .iter()
        .find(|(_, names)| named(names))
        .map(|(class, _)| *class)
}

fn wanted(event: &str) -> bool {
    match call_of(event) {
        Some((_, Some(name))) => {
            class(&name, &Record::default()).is_some()
                || OTHERS.split_whitespace().any(|of| of == name)
        }
        Some((_, None)) => false,
        None => event.starts_with("sched_") || event.starts_with("lttng_statedump"),
    }
}

struct Open {
    name: String,
    time: i64,
    entry: Record,
}

/// All calls, sorted by end. The trace must be without losses.
pub fn calls(set: &TraceSet) -> Vec<Row> {
    let mut running: HashMap<(u32, u32), i32> = HashMap::new();
    let mut open: HashMap<(u32, i32), Open> = HashMap::new();
    let mut descriptors = Descriptors::default();
    let mut rows = Vec::new();
    for entry in merged(by_cpu(set, wanted)) {
        let (time, trace, cpu) = (entry.time, entry.trace, entry.cpu);
        let event = match entry.what {
            ModelEvent::Packet { lost, .. } => {
                assert!(!lost, "no event was lost");
                continue;
            }
            ModelEvent::Event(event) => event,
            ModelEvent::Cut => continue,
        };
        let tid = running.get(&(trace, cpu)).copied().filter(|&tid| tid != 0);
        match (event.name.as_str(), call_of(&event.name), tid) {
            ("sched_switch", ..) => {
                running.insert((trace, cpu), event.id("next_tid").unwrap());
            }
            (name, None, _) => {
                if name == "sched_process_exec" && event.id("tid") != event.id("old_tid") {
                    running.insert((trace, cpu), event.id("tid").unwrap());
                }
                if name == "sched_process_fork" {
                    open.remove(&(trace, event.id("child_tid").unwrap()));
                }
                descriptors.event(trace, tid.unwrap_or(-1), time, &event);
            }
            (_, Some((true, Some(name))), Some(tid)) => {
                open.remove(&(trace, tid));
                if ["close", "close_range", "clone", "clone3", "fork", "vfork"]
                    .contains(&name.as_str())
                {
                    descriptors.entry(trace, tid, time, &name, &event);
                }
                let entry = event;
                open.insert((trace, tid), Open { name, time, entry });
            }
            (_, Some((false, Some(name))), Some(tid)) => {
                let before = open.remove(&(trace, tid)).filter(|open| open.name == name);
                let Some(Open {
                    name,
                    time: begin,
                    entry,
                }) = before
                else {
                    continue;
                };
                let call = Call {
                    trace,
                    tid,
                    name,
                    entry_time: begin,
                    exit_time: time,
                    cpu,
                    entry,
                    exit: event,
                };
                rows.extend(row(&descriptors, &call));
                descriptors.call(&call);
            }
            _ => {}
        }
    }
    rows.sort();
    rows
}

fn row(descriptors: &Descriptors, call: &Call) -> Option<Row> {
    let class = class(&call.name, &call.entry)?;
    let result = call.exit.int("ret").unwrap();
    let failed = (-4095..0).contains(&result);
    let moves = matches!(class, "read" | "write" | "copy") && !call.name.ends_with("mmsg");
    let fd = match class {
        "open" if call.name.starts_with("pipe") || call.name == "socketpair" => {
            let lists = ["fildes", "socket", "usockvec"];
            let pair = lists.iter().find_map(|name| call.exit.lists.get(*name));
            pair.and_then(|pair| pair.first().copied())
                .filter(|_| result >= 0)
        }
        "open" | "accept" => Some(result),
        "copy" => call
            .entry
            .int("in_fd")
            .or(call.entry.int("fd_in"))
            .or(call.entry.int("fdin")),
        _ => call.entry.int("fd"),
    };
    let error = || errno_name(-result).map_or_else(|| (-result).to_string(), str::to_owned);
    Some(Row {
        end: call.exit_time,
        trace: call.trace,
        tid: call.tid,
        begin: call.entry_time,
        class,
        syscall: match call.name.as_str() {
            "sendfile64" => "sendfile".to_owned(),
            name => name.to_owned(),
        },
        bytes: Some(result).filter(|&bytes| moves && bytes >= 0),
        result: if failed { error() } else { result.to_string() },
        failed,
        paths: paths(descriptors, call, class, fd),
        fd: fd.map(|fd| i64::from(fd as i32)).filter(|&fd| fd >= 0),
    })
}

fn paths(
    descriptors: &Descriptors,
    call: &Call,
    class: &str,
    fd: Option<i64>,
) -> (Option<String>, Option<String>) {
    let begin = call.entry_time;
    let table = descriptors.table(call.trace, call.tid, begin);
    let held = |fd: i64, time| Some(descriptors.held(table, fd as i32, time).0.name);
    let argument = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| call.entry.int(name))
            .unwrap_or(-1)
    };
    match class {
        "open" => (Some(opened(descriptors, call)), None),
        "accept" => {
            let listener = argument(&["fd", "sockfd"]);
            if call.exit.int("ret").unwrap() < 0 {
                return (held(listener, begin), None);
            }
            let peer = peer(&call.exit).map(|address| format!("socket from {}", address.ip()));
            let told = call
                .exit
                .int("family")
                .filter(|&family| family > 0)
                .map(FdType::of_family);
            let of_listener = descriptors.held(table, listener as i32, i64::MAX).0.kind;
            (peer.or(Some(socket(told.unwrap_or(of_listener)))), None)
        }
        "copy" => {
            let to = argument(&["out_fd", "fd_out", "fdout"]);
            (held(fd.unwrap_or(-1), begin), held(to, begin))
        }
        "close" => (held(fd.unwrap_or(-1), begin - 1), None),
        _ => (fd.and_then(|fd| held(fd, begin)), None),
    }
}

/// The file that a call opens, or would have opened.
fn opened(descriptors: &Descriptors, call: &Call) -> String {
    let begin = call.entry_time;
    let table = descriptors.table(call.trace, call.tid, begin);
    let source = |name: &str| {
        let fd = call.entry.id(name).unwrap_or(-1);
        descriptors.held(table, fd, begin).0.name
    };
    match call.name.as_str() {
        "open" | "openat" | "openat2" | "creat" => {
            descriptors.path(table, begin, &call.name, &call.entry)
        }
        "socket" | "socketpair" => {
            let family = call.entry.int("family");
            socket(family.map_or(FdType::Socket, FdType::of_family))
        }
        "pipe" | "pipe2" => "pipe".to_owned(),
        "dup" => source("fildes"),
        "dup2" | "dup3" => source("oldfd"),
        "fcntl" => source("fd"),
        name => anonymous(name, &call.entry),
    }
}

/// Sums of a file or class.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub durations: Vec<i64>,
    pub errors: u64,
    pub read: i64,
    pub written: i64,
    pub opens: u64,
}

/// Sums by class of calls.
pub fn by_class(rows: &[Row]) -> BTreeMap<&'static str, Sums> {
    let mut all: BTreeMap<_, Sums> = BTreeMap::new();
    for row in rows {
        let sums = all.entry(row.class).or_default();
        sums.durations.push(row.duration());
        sums.errors += u64::from(row.failed);
        sums.read += row.bytes.unwrap_or(0);
    }
    all
}

/// By path.
pub fn by_path(rows: &[Row]) -> BTreeMap<&str, Sums> {
    let mut all: BTreeMap<_, Sums> = BTreeMap::new();
    for row in rows {
        let (first, second) = &row.paths;
        for (path, is_second) in first
            .iter()
            .map(|path| (path, false))
            .chain(second.iter().map(|path| (path, true)))
        {
            let sums = all.entry(path.as_str()).or_default();
            match row.class {
                "open" | "accept" => sums.opens += 1,
                "close" => {}
                _ => sums.durations.push(row.duration()),
            }
            sums.errors += u64::from(row.failed);
            match row.class == "write" || is_second {
                true => sums.written += row.bytes.unwrap_or(0),
                false => sums.read += row.bytes.unwrap_or(0),
            }
        }
    }
    all
}
