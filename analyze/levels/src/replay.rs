//! The steps of user-level scheduling of a window in the order of time: what each LWP runs, and the
//! kernel's events that they stand for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::by_number::ByNumber;
use crate::course::UltState;
use crate::late_blocks::late_blocks;
use crate::lwp_changes::{LwpChange, lwp_changes};
use crate::states::States;
use crate::survey::UltKey;
use crate::vocabulary::{Step, UNKNOWN_ULT, snapshot};
use crate::window::{Act, UserRecord, Window};

/// Content of an LWP: the index of a user-level thread, [`NONE`] or [`UNKNOWN`].
pub(crate) type Current = u32;
pub(crate) const UNKNOWN: Current = u32::MAX;
pub(crate) const NONE: Current = u32::MAX - 1;

/// No CPU is known.
pub(crate) const NO_CPU: u32 = u32::MAX;

/// Violations with a record of their own, in each window; all are counted.
const MOST_VIOLATIONS: u32 = 100;

/// A user record with its position among the records of a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) time: i64,
    pub(crate) cpu: u32,
    /// Number of records of the CPU before it, at least.
    pub(crate) after: u32,
    /// Latest time at which it may be: its LWP runs until then.
    pub(crate) until: i64,
    /// Index in [`Window::users`].
    pub(crate) record: u32,
    /// Index in [`Window::acts`], plus one.
    pub(crate) act: u32,
    /// Range in [`Replay::derived`]: the events that the record stands for.
    pub(crate) derived: (u32, u32),
    /// Content of the LWP before it.
    pub(crate) current: Current,
    /// Content of the LWP after it.
    pub(crate) then: Current,
    /// Comes after all records of other LWPs at the same time.
    pub(crate) is_late: bool,
    /// Violation: no possible position was found.
    pub(crate) flaw: Option<ViolationKind>,
}

/// A thread as analyses see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Ult(u32),
    /// The LWP's own thread.
    Lwp(i32),
}

/// An event that a step stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Derived {
    Switch {
        prev: Who,
        state: PrevState,
        next: Who,
    },
    Wakeup {
        ult: u32,
        reason: Option<u16>,
    },
    Fork {
        parent: Who,
        child: u32,
    },
    Exit(u32),
    WaitEntry(u16),
    WaitExit(u16),
    /// Index in [`Replay::kept`].
    Violation(u32),
}

/// State in which a user-level thread leaves its LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrevState {
    Ready,
    Blocked,
    Ended,
}

/// A violated invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) kind: ViolationKind,
    pub(crate) lwp: i32,
    pub(crate) ult: UltKey,
    /// The thread expected instead, or the other LWP.
    pub(crate) other: u64,
}

/// An invariant of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ViolationKind {
    /// An LWP leaves a user-level thread other than the one that it ran.
    AnotherThread,
    /// A user-level thread runs on two LWPs at a time.
    TwoLwps,
    /// A user record of an LWP that held no CPU.
    NoCpu,
    /// A user record of an LWP within an interrupt or a system call.
    Suspended,
}

impl ViolationKind {
    /// Name in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            ViolationKind::AnotherThread => "lwp-runs-another-thread",
            ViolationKind::TwoLwps => "thread-on-two-lwps",
            ViolationKind::NoCpu => "lwp-on-no-cpu",
            ViolationKind::Suspended => "lwp-suspended",
        }
    }
}

/// A change of what an LWP runs.
#[derive(Clone, Copy, Debug)]
struct Change {
    time: i64,
    cpu: u32,
    after: u32,
    to: Current,
}

/// The result of a window.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) derived: Vec<Derived>,
    /// Times at which what an LWP runs changes without a record: around losses.
    pub(crate) learned: Vec<(i64, u32)>,
    /// By LWP: content at the beginning, and changes.
    lwps: Vec<(Current, Vec<Change>)>,
    pub(crate) violations: BTreeMap<ViolationKind, u64>,
    /// Violations with a record of their own.
    pub(crate) kept: Vec<Violation>,
}

/// A moment on a CPU: the time, the CPU, and the number of its records so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuMoment {
    pub(crate) time: i64,
    pub(crate) cpu: u32,
    pub(crate) after: u32,
}

