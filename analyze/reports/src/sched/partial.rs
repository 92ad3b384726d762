//! What is known after some chunks, and how it is joined.
//!
//! What happens to threads is told by their ids, so it is kept by thread. A thread's head is what
//! happened before a chunk knows what the thread does; merging replays it on what the chunks before
//! know, in the order of marks. A mark is made for each such event, each loss, each CPU's first
//! switch, and the bounds of the range: between two marks a chunk knows all that changes.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::kernel::{CpuKey, Joined, Tasks};
use crate::sched::cpus::{Cpu, Cpus, Current};
use crate::sched::life::{Life, Marked, Now, Queue, Step, Woken};
use crate::sched::stats::{Counts, Latency};
use crate::sched::waker::{Active, By, Told, Waker};
use crate::sched::{Freq, SchedRules};

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedPartial {
    pub(super) tasks: Tasks<()>,
    /// By place of the thread.
    pub(super) threads: Vec<Entry>,
    pub(super) cpus: Cpus,
    /// The last mark.
    pub(super) marks: u64,
    /// Marks at which the range begins and ends.
    pub(super) open: Option<u64>,
    pub(super) close: Option<u64>,
    /// Those of whom it is not yet known who woke them.
    unsettled: Vec<(Latency, Waker)>,
    /// By CPUs: threads that went from one to the other.
    pub(super) migrations: Vec<((CpuKey, CpuKey), u64)>,
    /// In the order of time.
    pub(super) log: Vec<Latency>,
    pub(super) freq: Freq,
}

/// What is known of a thread, and what is counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) life: Life,
    pub(super) counts: Counts,
}

impl SchedPartial {
    #[inline]
    pub(super) fn thread(&mut self, place: usize) -> &mut Entry {
        if place >= self.threads.len() {
            self.threads.resize_with(place + 1, Entry::default);
        }
        &mut self.threads[place]
    }

    pub(super) fn mark(&mut self) -> u64 {
        self.marks += 1;
        self.marks
    }

    /// Events were lost on a CPU.
    pub(super) fn lost(&mut self, key: CpuKey) {
        let mark = self.mark();
        let cpu = self.cpus.get(key);
        cpu.losses.push(mark);
        cpu.curve.clear(mark);
        cpu.current = Current::Nobody;
        // Nothing tells which interrupts are active; after the next switch none is.
        cpu.irq = Active::Nothing;
        cpu.softirq = Active::Nothing;
    }

    /// Something happens to a thread now.
    #[inline]
    pub(super) fn step(&mut self, rules: &SchedRules, place: usize, step: Step) {
        if !self.thread(place).life.is_before() {
            return self.apply(rules, place, step, None);
        }
        if !self.is_told(place, &step) {
            let mark = self.mark();
            self.head(rules, place, Marked { mark, step });
        }
    }

    /// True for a wake-up that changes nothing, whatever was before: there was one in the head, and
    /// nothing has told since that a thread does not do what it did.
    fn is_told(&self, place: usize, step: &Step) -> bool {
        let Step::Wake { is_ready, .. } = *step else {
            return false;
        };
        let Some(entry) = self.threads.get(place) else {
            return false;
        };
        if entry.life.head.is_empty() {
            return false;
        }
        let told = |cpu: &Cpu| cpu.losses.last().copied().max(cpu.first.map(|first| first.0));
        let since = self.cpus.iter().filter_map(told).max().unwrap_or(0);
        let same = |marked: &Marked| {
            let more = matches!(marked.step, Step::Wake { is_ready: was, .. } if was || !is_ready);
            more && marked.mark > since
        };
        entry.life.head.iter().any(same)
    }

    /// Something happens to a thread of which it is not known what it does.
    fn head(&mut self, rules: &SchedRules, place: usize, marked: Marked) {
        self.thread(place).life.head.push(marked);
        if marked.step.is_certain() {
            // Its effects on what was before are not known; what it does from now on is.
            self.thread(place).life.now = Now::Off;
            self.apply(rules, place, marked.step, None);
        }
    }

    /// Something that happened to a thread when the later chunk did not know what it does.
    fn replay(&mut self, rules: &SchedRules, place: usize, marked: Marked) {
        if self.thread(place).life.is_before() {
            let life = &mut self.thread(place).life;
            life.head.push(marked);
            return;
        }
        self.apply(rules, place, marked.step, Some(marked.mark));
    }

