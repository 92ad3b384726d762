//! What becomes of threads and run queues, by what happens on all CPUs in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_threads::Waker;

use crate::kernel::{ByCpu, CpuKey, Table, ThreadKey};
use crate::sched::cpus::Cpu;
use crate::sched::life::{Life, Now, Place, Woken};
use crate::sched::stats::{Counts, Latency};
use crate::sched::step::{Item, Switched, Wakeup};
use crate::sched::{Freq, SchedRules};

/// What is known of threads and CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) threads: Table<Entry>,
    pub(super) cpus: ByCpu<Cpu>,
    /// By CPUs: threads that went from one to the other.
    pub(super) migrations: Vec<((CpuKey, CpuKey), u64)>,
    /// In the order of time.
    pub(super) log: Vec<Latency>,
    pub(super) freq: Freq,
    /// The range has begun, and has not ended.
    in_range: bool,
}

/// What is known of a thread, and what is counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) life: Life,
    pub(super) counts: Counts,
}

/// Where and when something happens.
#[derive(Clone, Copy, Debug)]
struct At {
    cpu: CpuKey,
    time: i64,
}

impl At {
    fn thread(self, tid: i32) -> ThreadKey {
        let trace = self.cpu.trace;
        ThreadKey { trace, tid }
    }

    /// A CPU of the same machine.
    fn on(self, cpu: u32) -> CpuKey {
        CpuKey { cpu, ..self.cpu }
    }
}

impl Machine {
    /// Something happens.
    #[inline(always)]
    pub(super) fn play(&mut self, rules: &SchedRules, cpu: CpuKey, time: i64, item: Item) {
        let at = At { cpu, time };
        self.clock(rules, time);
        if rules.selection.window.is_over(time) {
            return;
        }
        match item {
            Item::Switch(switched) => self.switch(rules, at, switched),
            Item::Wake(wakeup, by) => self.wake(rules, at, wakeup, by),
            Item::Migrate { tid, from, to } => self.migrate(rules, at, tid, (at.on(from), at.on(to))),
            Item::Made(tid) => {
                let place = Some(self.place(cpu));
                self.become_of(at.thread(tid), Now::Pending { since: time, place });
            }
            Item::Gone(tid) => self.become_of(at.thread(tid), Now::Off),
            Item::Becomes { old, tid } => {
                self.become_of(at.thread(old), Now::Off);
                let place = self.place(cpu);
                self.become_of(at.thread(tid), Now::Running(place));
                self.cpus.get(cpu).current = Some(tid);
            }
            Item::Lost => {
                let cpu = self.cpus.get(cpu);
                cpu.losses += 1;
                cpu.queue.clear();
                cpu.current = None;
            }
        }
    }

    /// The range begins or ends.
    #[inline(always)]
    fn clock(&mut self, rules: &SchedRules, time: i64) {
        let in_range = rules.selection.window.contains(time);
        if in_range && !self.in_range {
            self.cpus.iter_mut().for_each(|(_, cpu)| cpu.queue.see(true));
        }
        self.in_range = in_range;
    }

    /// Nothing follows: threads of which events that were lost would tell do nothing that is known.
    pub(super) fn end(&mut self, rules: &SchedRules) {
        let cpus = &mut self.cpus;
        for entry in self.threads.values() {
            let life = &mut entry.life;
            forget_lost(cpus, life);
            // Where recording of a CPU ended early, or a thread may have gone to an unrecorded one.
            let is_known = match life.now {
                Now::Waiting { place, .. } => rules.recorded.until(place.cpu) == i64::MAX,
                Now::Pending { place, .. } => {
                    place.is_none_or(|place| rules.recorded.is_whole(place.cpu.trace))
                }
                Now::Off | Now::Running(_) => true,
            };
            if !is_known {
                life.lose();
            }
        }
    }

    /// A thread, of which nothing is known any longer if events were lost where it ran or waited.
    #[inline]
    fn life(&mut self, thread: ThreadKey) -> &mut Life {
        let life = &mut self.threads.get(thread).life;
        forget_lost(&mut self.cpus, life);
        life
    }

    #[inline]
    fn place(&mut self, cpu: CpuKey) -> Place {
        let losses = self.cpus.get(cpu).losses;
        Place { cpu, losses }
    }

