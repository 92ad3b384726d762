//! Follows threads and run queues over all CPUs in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_threads::Waker;

use crate::sched::SchedRules;
use crate::sched::cpus::{Cpu, Queue, RunQueue};
use crate::sched::life::{CpuEpoch, Life, Now, Woken};
use crate::sched::stats::Latency;
use crate::sched::step::{SchedItem, Switched, Wakeup};
use crate::sched::sums::Sums;
use tracebraid_follow::{ByCpu, CpuKey, Table, ThreadKey};

/// The state of threads and CPUs at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SchedMachine<Q: RunQueue = Queue> {
    pub(super) threads: Table<Life>,
    pub(super) cpus: ByCpu<Cpu<Q>>,
    /// True within the range.
    pub(super) in_range: bool,
    /// See [`RunQueue`].
    pub(super) stretch: usize,
}

/// Plays events on a machine.
pub(super) struct Player<'a, Q: RunQueue = Queue> {
    pub(super) rules: &'a SchedRules,
    pub(super) machine: &'a mut SchedMachine<Q>,
    pub(super) sums: &'a mut Sums,
}

/// CPU and time of an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct At {
    pub(super) cpu: CpuKey,
    pub(super) time: i64,
}

impl At {
    pub(super) fn thread(self, tid: i32) -> ThreadKey {
        let trace = self.cpu.trace;
        ThreadKey { trace, tid }
    }

    /// A CPU of the same trace.
    pub(super) fn on(self, cpu: u32) -> CpuKey {
        CpuKey { cpu, ..self.cpu }
    }
}

impl Player<'_> {
    /// Processes an event.
    #[inline(always)]
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, item: SchedItem) {
        let at = At { cpu, time };
        self.machine.clock(self.rules, time);
        if self.rules.selection.window.is_over(time) {
            return;
        }
        match item {
            SchedItem::Switch(switched) => self.switch(at, switched),
            SchedItem::Wake(wakeup, by) => self.wake(at, wakeup, by),
            SchedItem::Migrate { tid, from, to } => {
                let way = (at.on(from), at.on(to));
                self.counts_migration(at, tid, way);
                self.migrate(at, tid, way);
            }
            SchedItem::Made(tid) => {
                let place = Some(self.machine.place(cpu));
                let now = Now::Pending { since: time, place };
                self.machine.become_of(at.thread(tid), now);
            }
            SchedItem::Gone(tid) => self.machine.become_of(at.thread(tid), Now::Off),
            SchedItem::Becomes { old, tid } => {
                self.machine.become_of(at.thread(old), Now::Off);
                let place = self.machine.place(cpu);
                self.machine.become_of(at.thread(tid), Now::Running(place));
                self.machine.cpus.get(cpu).current = Some(tid);
            }
            SchedItem::Lost => self.machine.loses(cpu),
        }
    }

    fn switch(&mut self, at: At, switched: Switched) {
        let Switched { prev, next, .. } = switched;
        let left = self.machine.cpus.get(at.cpu).current.replace(next);
        self.machine.is_left(at, left, prev);
        // The next thread leaves the queue before the previous one enters it, as they change
        // places.
        if next != 0 {
            self.comes(at, next, switched.priority);
        }
        if prev != 0 && prev != next {
            self.counts_switch(at, switched);
            self.machine.become_of(at.thread(prev), Now::Off);
            self.machine.preempted(at, switched);
        }
        self.machine.idles(self.rules, at, next);
    }
}

