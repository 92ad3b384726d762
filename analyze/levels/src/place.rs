//! The place of each user record of a window: a CPU, a time, and a position among the records of
//! that CPU.

use crate::by_number::ByNumber;
use crate::intervals::{Intervals, Located, intervals};
use crate::replay::{Current, NO_CPU, NONE, Placed, ViolationKind, act_of};
use crate::states::States;
use crate::summary::Counts;
use crate::survey::Map;
use crate::vocabulary::Step;
use crate::window::{Note, UserRecord, Window};

/// Facts about a window, apart from its records.
pub(crate) struct Ground<'a> {
    pub(crate) states: &'a States,
    /// Number of the window.
    pub(crate) number: u32,
    pub(crate) has_kernel: bool,
    /// Begin and end of the window.
    pub(crate) span: (i64, i64),
    /// Begin and end of the kernel trace.
    pub(crate) kernel: (i64, i64),
    /// Largest move of a record, in nanoseconds.
    pub(crate) bound: i64,
}

impl Ground<'_> {
    /// The thread that a CPU runs at the beginning of the window.
    pub(crate) fn running(&self, cpu: u32) -> Option<i32> {
        match self.has_kernel {
            true => self.states.cpus.get(&cpu)?.at(self.number),
            false => self.states.lwps.get(cpu as usize).map(|lwp| lwp.tid),
        }
    }

    /// Times of the window at which it is known what a CPU runs: not from a loss that reaches into
    /// the next window on.
    fn span_of(&self, cpu: u32) -> (i64, i64) {
        // When the kernel trace ends is as uncertain as its clock.
        let end = self.kernel.1.saturating_add(self.bound);
        let begins_here = |from: i64| self.span.0 <= from && from < self.span.1;
        let losses = self.states.cpu_losses.iter();
        let lost = losses
            .filter(|loss| loss.0 == cpu && begins_here(loss.1) && loss.2 >= self.span.1)
            .map(|loss| loss.1);
        (self.kernel.0, lost.min().unwrap_or(end))
    }

    fn intervals(&self, window: &Window) -> Map<i32, Intervals> {
        if !self.has_kernel {
            let lwps = (0u32..).zip(&self.states.lwps);
            return lwps
                .map(|(cpu, lwp)| (lwp.tid, Intervals::always(cpu)))
                .collect();
        }
        let mut wanted: Vec<i32> = Vec::new();
        for tid in window.users.iter().filter_map(|user| user.tid) {
            // Successive records are mostly of the same thread.
            if wanted.last() != Some(&tid) {
                wanted.push(tid);
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        let running = |cpu| (self.running(cpu), self.states.interrupts(cpu, self.number));
        let wants = |tid| wanted.binary_search(&tid).is_ok();
        intervals(&window.cpus, &wants, &|cpu| running(cpu), &|cpu| {
            self.span_of(cpu)
        })
    }
}

/// Places all user records of a window, in the order of time.
pub(crate) fn place(
    ground: &Ground<'_>,
    window: &Window,
    placed: &mut Vec<Placed>,
    counts: &mut Counts,
) {
    let intervals = ground.intervals(window);
    let records = window.cpus.values().flat_map(|of_cpu| &of_cpu.records);
    let has_losses = records.clone().any(|record| {
        matches!(
            record.note,
            Note::Packet {
                is_after_loss: true,
                ..
            }
        )
    });
    let mut threads = Threads::new(&intervals);
    placed.clear();
    placed.extend((0u32..).zip(&window.users).map(|(index, user)| {
        let located = threads.locate(user, ground.bound);
        placed_at(ground, (index, user), located, has_losses, counts)
    }));
    placed.sort_by_key(|own| own.time);
    let untangled = untangle(ground, window, placed);
    if untangled > 0 {
        counts.moved += untangled;
        placed.sort_by_key(|own| (own.time, own.is_late));
    }
}

/// The intervals of threads, each with the number of those that have ended.
struct Threads<'a> {
    all: Vec<(&'a Intervals, usize)>,
    of_tid: Map<i32, usize>,
    /// Thread of the latest record and its index in `all`, by number of the stream.
    latest: Vec<(Option<i32>, Option<usize>)>,
}

impl<'a> Threads<'a> {
    fn new(intervals: &'a Map<i32, Intervals>) -> Threads<'a> {
        Threads {
            all: intervals.values().map(|own| (own, 0)).collect(),
            of_tid: intervals.keys().copied().zip(0..).collect(),
            latest: Vec::new(),
        }
    }

    /// The location of a record; records come in the order of time.
    fn locate(&mut self, user: &UserRecord, bound: i64) -> Option<Located> {
        let stream = user.stream as usize;
        if self.latest.len() <= stream {
            self.latest.resize(stream + 1, (None, None));
        }
        let latest = &mut self.latest[stream];
        if latest.0 != user.tid {
            let place = user.tid.and_then(|tid| self.of_tid.get(&tid));
            *latest = (user.tid, place.copied());
        }
        let (own, ended) = self.all.get_mut(latest.1?)?;
        Some(own.locate_from(ended, user.time, bound))
    }
}

/// Clocks of two CPUs may differ by some nanoseconds, so that a user-level thread seems to run on
/// the next LWP before it has left the previous one. Such a switch, and the records of its LWP that
/// follow at once, are moved to the time at which the thread left. Returns the number of records
/// that were moved.
fn untangle(ground: &Ground<'_>, window: &Window, placed: &mut [Placed]) -> u64 {
    let bound = ground.bound;
    let mut holders: ByNumber<i32> = ByNumber::below(ground.states.ults.count());
    // Switches to threads that have not left their LWP.
    let mut early: Map<Current, u32> = Map::default();
    let mut moved = 0;
    for at in 0..placed.len() {
        let own = placed[at];
        let Some(act) = act_of(window, &own).filter(|act| act.step == Step::Switch) else {
            continue;
        };
        let (prev, next) = (act.ult_at, act.next_at);
        let record = window.users.get(own.record as usize);
        let tid = record.and_then(|record| record.tid).unwrap_or(-1);
        if !early.is_empty()
            && let Some(first) = early.remove(&prev)
            && own.time.saturating_sub(placed[first as usize].time) <= bound
        {
            moved += delay(window, placed, first as usize, own.time);
            continue;
        }
        if prev < NONE {
            holders.slot(prev.into()).take_if(|holder| *holder == tid);
        }
        if next < NONE
            && let Some(other) = holders.slot(next.into()).replace(tid)
            && other != tid
        {
            early.insert(next, at as u32);
        }
    }
    moved
}

/// Moves the records of an LWP from an index in the list on to a time, as far as they are earlier.
fn delay(window: &Window, placed: &mut [Placed], first: usize, time: i64) -> u64 {
    let tid = |own: &Placed| {
        window
            .users
            .get(own.record as usize)
            .and_then(|user| user.tid)
    };
    let lwp = tid(&placed[first]);
    if placed[first].until < time {
        return 0;
    }
    let mut moved = 0;
    for own in &mut placed[first..] {
        // Records that have been moved before are out of order.
        if own.time > time && !own.is_late {
            break;
        }
        if tid(own) == lwp && own.time <= time && own.until >= time {
            moved += u64::from(own.time < time);
            (own.time, own.is_late) = (time, true);
        }
    }
    moved
}

fn placed_at(
    ground: &Ground<'_>,
    (record, user): (u32, &UserRecord),
    located: Option<Located>,
    has_losses: bool,
    counts: &mut Counts,
) -> Placed {
    let mut placed = Placed {
        time: user.time,
        cpu: NO_CPU,
        after: 0,
        until: user.time,
        record,
        act: user.act,
        derived: (0, 0),
        current: NONE,
        then: NONE,
        is_late: false,
        flaw: None,
    };
    match located {
        Some(Located::At {
            time,
            cpu,
            after,
            until,
        }) => {
            let moved = time.abs_diff(user.time) as i64;
            counts.moved += u64::from(moved > 0);
            counts.largest_move = counts.largest_move.max(moved);
            (placed.time, placed.cpu, placed.after) = (time, cpu, after);
            placed.until = until;
        }
        Some(Located::Suspended { cpu }) => {
            placed.cpu = cpu;
            placed.flaw = Some(ViolationKind::Suspended);
        }
        Some(Located::Nowhere) | None => {
            let is_covered = ground.kernel.0 <= user.time && user.time <= ground.kernel.1;
            // A runtime may record without a thread, such as Go while it stops all threads.
            let has_thread = user.tid.is_some_and(|tid| tid >= 0);
            if !has_thread || !ground.has_kernel {
                counts.without_thread += 1;
            } else if !is_covered {
                counts.not_covered += 1;
            } else if has_losses {
                counts.near_losses += 1;
            } else {
                placed.flaw = Some(ViolationKind::NoCpu);
            }
        }
    }
    placed
}
