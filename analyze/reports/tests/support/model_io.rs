//! The io report by plain passes over all events: one over each CPU to tell whose each event is,
//! one over all in the order of time with everything that is known, one over the calls.

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_kernel_model::FdType;
use tracebraid_reports::io::{IoProcess, IoReport, IoStats, IoSyscall, IoThread, IoType};

use super::events::{Entry, Record, What, by_cpu, merged};
use super::model_cpu::{People, hosts, range};

/// A call with both of its ends.
#[derive(Clone, Debug)]
pub struct Call {
    pub trace: u32,
    pub tid: i32,
    pub name: String,
    pub entry_time: i64,
    pub exit_time: i64,
    pub cpu: u32,
    pub entry: Record,
    pub exit: Record,
}

#[derive(Clone, Debug)]
struct Open {
    name: String,
    time: i64,
    cpu: u32,
    entry: Record,
}

/// Name of a system call by its entry's or exit's event; exits of old tracers have none.
fn call_of(event: &str) -> Option<(bool, Option<String>)> {
    let event = event.strip_prefix("compat_").unwrap_or(event);
    if let Some(name) = event.strip_prefix("syscall_entry_") {
        return Some((true, Some(name.to_owned())));
    }
    if let Some(name) = event.strip_prefix("syscall_exit_") {
        return Some((false, Some(name.to_owned())));
    }
    if event == "exit_syscall" {
        return Some((false, None));
    }
    event
        .strip_prefix("sys_")
        .map(|name| (true, Some(name.to_owned())))
}

const READS: &[&str] = &[
    "read", "pread64", "readv", "preadv", "preadv2", "pread", "recvfrom", "recvmsg", "recv",
];
const WRITES: &[&str] = &[
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "pwrite", "sendto", "sendmsg", "send", "vmsplice",
];
const MESSAGES: &[&str] = &["recvmmsg", "recvmmsg_time32", "sendmmsg"];
const COPIES: &[(&str, &str, &str)] = &[
    ("sendfile64", "in_fd", "out_fd"),
    ("sendfile", "in_fd", "out_fd"),
    ("splice", "fd_in", "fd_out"),
    ("tee", "fdin", "fdout"),
    ("copy_file_range", "fd_in", "fd_out"),
];
const ANONYMOUS: &[&str] = &[
    "eventfd",
    "eventfd2",
    "epoll_create",
    "epoll_create1",
    "timerfd_create",
    "signalfd",
    "signalfd4",
    "inotify_init",
    "inotify_init1",
    "memfd_create",
    "pidfd_open",
    "perf_event_open",
];
const CHANGES: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "socket",
    "accept",
    "accept4",
    "pipe",
    "pipe2",
    "socketpair",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "close",
];

fn is_io(name: &str) -> bool {
    READS.contains(&name)
        || WRITES.contains(&name)
        || MESSAGES.contains(&name)
        || COPIES.iter().any(|(copy, _, _)| *copy == name)
}

fn is_known(name: &str) -> bool {
    is_io(name) || ANONYMOUS.contains(&name) || CHANGES.contains(&name)
}

fn wanted(event: &str) -> bool {
    let others = [
        "sched_switch",
        "sched_process_fork",
        "sched_process_exec",
        "sched_process_exit",
        "lttng_statedump_process_state",
        "lttng_statedump_file_descriptor",
    ];
    match call_of(event) {
        // What a close does is done at its entry.
        Some((false, Some(name))) if name == "close" => false,
        // Old exits do not tell the call: all entries count.
        Some((_, Some(name))) => {
            event.contains("syscall_") && is_known(&name)
                || event.contains("sys_") && !event.contains("syscall_")
        }
        Some((_, None)) => true,
        None => others.contains(&event),
    }
}

/// What a CPU goes through.
#[derive(Clone, Debug)]
enum Step {
    /// An event, and whose it is; -1 if nobody knows.
    Event(i32, Record),
    /// A thread's stretch on the CPU ends by a switch, or otherwise.
    End(i32, bool),
}

