//! State of the CPUs after some chunks.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use crate::cpu::rules::Rules;
use crate::cpu::stretches::Ran;
use crate::cpu::usage::Usage;
use tracebraid_follow::{CpuKey, Input, Packet, People, Runs, Stretch, Table, ThreadKey};
use tracebraid_statistics::Distribution;

/// Partial state of the cpu analysis.
///
/// The size is bounded by the number of CPUs, threads and priorities; with `--view log` also by
/// that of stretches.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CpuPartial {
    pub(super) cpus: Vec<CpuState>,
    pub(super) usage: Table<Usage>,
    pub(super) people: People,
    /// All stretches, in no order, if they are listed.
    pub(super) log: Vec<Ran>,
    /// Index in `cpus` of the last lookup.
    #[serde(skip)]
    last: usize,
}

/// CPU and time of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuMoment {
    pub(super) cpu: CpuKey,
    pub(super) time: i64,
}

impl CpuMoment {
    /// A thread in the trace of the CPU.
    #[inline(always)]
    pub(super) fn thread(self, tid: i64) -> ThreadKey {
        ThreadKey {
            trace: self.cpu.trace,
            tid: tid as i32,
        }
    }
}

/// One of the two threads of a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) thread: ThreadKey,
    pub(super) name: Option<Comm>,
    /// On the kernel's scale.
    pub(super) priority: Option<i32>,
}

/// State of one CPU, whose chunks come in the order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CpuState {
    pub(super) key: CpuKey,
    /// The running thread.
    pub(super) runs: Runs<()>,
    /// Time of the first switch, and the thread it switched away from.
    pub(super) first_switch: Option<(i64, i32)>,
    pub(super) active: u64,
    pub(super) idle: u64,
    pub(super) switches: u64,
    /// Durations of the stretches of threads other than the idle one.
    pub(super) lengths: Distribution,
    /// Indices of the thread of the last lookup in the tables of use and of names: a switch most
    /// often leaves the thread that the previous switch went to.
    #[serde(skip)]
    last: (usize, usize),
}

impl CpuPartial {
    /// Index of a CPU's state.
    #[inline]
    fn cpu(&mut self, key: CpuKey) -> usize {
        if self.cpus.get(self.last).is_some_and(|cpu| cpu.key == key) {
            return self.last;
        }
        self.last = match self.cpus.binary_search_by_key(&key, |cpu| cpu.key) {
            Ok(at) => at,
            Err(at) => {
                self.cpus.insert(
                    at,
                    CpuState {
                        key,
                        ..CpuState::default()
                    },
                );
                at
            }
        };
        self.last
    }

    /// A packet of a CPU begins or continues; its events are complete up to its end.
    pub(super) fn packet(&mut self, rules: &Rules, packet: &Packet) {
        let at = self.cpu(packet.cpu);
        let ran = self.cpus[at].runs.packet(packet);
        self.ran(rules, at, ran);
    }

    /// The rest of a packet cannot be decoded.
    pub(super) fn cut(&mut self, rules: &Rules, packet: &Packet, time: i64) {
        let at = self.cpu(packet.cpu);
        let ran = self.cpus[at].runs.cut(time);
        self.ran(rules, at, ran);
    }

    #[inline]
    fn ran(&mut self, rules: &Rules, at: usize, stretch: Option<Stretch<()>>) {
        let Some(stretch) = stretch else { return };
        let selection = &rules.selection;
        let cpu = &mut self.cpus[at];
        let time = selection.window.clip(stretch.since, stretch.until);
        if time == 0 || !selection.cpus.contains(cpu.key.cpu) {
            return;
        }
        if stretch.tid == 0 {
            cpu.idle += time;
            return;
        }
        cpu.active += time;
        let is_within = rules.options.views.limits.contain(time);
        if rules.is_counted && is_within {
            cpu.lengths.add(time);
        }
        let (trace, tid) = (cpu.key.trace, stretch.tid);
        self.usage_of(at, ThreadKey { trace, tid }).active += time;
        if rules.is_listed && is_within {
            self.list(rules, at, &stretch, time);
        }
    }

