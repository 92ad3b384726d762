//! The owner of every event record of a kernel trace and of user traces, by plain passes.
//!
//! Each CPU's records are cut into *openings*: stretches between two kernel records in which an LWP
//! runs in user space, neither interrupted nor in a system call. Every user event lies in an
//! opening of its LWP: the first that contains its time, else the nearest one within the bound of
//! the clocks' error. Along the openings of an LWP its user events show which user-level thread is
//! current, and with it that of the kernel's records between them.

use std::collections::{BTreeMap, BTreeSet};

use tracebraid_ctf::trace::TraceSet;

use super::level_streams::{LevelItem, LevelStreams};
use crate::events::Record;

/// An id of a user-level thread that is not known.
pub const UNKNOWN: u64 = u64::MAX;

/// A record and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedRecord {
    pub name: String,
    /// Nanoseconds: the nearest possible moment to the recorded time.
    pub time: i64,
    pub cpu: Option<u32>,
    pub tid: i32,
    pub lwp: i32,
    pub ult: u64,
}

/// The records of a recording with their owners, by serial number.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    pub records: BTreeMap<u64, MergedRecord>,
    /// User events whose time was moved, and the largest move.
    pub moved: (u64, i64),
    /// User events whose LWP ran on no CPU.
    pub homeless: u64,
}

/// A stretch between two kernel records of a CPU in which an LWP runs in user space.
#[derive(Clone, Copy, Debug)]
struct Opening {
    cpu: u32,
    from: i64,
    to: i64,
}

/// A part of an LWP's time: an opening, or a kernel record.
#[derive(Clone, Debug)]
enum Passage {
    Opening(usize),
    Kernel {
        serial: u64,
        time: i64,
        in_interrupt: bool,
    },
}

/// A kernel thread in the order of its time.
#[derive(Default)]
struct LwpTime {
    openings: Vec<Opening>,
    /// By run: its begin, and its parts.
    runs: Vec<(i64, Vec<Passage>)>,
}

/// Establishes the owners; `bound` is the greatest error of the user clock.
pub fn merge(set: &TraceSet, bound: i64) -> Merged {
    let streams = LevelStreams::read(set);
    let mut merged = Merged::default();
    let mut lwps = BTreeMap::new();
    let calls = calls(&streams);
    for (&cpu, (begin, items)) in &streams.cpus {
        cut(cpu, *begin, items, &calls, &mut lwps, &mut merged);
    }
    let numbers = ProcessNumbers::new(&streams);
    for (&lwp, (pid, items)) in &streams.threads {
        let time = lwps.remove(&lwp).unwrap_or_default();
        let currents = currents(&streams, lwp, items, bound);
        follow(&numbers, lwp, *pid, time, &currents, bound, &mut merged);
    }
    merged
}

fn is_interrupt_edge(name: &str) -> bool {
    name.starts_with("irq_")
}

/// Whether the running thread is in a system call after an item, by CPU and position.
type Calls = BTreeMap<(u32, usize), bool>;

/// Passes over all CPUs in the order of time, and back: a thread is in a call after an entry, and
/// before an exit.
fn calls(streams: &LevelStreams) -> Calls {
    let mut order = Vec::new();
    for (&cpu, (_, items)) in &streams.cpus {
        for (at, item) in items.iter().enumerate() {
            let time = match item {
                LevelItem::Record { time, .. } => *time,
                LevelItem::Lost { until } => *until,
            };
            order.push((time, cpu, at));
        }
    }
    order.sort_unstable();
    let each = streams.cpus.iter();
    let running: BTreeMap<u32, Vec<Option<i32>>> = each
        .map(|(&cpu, (_, items))| (cpu, running(items)))
        .collect();
    let in_call_after = |threads: &BTreeSet<i32>, cpu: u32, at: usize| {
        running[&cpu][at + 1].is_some_and(|tid| threads.contains(&tid))
    };
    let mut calls = Calls::new();
    let mut in_call = BTreeSet::new();
    for &(_, cpu, at) in &order {
        let edges = ("syscall_entry_", "syscall_exit_");
        step(
            &streams.cpus[&cpu].1[at],
            running[&cpu][at],
            edges,
            &mut in_call,
        );
        calls.insert((cpu, at), in_call_after(&in_call, cpu, at));
    }
    in_call.clear();
    for &(_, cpu, at) in order.iter().rev() {
        let was_in_call = calls[&(cpu, at)];
        calls.insert((cpu, at), was_in_call || in_call_after(&in_call, cpu, at));
        let edges = ("syscall_exit_", "syscall_entry_");
        step(
            &streams.cpus[&cpu].1[at],
            running[&cpu][at],
            edges,
            &mut in_call,
        );
    }
    calls
}