/// Tells whose each event is: a stretch that nothing tells the thread of at its beginning is that
/// of the thread that its end names.
fn steps(entries: Vec<Entry>) -> Vec<(i64, u32, u32, Step)> {
    let mut all = Vec::new();
    let mut stretch: Vec<Entry> = Vec::new();
    let mut tid: Option<i32> = None;
    let (mut trace, mut cpu) = (0, 0);
    let mut close =
        |stretch: &mut Vec<Entry>, tid: Option<i32>, prev: Option<i32>, time: i64, switch, trace, cpu| {
            let tid = tid.or(prev).unwrap_or(-1);
            for entry in stretch.drain(..) {
                if let What::Event(record) = entry.what {
                    all.push((entry.time, entry.trace, entry.cpu, Step::Event(tid, record)));
                }
            }
            all.push((time, trace, cpu, Step::End(tid, switch)));
        };
    for entry in entries {
        (trace, cpu) = (entry.trace, entry.cpu);
        let boundary = match &entry.what {
            What::Packet { lost: true, .. } => Some((None, None)),
            What::Packet { .. } => None,
            What::Event(event) if event.name == "sched_switch" => {
                Some((event.id("prev_tid"), event.id("next_tid")))
            }
            What::Event(event) if event.name == "sched_process_exec" => {
                let old = event.id("old_tid").or(event.id("old_pid"));
                let new = event.id("tid").or(event.id("pid"));
                (old != new).then_some((old, new))
            }
            What::Event(_) => None,
        };
        if let Some((prev, next)) = boundary {
            close(&mut stretch, tid, prev, entry.time, next.is_some(), trace, cpu);
            tid = next;
        }
        stretch.push(entry);
    }
    close(&mut stretch, tid, None, i64::MAX, false, trace, cpu);
    all
}

/// What one descriptor was since when, the latest last.
type History = Vec<(i64, FdType, bool)>;

/// Descriptors of processes, by trace and process.
#[derive(Default)]
struct Descriptors {
    histories: HashMap<(u32, i32), BTreeMap<i32, History>>,
    members: HashMap<(u32, i32), Vec<(i64, i32)>>,
    tables: HashMap<(u32, i64), i32>,
    others: HashMap<(u32, i32), u32>,
}

impl Descriptors {
    fn process(&self, trace: u32, tid: i32, time: i64) -> (u32, i32) {
        let history = self
            .members
            .get(&(trace, tid))
            .map(Vec::as_slice)
            .unwrap_or_default();
        (
            trace,
            history
                .iter()
                .rev()
                .find(|(since, _)| *since <= time)
                .map_or(tid, |(_, pid)| *pid),
        )
    }

    fn kind(&self, process: (u32, i32), fd: i32, time: i64) -> (FdType, bool) {
        let history = self.histories.get(&process).and_then(|fds| fds.get(&fd));
        let found = history.and_then(|history| history.iter().rev().find(|(since, _, _)| *since <= time));
        found.map_or((FdType::Unknown, false), |(_, kind, cloexec)| (*kind, *cloexec))
    }

    fn set(&mut self, process: (u32, i32), fd: i32, time: i64, kind: FdType, cloexec: bool) {
        if fd != -1 {
            self.histories
                .entry(process)
                .or_default()
                .entry(fd)
                .or_default()
                .push((time, kind, cloexec));
        }
    }

    fn fds(&self, process: (u32, i32)) -> Vec<i32> {
        self.histories
            .get(&process)
            .map(|fds| fds.keys().copied().collect())
            .unwrap_or_default()
    }

    fn close_all(&mut self, process: (u32, i32), time: i64) {
        for fd in self.fds(process) {
            self.set(process, fd, time, FdType::Unknown, false);
        }
    }

    fn put_member(&mut self, trace: u32, tid: i32, time: i64, pid: i32) {
        self.members.entry((trace, tid)).or_default().push((time, pid));
    }

    fn member(&mut self, trace: u32, tid: i32, time: i64, pid: i32) {
        let before = self.process(trace, tid, i64::MAX).1;
        if before == pid {
            return;
        }
        self.put_member(trace, tid, time, pid);
        if before == tid {
            for fd in self.fds((trace, tid)) {
                let (kind, cloexec) = self.kind((trace, tid), fd, i64::MAX);
                if self.kind((trace, pid), fd, i64::MAX).0 == FdType::Unknown {
                    self.set((trace, pid), fd, time, kind, cloexec);
                }
                self.set((trace, tid), fd, time, FdType::Unknown, false);
            }
            *self.others.entry((trace, pid)).or_default() += 1;
        }
    }

