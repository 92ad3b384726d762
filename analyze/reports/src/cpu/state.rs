//! What is known of the CPUs after some chunks.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use crate::kernel::{CpuKey, Packet, People, Selection, Table, ThreadKey};

/// Partial state of the cpu analysis.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CpuPartial {
    pub(super) cpus: Vec<CpuState>,
    pub(super) usage: Table<Usage>,
    pub(super) people: People,
    /// Where in `cpus` the last one was found.
    #[serde(skip)]
    last: usize,
}

/// Use of CPUs by a thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) active: u64,
    pub(super) switches: u64,
}

/// What is known of one CPU. Its chunks come in the order of time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct CpuState {
    pub(super) key: CpuKey,
    /// The first thing that tells who ran, or that it is not known: up to there the chunks before
    /// decide.
    first: Option<First>,
    /// The first switch of all.
    pub(super) first_switch: Option<(i64, i32)>,
    pub(super) active: u64,
    pub(super) idle: u64,
    pub(super) switches: u64,
    /// Switches from another thread than the one that had been switched to: some were lost.
    pub(super) inconsistent: u64,
    /// Times that lost events made it unknown who runs.
    pub(super) losses: u64,
    /// Who runs at the end, and since when.
    pub(super) current: Option<(i32, i64)>,
    /// Up to when the events of the last packet are there: to its end.
    seen_until: Option<i64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum First {
    Switch {
        time: i64,
        prev: i32,
    },
    /// Events were lost; those before are there up to that time, or up to where the chunks
    /// before say.
    Loss {
        until: Option<i64>,
    },
}

impl CpuPartial {
    /// The state of a CPU.
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

    /// A packet of a CPU begins, or goes on: its events are there up to its end.
    pub(super) fn packet(&mut self, selection: &Selection, packet: &Packet) {
        let at = self.cpu(packet.cpu);
        if packet.lost_before {
            self.loss(selection, at);
        }
        let cpu = &mut self.cpus[at];
        cpu.seen_until = packet.end.or(packet.begin).or(cpu.seen_until);
    }

    fn loss(&mut self, selection: &Selection, at: usize) {
        let cpu = &mut self.cpus[at];
        let until = cpu.seen_until;
        cpu.losses += 1;
        if cpu.first.is_none() {
            cpu.first = Some(First::Loss { until });
        }
        if let (Some((tid, since)), Some(until)) = (cpu.current.take(), until) {
            self.ran(selection, at, tid, since, until);
        }
    }

    #[inline]
    fn ran(&mut self, selection: &Selection, at: usize, tid: i32, since: i64, until: i64) {
        let cpu = &mut self.cpus[at];
        let time = selection.window.clip(since, until);
        if time == 0 || !selection.cpus.contains(cpu.key.cpu) {
            return;
        }
        if tid == 0 {
            cpu.idle += time;
        } else {
            cpu.active += time;
            let key = ThreadKey {
                trace: cpu.key.trace,
                tid,
            };
            self.usage.get(key).active += time;
        }
    }

    /// A CPU goes from one thread to another.
    #[inline]
    pub(super) fn switch(
        &mut self,
        selection: &Selection,
        key: CpuKey,
        time: i64,
        (prev, next): (ThreadKey, ThreadKey),
        (prev_name, next_name): (Option<Comm>, Option<Comm>),
    ) {
        let at = self.cpu(key);
        self.cpus[at].switches += u64::from(selection.counts(time, key.cpu));
        self.goes_over(selection, at, time, prev.tid, next.tid);
        let cpu = &mut self.cpus[at];
        cpu.first_switch.get_or_insert((time, prev.tid));
        for (thread, name) in [(prev, prev_name), (next, next_name)] {
            if let Some(name) = name.filter(|_| thread.tid != 0) {
                self.people.get(thread).learn_name(time, key, name);
            }
        }
        if next.tid != 0 && selection.counts(time, key.cpu) {
            self.usage.get(next).switches += 1;
        }
    }

    /// A thread takes over the id of another one at exec, without a switch.
    pub(super) fn take_over(
        &mut self,
        selection: &Selection,
        key: CpuKey,
        time: i64,
        old: ThreadKey,
        tid: ThreadKey,
    ) {
        if old != tid {
            let at = self.cpu(key);
            self.goes_over(selection, at, time, old.tid, tid.tid);
        }
    }

    #[inline]
    fn goes_over(&mut self, selection: &Selection, at: usize, time: i64, prev: i32, next: i32) {
        let cpu = &mut self.cpus[at];
        let current = cpu.current.replace((next, time));
        if cpu.first.is_none() {
            cpu.first = Some(First::Switch { time, prev });
        }
        self.end_of_stretch(selection, at, current, time, prev);
    }

    /// Someone is known to have run since a switch, and another switch tells who ran last.
    #[inline]
    fn end_of_stretch(
        &mut self,
        selection: &Selection,
        at: usize,
        current: Option<(i32, i64)>,
        time: i64,
        prev: i32,
    ) {
        match current {
            Some((tid, since)) if tid == prev => self.ran(selection, at, tid, since, time),
            Some(_) => self.cpus[at].inconsistent += 1,
            None => {}
        }
    }

    pub(super) fn merge(&mut self, selection: &Selection, later: CpuPartial) {
        for (key, usage) in later.usage.into_entries() {
            let sum = self.usage.get(key);
            sum.active += usage.active;
            sum.switches += usage.switches;
        }
        self.people.merge(later.people);
        for cpu in later.cpus {
            self.join(selection, cpu);
        }
    }

    /// Joins the state of later chunks of a CPU.
    fn join(&mut self, selection: &Selection, later: CpuState) {
        let at = self.cpu(later.key);
        let earlier = &mut self.cpus[at];
        let current = earlier.current;
        if earlier.first.is_none() {
            earlier.first = match later.first {
                Some(First::Loss { until }) => Some(First::Loss {
                    until: until.or(earlier.seen_until),
                }),
                first => first,
            };
        }
        match later.first {
            None => {}
            Some(First::Switch { time, prev }) => {
                self.end_of_stretch(selection, at, current, time, prev);
            }
            Some(First::Loss { until }) => {
                let until = until.or(self.cpus[at].seen_until);
                if let (Some((tid, since)), Some(until)) = (current, until) {
                    self.ran(selection, at, tid, since, until);
                }
            }
        }
        let earlier = &mut self.cpus[at];
        if later.first.is_some() {
            earlier.current = later.current;
        }
        earlier.first_switch = earlier.first_switch.or(later.first_switch);
        earlier.active += later.active;
        earlier.idle += later.idle;
        earlier.switches += later.switches;
        earlier.inconsistent += later.inconsistent;
        earlier.losses += later.losses;
        earlier.seen_until = later.seen_until.or(earlier.seen_until);
    }

    /// Whoever runs at the end does so until the trace ends.
    pub(super) fn close(&mut self, selection: &Selection, end: i64) {
        for at in 0..self.cpus.len() {
            if let Some((tid, since)) = self.cpus[at].current.take() {
                self.ran(selection, at, tid, since, end);
            }
        }
    }
}