/// Follows the threads in system calls over an item, whose edges begin and end calls.
fn step(
    item: &LevelItem,
    running: Option<i32>,
    (begin, end): (&str, &str),
    in_call: &mut BTreeSet<i32>,
) {
    match (item, running) {
        // The edges of any thread may be lost.
        (LevelItem::Lost { .. }, _) => in_call.clear(),
        (LevelItem::Record { record, .. }, Some(tid)) => {
            if record.name.starts_with(begin) {
                in_call.insert(tid);
            } else if record.name.starts_with(end) {
                in_call.remove(&tid);
            }
        }
        (LevelItem::Record { .. }, None) => {}
    }
}

/// The thread that runs before each item of a CPU, and after the last.
fn running(items: &[LevelItem]) -> Vec<Option<i32>> {
    let mut before = vec![None; items.len() + 1];
    let mut running = None;
    for (at, item) in items.iter().enumerate() {
        before[at] = running;
        match item {
            LevelItem::Lost { .. } => running = None,
            LevelItem::Record { record, .. } if record.name == "sched_switch" => {
                running = record.id("next_tid");
            }
            LevelItem::Record { .. } => {}
        }
    }
    before[items.len()] = running;
    let mut running = None;
    for (at, item) in items.iter().enumerate().rev() {
        match item {
            LevelItem::Lost { .. } => running = None,
            LevelItem::Record { record, .. } if record.name == "sched_switch" => {
                running = record.id("prev_tid");
            }
            LevelItem::Record { .. } => {}
        }
        before[at] = before[at].or(running);
    }
    before
}

/// Cuts a CPU's time into runs, openings and kernel records.
fn cut(
    cpu: u32,
    begin: i64,
    items: &[LevelItem],
    calls: &Calls,
    lwps: &mut BTreeMap<i32, LwpTime>,
    merged: &mut Merged,
) {
    let (mut hard, mut soft) = (false, false);
    let mut last = begin;
    let mut previous = None;
    for (at, thread) in running(items).into_iter().enumerate() {
        let time = match items.get(at) {
            Some(LevelItem::Record { time, .. }) => *time,
            // The last packet before the loss ends with its last record.
            Some(LevelItem::Lost { .. }) => last,
            None => i64::MAX,
        };
        let in_call = at
            .checked_sub(1)
            .is_some_and(|before| calls[&(cpu, before)]);
        let is_open = !hard && !soft && !in_call;
        if let Some(tid) = thread {
            let lwp = lwps.entry(tid).or_default();
            let opening = Opening {
                cpu,
                from: last,
                to: time,
            };
            lwp.runs_until(opening, previous == thread, is_open);
        }
        previous = thread;
        match items.get(at) {
            Some(LevelItem::Record { record, .. }) => {
                let in_interrupt = hard || soft || is_interrupt_edge(&record.name);
                keep_kernel_record(record, time, (cpu, thread), in_interrupt, lwps, merged);
                match record.name.as_str() {
                    "irq_handler_entry" => hard = true,
                    "irq_softirq_entry" => soft = true,
                    "irq_handler_exit" => hard = false,
                    "irq_softirq_exit" => soft = false,
                    "sched_switch" => previous = None,
                    _ => {}
                }
                last = time;
            }
            Some(LevelItem::Lost { until }) => {
                (hard, soft, previous, last) = (false, false, None, *until);
            }
            None => {}
        }
    }
}

impl LwpTime {
    /// The thread has run for a stretch; `is_open` if it was in user space.
    fn runs_until(&mut self, opening: Opening, is_same_run: bool, is_open: bool) {
        if !is_same_run {
            self.runs.push((opening.from, Vec::new()));
        }
        if is_open {
            let run = &mut self.runs.last_mut().expect("a run").1;
            run.push(Passage::Opening(self.openings.len()));
            self.openings.push(opening);
        }
    }
}