impl<Q: RunQueue> Player<'_, Q> {
    /// A CPU is switched to a thread, which ends its wait.
    #[inline]
    pub(super) fn comes(&mut self, at: At, tid: i32, priority: Option<i32>) {
        let place = self.machine.place(at.cpu);
        let life = self.machine.life(at.thread(tid));
        if self.rules.is_partial(at.cpu, at.time) && !life.now.leads_to(at.cpu) {
            self.machine.become_of(at.thread(tid), Now::Off);
        }
        let life = self.machine.life(at.thread(tid));
        let woken = life.woken.take();
        let now = std::mem::replace(life, Life::of(Now::Running(place))).now;
        self.end_wait(at, tid, now);
        let Some(woken) = woken else { return };
        let latency = Latency {
            duration: at.time.abs_diff(woken.time),
            begin: woken.time,
            cpu: at.cpu,
            priority,
            thread: at.thread(tid),
            by: woken.by,
        };
        if self.rules.chooses(&latency, at.time) {
            self.count(latency);
        }
    }

    #[inline]
    fn end_wait(&mut self, at: At, tid: i32, now: Now) {
        let (since, by) = match now {
            Now::Waiting {
                since,
                moved,
                place,
                by,
            } => {
                self.queued(place.cpu, moved, at.time);
                let stretch = self.machine.stretch;
                self.machine.cpus.get(place.cpu).queue.less(stretch);
                (since, by)
            }
            Now::Pending { since, .. } => {
                self.queued(at.cpu, since, at.time);
                (since, None)
            }
            _ => return,
        };
        if self.rules.counts(at.time, at.cpu.cpu) {
            let waited = at.time.abs_diff(since);
            self.sums.cpus.get(at.cpu).waits.add(waited);
            let counts = self.sums.counts.get(at.thread(tid));
            counts.waits.add(waited);
            // The overview does not show preemptions.
            if let Some(by) = by.filter(|_| !self.rules.options.is_summary) {
                counts.preempted.of(Waker::Thread(by)).add(waited);
            }
        }
    }

    /// Counts a switch from a thread.
    #[inline]
    pub(super) fn counts_switch(&mut self, at: At, switched: Switched) {
        if self.rules.counts(at.time, at.cpu.cpu) {
            let counts = self.sums.counts.get(at.thread(switched.prev));
            counts.switches[usize::from(switched.reason)] += 1;
        }
    }

    pub(super) fn counts_migration(&mut self, at: At, tid: i32, (from, to): (CpuKey, CpuKey)) {
        if self.rules.counts(at.time, from.cpu) || self.rules.counts(at.time, to.cpu) {
            self.sums.counts.get(at.thread(tid)).migrations += 1;
            self.sums.migrates((from, to), 1);
        }
    }

    pub(super) fn wake(&mut self, at: At, wakeup: Wakeup, by: Waker) {
        let thread = at.thread(wakeup.tid);
        let target = wakeup.target.map(|cpu| at.on(cpu));
        let is_told = |cpu: &CpuKey| self.rules.recorded.tells(*cpu, at.time);
        if target.as_ref().is_some_and(|cpu| !is_told(cpu)) {
            // The thread goes to an unrecorded CPU, or was last on one and may still run there.
            return self.machine.become_of(thread, Now::Off);
        }
        let is_partial = self.rules.is_partial(at.cpu, at.time);
        // A second wake-up: the thread has run on an unrecorded CPU in between.
        let life = self.machine.life(thread);
        let is_again = match (life.woken, life.now) {
            // The thread is where it ran last, or where a recorded migration took it.
            (Some(woken), Now::Pending { place, .. }) if wakeup.is_ready && !woken.is_ready => {
                place.map(|place| place.cpu) != target
            }
            (Some(woken), _) => woken.is_ready || !wakeup.is_ready,
            (None, Now::Waiting { by: None, .. }) => true,
            (None, Now::Waiting { .. }) => {
                wakeup.is_ready && self.rules.recorded.has_waking(at.cpu.trace)
            }
            (None, _) => false,
        };
        if is_partial && is_again {
            self.machine.become_of(thread, Now::Off);
        }
        let now = self.machine.life(thread).now;
        match (now, target.filter(|_| wakeup.is_ready)) {
            // The thread did not sleep.
            (Now::Running(_), _) => return,
            (Now::Waiting { .. }, _) => {}
            (_, Some(ready)) => self.machine.enter(thread, (at.time, at.time), ready, None),
            (Now::Pending { .. }, None) => {}
            (Now::Off, None) => {
                let place = target.map(|cpu| self.machine.place(cpu));
                let since = at.time;
                self.machine.life(thread).now = Now::Pending { since, place };
            }
        }
        let time = at.time;
        let is_ready = wakeup.is_ready;
        let life = self.machine.life(thread);
        // The time of the wake-up is known if the waker's CPU was recorded.
        let lacks_waking = is_partial
            && life.woken.is_none()
            && is_ready
            && !wakeup.is_new
            && self.rules.recorded.has_waking(at.cpu.trace);
        if !lacks_waking {
            let woken = life.woken.get_or_insert(Woken { time, by, is_ready });
            woken.is_ready |= is_ready;
        }
    }

    /// A thread migrates from one CPU to another.
    pub(super) fn migrate(&mut self, at: At, tid: i32, (from, to): (CpuKey, CpuKey)) {
        let thread = at.thread(tid);
        let is_elsewhere =
            |place: CpuEpoch| place.cpu != from && self.rules.is_partial(at.cpu, at.time);
        let waits =
            |life: &Life| matches!(life.now, Now::Waiting { place, .. } if is_elsewhere(place));
        let is_lost = self
            .rules
            .recorded
            .loses_on_move(to.trace, (from.cpu, to.cpu), at.time);
        if is_lost || waits(self.machine.life(thread)) {
            return self.machine.become_of(thread, Now::Off);
        }
        match self.machine.life(thread).now {
            Now::Pending { since, .. } => {
                let place = Some(self.machine.place(to));
                self.machine.life(thread).now = Now::Pending { since, place };
            }
            Now::Waiting {
                since,
                moved,
                place,
                by,
            } => {
                self.queued(place.cpu, moved, at.time);
                let stretch = self.machine.stretch;
                self.machine.cpus.get(place.cpu).queue.less(stretch);
                self.machine.enter(thread, (since, at.time), to, by);
            }
            _ => {}
        }
    }

    /// Adds the time that a thread waited for a CPU.
    #[inline]
    fn queued(&mut self, cpu: CpuKey, from: i64, to: i64) {
        self.sums.cpus.get(cpu).queued += u128::from(self.rules.selection.window.clip(from, to));
    }

    #[inline]
    fn count(&mut self, latency: Latency) {
        if let Some(bounds) = &self.rules.bounds {
            let Latency {
                priority, duration, ..
            } = latency;
            self.sums
                .freq
                .add(bounds, latency.thread, priority, duration);
            return;
        }
        if self.rules.is_logged {
            self.sums.log.push(latency);
        }
        self.sums
            .counts
            .get(latency.thread)
            .latency(latency, self.rules.top);
    }
}

