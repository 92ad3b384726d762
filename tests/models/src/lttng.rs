//! The individual rules of lttng-analyses 0.6.1, so that its numbers can be computed with and
//! without each rule that differs from ours (`docs/explain/differences.md`).

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::trace::TraceSet;

use crate::events::{Entry, ModelEvent, Record, by_cpu, extent, merged};

/// Events of a kernel trace as that tool processes them: in sequence, ignoring losses.
fn events(set: &TraceSet, wanted: impl Fn(&str) -> bool) -> Vec<Entry> {
    let mut entries = merged(by_cpu(set, wanted));
    entries.retain(|entry| matches!(entry.what, ModelEvent::Event(_)));
    entries
}

fn record(entry: &Entry) -> &Record {
    match &entry.what {
        ModelEvent::Event(record) => record,
        ModelEvent::Packet { .. } | ModelEvent::Cut => unreachable!("only events are kept"),
    }
}

/// Used CPU time by CPU and by thread, in nanoseconds.
#[derive(Debug, Default)]
pub struct CpuTop {
    pub cpus: BTreeMap<u32, u64>,
    pub threads: BTreeMap<i32, u64>,
    pub migrations: BTreeMap<i32, i64>,
    /// The tool's text: the priority at the first switch to a thread, if the thread was unknown
    /// before, and all later priorities.
    pub priorities: BTreeMap<i32, String>,
    pub begin: i64,
    pub end: i64,
}

/// The rules of `cputop`. With `head_is_busy`, a CPU is in use before its first switch, by the
/// thread that the switch names, if that thread was unknown.
pub fn cputop(set: &TraceSet, head_is_busy: bool) -> CpuTop {
    let (begin, end) = extent(set);
    let mut top = CpuTop {
        begin,
        end,
        ..CpuTop::default()
    };
    let mut busy_since: BTreeMap<u32, Option<i64>> = BTreeMap::new();
    let mut runs_since: BTreeMap<i32, Option<i64>> = BTreeMap::new();
    let head = head_is_busy.then_some(begin);
    let mut priorities = PriorityLists::default();
    for entry in events(set, |name| PriorityLists::EVENTS.contains(&name)) {
        let switch = record(&entry);
        priorities.event(entry.cpu, switch);
        if switch.name == "sched_migrate_task" {
            *top.migrations.entry(switch.id("tid").unwrap()).or_default() += 1;
        }
        if switch.name != "sched_switch" {
            continue;
        }
        let (prev, next) = (
            switch.id("prev_tid").unwrap(),
            switch.id("next_tid").unwrap(),
        );
        let busy = busy_since.entry(entry.cpu).or_insert(head);
        if let Some(since) = busy.replace(entry.time) {
            *top.cpus.entry(entry.cpu).or_default() += entry.time.abs_diff(since);
        }
        if next == 0 {
            *busy = None;
        }
        // An unknown thread ran from the beginning.
        let runs = runs_since.entry(prev).or_insert(head);
        if let Some(since) = runs.take() {
            *top.threads.entry(prev).or_default() += entry.time.abs_diff(since);
        }
        if next != 0 {
            runs_since.insert(next, Some(entry.time));
        }
    }
    for (cpu, since) in busy_since {
        *top.cpus.entry(cpu).or_default() += since.map_or(0, |since| end.abs_diff(since));
    }
    for (tid, since) in runs_since {
        *top.threads.entry(tid).or_default() += since.map_or(0, |since| end.abs_diff(since));
    }
    top.priorities = priorities.texts();
    top
}

/// The tool's lists of priorities.
#[derive(Default)]
struct PriorityLists {
    /// The running thread of each CPU.
    current: HashMap<u32, i32>,
    /// Known priorities of threads, whether or not the threads are in the table.
    known: HashMap<i32, i64>,
    /// Rows of the table, each with the number of updates for each priority.
    rows: BTreeMap<i32, BTreeMap<i64, u64>>,
}

impl PriorityLists {
    const EVENTS: [&str; 8] = [
        "sched_switch",
        "sched_migrate_task",
        "sched_waking",
        "sched_wakeup",
        "sched_wakeup_new",
        "sched_pi_setprio",
        "sched_process_fork",
        "lttng_statedump_process_state",
    ];

