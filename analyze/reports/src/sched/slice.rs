//! Plays a slice of time without the state before it.
//!
//! The state of a thread is unknown until an event sets it independently of the previous state: a
//! switch from or to it, its creation or its end. Events before that are kept, and replayed when
//! the slice is composed. So are, for each CPU, the thread of the first switch, and losses of
//! events, which end unknown states. The number of threads that wait for a CPU changes by played
//! and by replayed events; both are combined by stretches between kept events.

use serde::{Deserialize, Serialize};

use crate::sched::SchedRules;
use crate::sched::cpus::{QueueChanges, QueueStretch};
use crate::sched::life::{Life, Now};
use crate::sched::machine::{At, Player, SchedMachine};
use crate::sched::step::{SchedItem, Switched, Wakeup};
use crate::sched::sums::Sums;
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_threads::Waker;

/// The results of a slice alone. Their size depends on the number of threads and CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SchedSlice {
    machine: SchedMachine<QueueChanges>,
    kept: Vec<(At, Kept)>,
    /// Time of the last event.
    last: Option<i64>,
}

/// An event to replay on the state at the start of the slice.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kept {
    /// A CPU is switched from the thread.
    Left(i32),
    /// A CPU is switched to the thread, with its priority.
    Comes(i32, Option<i32>),
    /// The thread is switched from, created, or ends: it no longer waits.
    Ends(i32),
    Wake(Wakeup, Waker),
    Migrate(i32, CpuKey, CpuKey),
    Lost,
    /// The CPU is idle, and not all CPUs are recorded.
    Idles,
}

/// Plays a slice.
pub(super) struct SlicePlayer<'a> {
    pub(super) rules: &'a SchedRules,
    pub(super) slice: &'a mut SchedSlice,
    pub(super) sums: &'a mut Sums,
}

impl SlicePlayer<'_> {
    /// Processes an event.
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, item: SchedItem) {
        let at = At { cpu, time };
        self.slice.last = Some(time);
        if self.rules.selection.window.is_over(time) {
            return;
        }
        self.slice.machine.in_range = self.rules.selection.window.contains(time);
        self.slice.machine.stretch = self.slice.kept.len();
        match item {
            SchedItem::Switch(switched) => self.switch(at, switched),
            SchedItem::Wake(wakeup, by) => match self.is_seen(at.thread(wakeup.tid)) {
                true => self.player().wake(at, wakeup, by),
                false => self.keep(at, Kept::Wake(wakeup, by)),
            },
            SchedItem::Migrate { tid, from, to } => {
                let (from, to) = (at.on(from), at.on(to));
                self.player().counts_migration(at, tid, (from, to));
                match self.is_seen(at.thread(tid)) {
                    true => self.player().migrate(at, tid, (from, to)),
                    false => self.keep(at, Kept::Migrate(tid, from, to)),
                }
            }
            SchedItem::Made(tid) => {
                let place = Some(self.slice.machine.place(cpu));
                self.becomes(at, tid, Now::Pending { since: time, place });
            }
            SchedItem::Gone(tid) => self.becomes(at, tid, Now::Off),
            SchedItem::Becomes { old, tid } => {
                self.becomes(at, old, Now::Off);
                let place = self.slice.machine.place(cpu);
                self.becomes(at, tid, Now::Running(place));
                let cpu = self.slice.machine.cpus.get(cpu);
                (cpu.current, cpu.is_seen) = (Some(tid), true);
            }
            SchedItem::Lost => {
                self.slice.machine.loses(cpu);
                self.keep(at, Kept::Lost);
            }
        }
    }

    fn player(&mut self) -> Player<'_, QueueChanges> {
        Player {
            rules: self.rules,
            machine: &mut self.slice.machine,
            sums: self.sums,
        }
    }

    fn is_seen(&mut self, thread: ThreadKey) -> bool {
        self.slice.machine.threads.get(thread).is_seen
    }

    fn keep(&mut self, at: At, kept: Kept) {
        self.slice.kept.push((at, kept));
        self.slice.machine.stretch = self.slice.kept.len();
    }

    /// Sets the state of a thread, whatever its previous state.
    #[inline]
    fn becomes(&mut self, at: At, tid: i32, now: Now) {
        let thread = at.thread(tid);
        if self.is_seen(thread) {
            return self.slice.machine.become_of(thread, now);
        }
        self.keep(at, Kept::Ends(tid));
        *self.slice.machine.threads.get(thread) = Life::of(now);
    }

    #[inline]
    fn switch(&mut self, at: At, switched: Switched) {
        let Switched {
            prev,
            next,
            priority,
            ..
        } = switched;
        let cpu = self.slice.machine.cpus.get(at.cpu);
        let left = cpu.current.replace(next);
        match std::mem::replace(&mut cpu.is_seen, true) {
            true => self.slice.machine.is_left(at, left, prev),
            false => self.keep(at, Kept::Left(prev)),
        }
        if next != 0 {
            self.comes(at, next, priority);
        }
        if prev != 0 && prev != next {
            self.player().counts_switch(at, switched);
            self.becomes(at, prev, Now::Off);
            self.slice.machine.preempted(at, switched);
        }
        if self.slice.machine.idles(self.rules, at, next) {
            self.keep(at, Kept::Idles);
        }
    }

    #[inline]
    fn comes(&mut self, at: At, tid: i32, priority: Option<i32>) {
        let thread = at.thread(tid);
        if self.is_seen(thread) {
            return self.player().comes(at, tid, priority);
        }
        self.keep(at, Kept::Comes(tid, priority));
        let place = self.slice.machine.place(at.cpu);
        *self.slice.machine.threads.get(thread) = Life::of(Now::Running(place));
    }
}