    /// Events other than system calls.
    fn event(&mut self, trace: u32, running: i32, time: i64, event: &Record) {
        match event.name.as_str() {
            "sched_process_fork" => {
                let parent = event.id("parent_tid").unwrap_or(running);
                let child = event.id("child_tid").unwrap();
                if let Some(pid) = event.id("parent_pid") {
                    self.member(trace, parent, time, pid);
                }
                match event.id("child_pid").filter(|&pid| pid != child) {
                    Some(pid) => {
                        self.put_member(trace, child, time, pid);
                        *self.others.entry((trace, pid)).or_default() += 1;
                    }
                    None => {
                        let from = self.process(trace, parent, i64::MAX);
                        self.put_member(trace, child, time, child);
                        self.close_all((trace, child), time);
                        for fd in self.fds(from) {
                            let (kind, cloexec) = self.kind(from, fd, i64::MAX);
                            self.set((trace, child), fd, time, kind, cloexec);
                        }
                        self.others.insert((trace, child), 0);
                    }
                }
            }
            "sched_process_exec" => {
                let process = self.process(trace, event.id("tid").or(event.id("pid")).unwrap(), i64::MAX);
                for fd in self.fds(process) {
                    if self.kind(process, fd, i64::MAX).1 {
                        self.set(process, fd, time, FdType::Unknown, false);
                    }
                }
            }
            "sched_process_exit" => {
                let process = self.process(trace, event.id("tid").unwrap(), i64::MAX);
                match self.others.get_mut(&process).filter(|others| **others > 0) {
                    Some(others) => *others -= 1,
                    None => self.close_all(process, time),
                }
            }
            "lttng_statedump_process_state" => {
                let (tid, pid) = (event.id("tid").unwrap(), event.id("pid").unwrap());
                self.member(trace, tid, time, pid);
                if let Some(address) = event.int("file_table_address") {
                    self.tables.insert((trace, address), pid);
                }
            }
            "lttng_statedump_file_descriptor" => {
                let by_table = || {
                    self.tables
                        .get(&(trace, event.int("file_table_address")?))
                        .copied()
                };
                let Some(pid) = event.id("pid").or_else(by_table) else {
                    return;
                };
                let process = self.process(trace, pid, i64::MAX);
                let path = event.text("filename").unwrap_or_default();
                let kind = match path {
                    path if path.starts_with("/memfd:") => FdType::Anonymous,
                    path if path.starts_with('/') => FdType::Disk,
                    path if path.starts_with("socket:") => FdType::Socket,
                    path if path.starts_with("pipe:") => FdType::Pipe,
                    path if path.starts_with("anon_inode:") || path.starts_with("inotify") => {
                        FdType::Anonymous
                    }
                    _ => FdType::Unknown,
                };
                let fd = event.id("fd").unwrap();
                if self.kind(process, fd, i64::MAX).0 == FdType::Unknown {
                    let cloexec = event.int("flags").is_some_and(|flags| flags & 0x80000 != 0);
                    self.set(process, fd, time, kind, cloexec);
                }
            }
            _ => {}
        }
    }