    fn event(&mut self, cpu: u32, event: &Record) {
        let thread = || (event.id("tid").unwrap(), event.int("prio"));
        match event.name.as_str() {
            "sched_switch" => self.switch(cpu, event),
            "sched_migrate_task" => {
                let (tid, priority) = thread();
                self.rows.entry(tid).or_default();
                self.change(tid, priority.unwrap());
            }
            "sched_process_fork" => {
                self.known.remove(&event.id("child_tid").unwrap());
            }
            // Dumps of tracers before 2.8 have no priority.
            "lttng_statedump_process_state" => {
                if let (tid, Some(priority)) = thread() {
                    self.known.entry(tid).or_insert(priority);
                }
            }
            "sched_pi_setprio" => self.change(thread().0, event.int("newprio").unwrap()),
            _ => {
                let (tid, priority) = thread();
                // Not applied to running threads.
                if self.current.values().all(|&running| running != tid) {
                    self.change(tid, priority.unwrap());
                }
            }
        }
    }

    fn switch(&mut self, cpu: u32, event: &Record) {
        let side = |side: &str| {
            let tid = event.id(&format!("{side}_tid")).unwrap();
            (tid, event.int(&format!("{side}_prio")).unwrap())
        };
        let ((prev, before), (next, after)) = (side("prev"), side("next"));
        self.current.insert(cpu, next);
        self.change(prev, before);
        self.change(next, after);
        self.rows.entry(prev).or_default();
        if next != 0 {
            // A new row starts with the known priority; rows created otherwise start empty.
            self.rows.entry(next).or_insert_with(|| [(after, 1)].into());
        }
    }

    /// Changes a known priority, and updates the row, if it exists.
    fn change(&mut self, tid: i32, priority: i64) {
        if tid != 0
            && self.known.insert(tid, priority) != Some(priority)
            && let Some(row) = self.rows.get_mut(&tid)
        {
            *row.entry(priority).or_default() += 1;
        }
    }

    fn texts(&self) -> BTreeMap<i32, String> {
        let one = |(priority, times): (&i64, &u64)| match times {
            1 => priority.to_string(),
            times => format!("{priority} ({times} times)"),
        };
        let list = |row: &BTreeMap<i64, u64>| row.iter().map(one).collect::<Vec<_>>().join(", ");
        let rows = self.rows.iter();
        rows.map(|(tid, row)| (*tid, format!("[{}]", list(row))))
            .collect()
    }
}

/// The tool's kinds of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DescriptorKind {
    Disk,
    Net,
    Unknown,
}

/// A call that the tool counts.
#[derive(Clone, Debug)]
pub struct Counted {
    pub tid: i32,
    pub entry_time: i64,
    pub write: bool,
    pub bytes: u64,
    pub kind: DescriptorKind,
    /// Name of the descriptor.
    pub name: String,
}

#[derive(Clone, Debug)]
struct Fd {
    kind: DescriptorKind,
    cloexec: bool,
    name: String,
}

#[derive(Clone, Debug)]
enum Request {
    Open(Fd),
    Close { fd: i64 },
    Io { fd: i64, write: bool },
    Sync { fd: Option<i64> },
}

#[derive(Clone, Debug, Default)]
struct Process {
    pid: Option<i32>,
    fds: HashMap<i64, Fd>,
    /// The current call: its name, its start time, and its effect.
    call: Option<(String, i64, Option<Request>)>,
}

const READS: &[&str] = &[
    "read", "recvmsg", "recvfrom", "readv", "pread", "pread64", "preadv",
];
const WRITES: &[&str] = &[
    "write", "sendmsg", "sendto", "writev", "pwrite", "pwrite64", "pwritev",
];
const SYNCS: &[&str] = &["sync", "sync_file_range", "fsync", "fdatasync"];
const OTHERS: &[&str] = &[
    "open",
    "openat",
    "socket",
    "fcntl",
    "dup",
    "dup2",
    "dup3",
    "close",
    "splice",
    "sendfile64",
];