    /// What a thread does from then on, and what ends by it. `mark` is when, if that is not now.
    #[inline]
    fn apply(&mut self, rules: &SchedRules, place: usize, step: Step, mark: Option<u64>) {
        self.check(place, mark);
        match step {
            Step::Wake { woken, cpu, is_ready } => {
                self.wake(place, woken, cpu.filter(|_| is_ready), cpu, mark)
            }
            Step::Migrate { time, cpu } => self.migrate(rules, place, time, cpu, mark),
            Step::In { time, cpu, priority } => {
                let woken = self.thread(place).life.woken.take();
                self.end_wait(rules, place, time, cpu, mark);
                let queue = self.queue(cpu, mark);
                self.thread(place).life.now = Now::Running(queue);
                if let Some(woken) = woken {
                    self.latency(rules, place, woken, time, cpu, priority);
                }
            }
            Step::Out { time, cpu, waits } => {
                self.leave(place, mark);
                // What is replayed has entered it already, in the later chunk.
                if waits && mark.is_none() {
                    self.enter(place, time, time, cpu, None);
                }
            }
            Step::Made { time, cpu } => {
                self.leave(place, mark);
                let queue = Some(self.queue(cpu, mark));
                self.thread(place).life.now = Now::Pending { since: time, queue };
            }
            Step::Gone => self.leave(place, mark),
            Step::Becomes(cpu) => {
                self.leave(place, mark);
                let queue = self.queue(cpu, mark);
                self.thread(place).life.now = Now::Running(queue);
            }
            Step::Left(cpu) => {
                let life = &mut self.thread(place).life;
                if matches!(life.now, Now::Running(queue) if queue.cpu == cpu) {
                    life.lose();
                }
            }
        }
    }

    /// Where events were lost on the CPU that a thread runs on or waits for, nothing is known of it.
    #[inline]
    fn check(&mut self, place: usize, mark: Option<u64>) {
        let Some(queue) = self.thread(place).life.queue() else {
            return;
        };
        let loss = self.cpus.get(queue.cpu).losses.get(queue.losses);
        if loss.is_some_and(|&loss| mark.is_none_or(|mark| loss < mark)) {
            self.thread(place).life.lose();
        }
    }

    #[inline]
    fn queue(&mut self, cpu: CpuKey, mark: Option<u64>) -> Queue {
        let of = self.cpus.get(cpu);
        let losses = mark.map_or(of.losses.len(), |mark| of.losses_until(mark));
        Queue { cpu, losses }
    }

    fn wake(
        &mut self,
        place: usize,
        woken: Woken,
        ready: Option<CpuKey>,
        cpu: Option<CpuKey>,
        mark: Option<u64>,
    ) {
        let time = woken.time;
        match self.thread(place).life.now {
            // It does not sleep, whoever thought so.
            Now::Running(_) => return,
            Now::Waiting { .. } => {}
            _ if ready.is_some() => {
                let queue = ready.unwrap_or_default();
                self.enter(place, time, time, queue, mark);
            }
            Now::Pending { .. } => {}
            Now::Before | Now::Off => {
                let queue = cpu.map(|cpu| self.queue(cpu, mark));
                self.thread(place).life.now = Now::Pending { since: time, queue };
            }
        }
        self.thread(place).life.woken.get_or_insert(woken);
    }

    fn migrate(&mut self, rules: &SchedRules, place: usize, time: i64, cpu: CpuKey, mark: Option<u64>) {
        match self.thread(place).life.now {
            Now::Pending { since, .. } => {
                let queue = Some(self.queue(cpu, mark));
                self.thread(place).life.now = Now::Pending { since, queue };
            }
            Now::Waiting { since, moved, queue } => {
                self.queued(rules, queue.cpu, moved, time);
                self.change(queue.cpu, -1, mark);
                self.enter(place, since, time, cpu, mark);
            }
            _ => {}
        }
    }

    /// It waits for that CPU.
    fn enter(&mut self, place: usize, since: i64, moved: i64, cpu: CpuKey, mark: Option<u64>) {
        let queue = self.queue(cpu, mark);
        self.thread(place).life.now = Now::Waiting { since, moved, queue };
        self.change(cpu, 1, mark);
    }

    /// It waits no longer, or not as was thought.
    fn leave(&mut self, place: usize, mark: Option<u64>) {
        let now = self.thread(place).life.now;
        self.thread(place).life.lose();
        if let Now::Waiting { queue, .. } = now {
            self.change(queue.cpu, -1, mark);
        }
    }

