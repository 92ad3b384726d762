//! Reactions of user-level threads, by one plain pass over all records in the order of time.

use std::collections::BTreeMap;

use tracebraid_ctf::trace::TraceSet;

use super::kernel_names::of_lttng;
use super::super_records::{SuperRecord, super_records};

/// A reaction that an act has ended. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelReaction {
    pub tid: i32,
    pub begin: i64,
    pub end: i64,
    /// Interrupt, kernel, scheduler, LWP wait, thread.
    pub parts: [u64; 5],
    pub source: String,
    /// CPU of the act.
    pub cpu: u32,
}

/// Times at which a thread that has not acted yet took its steps.
#[derive(Clone, Debug)]
struct Pending {
    source: String,
    begin: i64,
    woken: i64,
    lwp: Option<i64>,
    ult_woken: Option<i64>,
    ult: Option<i64>,
}

#[derive(Default)]
struct Model {
    running: BTreeMap<i32, bool>,
    pending: BTreeMap<i32, Pending>,
    /// By CPU: the hard interrupt and the softirq, with the times of their entries.
    interrupts: BTreeMap<u32, [Option<(String, i64)>; 2]>,
    found: Vec<ModelReaction>,
}

/// All reactions of the first trace, sorted. Of several CPUs, records at the same time are in the
/// order of the CPUs.
pub fn reactions(set: &TraceSet) -> Vec<ModelReaction> {
    let mut steps: Vec<(i64, u32, Option<SuperRecord>)> = Vec::new();
    for record in super_records(set) {
        let Some(cpu) = record.cpu else { continue };
        steps.extend(record.lost_until.map(|time| (time, cpu, None)));
        steps.push((record.time, cpu, Some(record)));
    }
    // A CPU's records are in order already.
    steps.sort_by_key(|(time, cpu, _)| (*time, *cpu));
    let mut model = Model::default();
    for (time, cpu, record) in steps {
        match record {
            Some(record) => model.step(time, cpu, &record),
            None => {
                model.interrupts.remove(&cpu);
                model.running.clear();
                model.pending.clear();
            }
        }
    }
    model.found.sort();
    model.found
}

/// States in which a thread leaves its CPU without waiting: runnable, preempted, ready, dead.
const DOES_NOT_WAIT: [i64; 5] = [0, 0x100, 0x4000_0000, 0x10, 0x20];

impl Model {
    fn step(&mut self, time: i64, cpu: u32, of: &SuperRecord) {
        let record = of_lttng(of.record.clone());
        let int = |name: &str| record.int(name).expect("a number");
        let is_user = record.int("level").is_some_and(|level| level > 0);
        let [hard, soft] = self.interrupts.entry(cpu).or_default();
        match record.name.as_str() {
            "irq_handler_entry" => *hard = Some((format!("irq {}", int("irq")), time)),
            "irq_handler_exit" => *hard = None,
            "irq_softirq_entry" => {
                let name = match int("vec") {
                    1 => "TIMER",
                    3 => "NET_RX",
                    7 => "SCHED",
                    other => panic!("no softirq {other} is generated"),
                };
                *soft = Some((format!("softirq {name}"), time));
            }
            "irq_softirq_exit" => *soft = None,
            "sched_switch" => {
                (*hard, *soft) = (None, None);
                let waits = !DOES_NOT_WAIT.contains(&int("prev_state"));
                self.leaves(
                    (cpu, time),
                    int("prev_tid") as i32,
                    of.lwp,
                    waits || is_user,
                );
                self.comes(time, int("next_tid") as i32, is_user);
            }
            "sched_process_fork" => {
                let child = int("child_tid") as i32;
                self.running.remove(&child);
                self.pending.remove(&child);
            }
            "sched_waking" | "sched_wakeup" => {
                let origin = soft.clone().or(hard.clone());
                match is_user {
                    true => self.user_wakes(time, int("tid") as i32, of),
                    false => self.kernel_wakes(time, int("tid") as i32, origin),
                }
            }
            name if is_act(name) && of.tid != of.lwp => self.acts((cpu, time), of.tid),
            _ => {}
        }
    }

    fn is_running(&self, tid: i32) -> bool {
        self.running.get(&tid).copied().unwrap_or(false)
    }

    fn kernel_wakes(&mut self, time: i64, tid: i32, origin: Option<(String, i64)>) {
        if self.is_running(tid) || self.pending.contains_key(&tid) {
            return;
        }
        let (source, begin) = origin.unwrap_or(("thread".to_owned(), time));
        let pending = Pending {
            source,
            begin,
            woken: time,
            lwp: None,
            ult_woken: None,
            ult: None,
        };
        self.pending.insert(tid, pending);
    }

    fn user_wakes(&mut self, time: i64, tid: i32, by: &SuperRecord) {
        if self.is_running(tid) {
            return;
        }
        let scheduler = (by.tid == by.lwp).then(|| self.pending.get(&by.lwp));
        let begun = scheduler.flatten().filter(|begun| begun.lwp.is_some());
        let mut begun = begun.cloned().unwrap_or(Pending {
            source: "runtime".to_owned(),
            begin: time,
            woken: time,
            lwp: Some(time),
            ult_woken: None,
            ult: None,
        });
        (begun.ult_woken, begun.ult) = (Some(time), None);
        self.pending.insert(tid, begun);
    }

    fn comes(&mut self, time: i64, tid: i32, is_user: bool) {
        self.running.insert(tid, true);
        let Some(pending) = self.pending.get_mut(&tid) else {
            return;
        };
        if !is_user {
            pending.lwp.get_or_insert(time);
        } else if pending.ult_woken.is_some() {
            pending.ult.get_or_insert(time);
        }
    }

    fn leaves(&mut self, at: (u32, i64), tid: i32, lwp: i32, gives_up: bool) {
        self.running.insert(tid, false);
        match gives_up {
            true if tid == lwp => _ = self.pending.remove(&tid),
            true => self.acts(at, tid),
            false => {}
        }
    }

    fn acts(&mut self, (cpu, end): (u32, i64), tid: i32) {
        let Some(pending) = self.pending.get(&tid) else {
            return;
        };
        let is_in_kernel = pending.ult_woken.is_none() && pending.lwp.is_some();
        if !is_in_kernel && pending.ult.is_none() {
            return;
        }
        let mut last = pending.begin;
        let mut until = |time: Option<i64>| {
            let time = time.unwrap_or(last);
            let part = time.abs_diff(last);
            last = time;
            part
        };
        let parts = [
            until(Some(pending.woken)),
            until(pending.lwp),
            until(pending.ult_woken),
            until(pending.ult),
            until(Some(end)),
        ];
        self.found.push(ModelReaction {
            tid,
            begin: pending.begin,
            end,
            parts,
            source: pending.source.clone(),
            cpu,
        });
        self.pending.remove(&tid);
    }
}

/// Entries and exits of system calls and functions.
fn is_act(name: &str) -> bool {
    let is_call = name.starts_with("syscall_entry_") || name.starts_with("syscall_exit_");
    let is_of_program = [
        "tracebraid:prof_in",
        "tracebraid:prof_out",
        "tracebraid:ult_call_begin",
        "tracebraid:ult_call_end",
    ];
    is_call || is_of_program.contains(&name)
}