    #[inline]
    fn switch(&mut self, rules: &SchedRules, at: At, switched: Switched) {
        let Switched { prev, next, .. } = switched;
        let left = self.cpus.get(at.cpu).current.replace(next);
        // Somebody else ran there: the switch from who had been switched to was lost.
        if let Some(left) = left.filter(|&left| left != prev && left != 0) {
            let life = self.life(at.thread(left));
            if matches!(life.now, Now::Running(place) if place.cpu == at.cpu) {
                life.lose();
            }
        }
        // Who runs next leaves the queue before the other one enters it: they change places.
        if next != 0 {
            self.comes(rules, at, next, switched.priority);
        }
        if prev != 0 && prev != next {
            self.leaves(rules, at, switched);
        }
        // A thread that seemed to wait for it has gone to an unrecorded CPU.
        if next == 0 && rules.is_partial(at.cpu, at.time) {
            let cpu = self.cpus.get(at.cpu);
            cpu.losses += 1;
            cpu.queue.clear();
        }
    }

    /// A CPU is switched to a thread: if it waited, no longer.
    #[inline]
    fn comes(&mut self, rules: &SchedRules, at: At, tid: i32, priority: Option<i32>) {
        let place = self.place(at.cpu);
        let life = self.life(at.thread(tid));
        if rules.is_partial(at.cpu, at.time) && !life.now.leads_to(at.cpu) {
            self.become_of(at.thread(tid), Now::Off);
        }
        let life = self.life(at.thread(tid));
        let woken = life.woken.take();
        let now = std::mem::replace(&mut life.now, Now::Running(place));
        self.end_wait(rules, at, tid, now);
        let Some(woken) = woken else { return };
        let latency = Latency {
            duration: at.time.abs_diff(woken.time),
            begin: woken.time,
            cpu: at.cpu,
            priority,
            thread: at.thread(tid),
            by: woken.by,
        };
        if rules.chooses(&latency, at.time) {
            self.count(rules, latency);
        }
    }

    #[inline]
    fn end_wait(&mut self, rules: &SchedRules, at: At, tid: i32, now: Now) {
        let (since, by) = match now {
            Now::Waiting {
                since,
                moved,
                place,
                by,
            } => {
                self.queued(rules, place.cpu, moved, at.time);
                self.cpus.get(place.cpu).queue.less();
                (since, by)
            }
            Now::Pending { since, .. } => {
                self.queued(rules, at.cpu, since, at.time);
                (since, None)
            }
            _ => return,
        };
        if rules.counts(at.time, at.cpu.cpu) {
            let waited = at.time.abs_diff(since);
            self.cpus.get(at.cpu).waits.add(waited);
            let counts = &mut self.threads.get(at.thread(tid)).counts;
            counts.waits.add(waited);
            // The page does not show preemptions.
            if let Some(by) = by.filter(|_| !rules.selection.is_summary) {
                counts.preempted.of(Waker::Thread(by)).add(waited);
            }
        }
    }

    /// A CPU is switched from a thread.
    #[inline]
    fn leaves(&mut self, rules: &SchedRules, at: At, switched: Switched) {
        let thread = at.thread(switched.prev);
        if rules.counts(at.time, at.cpu.cpu) {
            let counts = &mut self.threads.get(thread).counts;
            counts.switches[usize::from(switched.reason)] += 1;
        }
        self.become_of(thread, Now::Off);
        if switched.waits {
            let by = Some(switched.next);
            self.enter(thread, (at.time, at.time), at.cpu, by);
        }
    }