    /// Adds a stretch to the lists.
    #[inline(never)]
    fn list(&mut self, rules: &Rules, at: usize, stretch: &Stretch<()>, time: u64) {
        let ran = Ran::new(&rules.selection.window, self.cpus[at].key, stretch, time);
        let usage = self.usage_of(at, ran.thread());
        usage.stretches.get_or_insert_default().add(rules, ran);
        if rules.is_logged {
            self.log.push(ran);
        }
    }

    /// The use of CPUs by a thread, found near the CPU's last lookup.
    #[inline]
    fn usage_of(&mut self, at: usize, key: ThreadKey) -> &mut Usage {
        self.usage.get_near(key, &mut self.cpus[at].last.0)
    }

    /// Records the name of a thread.
    #[inline]
    fn learn_name(&mut self, at: usize, place: CpuMoment, side: &Side) {
        if let Some(name) = side.name {
            let person = self.people.get_near(side.thread, &mut self.cpus[at].last.1);
            person.learn_name(place.time, place.cpu, name);
        }
    }

    /// Processes a switch.
    #[inline]
    pub(super) fn switch(&mut self, rules: &Rules, place: CpuMoment, [prev, next]: [Side; 2]) {
        let at = self.cpu(place.cpu);
        let counts = rules.selection.counts(place.time, place.cpu.cpu);
        self.cpus[at].switches += u64::from(counts);
        self.goes_over(rules, at, place.time, prev.thread.tid, next.thread.tid);
        self.cpus[at]
            .first_switch
            .get_or_insert((place.time, prev.thread.tid));
        for (side, switches) in [(prev, 0), (next, 1)] {
            if side.thread.tid == 0 {
                continue;
            }
            self.learn_name(at, place, &side);
            if counts {
                let usage = self.usage_of(at, side.thread);
                usage.switches += switches;
                if let Some(priority) = side.priority {
                    usage.priorities.see(place.time, place.cpu, priority);
                }
            }
        }
    }

    /// Records the priority of a thread.
    pub(super) fn priority(&mut self, place: CpuMoment, thread: ThreadKey, priority: i32) {
        if thread.tid != 0 {
            let usage = self.usage.get(thread);
            usage.priorities.see(place.time, place.cpu, priority);
        }
    }

    /// Counts a migration of a thread.
    pub(super) fn migrate(&mut self, place: CpuMoment, thread: ThreadKey, priority: Option<i32>) {
        if thread.tid != 0 {
            self.usage.get(thread).migrations += 1;
        }
        if let Some(priority) = priority {
            self.priority(place, thread, priority);
        }
    }

    /// At exec, a thread takes over the id of another one without a switch.
    pub(super) fn take_over(
        &mut self,
        rules: &Rules,
        place: CpuMoment,
        old: ThreadKey,
        tid: ThreadKey,
    ) {
        if old != tid {
            let at = self.cpu(place.cpu);
            self.goes_over(rules, at, place.time, old.tid, tid.tid);
        }
    }

    #[inline]
    fn goes_over(&mut self, rules: &Rules, at: usize, time: i64, prev: i32, next: i32) {
        let ran = self.cpus[at].runs.goes_over(time, prev, next, ());
        self.ran(rules, at, ran);
    }

    pub(super) fn merge(&mut self, rules: &Rules, later: CpuPartial) {
        self.usage
            .merge_by(later.usage, |own, usage| own.merge(rules, usage));
        self.people.merge(later.people);
        self.log.extend(later.log);
        for cpu in later.cpus {
            self.join(rules, cpu);
        }
    }

    /// Joins the state of later chunks of a CPU.
    fn join(&mut self, rules: &Rules, later: CpuState) {
        let at = self.cpu(later.key);
        let earlier = &mut self.cpus[at];
        earlier.first_switch = earlier.first_switch.or(later.first_switch);
        earlier.active += later.active;
        earlier.idle += later.idle;
        earlier.switches += later.switches;
        earlier.lengths.merge(&later.lengths);
        let ran = earlier.runs.join(later.runs, |()| ());
        self.ran(rules, at, ran);
    }

    /// The thread that runs at the end runs until the trace ends.
    pub(super) fn close(&mut self, rules: &Rules, input: &Input) {
        for at in 0..self.cpus.len() {
            if let Some(end) = input.end_of(self.cpus[at].key.trace) {
                let until = input.recorded.until(self.cpus[at].key);
                let ran = self.cpus[at].runs.close(end.min(until));
                self.ran(rules, at, ran);
            }
        }
    }
}