impl<Q: RunQueue> SchedMachine<Q> {
    /// Updates whether the time is in the range.
    #[inline(always)]
    pub(super) fn clock(&mut self, rules: &SchedRules, time: i64) {
        let in_range = rules.selection.window.contains(time);
        if in_range && !self.in_range {
            self.cpus.iter_mut().for_each(|(_, cpu)| cpu.queue.see());
        }
        self.in_range = in_range;
    }

    /// The state of a thread, which is unknown if events were lost where it ran or waited.
    #[inline]
    pub(super) fn life(&mut self, thread: ThreadKey) -> &mut Life {
        let life = self.threads.get(thread);
        forget_lost(&mut self.cpus, life);
        life
    }

    #[inline]
    pub(super) fn place(&mut self, cpu: CpuKey) -> CpuEpoch {
        let losses = self.cpus.get(cpu).losses;
        CpuEpoch { cpu, losses }
    }

    /// Events were lost on a CPU.
    pub(super) fn loses(&mut self, cpu: CpuKey) {
        let cpu = self.cpus.get(cpu);
        cpu.losses += 1;
        cpu.queue.clear();
        (cpu.current, cpu.is_seen) = (None, true);
    }

    /// A switch from `prev` on a CPU that was last switched to `left`.
    #[inline]
    pub(super) fn is_left(&mut self, at: At, left: Option<i32>, prev: i32) {
        // Another thread ran there: the switch from `left` was lost.
        if let Some(left) = left.filter(|&left| left != prev && left != 0) {
            let life = self.life(at.thread(left));
            if matches!(life.now, Now::Running(place) if place.cpu == at.cpu) {
                life.lose();
            }
        }
    }

    /// A thread that was switched from while runnable waits.
    #[inline]
    pub(super) fn preempted(&mut self, at: At, switched: Switched) {
        if switched.waits {
            let by = Some(switched.next);
            self.enter(at.thread(switched.prev), (at.time, at.time), at.cpu, by);
        }
    }

    /// With unrecorded CPUs: a thread that seemed to wait for a CPU which becomes idle has gone to
    /// an unrecorded one.
    #[inline]
    pub(super) fn idles(&mut self, rules: &SchedRules, at: At, next: i32) -> bool {
        let is_idle = next == 0 && rules.is_partial(at.cpu, at.time);
        if is_idle {
            let cpu = self.cpus.get(at.cpu);
            cpu.losses += 1;
            cpu.queue.clear();
        }
        is_idle
    }

    /// The thread waits since `since`, and for this CPU since `moved`.
    pub(super) fn enter(
        &mut self,
        thread: ThreadKey,
        (since, moved): (i64, i64),
        cpu: CpuKey,
        by: Option<i32>,
    ) {
        let place = self.place(cpu);
        let life = self.threads.get(thread);
        life.is_seen = true;
        life.now = Now::Waiting {
            since,
            moved,
            place,
            by,
        };
        self.cpus.get(cpu).queue.more(self.stretch, self.in_range);
    }

    /// Sets the state of a thread, which ends its wait.
    pub(super) fn become_of(&mut self, thread: ThreadKey, now: Now) {
        let life = self.life(thread);
        let before = std::mem::replace(life, Life::of(now));
        if let Now::Waiting { place, .. } = before.now {
            self.cpus.get(place.cpu).queue.less(self.stretch);
        }
    }
}

impl SchedMachine {
    /// Ends the trace: threads whose later events may be lost become unknown.
    pub(super) fn end(&mut self, rules: &SchedRules) {
        let cpus = &mut self.cpus;
        for life in self.threads.values() {
            forget_lost(cpus, life);
            // The recording of the thread's CPU ended early, or the thread may be on an unrecorded
            // CPU.
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
}

#[inline]
fn forget_lost<Q: RunQueue>(cpus: &mut ByCpu<Cpu<Q>>, life: &mut Life) {
    if let Some(place) = life.place()
        && cpus.get(place.cpu).losses > place.losses
    {
        life.lose();
    }
}
