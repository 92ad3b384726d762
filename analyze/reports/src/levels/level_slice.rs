//! Plays a slice of time without the states of threads before it.
//!
//! Acts whose effect depends on an unknown state are kept, and replayed on the state at the begin
//! of the slice when it is appended: a few for each thread.

use tracebraid_follow::{CpuKey, Losses, Table, ThreadKey};
use tracebraid_threads::{CellNews, SliceCell, WakeEffect};

use crate::levels::LevelRules;
use crate::levels::call_slice::SliceCalls;
use crate::levels::cpu_turns::{self, PastTurns, Turns};
use crate::levels::level_calls::CallStep;
use crate::levels::level_machine::{LevelMachine, LevelPlayer};
use crate::levels::level_step::{LevelAct, LevelItem, LevelMoment};
use crate::levels::level_sums::LevelSums;
use crate::levels::level_thread::{LevelCounter, LevelPlace};

/// A slice's knowledge of a thread.
struct SliceThread {
    cell: SliceCell<()>,
    place: LevelPlace,
    calls: SliceCalls,
    /// The thread has left a CPU in the slice, or was created.
    knows_place: bool,
    /// The runtime has reported the begin or the end of a call.
    knows_call: bool,
    /// The thread has run, or is about to wait.
    knows_reason: bool,
    has_news: bool,
}

/// Facts about a thread, which composing installs.
pub(super) struct LevelNews {
    cell: Option<CellNews<()>>,
    place: LevelPlace,
    knows_place: bool,
    knows_call: bool,
    knows_reason: bool,
}

/// Steps of composing, played on the state at the begin of the slice.
enum LevelStep {
    News(ThreadKey, Box<LevelNews>),
    /// With the number of turns on its CPU in the slice so far.
    Act(LevelMoment, ThreadKey, LevelAct, usize),
    Lost(CpuKey),
}

/// A slice that is being played.
pub(super) struct LevelSlice<'a> {
    rules: &'a LevelRules,
    begin: i64,
    threads: Table<Option<Box<SliceThread>>>,
    losses: Losses,
    turns: Turns,
    steps: Vec<LevelStep>,
}

/// A played slice. Besides the turns on CPUs, its size depends on the number of threads.
pub(super) struct PlayedLevels {
    turns: Turns,
    steps: Vec<LevelStep>,
    news: Vec<(ThreadKey, LevelNews)>,
    calls: Vec<(ThreadKey, SliceCalls)>,
}

impl SliceThread {
    fn new(begin: i64) -> SliceThread {
        SliceThread {
            // The calls of threads are not followed here.
            cell: SliceCell::new(begin, true),
            place: LevelPlace::default(),
            calls: SliceCalls::default(),
            knows_place: false,
            knows_call: false,
            knows_reason: false,
            has_news: false,
        }
    }

    fn news(&mut self) -> Option<LevelNews> {
        let cell = self.cell.news();
        if !std::mem::take(&mut self.has_news) && cell.is_none() {
            return None;
        }
        let SliceThread {
            place,
            knows_place,
            knows_call,
            knows_reason,
            ..
        } = *self;
        Some(LevelNews {
            cell,
            place,
            knows_place,
            knows_call,
            knows_reason,
        })
    }

    /// True if the effect of an act is known.
    fn knows(&self, act: &LevelAct) -> bool {
        match act {
            LevelAct::Leave { .. } => self.cell.knows_state(),
            LevelAct::Come { .. } | LevelAct::Ended => self.cell.knows_state() && self.knows_place,
            LevelAct::Wake(wakeup, _) => self.knows_place && self.cell.knows_wake(wakeup, true),
            LevelAct::Call(false) => self.knows_call,
            LevelAct::Made | LevelAct::Waits(_) | LevelAct::Call(true) => true,
            LevelAct::Function(..) | LevelAct::SystemCall(_) | LevelAct::Probe => true,
        }
    }

    /// Follows an act, after its effect on sums.
    fn follow(&mut self, at: LevelMoment, act: &LevelAct) {
        self.place.follow(at, act);
        match act {
            LevelAct::Leave { .. } => self.knows_place = true,
            LevelAct::Made => {
                (self.knows_place, self.knows_call, self.knows_reason) = (true, true, true);
            }
            LevelAct::Call(_) => self.knows_call = true,
            LevelAct::Come { .. } | LevelAct::Waits(_) => self.knows_reason = true,
            LevelAct::Wake(..) | LevelAct::Ended => {}
            LevelAct::Function(..) | LevelAct::SystemCall(_) | LevelAct::Probe => return,
        }
        self.has_news = true;
    }
}