fn keep_kernel_record(
    record: &Record,
    time: i64,
    (cpu, thread): (u32, Option<i32>),
    in_interrupt: bool,
    lwps: &mut BTreeMap<i32, LwpTime>,
    merged: &mut Merged,
) {
    let serial = record.int("serial").expect("a serial number") as u64;
    let kept = MergedRecord {
        name: record.name.clone(),
        time,
        cpu: Some(cpu),
        tid: thread.unwrap_or(-1),
        lwp: thread.unwrap_or(-1),
        ult: if thread.is_some() || in_interrupt {
            0
        } else {
            UNKNOWN
        },
    };
    merged.records.insert(serial, kept);
    if let Some(tid) = thread {
        let lwp = lwps.get_mut(&tid).expect("it runs");
        let run = lwp.runs.last_mut().expect("it runs");
        run.1.push(Passage::Kernel {
            serial,
            time,
            in_interrupt,
        });
    }
}

/// A user event: time, serial number and name; a loss has no serial number. And the user-level
/// thread that is current from then on.
struct Current {
    time: i64,
    event: Option<(u64, String)>,
    before: u64,
    after: u64,
}

/// The current user-level thread before and after each item of an LWP's stream. The first element
/// is for the time before all.
fn currents(
    streams: &LevelStreams,
    lwp: i32,
    items: &[LevelItem],
    bound: i64,
) -> (u64, Vec<Current>) {
    let mut list = Vec::new();
    let initial = first_current(streams, lwp, items, true);
    let mut current = initial;
    for (at, item) in items.iter().enumerate() {
        match item {
            LevelItem::Lost { until } => {
                // From the last record on, any switch may be lost.
                let last = list.last().map(|last: &Current| last.time - bound);
                let since = last.unwrap_or(i64::MIN);
                let (before, after) = (current, UNKNOWN);
                list.push(Current {
                    time: since,
                    event: None,
                    before,
                    after,
                });
                current = first_current(streams, lwp, &items[at + 1..], false);
                let (before, after) = (UNKNOWN, current);
                list.push(Current {
                    time: *until + bound,
                    event: None,
                    before,
                    after,
                });
            }
            LevelItem::Record { time, record } => {
                let before = current;
                match record.name.as_str() {
                    "tracebraid:ult_switch" => {
                        current = record.int("next_ult").expect("a thread") as u64;
                    }
                    "tracebraid:lwp_begin" | "tracebraid:lwp_end" => current = 0,
                    _ => {}
                }
                let serial = record.int("serial").expect("a serial number") as u64;
                let event = Some((serial, record.name.clone()));
                list.push(Current {
                    time: *time,
                    event,
                    before,
                    after: current,
                });
            }
        }
    }
    (initial, list)
}

/// The current user-level thread at the begin of items, up to the next loss.
fn first_current(streams: &LevelStreams, lwp: i32, items: &[LevelItem], is_begin: bool) -> u64 {
    for item in items {
        let LevelItem::Record { record, .. } = item else {
            break;
        };
        match record.name.as_str() {
            "tracebraid:ult_switch" => return record.int("prev_ult").expect("a thread") as u64,
            "tracebraid:lwp_begin" | "tracebraid:lwp_end" => return 0,
            _ => {}
        }
    }
    let (pid, all) = &streams.threads[&lwp];
    if is_begin && let Some(ult) = in_snapshot(streams, *pid, lwp) {
        return ult;
    }
    let mut is_lwp = all.iter().any(|item| match item {
        LevelItem::Record { record, .. } => {
            ["tracebraid:ult_switch", "tracebraid:lwp_begin"].contains(&record.name.as_str())
        }
        LevelItem::Lost { .. } => true,
    });
    is_lwp |= in_snapshot(streams, *pid, lwp).is_some();
    if is_lwp { UNKNOWN } else { 0 }
}

/// The user-level thread that a snapshot of the process shows on an LWP.
fn in_snapshot(streams: &LevelStreams, process: i32, lwp: i32) -> Option<u64> {
    let threads = streams.threads.values().filter(|(pid, _)| *pid == process);
    let mut records = threads
        .flat_map(|(_, items)| items)
        .filter_map(|item| match item {
            LevelItem::Record { record, .. } => Some(record),
            LevelItem::Lost { .. } => None,
        });
    let on = records
        .find(|record| record.name == "tracebraid:ult_state" && record.id("lwp") == Some(lwp));
    on.map(|record| record.int("ult").expect("a thread") as u64)
}