fn is_its_io(name: &str) -> bool {
    [READS, WRITES, SYNCS, OTHERS]
        .iter()
        .any(|list| list.contains(&name))
}

#[derive(Default)]
struct LttngState {
    current: HashMap<u32, Option<i32>>,
    processes: HashMap<i32, Process>,
}

/// The rules for bytes by thread of `iousagetop`: the calls, by the CPU and the time of their
/// exits. `state_dump` is true if the tool could read the dump's descriptors.
///
/// The tool also marks descriptors as network descriptors when a packet is sent during a write to
/// them. That affects only later copies, and does not matter for any of the traces.
pub fn iousagetop(set: &TraceSet, state_dump: bool) -> BTreeMap<(u32, i64), Counted> {
    let wanted = |name: &str| {
        let plain = [
            "sched_switch",
            "sched_process_fork",
            "sched_process_exec",
            "lttng_statedump_process_state",
            "lttng_statedump_file_descriptor",
        ];
        name.starts_with("syscall_") || plain.contains(&name)
    };
    let mut machine = LttngState::default();
    let mut calls = BTreeMap::new();
    for entry in events(set, wanted) {
        let event = record(&entry);
        if let Some(name) = event.name.strip_prefix("syscall_entry_") {
            machine.entry(entry.cpu, entry.time, name, event);
        } else if event.name.starts_with("syscall_exit_") {
            if let Some(counted) = machine.exit(entry.cpu, event) {
                calls.insert((entry.cpu, entry.time), counted);
            }
        } else if event.name != "lttng_statedump_file_descriptor" || state_dump {
            machine.other(entry.cpu, event);
        }
    }
    calls
}

impl LttngState {
    /// The thread whose descriptors a thread uses.
    fn owner(&self, tid: i32) -> i32 {
        self.processes
            .get(&tid)
            .and_then(|process| process.pid)
            .unwrap_or(tid)
    }

    fn entry(&mut self, cpu: u32, time: i64, name: &str, event: &Record) {
        let Some(Some(tid)) = self.current.get(&cpu).copied() else {
            return;
        };
        let owner = self.owner(tid);
        let int = |field: &str| event.int(field).unwrap_or(-1);
        let cloexec = || event.int("flags").is_some_and(|flags| flags & 0x80000 != 0);
        let request = match name {
            "open" | "openat" => Some(Request::Open(Fd {
                kind: DescriptorKind::Disk,
                cloexec: cloexec(),
                name: event.text("filename").unwrap_or_default().to_owned(),
            })),
            // Of any address family.
            "socket" => Some(Request::Open(Fd {
                kind: DescriptorKind::Net,
                cloexec: false,
                name: "socket".to_owned(),
            })),
            "connect" => {
                // The state of other threads is not updated.
                if owner == tid {
                    self.connect(owner, event);
                }
                None
            }
            "dup" => Some(self.duplicate(owner, int("fildes"), false)),
            "dup2" | "dup3" => {
                self.processes
                    .entry(owner)
                    .or_default()
                    .fds
                    .remove(&int("newfd"));
                Some(self.duplicate(owner, int("oldfd"), name == "dup3" && cloexec()))
            }
            "fcntl" => (int("cmd") == 0).then(|| self.duplicate(owner, int("fd"), false)),
            "close" => Some(Request::Close { fd: int("fd") }),
            name if READS.contains(&name) => Some(Request::Io {
                fd: int("fd"),
                write: false,
            }),
            name if WRITES.contains(&name) => Some(Request::Io {
                fd: int("fd"),
                write: true,
            }),
            name if SYNCS.contains(&name) => Some(Request::Sync {
                fd: event.int("fd"),
            }),
            // Including splice and sendfile64: the code that would create their requests is
            // unreachable.
            _ => None,
        };
        self.processes.entry(tid).or_default().call = Some((name.to_owned(), time, request));
    }

    fn duplicate(&self, owner: i32, old: i64, cloexec: bool) -> Request {
        let fd = self
            .processes
            .get(&owner)
            .and_then(|process| process.fds.get(&old));
        Request::Open(Fd {
            kind: fd.map_or(DescriptorKind::Unknown, |fd| fd.kind),
            cloexec,
            name: fd.map_or("unknown".to_owned(), |fd| fd.name.clone()),
        })
    }

