//! The io report by plain passes over all events: one over each CPU, which attributes events to
//! threads; one over all in the order of time with all state; one over the calls.

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_kernel_model::FdType;

use crate::events::{Entry, ModelEvent, Record, by_cpu, merged};
use crate::model_cpu::{People, head, range};
use crate::model_fds::Descriptors;
use crate::plain::{IoProcess, IoReport, IoStats, IoSyscall, IoThread, IoType, Process};

/// A call with entry and exit.
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

/// System call of an entry or exit event; exits of old tracers do not name the call.
pub fn call_of(event: &str) -> Option<(bool, Option<String>)> {
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
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "pwrite", "sendto", "sendmsg", "send",
    "vmsplice",
];
const MESSAGES: &[&str] = &["recvmmsg", "recvmmsg_time32", "sendmmsg"];
const COPIES: &[(&str, &str, &str)] = &[
    ("sendfile64", "in_fd", "out_fd"),
    ("sendfile", "in_fd", "out_fd"),
    ("splice", "fd_in", "fd_out"),
    ("tee", "fdin", "fdout"),
    ("copy_file_range", "fd_in", "fd_out"),
];
pub const ANONYMOUS: &[&str] = &[
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
    "unshare",
];
/// Calls whose exit contains no information beyond the entry.
const AT_ENTRY: &[&str] = &["close", "close_range", "clone", "clone3", "fork", "vfork"];

fn is_io(name: &str) -> bool {
    READS.contains(&name)
        || WRITES.contains(&name)
        || MESSAGES.contains(&name)
        || COPIES.iter().any(|(copy, _, _)| *copy == name)
}

fn is_known(name: &str) -> bool {
    is_io(name) || ANONYMOUS.contains(&name) || CHANGES.contains(&name) || AT_ENTRY.contains(&name)
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
        Some((false, Some(name))) if AT_ENTRY.contains(&name.as_str()) => false,
        // Exits of old tracers do not name the call: all entries count.
        Some((_, Some(name))) => {
            event.contains("syscall_") && is_known(&name)
                || event.contains("sys_") && !event.contains("syscall_")
        }
        Some((_, None)) => true,
        None => others.contains(&event),
    }
}

/// Steps of a CPU.
#[derive(Clone, Debug)]
enum CpuStep {
    /// An event with its thread; -1 if the thread is unknown.
    Event(i32, Record),
    /// The stretch of a thread on the CPU ends; true if by a switch.
    End(i32, bool),
}

/// Attributes events to threads. If the thread of a stretch is unknown at its beginning, the
/// stretch belongs to the thread that its end names.
fn steps(entries: Vec<Entry>) -> Vec<(i64, u32, u32, CpuStep)> {
    let mut all = Vec::new();
    let mut stretch: Vec<Entry> = Vec::new();
    let mut tid: Option<i32> = None;
    let (mut trace, mut cpu) = (0, 0);
    let mut close = |stretch: &mut Vec<Entry>,
                     tid: Option<i32>,
                     prev: Option<i32>,
                     time: i64,
                     switch,
                     trace,
                     cpu| {
        let tid = tid.or(prev).unwrap_or(-1);
        for entry in stretch.drain(..) {
            if let ModelEvent::Event(record) = entry.what {
                all.push((
                    entry.time,
                    entry.trace,
                    entry.cpu,
                    CpuStep::Event(tid, record),
                ));
            }
        }
        all.push((time, trace, cpu, CpuStep::End(tid, switch)));
    };
    for entry in entries {
        (trace, cpu) = (entry.trace, entry.cpu);
        let boundary = match &entry.what {
            ModelEvent::Packet { lost: true, .. } => Some((None, None)),
            ModelEvent::Packet { .. } | ModelEvent::Cut => None,
            ModelEvent::Event(event) if event.name == "sched_switch" => {
                Some((event.id("prev_tid"), event.id("next_tid")))
            }
            ModelEvent::Event(event) if event.name == "sched_process_exec" => {
                let old = event.id("old_tid").or(event.id("old_pid"));
                let new = event.id("tid").or(event.id("pid"));
                (old != new).then_some((old, new))
            }
            ModelEvent::Event(_) => None,
        };
        if let Some((prev, next)) = boundary {
            close(
                &mut stretch,
                tid,
                prev,
                entry.time,
                next.is_some(),
                trace,
                cpu,
            );
            tid = next;
        }
        stretch.push(entry);
    }
    close(&mut stretch, tid, None, i64::MAX, false, trace, cpu);
    all
}