/// Places the user events of an LWP, and names the current user-level thread in all its records.
fn follow(
    numbers: &ProcessNumbers,
    lwp: i32,
    pid: i32,
    mut time: LwpTime,
    (initial, currents): &(u64, Vec<Current>),
    bound: i64,
    merged: &mut Merged,
) {
    time.runs.sort_by_key(|(begin, _)| *begin);
    let mut order: Vec<usize> = (0..time.openings.len()).collect();
    order.sort_by_key(|&at| (time.openings[at].from, time.openings[at].cpu, at));
    let places = places(&time.openings, &order, currents, bound);
    let mut current = *initial;
    let mut next = 0;
    for passage in time.runs.iter().flat_map(|(_, parts)| parts) {
        match passage {
            Passage::Opening(at) => {
                let until = places.iter().rposition(|place| *place == Some(*at));
                for it in currents
                    .iter()
                    .take(until.map_or(0, |last| last + 1))
                    .skip(next)
                {
                    current = it.after;
                }
                next = next.max(until.map_or(0, |last| last + 1));
            }
            Passage::Kernel {
                serial,
                time,
                in_interrupt,
            } => {
                while let Some(it) = currents.get(next)
                    && places[next].is_none()
                    && it.time <= *time
                {
                    current = it.after;
                    next += 1;
                }
                let record = merged.records.get_mut(serial).expect("it was kept");
                record.ult = if *in_interrupt { 0 } else { current };
                record.tid = numbers.shown(pid, lwp, current);
            }
        }
    }
    for (it, place) in currents.iter().zip(&places) {
        let Some((serial, name)) = &it.event else {
            continue;
        };
        let opening = place.map(|at| time.openings[at]);
        let moved = opening.map_or(it.time, |opening| it.time.clamp(opening.from, opening.to));
        let distance = (moved - it.time).abs();
        merged.moved.0 += u64::from(distance > 0);
        merged.moved.1 = merged.moved.1.max(distance);
        merged.homeless += u64::from(opening.is_none());
        let record = MergedRecord {
            name: name.clone(),
            time: moved,
            cpu: opening.map(|opening| opening.cpu),
            tid: numbers.shown(pid, lwp, it.before),
            lwp,
            ult: it.before,
        };
        merged.records.insert(*serial, record);
    }
}

/// The opening of each user event; none for losses and for events outside of all openings.
fn places(
    openings: &[Opening],
    order: &[usize],
    currents: &[Current],
    bound: i64,
) -> Vec<Option<usize>> {
    let mut earliest = 0;
    let mut places = Vec::new();
    for it in currents {
        let distance = |opening: &Opening| {
            let moved = it.time.clamp(opening.from, opening.to);
            (moved - it.time).abs()
        };
        let later = order.iter().enumerate().skip(earliest);
        let nearest = later.min_by_key(|(_, at)| distance(&openings[**at]));
        let nearest =
            nearest.filter(|(_, at)| it.event.is_some() && distance(&openings[**at]) <= bound);
        if let Some((place, _)) = nearest {
            earliest = place;
        }
        places.push(nearest.map(|(_, at)| *at));
    }
    places
}

/// Numbers of processes with user-level threads, for the ids under which analyses see them.
struct ProcessNumbers(Vec<i32>);

impl ProcessNumbers {
    fn new(streams: &LevelStreams) -> ProcessNumbers {
        let has_ults = |items: &[LevelItem]| {
            items.iter().any(|item| match item {
                LevelItem::Record { record, .. } => record.name.starts_with("tracebraid:ult_"),
                LevelItem::Lost { .. } => false,
            })
        };
        let threads = streams.threads.values();
        let pids: BTreeSet<i32> = threads
            .filter(|(_, items)| has_ults(items))
            .map(|(pid, _)| *pid)
            .collect();
        ProcessNumbers(pids.into_iter().collect())
    }

    /// The id under which analyses see a thread.
    fn shown(&self, pid: i32, lwp: i32, ult: u64) -> i32 {
        let process = self.0.iter().position(|other| *other == pid);
        match process {
            Some(process) if ult != 0 && ult != UNKNOWN => {
                100_000_000 * (process as i32 + 1) + ult as i32
            }
            _ => lwp,
        }
    }
}