    /// Applied at the entry, even if the call fails later; only for one address family.
    fn connect(&mut self, owner: i32, event: &Record) {
        let (Some(2), Some(address)) = (event.int("family"), event.lists.get("v4addr")) else {
            return;
        };
        let fds = &mut self.processes.entry(owner).or_default().fds;
        if let (Some(fd), [a, b, c, d]) =
            (fds.get_mut(&event.int("fd").unwrap()), address.as_slice())
        {
            fd.name = format!("{a}.{b}.{c}.{d}:{}", event.int("dport").unwrap());
        }
    }

    fn exit(&mut self, cpu: u32, event: &Record) -> Option<Counted> {
        let tid = self.current.get(&cpu).copied().flatten()?;
        let owner = self.owner(tid);
        // Any exit ends the call.
        let (name, entry_time, request) = self.processes.entry(tid).or_default().call.take()?;
        let request = request.filter(|_| is_its_io(&name))?;
        let result = event.int("ret").unwrap();
        let fds = &mut self.processes.entry(owner).or_default().fds;
        let unknown = Fd {
            kind: DescriptorKind::Unknown,
            cloexec: false,
            name: "unknown".to_owned(),
        };
        if result >= 0 {
            // A descriptor that the tool considers open keeps its type.
            match request {
                Request::Open(ref fd) => {
                    fds.entry(result).or_insert(fd.clone());
                }
                Request::Close { fd } | Request::Io { fd, .. } | Request::Sync { fd: Some(fd) } => {
                    fds.entry(fd).or_insert(unknown);
                }
                Request::Sync { fd: None } => {}
            }
        }
        match request {
            Request::Close { fd } if result == 0 => {
                fds.remove(&fd);
                None
            }
            Request::Io { fd, write } if result >= 0 => Some(Counted {
                tid,
                entry_time,
                write,
                bytes: result as u64,
                kind: fds.get(&fd)?.kind,
                name: fds.get(&fd)?.name.clone(),
            }),
            _ => None,
        }
    }

    fn other(&mut self, cpu: u32, event: &Record) {
        match event.name.as_str() {
            "sched_switch" => {
                let next = event.id("next_tid").unwrap();
                self.current.insert(cpu, (next != 0).then_some(next));
                for tid in [event.id("prev_tid").unwrap(), next] {
                    self.processes.entry(tid).or_default();
                }
            }
            "sched_process_fork" => {
                let parent = event.id("parent_pid").unwrap();
                let process = self.processes.entry(parent).or_default();
                process.pid = Some(parent);
                let fds = process.fds.clone();
                let child = Process {
                    pid: event.id("child_pid"),
                    fds,
                    call: None,
                };
                self.processes.insert(event.id("child_tid").unwrap(), child);
            }
            "sched_process_exec" => {
                let process = self.processes.entry(event.id("tid").unwrap()).or_default();
                process.fds.retain(|_, fd| !fd.cloexec);
            }
            "lttng_statedump_process_state" => {
                let (tid, pid) = (event.id("tid").unwrap(), event.id("pid").unwrap());
                let process = self.processes.entry(tid).or_default();
                process.pid = Some(pid);
                if pid != tid {
                    let fds = std::mem::take(&mut process.fds);
                    let parent = self.processes.entry(pid).or_default();
                    parent.pid.get_or_insert(pid);
                    for (number, fd) in fds {
                        parent.fds.entry(number).or_insert(fd);
                    }
                }
            }
            "lttng_statedump_file_descriptor" => {
                let process = self.processes.entry(event.id("pid").unwrap()).or_default();
                let cloexec = event.int("flags").is_some_and(|flags| flags & 0x80000 != 0);
                process.fds.entry(event.int("fd").unwrap()).or_insert(Fd {
                    kind: DescriptorKind::Unknown,
                    cloexec,
                    name: event.text("filename").unwrap_or_default().to_owned(),
                });
            }
            _ => {}
        }
    }
}