/// Result of the passes.
pub struct Found {
    pub calls: Vec<Call>,
    descriptors: Descriptors,
    people: People,
    /// By trace and thread: calls without an exit, exits without a call.
    lost: BTreeMap<(u32, i32), (u64, u64)>,
}

impl Found {
    /// Type of the file of a call's descriptor at its entry.
    pub fn kind(&self, call: &Call, field: &str) -> FdType {
        if call.tid == -1 {
            return FdType::Unknown;
        }
        let table = self
            .descriptors
            .table(call.trace, call.tid, call.entry_time);
        self.descriptors
            .kind(table, call.entry.id(field).unwrap_or(-1), call.entry_time)
            .0
    }
}

#[derive(Default)]
struct Cpu {
    seen: bool,
    open: Option<Open>,
}

/// Finds all calls; those that end outside the window or the chosen CPUs do not count.
pub fn find(set: &TraceSet, window: (i64, i64), chosen: Option<&[u32]>) -> Found {
    let people_events = merged(by_cpu(set, wanted));
    let mut people = People::default();
    for entry in people_events.iter().filter(|entry| entry.time < window.1) {
        if let ModelEvent::Event(event) = &entry.what {
            people.learn(entry.trace, event);
        }
    }
    let cut = |entries: Vec<Entry>| {
        let keep = |entry: &Entry| {
            entry.time < window.1 || matches!(entry.what, ModelEvent::Packet { .. })
        };
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
            CpuStep::End(tid, switch) => {
                cpu.seen = false;
                if let Some(open) = cpu.open.take() {
                    if !switch || tid == -1 {
                        unfinished(tid, &open);
                    } else if let Some(before) = parked.insert((trace, tid), open) {
                        unfinished(tid, &before);
                    }
                }
            }
            CpuStep::Event(tid, event) => {
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
                    if AT_ENTRY.contains(&name.as_str()) {
                        if tid != -1 {
                            found.descriptors.entry(trace, tid, time, &name, &event);
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
                    // The exit shows the new descriptor even without its entry.
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
    io_within(set, window, chosen, (0, u64::MAX))
}

/// The same report restricted to calls whose latency is within limits.
pub fn io_within(
    set: &TraceSet,
    window: (i64, i64),
    chosen: Option<&[u32]>,
    limits: (u64, u64),
) -> IoReport {
    let mut found = find(set, window, chosen);
    found.calls.retain(|call| {
        let latency = (call.exit_time - call.entry_time).max(0) as u64;
        (limits.0..=limits.1).contains(&latency)
    });
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
            if thread.pid.is_none() {
                thread.tid
            } else {
                None
            },
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
                add(
                    sums.types.entry(kind).or_default(),
                    call,
                    read,
                    written,
                    counts,
                );
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
    let types = |sums: &Sums| {
        sums.types
            .iter()
            .map(|(&kind, &stats)| IoType { kind, stats })
            .collect::<Vec<_>>()
    };
    let order =
        |stats: &IoStats| std::cmp::Reverse((stats.read_bytes + stats.written_bytes, stats.calls));
    let mut syscalls: Vec<IoSyscall> = syscalls
        .into_iter()
        .map(|(name, stats)| IoSyscall { name, stats })
        .collect();
    syscalls.sort_by_key(|row| (order(&row.stats), row.name.clone()));
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
            process: Process {
                trace,
                pid,
                tid,
                name: pid
                    .or(tid)
                    .and_then(|tid| found.people.thread(trace, tid).name),
                threads: members[&(trace, pid, tid)].len() as u64,
            },
            stats: sums.total,
            types: types(sums),
        })
        .collect();
    by_process.sort_by_key(|row| {
        let process = &row.process;
        (order(&row.stats), process.trace, process.pid, process.tid)
    });
    IoReport {
        head: head(set, range(set, window)),
        total: total.total,
        types: types(&total),
        syscalls,
        processes: by_process,
        threads: by_thread,
    }
}