    /// A call that has ended.
    fn call(&mut self, call: &Call) {
        let result = call.exit.int("ret").unwrap();
        if result < 0 {
            return;
        }
        let time = call.exit_time;
        let process = self.process(call.trace, call.tid, i64::MAX);
        let has = |field: &str, mask: i64| call.entry.int(field).is_some_and(|flags| flags & mask != 0);
        let family = |family: i64| match family {
            1 => FdType::Unix,
            2 | 10 | 17 => FdType::Network,
            _ => FdType::Socket,
        };
        let made = result as i32;
        let pair = |field: &str| call.exit.lists.get(field).filter(|list| list.len() == 2).cloned();
        match call.name.as_str() {
            "open" | "openat" => self.set(process, made, time, FdType::Disk, has("flags", 0x80000)),
            "openat2" | "creat" => self.set(process, made, time, FdType::Disk, false),
            "memfd_create" => self.set(process, made, time, FdType::Anonymous, has("flags", 1)),
            "perf_event_open" => self.set(process, made, time, FdType::Anonymous, has("flags", 8)),
            "eventfd" | "epoll_create" | "signalfd" | "inotify_init" | "pidfd_open" => {
                self.set(process, made, time, FdType::Anonymous, false);
            }
            name if ANONYMOUS.contains(&name) => {
                self.set(process, made, time, FdType::Anonymous, has("flags", 0x80000));
            }
            "socket" => {
                let kind = call.entry.int("family").map_or(FdType::Socket, family);
                self.set(process, made, time, kind, has("type", 0x80000));
            }
            "accept" | "accept4" => {
                let listening = call.entry.id("fd").or(call.entry.id("sockfd")).unwrap_or(-1);
                let told = call.exit.int("family").filter(|&family| family > 0).map(family);
                let kind = told.unwrap_or(match self.kind(process, listening, i64::MAX).0 {
                    FdType::Unknown => FdType::Socket,
                    kind => kind,
                });
                self.set(process, made, time, kind, has("flags", 0x80000));
            }
            "pipe" | "pipe2" => {
                for fd in pair("fildes").unwrap_or_default() {
                    self.set(
                        process,
                        fd as i32,
                        time,
                        FdType::Pipe,
                        call.name == "pipe2" && has("flags", 0x80000),
                    );
                }
            }
            "socketpair" => {
                let kind = call.entry.int("family").map_or(FdType::Socket, family);
                for fd in pair("socket").unwrap_or_default() {
                    self.set(process, fd as i32, time, kind, has("type", 0x80000));
                }
            }
            "dup" => {
                let old = call.entry.id("fildes").or(call.entry.id("fd")).unwrap_or(-1);
                let kind = self.kind(process, old, i64::MAX).0;
                self.set(process, made, time, kind, false);
            }
            "dup2" | "dup3" => {
                let old = call.entry.id("oldfd").unwrap_or(-1);
                if old != made {
                    let kind = self.kind(process, old, i64::MAX).0;
                    self.set(
                        process,
                        made,
                        time,
                        kind,
                        call.name == "dup3" && has("flags", 0x80000),
                    );
                }
            }
            "fcntl" => {
                let fd = call.entry.id("fd").unwrap_or(-1);
                let kind = self.kind(process, fd, i64::MAX).0;
                match call.entry.int("cmd").unwrap_or(-1) {
                    0 => self.set(process, made, time, kind, false),
                    1030 => self.set(process, made, time, kind, true),
                    2 => self.set(process, fd, time, kind, has("arg", 1)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// What the passes find.
pub struct Found {
    pub calls: Vec<Call>,
    descriptors: Descriptors,
    people: People,
    /// By trace and thread: calls without an end, ends without a call.
    lost: BTreeMap<(u32, i32), (u64, u64)>,
}

impl Found {
    /// What a call's descriptor was when it began.
    pub fn kind(&self, call: &Call, field: &str) -> FdType {
        if call.tid == -1 {
            return FdType::Unknown;
        }
        let process = self.descriptors.process(call.trace, call.tid, call.entry_time);
        self.descriptors
            .kind(process, call.entry.id(field).unwrap_or(-1), call.entry_time)
            .0
    }
}

#[derive(Default)]
struct Cpu {
    seen: bool,
    open: Option<Open>,
}

/// Finds all calls; those that end outside of the window or the CPUs are not counted.
pub fn find(set: &TraceSet, window: (i64, i64), chosen: Option<&[u32]>) -> Found {
    let people_events = merged(by_cpu(set, wanted));
    let mut people = People::default();
    for entry in people_events.iter().filter(|entry| entry.time < window.1) {
        if let What::Event(event) = &entry.what {
            people.learn(entry.trace, event);
        }
    }
    let cut = |entries: Vec<Entry>| {
        let keep = |entry: &Entry| entry.time < window.1 || matches!(entry.what, What::Packet { .. });
        entries.into_iter().filter(keep).collect::<Vec<_>>()
    };
    let mut queues: Vec<_> = by_cpu(set, wanted)
        .into_iter()
        .map(|entries| steps(cut(entries)).into_iter().peekable())
        .collect();
    let counts = |time: i64, cpu: u32| {
        window.0 <= time && time < window.1 && chosen.is_none_or(|chosen| chosen.contains(&cpu))
    };
    let mut found = Found {
        calls: Vec::new(),
        descriptors: Descriptors::default(),
        people,
        lost: BTreeMap::new(),
    };
    let mut cpus: HashMap<(u32, u32), Cpu> = HashMap::new();
    let mut parked: HashMap<(u32, i32), Open> = HashMap::new();
    loop {
        let heads = queues
            .iter_mut()
            .enumerate()
            .filter_map(|(at, queue)| queue.peek().map(|step| (step.0, at)));
        let Some((_, at)) = heads.min() else { break };
        let (time, trace, number, step) = queues[at].next().unwrap();
        let cpu = cpus.entry((trace, number)).or_default();
        let lost = &mut found.lost;
        let mut unfinished = |tid: i32, open: &Open| {
            if is_io(&open.name) && counts(open.time, open.cpu) {
                lost.entry((trace, tid)).or_default().0 += 1;
            }
        };
        match step {
            Step::End(tid, switch) => {
                cpu.seen = false;
                if let Some(open) = cpu.open.take() {
                    if !switch || tid == -1 {
                        unfinished(tid, &open);
                    } else if let Some(before) = parked.insert((trace, tid), open) {
                        unfinished(tid, &before);
                    }
                }
            }
            Step::Event(tid, event) => {
                let Some((entry, name)) = call_of(&event.name) else {
                    found.descriptors.event(trace, tid, time, &event);
                    continue;
                };
                let first = !std::mem::replace(&mut cpu.seen, true);
                let took = || {
                    if first && tid != -1 {
                        parked.remove(&(trace, tid))
                    } else {
                        None
                    }
                };
                let before = cpu.open.take().or_else(took);
                if entry {
                    before.iter().for_each(|open| unfinished(tid, open));
                    let name = name.unwrap();
                    if name == "close" {
                        if tid != -1 {
                            let process = found.descriptors.process(trace, tid, i64::MAX);
                            let fd = event.id("fd").unwrap();
                            found.descriptors.set(process, fd, time, FdType::Unknown, false);
                        }
                    } else {
                        cpu.open = Some(Open {
                            name,
                            time,
                            cpu: number,
                            entry: event,
                        });
                    }
                    continue;
                }
                let fits = before
                    .as_ref()
                    .is_some_and(|open| name.as_ref().is_none_or(|name| *name == open.name));
                if !fits {
                    before.iter().for_each(|open| unfinished(tid, open));
                    let Some(name) = name else { continue };
                    if is_io(&name) && counts(time, number) {
                        found.lost.entry((trace, tid)).or_default().1 += 1;
                    }
                    // Even without its entry an exit tells of what it gives.
                    if !is_io(&name) && tid != -1 {
                        let entry = Record::default();
                        let (cpu, exit) = (number, event);
                        let alone = Call {
                            trace,
                            tid,
                            name,
                            entry_time: time,
                            exit_time: time,
                            cpu,
                            entry,
                            exit,
                        };
                        found.descriptors.call(&alone);
                    }
                    continue;
                }
                let open = before.unwrap();
                let call = Call {
                    trace,
                    tid,
                    name: open.name,
                    entry_time: open.time,
                    exit_time: time,
                    cpu: number,
                    entry: open.entry,
                    exit: event,
                };
                if tid != -1 {
                    found.descriptors.call(&call);
                }
                if is_io(&call.name) && counts(time, number) {
                    found.calls.push(call);
                }
            }
        }
    }
    for ((trace, tid), open) in parked {
        if is_io(&open.name) && counts(open.time, open.cpu) {
            found.lost.entry((trace, tid)).or_default().0 += 1;
        }
    }
    found
}

#[derive(Default)]
struct Sums {
    total: IoStats,
    types: BTreeMap<FdType, IoStats>,
}

fn add(stats: &mut IoStats, call: &Call, read: u64, written: u64, counts: bool) {
    stats.read_bytes += read;
    stats.written_bytes += written;
    if counts {
        let latency = (call.exit_time - call.entry_time).max(0) as u64;
        stats.calls += 1;
        stats.errors += u64::from(call.exit.int("ret").unwrap() < 0);
        stats.latency_ns += latency;
        stats.longest_latency_ns = stats.longest_latency_ns.max(latency);
        stats.average_latency_ns = stats.latency_ns / stats.calls;
    }
}

/// The report for the events of `window.0..window.1`.
pub fn io(set: &TraceSet, window: (i64, i64), chosen: Option<&[u32]>) -> IoReport {
    let found = find(set, window, chosen);
    let mut total = Sums::default();
    let mut syscalls: BTreeMap<String, IoStats> = BTreeMap::new();
    let mut threads: BTreeMap<(u32, i32), Sums> = BTreeMap::new();
    let mut processes: BTreeMap<(u32, Option<i32>, Option<i32>), Sums> = BTreeMap::new();
    let mut members: BTreeMap<(u32, Option<i32>, Option<i32>), std::collections::BTreeSet<i32>> =
        BTreeMap::new();
    let process_of = |trace: u32, tid: i32| {
        let thread = found.people.thread(trace, tid);
        (
            trace,
            thread.pid,
            if thread.pid.is_none() { thread.tid } else { None },
        )
    };
    for call in &found.calls {
        let bytes = call.exit.int("ret").unwrap().max(0) as u64;
        let name = call.name.as_str();
        let halves = match COPIES.iter().find(|(copy, _, _)| *copy == name) {
            Some((_, from, to)) => {
                vec![
                    (found.kind(call, from), bytes, 0, true),
                    (found.kind(call, to), 0, bytes, false),
                ]
            }
            None if READS.contains(&name) => vec![(found.kind(call, "fd"), bytes, 0, true)],
            None if WRITES.contains(&name) => vec![(found.kind(call, "fd"), 0, bytes, true)],
            None => vec![(found.kind(call, "fd"), 0, 0, true)],
        };
        let process = process_of(call.trace, call.tid);
        members.entry(process).or_default().insert(call.tid);
        for (kind, read, written, counts) in halves {
            add(
                syscalls.entry(call.name.clone()).or_default(),
                call,
                read,
                written,
                counts,
            );
            let thread = threads.entry((call.trace, call.tid)).or_default();
            for sums in [&mut total, thread, processes.entry(process).or_default()] {
                add(&mut sums.total, call, read, written, counts);
                add(sums.types.entry(kind).or_default(), call, read, written, counts);
            }
        }
    }
    for (&(trace, tid), &(unfinished, unstarted)) in &found.lost {
        let process = process_of(trace, tid);
        members.entry(process).or_default().insert(tid);
        let thread = threads.entry((trace, tid)).or_default();
        for sums in [&mut total, thread, processes.entry(process).or_default()] {
            sums.total.unfinished += unfinished;
            sums.total.unstarted += unstarted;
        }
    }
    let (begin, end) = range(set, window);
    let types = |sums: &Sums| {
        sums.types
            .iter()
            .map(|(&kind, &stats)| IoType { kind, stats })
            .collect::<Vec<_>>()
    };
    let order = |stats: &IoStats| std::cmp::Reverse((stats.read_bytes + stats.written_bytes, stats.calls));
    let mut syscalls: Vec<IoSyscall> = syscalls
        .into_iter()
        .map(|(name, stats)| IoSyscall {
            name: name.leak(),
            stats,
        })
        .collect();
    syscalls.sort_by_key(|row| (order(&row.stats), row.name));
    let mut by_thread: Vec<IoThread> = threads
        .iter()
        .map(|(&(trace, tid), sums)| IoThread {
            thread: found.people.thread(trace, tid),
            stats: sums.total,
            types: types(sums),
        })
        .collect();
    by_thread.sort_by_key(|row| (order(&row.stats), row.thread.trace, row.thread.tid));
    let mut by_process: Vec<IoProcess> = processes
        .iter()
        .map(|(&(trace, pid, tid), sums)| IoProcess {
            trace,
            pid,
            tid,
            name: pid.or(tid).and_then(|tid| found.people.thread(trace, tid).name),
            threads: members[&(trace, pid, tid)].len() as u64,
            stats: sums.total,
            types: types(sums),
        })
        .collect();
    by_process.sort_by_key(|row| (order(&row.stats), row.trace, row.pid, row.tid));
    IoReport {
        begin: Some(Timestamp(begin)),
        end: Some(Timestamp(end)),
        duration_ns: end.abs_diff(begin),
        hosts: hosts(set),
        total: total.total,
        types: types(&total),
        syscalls,
        processes: by_process,
        threads: by_thread,
    }
}