impl<'a> LevelSlice<'a> {
    /// A slice whose items are not before `begin`, in nanoseconds from the origin.
    pub(super) fn new(rules: &'a LevelRules, begin: i64) -> LevelSlice<'a> {
        LevelSlice {
            rules,
            begin,
            threads: Table::default(),
            losses: Losses::default(),
            turns: Turns::default(),
            steps: Vec::new(),
        }
    }

    pub(super) fn play(&mut self, sums: &mut LevelSums, at: LevelMoment, item: LevelItem) {
        if self.rules.selection.window.is_over(at.1) {
            return;
        }
        if let LevelItem::Lost = item {
            self.losses.lose(at.0);
            self.steps.push(LevelStep::Lost(at.0));
        }
        if let Some(tid) = item.ends_turn() {
            self.turns.get(at.0).end(at.1, tid);
        }
        for (key, act) in item.acts(at) {
            self.act(sums, at, key, &act);
        }
    }

    fn act(&mut self, sums: &mut LevelSums, at: LevelMoment, key: ThreadKey, act: &LevelAct) {
        let begin = self.begin;
        let thread = self.threads.get(key);
        let thread = thread.get_or_insert_with(|| Box::new(SliceThread::new(begin)));
        let losses = &self.losses;
        let cost = self.rules.options.probe_cost(key.trace);
        if let Some(step) = CallStep::of(act, cost) {
            let window = &self.rules.selection.window;
            let at = (at.1, losses.of_trace(at.0));
            thread.calls.step((sums, key), window, at, step);
        }
        if !thread.knows(act) {
            if let Some(news) = thread.news() {
                self.steps.push(LevelStep::News(key, Box::new(news)));
            }
            let turns = self.turns.get(at.0).count();
            self.steps.push(LevelStep::Act(at, key, *act, turns));
            keep(thread, at, act, losses);
            return thread.follow(at, act);
        }
        let mut counter = LevelCounter {
            rules: self.rules,
            sums,
            key,
            turns: PastTurns {
                earlier: &[],
                later: cpu_turns::of(&mut self.turns, at.0),
            },
        };
        let place = thread.place;
        match *act {
            LevelAct::Leave { left, lwp, .. } => {
                let stretch = thread.cell.leave(at, left, losses);
                counter.spend(&place, stretch, at, lwp);
            }
            LevelAct::Come { lwp, is_user } => {
                let stretch = thread.cell.come(at, losses);
                counter.spend(&place, stretch, at, lwp);
                counter.comes(&place, stretch.past, at, (lwp, is_user));
            }
            LevelAct::Wake(wakeup, target) => {
                let effect = thread.cell.wake(wakeup, (at.0, target), losses);
                if let WakeEffect::Ends(stretch) = effect {
                    counter.spend(&place, stretch, at, -1);
                }
            }
            LevelAct::Ended => {
                if let Some(stretch) = thread.cell.end_elsewhere(at, losses) {
                    counter.spend(&place, stretch, at, -1);
                }
            }
            LevelAct::Made => thread.cell.is_made(at, key.tid, losses),
            LevelAct::Call(false) => counter.returns(&place, at.1),
            LevelAct::Waits(_) | LevelAct::Call(true) => {}
            LevelAct::Function(..) | LevelAct::SystemCall(_) => {}
            LevelAct::Probe => counter.probes(at.1),
        }
        thread.follow(at, act);
    }

    /// Ends the slice.
    pub(super) fn end(self) -> PlayedLevels {
        let (mut news, mut calls) = (Vec::new(), Vec::new());
        for (key, thread) in self.threads.into_entries() {
            let Some(mut thread) = thread else { continue };
            news.extend(thread.news().map(|news| (key, news)));
            calls.push((key, thread.calls));
        }
        PlayedLevels {
            turns: self.turns,
            steps: self.steps,
            news,
            calls,
        }
    }
}

/// Updates the known parts of a thread after an act that was kept.
fn keep(thread: &mut SliceThread, at: LevelMoment, act: &LevelAct, losses: &Losses) {
    match *act {
        LevelAct::Leave { left, .. } => thread.cell.leave_kept(at, left, losses),
        LevelAct::Come { .. } => thread.cell.come_kept(at, losses),
        LevelAct::Wake(ref wakeup, target) => {
            thread.cell.wake_kept(wakeup, (at.0, target), losses);
        }
        LevelAct::Ended => thread.cell.end_elsewhere_kept(),
        LevelAct::Made | LevelAct::Waits(_) | LevelAct::Call(_) => {}
        LevelAct::Function(..) | LevelAct::SystemCall(_) | LevelAct::Probe => {}
    }
}

impl PlayedLevels {
    /// Appends the slice to the state at its begin.
    pub(super) fn compose(
        mut self,
        rules: &LevelRules,
        machine: &mut LevelMachine,
        sums: &mut LevelSums,
    ) {
        let before = machine.losses.clone();
        for step in self.steps {
            match step {
                LevelStep::News(key, news) => machine.install(key, *news, &before),
                LevelStep::Act(at, key, act, turns) => {
                    let later = self.turns.get(at.0).first(turns);
                    let mut player = LevelPlayer {
                        rules,
                        machine,
                        sums,
                    };
                    player.act(at, key, &act, later);
                }
                LevelStep::Lost(cpu) => machine.losses.lose(cpu),
            }
        }
        cpu_turns::append(&mut machine.turns, self.turns);
        for (key, news) in self.news {
            machine.install(key, news, &before);
        }
        for (key, calls) in self.calls {
            let cpu = CpuKey {
                trace: key.trace,
                cpu: 0,
            };
            let window = &rules.selection.window;
            let (machine, before) = (&mut machine.threads.get(key).calls, before.of_trace(cpu));
            calls.compose(machine, (sums, key), window, before);
        }
    }
}

impl LevelMachine {
    /// Replaces the state of a thread by the facts from a slice.
    fn install(&mut self, key: ThreadKey, news: LevelNews, before: &Losses) {
        let thread = self.threads.get(key);
        if let Some(cell) = news.cell {
            thread.cell.install(cell, key.trace, before);
        }
        let before = thread.place;
        if news.knows_place {
            thread.place = news.place;
        }
        let of = |is_known: bool| if is_known { news.place } else { before };
        thread.place.called = of(news.knows_call).called;
        thread.place.reason = of(news.knows_reason).reason;
    }
}