    /// One more or less waits for that CPU. What is lost there later is already in its curve.
    #[inline]
    fn change(&mut self, cpu: CpuKey, by: i64, mark: Option<u64>) {
        let last = self.marks;
        let cpu = self.cpus.get(cpu);
        let Some(mark) = mark else {
            return cpu.curve.change(last, by);
        };
        let lost = cpu.losses.get(cpu.losses_until(mark)).copied();
        cpu.curve.shift(mark, by);
        if let Some(lost) = lost {
            cpu.curve.shift(lost, -by);
        }
    }

    /// Somebody waited for that CPU.
    fn queued(&mut self, rules: &SchedRules, cpu: CpuKey, from: i64, to: i64) {
        self.cpus.get(cpu).queued += u128::from(rules.selection.window.clip(from, to));
    }

    /// That CPU is switched to it: if it waited, no longer.
    #[inline]
    fn end_wait(&mut self, rules: &SchedRules, place: usize, time: i64, cpu: CpuKey, mark: Option<u64>) {
        let since = match self.thread(place).life.now {
            Now::Waiting { since, moved, queue } => {
                self.queued(rules, queue.cpu, moved, time);
                self.change(queue.cpu, -1, mark);
                since
            }
            Now::Pending { since, .. } => {
                self.queued(rules, cpu, since, time);
                since
            }
            _ => return,
        };
        if rules.counts(time, cpu.cpu) {
            let waited = time.abs_diff(since);
            self.cpus.get(cpu).waits.add(waited);
            self.thread(place).counts.waits.add(waited);
        }
    }

    fn latency(
        &mut self,
        rules: &SchedRules,
        place: usize,
        woken: Woken,
        time: i64,
        cpu: CpuKey,
        priority: Option<i32>,
    ) {
        let latency = Latency {
            duration: time.abs_diff(woken.time),
            begin: woken.time,
            cpu,
            priority,
            place,
            by: By::Unknown,
        };
        if !rules.chooses(&latency, time) {
            return;
        }
        match woken.waker.settled() {
            Some(by) => rules.count(self, Latency { by, ..latency }),
            None => self.unsettled.push((latency, woken.waker)),
        }
    }

    pub(super) fn migrated(&mut self, from: CpuKey, to: CpuKey, count: u64) {
        let pair = (from, to);
        match self.migrations.binary_search_by_key(&pair, |entry| entry.0) {
            Ok(at) => self.migrations[at].1 += count,
            Err(at) => self.migrations.insert(at, (pair, count)),
        }
    }

    /// Joins what comes later to this.
    pub(super) fn merge(&mut self, rules: &SchedRules, mut later: SchedPartial) {
        let active = self.cpus.iter().map(|cpu| (cpu.key, cpu.irq, cpu.softirq));
        let active = active.collect();
        let steps = self.tasks.steps();
        let Joined { places, told } = self.tasks.merge(std::mem::take(&mut later.tasks));
        let told = Told {
            places: &places,
            steps,
            runs: told.iter().map(|told| (told.step, told.place)).collect(),
            active,
        };
        let marks = self.marks;
        self.marks += later.marks;
        self.open = self.open.or(later.open.map(|mark| mark + marks));
        self.close = self.close.or(later.close.map(|mark| mark + marks));
        let mut heads = Vec::new();
        let shifts = self.merge_cpus(std::mem::take(&mut later.cpus), &told, marks, &mut heads);
        for (entry, &place) in later.threads.iter_mut().zip(&places) {
            entry.life.wakers().for_each(|waker| *waker = told.waker(*waker));
            let head = std::mem::take(&mut entry.life.head);
            heads.extend(head.into_iter().map(|marked| {
                let mark = marked.mark + marks;
                (place, Marked { mark, ..marked })
            }));
        }
        heads.sort_by_key(|(_, marked)| marked.mark);
        for (place, marked) in heads {
            self.replay(rules, place, marked);
        }
        self.merge_threads(rules, std::mem::take(&mut later.threads), &told, &shifts);
        self.merge_lists(rules, later, &told);
        self.forget();
    }