impl Replay {
    /// Removes all results; returns the lists of LWPs, empty.
    fn clear(&mut self) -> Vec<(Current, Vec<Change>)> {
        self.derived.clear();
        self.learned.clear();
        self.violations.clear();
        self.kept.clear();
        let mut lwps = std::mem::take(&mut self.lwps);
        lwps.iter_mut().for_each(|own| own.1.clear());
        lwps
    }

    /// Content of an LWP just before the next record of a CPU at a moment.
    pub(crate) fn current(&self, lwp: u32, at: CpuMoment) -> Current {
        let Some((first, changes)) = self.lwps.get(lwp as usize) else {
            return UNKNOWN;
        };
        let is_before = |change: &Change| {
            let is_elsewhere = change.cpu != at.cpu || change.after <= at.after;
            change.time < at.time || change.time == at.time && is_elsewhere
        };
        let count = changes.partition_point(is_before);
        count
            .checked_sub(1)
            .and_then(|last| changes.get(last))
            .map_or(*first, |last| last.to)
    }
}

/// State of a user-level thread while the window is replayed.
#[derive(Clone, Copy, Debug, Default)]
struct Live {
    state: UltState,
    on: Option<u32>,
}

struct Player<'a> {
    states: &'a States,
    window: &'a Window,
    number: u32,
    lwps: Vec<(Current, Vec<Change>)>,
    now: Vec<Current>,
    /// LWPs of which records may be lost now. Others that they record at the same time, into streams
    /// that lose nothing, do not show all their switches.
    lost: BTreeSet<u32>,
    live: ByNumber<Live>,
    /// By index of a switch in [`Window::acts`]: the reason of a block that follows it.
    late: Vec<Option<u16>>,
    out: Replay,
}

/// Replays the window with this number and these times. `placed` is in the order of time. `out` is
/// the result of an earlier window, whose memory is used again.
pub(crate) fn replay(
    states: &States,
    window: &Window,
    (number, span): (u32, (i64, i64)),
    placed: &mut [Placed],
    out: Replay,
) -> Replay {
    let others = lwp_changes(states, window, (number, span), placed);
    let mut others = others.into_iter().peekable();
    let mut player = Player::new(states, window, (number, span.0), out);
    player.late = late_blocks(states, window, number, placed);
    for own in placed {
        let Some(record) = window.users.get(own.record as usize) else {
            continue;
        };
        let at = CpuMoment {
            time: own.time,
            cpu: own.cpu,
            after: own.after,
        };
        let is_before =
            |(other, event): &(CpuMoment, LwpChange)| (other.time, event.turn()) < (at.time, 1);
        while let Some((at, event)) = others.next_if(is_before) {
            player.other(event, at);
        }
        let first = player.out.derived.len() as u32;
        own.current = player.current_of(record.lwp);
        if let Some(kind) = own.flaw {
            player.misplaced(kind, record, own.current);
        }
        own.then = own.current;
        if record.act != 0 {
            player.step(record, at);
            own.then = player.current_of(record.lwp);
        }
        own.derived = (first, player.out.derived.len() as u32);
    }
    for (at, event) in others {
        player.other(event, at);
    }
    Replay {
        lwps: player.lwps,
        ..player.out
    }
}

/// The step of a record.
#[inline]
pub(crate) fn act_of<'a>(window: &'a Window, own: &Placed) -> Option<&'a Act> {
    window.acts.get((own.act as usize).checked_sub(1)?)
}