    fn wake(&mut self, rules: &SchedRules, at: At, wakeup: Wakeup, by: Waker) {
        let thread = at.thread(wakeup.tid);
        let target = wakeup.target.map(|cpu| at.on(cpu));
        let is_told = |cpu: &CpuKey| rules.recorded.tells(*cpu, at.time);
        if target.as_ref().is_some_and(|cpu| !is_told(cpu)) {
            // It goes to an unrecorded CPU, or was on one last and may still be running.
            return self.become_of(thread, Now::Off);
        }
        let is_partial = rules.is_partial(at.cpu, at.time);
        // It is woken a second time: so it has run on an unrecorded CPU.
        let life = self.life(thread);
        let is_again = match (life.woken, life.now) {
            // The thread is where it ran last, or where a recorded migration took it.
            (Some(woken), Now::Pending { place, .. }) if wakeup.is_ready && !woken.is_ready => {
                place.map(|place| place.cpu) != target
            }
            (Some(woken), _) => woken.is_ready || !wakeup.is_ready,
            (None, Now::Waiting { by: None, .. }) => true,
            (None, Now::Waiting { .. }) => wakeup.is_ready && rules.recorded.tells_waking(at.cpu.trace),
            (None, _) => false,
        };
        if is_partial && is_again {
            self.become_of(thread, Now::Off);
        }
        let now = self.life(thread).now;
        match (now, target.filter(|_| wakeup.is_ready)) {
            // It does not sleep, whoever thought so.
            (Now::Running(_), _) => return,
            (Now::Waiting { .. }, _) => {}
            (_, Some(ready)) => self.enter(thread, (at.time, at.time), ready, None),
            (Now::Pending { .. }, None) => {}
            (Now::Off, None) => {
                let place = target.map(|cpu| self.place(cpu));
                let since = at.time;
                self.life(thread).now = Now::Pending { since, place };
            }
        }
        let time = at.time;
        let is_ready = wakeup.is_ready;
        let life = self.life(thread);
        // The time of the wake-up is known if the waker's CPU was recorded.
        let lacks_waking = is_partial
            && life.woken.is_none()
            && is_ready
            && !wakeup.is_new
            && rules.recorded.tells_waking(at.cpu.trace);
        if !lacks_waking {
            let woken = life.woken.get_or_insert(Woken { time, by, is_ready });
            woken.is_ready |= is_ready;
        }
    }

    fn migrate(&mut self, rules: &SchedRules, at: At, tid: i32, (from, to): (CpuKey, CpuKey)) {
        let thread = at.thread(tid);
        if rules.counts(at.time, from.cpu) || rules.counts(at.time, to.cpu) {
            self.threads.get(thread).counts.migrations += 1;
            self.migrated(from, to);
        }
        let is_elsewhere = |place: Place| place.cpu != from && rules.is_partial(at.cpu, at.time);
        let waits = |life: &Life| matches!(life.now, Now::Waiting { place, .. } if is_elsewhere(place));
        let is_lost = rules
            .recorded
            .loses_on_move(to.trace, (from.cpu, to.cpu), at.time);
        if is_lost || waits(self.life(thread)) {
            return self.become_of(thread, Now::Off);
        }
        match self.life(thread).now {
            Now::Pending { since, .. } => {
                let place = Some(self.place(to));
                self.life(thread).now = Now::Pending { since, place };
            }
            Now::Waiting {
                since,
                moved,
                place,
                by,
            } => {
                self.queued(rules, place.cpu, moved, at.time);
                self.cpus.get(place.cpu).queue.less();
                self.enter(thread, (since, at.time), to, by);
            }
            _ => {}
        }
    }

    fn migrated(&mut self, from: CpuKey, to: CpuKey) {
        let pair = (from, to);
        match self.migrations.binary_search_by_key(&pair, |entry| entry.0) {
            Ok(at) => self.migrations[at].1 += 1,
            Err(at) => self.migrations.insert(at, (pair, 1)),
        }
    }

    /// The thread waits, and for that CPU since the second time.
    fn enter(&mut self, thread: ThreadKey, (since, moved): (i64, i64), cpu: CpuKey, by: Option<i32>) {
        let place = self.place(cpu);
        self.threads.get(thread).life.now = Now::Waiting {
            since,
            moved,
            place,
            by,
        };
        self.cpus.get(cpu).queue.more(self.in_range);
    }

    /// It does something else from now on, and waits no longer.
    fn become_of(&mut self, thread: ThreadKey, now: Now) {
        let life = self.life(thread);
        let before = std::mem::replace(life, Life { now, woken: None });
        if let Now::Waiting { place, .. } = before.now {
            self.cpus.get(place.cpu).queue.less();
        }
    }

    /// Somebody waited for that CPU.
    #[inline]
    fn queued(&mut self, rules: &SchedRules, cpu: CpuKey, from: i64, to: i64) {
        self.cpus.get(cpu).queued += u128::from(rules.selection.window.clip(from, to));
    }

    #[inline]
    fn count(&mut self, rules: &SchedRules, latency: Latency) {
        if let Some(bounds) = &rules.bounds {
            let Latency {
                priority, duration, ..
            } = latency;
            self.freq.add(bounds, latency.thread, priority, duration);
            return;
        }
        if rules.is_logged {
            self.log.push(latency);
        }
        self.threads
            .get(latency.thread)
            .counts
            .latency(latency, rules.top);
    }
}

#[inline]
fn forget_lost(cpus: &mut ByCpu<Cpu>, life: &mut Life) {
    if let Some(place) = life.place()
        && cpus.get(place.cpu).losses > place.losses
    {
        life.lose();
    }
}