impl SchedSlice {
    /// Appends the slice to the state at its start.
    pub(super) fn compose(self, rules: &SchedRules, machine: &mut SchedMachine, sums: &mut Sums) {
        let SchedSlice {
            machine: slice,
            kept,
            last,
        } = self;
        let (mut losses, mut stretches) = (Vec::new(), Vec::new());
        let mut seen = Vec::new();
        for (key, cpu) in slice.cpus {
            losses.push((key, cpu.losses));
            stretches.extend(cpu.queue.into_stretches(key));
            if cpu.is_seen {
                seen.push((key, cpu.current));
            }
        }
        stretches.sort_by_key(|(number, ..)| *number);
        let mut queues = Queues {
            stretches: stretches.into_iter().peekable(),
            before: losses
                .iter()
                .map(|(cpu, _)| (*cpu, QueueStretch::default()))
                .collect(),
        };
        for (number, (at, kept)) in kept.into_iter().enumerate() {
            queues.change(number, machine);
            machine.in_range = rules.selection.window.contains(at.time);
            let mut player = Player {
                rules,
                machine: &mut *machine,
                sums: &mut *sums,
            };
            player.replay(at, kept);
        }
        queues.change(usize::MAX, machine);
        for (cpu, current) in seen {
            machine.cpus.get(cpu).current = current;
        }
        // Losses in the slice are counted from its start.
        let mut before = |cpu: CpuKey| {
            let of = losses.iter().find(|of| of.0 == cpu);
            machine.cpus.get(cpu).losses - of.map_or(0, |of| of.1)
        };
        for (thread, mut life) in slice.threads.into_entries() {
            if life.is_seen {
                if let Some(place) = life.place_mut() {
                    place.losses += before(place.cpu);
                }
                *machine.threads.get(thread) = life;
            }
        }
        if let Some(last) = last {
            machine.in_range = rules.selection.window.contains(last);
        }
    }
}

impl Player<'_> {
    fn replay(&mut self, at: At, kept: Kept) {
        match kept {
            Kept::Left(prev) => {
                let left = self.machine.cpus.get(at.cpu).current;
                self.machine.is_left(at, left, prev);
            }
            Kept::Comes(tid, priority) => self.comes(at, tid, priority),
            Kept::Ends(tid) => self.machine.become_of(at.thread(tid), Now::Off),
            Kept::Wake(wakeup, by) => self.wake(at, wakeup, by),
            Kept::Migrate(tid, from, to) => self.migrate(at, tid, (from, to)),
            Kept::Lost => self.machine.loses(at.cpu),
            Kept::Idles => {
                self.machine.idles(self.rules, at, 0);
            }
        }
    }
}

/// Changes of the numbers of waiting threads by played events.
struct Queues<I: Iterator> {
    stretches: std::iter::Peekable<I>,
    /// The previous stretch of each CPU.
    before: Vec<(CpuKey, QueueStretch)>,
}

impl<I: Iterator<Item = (usize, CpuKey, QueueStretch)>> Queues<I> {
    /// Applies the stretches up to `number`.
    fn change(&mut self, number: usize, machine: &mut SchedMachine) {
        while let Some((_, cpu, stretch)) = self.stretches.next_if(|next| next.0 <= number) {
            let Some((_, before)) = self.before.iter_mut().find(|before| before.0 == cpu) else {
                continue;
            };
            machine.cpus.get(cpu).queue.change(*before, stretch);
            *before = stretch;
        }
    }
}