impl<'a> Player<'a> {
    fn new(
        states: &'a States,
        window: &'a Window,
        (number, begin): (u32, i64),
        mut out: Replay,
    ) -> Player<'a> {
        let mut lwps = out.clear();
        lwps.resize_with(states.lwps.len(), Default::default);
        let first = |lwp: &crate::states::Lwp| {
            if lwp.runs.is_empty() {
                return NONE;
            }
            match lwp.runs.at(number) {
                Some((_, 0)) => NONE,
                Some(key) => states.ult(key).unwrap_or(UNKNOWN),
                None => UNKNOWN,
            }
        };
        let mut now: Vec<Current> = states.lwps.iter().map(first).collect();
        let losses = states.lwp_losses.iter();
        let open = losses.filter(|(_, from, to)| *from < begin && begin <= *to);
        let lost: BTreeSet<u32> = open
            .filter_map(|(tid, ..)| states.lwp_of_tid.get(tid).copied())
            .collect();
        for &lwp in &lost {
            now[lwp as usize] = UNKNOWN;
        }
        for (own, first) in lwps.iter_mut().zip(&now) {
            own.0 = *first;
        }
        let mut player = Player {
            states,
            window,
            number,
            lwps,
            now,
            lost,
            live: ByNumber::below(states.ults.count()),
            late: Vec::new(),
            out,
        };
        for lwp in 0..player.now.len() {
            let current = player.now[lwp];
            if current < NONE {
                player.live(current).on = Some(lwp as u32);
            }
        }
        player
    }

    fn other(&mut self, event: LwpChange, at: CpuMoment) {
        match event {
            LwpChange::Exit(lwp) => self.set(lwp, NONE, at),
            LwpChange::Lose(lwp, until) => {
                if until > at.time {
                    self.lost.insert(lwp);
                }
                self.set(lwp, UNKNOWN, at);
                self.out.learned.push((at.time, lwp));
            }
            LwpChange::Learn(lwp, current) => {
                self.lost.remove(&lwp);
                self.set(lwp, current, at);
                self.out.learned.push((at.time, lwp));
            }
        }
    }

    fn live(&mut self, ult: u32) -> &mut Live {
        let (states, number) = (self.states, self.number);
        self.live.slot(ult.into()).get_or_insert_with(|| Live {
            state: states
                .ults
                .get(ult)
                .map_or_else(UltState::default, |own| own.state(number)),
            on: None,
        })
    }

    fn lwp(&self, tid: Option<i32>) -> Option<u32> {
        self.states.lwp_of_tid.get(&tid?).copied()
    }

    fn current_of(&self, lwp: u32) -> Current {
        // A thread without steps runs no user-level thread.
        self.now.get(lwp as usize).copied().unwrap_or(NONE)
    }

    /// The LWP runs `to` from now on.
    fn set(&mut self, lwp: u32, to: Current, at: CpuMoment) {
        let Some(now) = self.now.get_mut(lwp as usize) else {
            return;
        };
        let to = if self.lost.contains(&lwp) {
            UNKNOWN
        } else {
            to
        };
        let before = std::mem::replace(now, to);
        if before == to {
            return;
        }
        if let Some((_, changes)) = self.lwps.get_mut(lwp as usize) {
            changes.push(Change {
                time: at.time,
                cpu: at.cpu,
                after: at.after,
                to,
            });
        }
        if before < NONE {
            let live = self.live(before);
            if live.on == Some(lwp) {
                live.on = None;
            }
        }
        if to < NONE {
            self.live(to).on = Some(lwp);
        }
    }

    /// The thread that an LWP runs, as analyses see it.
    fn running(&self, record: &UserRecord) -> Who {
        match self.current_of(record.lwp) {
            ult if ult < NONE => Who::Ult(ult),
            _ => Who::Lwp(record.tid.unwrap_or(-1)),
        }
    }

    fn violate(&mut self, violation: Violation) {
        *self.out.violations.entry(violation.kind).or_default() += 1;
        let number = self.out.kept.len() as u32;
        if number < MOST_VIOLATIONS {
            self.out.kept.push(violation);
            self.out.derived.push(Derived::Violation(number));
        }
    }

    fn misplaced(&mut self, kind: ViolationKind, record: &UserRecord, current: Current) {
        self.violate(Violation {
            kind,
            lwp: record.tid.unwrap_or(-1),
            ult: (record.pid, self.id(current)),
            other: 0,
        });
    }

    fn step(&mut self, record: &UserRecord, at: CpuMoment) {
        let Some(act) = (record.act as usize)
            .checked_sub(1)
            .and_then(|act| self.window.acts.get(act))
        else {
            return;
        };
        let ult = Some(act.ult_at).filter(|ult| *ult < NONE);
        match (act.step, ult) {
            (Step::Switch, _) => self.switch(record, act, at),
            (Step::LwpBegin | Step::LwpEnd, _) => self.set(record.lwp, NONE, at),
            (Step::Create, Some(ult)) => {
                let on = self.live(ult).on;
                *self.live(ult) = Live {
                    state: UltState::default(),
                    on,
                };
                let parent = self.running(record);
                self.out.derived.push(Derived::Fork { parent, child: ult });
                self.out.derived.push(Derived::Wakeup { ult, reason: None });
            }
            (Step::Block, Some(ult)) => {
                // A late block of a thread that has been woken meanwhile.
                self.live(ult).state.blocked = Some(act.reason);
            }
            (Step::Wake, Some(ult)) => self.wake(ult),
            (Step::Exit, Some(ult)) => {
                self.live(ult).state.has_ended = true;
                self.out.derived.push(Derived::Exit(ult));
            }
            (Step::State, Some(ult)) => self.snapshot(act, ult, at),
            _ => {}
        }
    }

    fn wake(&mut self, ult: u32) {
        let live = self.live(ult);
        let blocked = live.state.blocked.take();
        // Before it has left its LWP, it stays ready.
        if let (Some(reason), None) = (blocked, live.on) {
            self.out.derived.push(Derived::Wakeup {
                ult,
                reason: Some(reason),
            });
        }
    }

    fn snapshot(&mut self, act: &Act, ult: u32, at: CpuMoment) {
        match act.state {
            snapshot::RUNNING | snapshot::IN_CALL => {
                if let Some(lwp) = self.lwp(Some(act.lwp)) {
                    self.set(lwp, ult, at);
                }
                self.live(ult).state = UltState::default();
            }
            snapshot::BLOCKED => self.live(ult).state.blocked = Some(act.reason),
            _ => self.live(ult).state.blocked = None,
        }
    }

    fn switch(&mut self, record: &UserRecord, act: &Act, at: CpuMoment) {
        let lwp = record.lwp;
        let Some(&expected) = self.now.get(lwp as usize) else {
            return;
        };
        let tid = record.tid.unwrap_or(-1);
        let (prev, next) = (act.ult_at, act.next_at);
        if expected != UNKNOWN && expected != prev {
            let other = self.id(expected);
            self.violate(Violation {
                kind: ViolationKind::AnotherThread,
                lwp: tid,
                ult: (record.pid, act.ult),
                other,
            });
        }
        let state = self.leave(prev, record.act - 1);
        if next < NONE
            && let Some(other) = self.live(next).on.filter(|on| *on != lwp)
        {
            let other_tid = self
                .states
                .lwps
                .get(other as usize)
                .map_or(-1, |lwp| lwp.tid);
            self.violate(Violation {
                kind: ViolationKind::TwoLwps,
                lwp: tid,
                ult: (record.pid, act.next),
                other: other_tid as u64,
            });
        }
        self.set(lwp, next, at);
        let who = |current: Current| match current {
            ult if ult < NONE => Who::Ult(ult),
            _ => Who::Lwp(tid),
        };
        if prev != next {
            let (prev, next) = (who(prev), who(next));
            self.out.derived.push(Derived::Switch { prev, state, next });
        }
        self.enter(next);
    }

    /// A thread leaves its LWP.
    fn leave(&mut self, prev: Current, switch: u32) -> PrevState {
        if prev >= NONE {
            return PrevState::Ready;
        }
        let late = self.late.get(switch as usize).copied().flatten();
        let live = self.live(prev);
        if live.state.has_ended {
            return PrevState::Ended;
        }
        let Some(reason) = live.state.blocked.or(late) else {
            return PrevState::Ready;
        };
        live.state.waits = Some(reason);
        self.out.derived.push(Derived::WaitEntry(reason));
        PrevState::Blocked
    }

    /// A thread gets an LWP.
    fn enter(&mut self, next: Current) {
        if next >= NONE {
            return;
        }
        let live = self.live(next);
        live.state.blocked = None;
        live.state.has_ended = false;
        if let Some(reason) = live.state.waits.take() {
            self.out.derived.push(Derived::WaitExit(reason));
        }
    }

    fn id(&self, current: Current) -> u64 {
        match current {
            NONE => 0,
            ult => self
                .states
                .ults
                .get(ult)
                .map_or(UNKNOWN_ULT, |own| own.key().1),
        }
    }
}