    /// Joins what is known of CPUs; gives the losses on each before. What a later chunk's first
    /// switch tells of the thread that ran before goes to the heads.
    fn merge_cpus(
        &mut self,
        later: Cpus,
        told: &Told<'_>,
        marks: u64,
        heads: &mut Vec<(usize, Marked)>,
    ) -> HashMap<CpuKey, usize> {
        let mut losses = HashMap::new();
        for cpu in later.into_vec() {
            let own = self.cpus.get(cpu.key);
            losses.insert(cpu.key, own.losses.len());
            let first = cpu.first.map(|(mark, prev)| (mark + marks, told.place(prev)));
            match (own.current, first) {
                (Current::Before, Some(first)) => own.first = Some(first),
                (Current::Thread(place), Some((mark, prev))) if place != prev => {
                    let step = Step::Left(cpu.key);
                    heads.push((place, Marked { mark, step }));
                }
                _ => {}
            }
            own.append(cpu, told, marks);
        }
        losses
    }

    /// What threads do at the end of the later chunk, and what was counted there.
    fn merge_threads(
        &mut self,
        rules: &SchedRules,
        later: Vec<Entry>,
        told: &Told<'_>,
        losses: &HashMap<CpuKey, usize>,
    ) {
        for (at, mut entry) in later.into_iter().enumerate() {
            let place = told.place(at);
            if let Some(queue) = entry.life.queue_mut() {
                queue.losses += losses.get(&queue.cpu).copied().unwrap_or(0);
            }
            let own = self.thread(place);
            if !entry.life.is_before() {
                own.life.now = entry.life.now;
                own.life.woken = entry.life.woken;
            }
            own.counts.merge(entry.counts, told, rules.selection.top());
        }
    }

    fn merge_lists(&mut self, rules: &SchedRules, later: SchedPartial, told: &Told<'_>) {
        self.log
            .extend(later.log.into_iter().map(|latency| latency.moved(told)));
        for ((from, to), count) in later.migrations {
            self.migrated(from, to, count);
        }
        self.freq.merge(&later.freq);
        for (latency, waker) in later.unsettled {
            let latency = latency.moved(told);
            let waker = told.waker(waker);
            match waker.settled() {
                Some(by) => rules.count(self, Latency { by, ..latency }),
                None => self.unsettled.push((latency, waker)),
            }
        }
    }

    /// Forgets where nothing can change any more.
    fn forget(&mut self) {
        let heads = self.threads.iter().flat_map(|entry| &entry.life.head);
        let mut marks: Vec<u64> = heads.map(|marked| marked.mark).collect();
        marks.extend([self.open, self.close].into_iter().flatten());
        for cpu in self.cpus.iter_mut() {
            let mut marks = marks.clone();
            marks.extend(&cpu.losses);
            marks.sort_unstable();
            cpu.curve.keep(&marks);
        }
    }

    /// There is nothing before: what heads tell counts as it is.
    pub(super) fn end(&mut self, rules: &SchedRules) {
        let mut heads = Vec::new();
        let mut lives = Vec::new();
        for (place, entry) in self.threads.iter_mut().enumerate() {
            let head = std::mem::take(&mut entry.life.head);
            heads.extend(head.into_iter().map(|marked| (place, marked)));
            let life = std::mem::take(&mut entry.life);
            entry.life.now = Now::Off;
            lives.push(life);
        }
        heads.sort_by_key(|(_, marked)| marked.mark);
        for (place, marked) in heads {
            self.replay(rules, place, marked);
        }
        for (entry, life) in self.threads.iter_mut().zip(lives) {
            if !life.is_before() {
                entry.life = life;
            }
        }
        for (latency, waker) in std::mem::take(&mut self.unsettled) {
            let by = waker.known();
            rules.count(self, Latency { by, ..latency });
        }
        (0..self.threads.len()).for_each(|place| self.check(place, None));
    }
}

impl Cpu {
    /// Goes on with what comes later.
    fn append(&mut self, later: Cpu, told: &Told<'_>, marks: u64) {
        self.irq = later.irq.after(self.irq);
        self.softirq = later.softirq.after(self.softirq);
        self.current = match later.current {
            Current::Before => self.current,
            Current::Nobody => Current::Nobody,
            Current::Thread(place) => Current::Thread(told.place(place)),
        };
        let waited = self.curve.end();
        self.curve.append(later.curve, marks);
        if let Some(&first) = later.losses.first() {
            self.curve.shift(first + marks, -waited);
        }
        self.losses
            .extend(later.losses.into_iter().map(|mark| mark + marks));
        self.queued += later.queued;
        self.waits.merge(&later.waits);
    }
}
