//! Deferred changes of time lines.
//!
//! Composing is serial, so it must not touch every stretch. It queues the changes of each thread;
//! [`GraphMachine::catch_up`] applies them before the time lines are read, and
//! [`GraphMachine::catch_up_beside`] on all threads at the end.

use serde::{Deserialize, Serialize};
use tracebraid_engine::parallel;
use tracebraid_follow::{CpuKey, Interrupt};
use tracebraid_kernel_model::Comm;
use tracebraid_threads::{CallClasses, Past};

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, Occupant, Occupied, State, Stretch};
use crate::graph_machine::GraphMachine;
use crate::holders::Held;
use crate::slice::{Places, SlicePlaces};
use crate::thread_life::TimeLine;

/// Number of time lines per task.
const SOME: usize = 64;

/// A change of a time line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum LineChange {
    /// See [`TimeLine::is`].
    Is(State),
    /// See [`TimeLine::begins`].
    Begins(i64, State),
    /// See [`TimeLine::has_waited`].
    HasWaited(Past<Wake>),
    /// See [`TimeLine::was_interrupted`].
    Interrupted(CpuKey, i64, (i64, Interrupt)),
    /// See [`TimeLine::ends`].
    Ends(i64),
    /// See [`Actor::is_called`].
    IsCalled(i64, Comm),
    /// Appends stretches and names with the local numbers of a slice.
    Does(SlicePlaces, Vec<Stretch>, Vec<(i64, Comm)>),
}

/// Queued changes of a time line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LaterChanges(Vec<LineChange>);

impl LaterChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, change: LineChange) {
        // Usually it is the only change.
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        self.0.push(change);
    }
}

/// Consecutive threads that were created in a slice and still have the numbers of that slice.
/// Changes of their time lines are queued until the numbers are replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Unplaced {
    first: u32,
    end: u32,
    places: SlicePlaces,
}

/// True if a thread still has the numbers of its slice.
#[inline]
pub(crate) fn is_unplaced(all: &[Unplaced], actor: u32) -> bool {
    let Some(last) = all.last().filter(|last| actor < last.end) else {
        return false;
    };
    last.first <= actor || is_in(all, actor)
}

fn is_in(all: &[Unplaced], actor: u32) -> bool {
    let behind = all.partition_point(|of| of.first <= actor);
    let of = behind.checked_sub(1).and_then(|at| all.get(at));
    of.is_some_and(|of| actor < of.end)
}

/// A change of the occupants of a CPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum CpuChange {
    /// See [`GraphMachine::occupies`].
    Occupies(i64, Occupant),
    /// Appends a run with the local numbers of a slice.
    Run(SlicePlaces, Vec<Occupied>),
}

/// A time line with its queued changes.
#[derive(Debug)]
pub(crate) struct Line<'m> {
    pub(crate) actor: &'m mut Actor,
    pub(crate) later: &'m mut LaterChanges,
    /// True if the thread still has the numbers of its slice.
    pub(crate) is_unplaced: bool,
}

impl Line<'_> {
    /// True if all changes so far are applied and use the numbers of the graph.
    #[inline]
    fn is_up_to_date(&self) -> bool {
        self.later.is_empty() && !self.is_unplaced
    }

    /// Applies a change, or queues it if others are queued.
    #[inline]
    fn change(&mut self, change: LineChange, make: impl FnOnce(&mut Actor)) {
        match self.is_up_to_date() {
            true => make(self.actor),
            false => self.later.push(change),
        }
    }

    /// Queues stretches and names of a slice; they do not change earlier stretches.
    pub(crate) fn does(
        &mut self,
        places: &SlicePlaces,
        stretches: Vec<Stretch>,
        names: Vec<(i64, Comm)>,
    ) {
        if !stretches.is_empty() || !names.is_empty() {
            let does = LineChange::Does(places.clone(), stretches, names);
            self.later.push(does);
        }
    }

    /// Sets the name from a time on.
    #[inline]
    pub(crate) fn is_called(&mut self, time: i64, name: Comm) {
        let is_new = self.actor.called != name && name != Comm::default();
        if is_new || !self.later.is_empty() {
            self.change(LineChange::IsCalled(time, name), |actor| {
                actor.is_called(time, name);
            });
        }
    }
}

impl TimeLine for Line<'_> {
    fn now(&self) -> Option<State> {
        self.actor.now().filter(|_| self.is_up_to_date())
    }

    #[inline]
    fn is(&mut self, state: State) {
        self.change(LineChange::Is(state), |actor| actor.is(state));
    }

    #[inline]
    fn begins(&mut self, time: i64, state: State) {
        self.change(LineChange::Begins(time, state), |actor| {
            actor.begins(time, state)
        });
    }

    #[inline]
    fn has_waited(&mut self, past: Past<Wake>) {
        self.change(LineChange::HasWaited(past), |actor| actor.has_waited(past));
    }

    #[inline]
    fn was_interrupted(&mut self, at: (CpuKey, i64), by: (i64, Interrupt)) {
        let change = LineChange::Interrupted(at.0, at.1, by);
        self.change(change, |actor| actor.was_interrupted(at, by));
    }

    fn ends(&mut self, time: i64) {
        let has_ended = || self.actor.now() == Some(State::Ended);
        if !self.later.is_empty() || !has_ended() {
            self.change(LineChange::Ends(time), |actor| actor.ends(time));
        }
    }
}

impl Actor {
    fn catch_up(&mut self, later: LaterChanges, classes: &CallClasses) {
        for change in later.0 {
            match change {
                LineChange::Is(state) => self.is(state),
                LineChange::Begins(time, state) => self.begins(time, state),
                LineChange::HasWaited(past) => self.has_waited(past),
                LineChange::Interrupted(cpu, time, by) => self.was_interrupted((cpu, time), by),
                LineChange::Ends(time) => self.ends(time),
                LineChange::IsCalled(time, name) => self.is_called(time, name),
                LineChange::Does(places, stretches, names) => {
                    self.does(&places, stretches, classes);
                    self.are_called(names);
                }
            }
        }
    }

    /// See [`Actor::is_called`].
    fn are_called(&mut self, names: Vec<(i64, Comm)>) {
        if names.is_empty() {
            return;
        }
        for (time, name) in names {
            if self.called != name {
                self.called = name;
                self.names.push((time, name));
            }
        }
        self.name = Some(self.called.text());
    }

    /// Replaces the numbers of the slice in a new thread, except in its work.
    fn is_placed(&mut self, places: &Places, classes: &CallClasses) {
        self.creator = self.creator.map(|creator| places.actor(creator));
        for stretch in &mut self.line {
            stretch.state = places.state(stretch.state, classes);
        }
        self.name = (self.called != Comm::default()).then(|| self.called.text());
    }

    fn does(&mut self, places: &SlicePlaces, mut stretches: Vec<Stretch>, classes: &CallClasses) {
        let Some(places) = places.get() else { return };
        for stretch in &mut stretches {
            stretch.state = places.state(stretch.state, classes);
        }
        match self.line.is_empty() {
            true => self.line = stretches,
            false => self.line.append(&mut stretches),
        }
    }
}

fn catch_up(line: &mut Vec<Occupied>, later: Vec<CpuChange>) {
    for change in later {
        match change {
            CpuChange::Occupies(time, by) => occupies(line, time, by),
            CpuChange::Run(places, run) => {
                let Some(places) = places.get() else { continue };
                for Occupied { begin, by } in run {
                    occupies(line, begin, places.occupant(by));
                }
            }
        }
    }
}

/// Sets the occupant of a CPU from a time on.
#[inline]
pub(crate) fn occupies(line: &mut Vec<Occupied>, time: i64, by: Occupant) {
    if line.last().is_some_and(|last| last.begin == time) {
        line.pop();
    }
    if line.last().is_none_or(|last| last.by != by) {
        line.push(Occupied { begin: time, by });
    }
}

impl GraphMachine {
    /// Sets the occupant of a CPU from a time on.
    pub(crate) fn occupies(&mut self, cpu: CpuKey, time: i64, by: Occupant) {
        let later = self.cpus_later.get(cpu);
        match later.is_empty() {
            true => occupies(self.cpus.get(cpu), time, by),
            false => later.push(CpuChange::Occupies(time, by)),
        }
    }

    /// Queues the occupants of a CPU in a slice.
    pub(crate) fn run(&mut self, cpu: CpuKey, places: &SlicePlaces, run: Vec<Occupied>) {
        if !run.is_empty() {
            let change = CpuChange::Run(places.clone(), run);
            self.cpus_later.get(cpu).push(change);
        }
    }

    /// Applies all queued changes.
    pub(crate) fn catch_up(&mut self, classes: &CallClasses) {
        for (cpu, later) in std::mem::take(&mut self.cpus_later) {
            catch_up(self.cpus.get(cpu), later);
        }
        let unplaced = std::mem::take(&mut self.unplaced);
        for (first, end) in unplaced
            .iter()
            .map(|of| (of.first as usize, of.end as usize))
        {
            if let (Some(lines), Some(later)) = (
                self.lines.get_mut(first..end),
                self.later.get_mut(first..end),
            ) {
                Lines {
                    first,
                    lines,
                    later,
                }
                .catch_up(&unplaced, classes);
            }
        }
        for place in std::mem::take(&mut self.are_later) {
            let place = place as usize;
            if let (Some(line), Some(later)) =
                (self.lines.get_mut(place), self.later.get_mut(place))
            {
                line.catch_up(std::mem::take(later), classes);
            }
        }
    }

    /// As [`GraphMachine::catch_up`], in parallel, at the end of the fold.
    pub(crate) fn catch_up_beside(&mut self, classes: &CallClasses) {
        let cpus = std::mem::take(&mut self.cpus_later).into_iter();
        let cpus = cpus.map(|(cpu, later)| (cpu, std::mem::take(self.cpus.get(cpu)), later));
        let cpus = parallel::map_large(cpus.collect(), |(cpu, mut line, later)| {
            catch_up(&mut line, later);
            (cpu, line)
        });
        for (cpu, line) in cpus {
            *self.cpus.get(cpu) = line;
        }
        self.are_later.clear();
        let unplaced = std::mem::take(&mut self.unplaced);
        let some = self.lines.chunks_mut(SOME).zip(self.later.chunks_mut(SOME));
        let some = (0..).step_by(SOME).zip(some);
        let some = some.map(|(first, (lines, later))| Lines {
            first,
            lines,
            later,
        });
        parallel::map_large(some.collect(), |lines| lines.catch_up(&unplaced, classes));
    }

    /// Adds threads that were created in a slice. Returns their numbers.
    pub(crate) fn are_born(
        &mut self,
        actors: &mut Vec<Actor>,
        places: &SlicePlaces,
    ) -> std::ops::Range<u32> {
        let numbers = self.lines.len() as u32..(self.lines.len() + actors.len()) as u32;
        let held = numbers
            .clone()
            .zip(actors.iter())
            .map(|(number, actor)| Held {
                key: actor.key,
                since: i64::MIN,
                actor: Some(ActorId(number)),
            });
        self.held.extend(held);
        self.lines.append(actors);
        self.later
            .resize_with(self.lines.len(), LaterChanges::default);
        match self.unplaced.last_mut() {
            Some(last) if last.end == numbers.start && last.places.are(places) => {
                last.end = numbers.end
            }
            _ => self.unplaced.push(Unplaced {
                first: numbers.start,
                end: numbers.end,
                places: places.clone(),
            }),
        }
        numbers
    }
}

/// Consecutive threads with their queued changes.
struct Lines<'m> {
    first: usize,
    lines: &'m mut [Actor],
    later: &'m mut [LaterChanges],
}

impl Lines<'_> {
    /// Replaces the numbers of slices, and applies the changes.
    fn catch_up(self, unplaced: &[Unplaced], classes: &CallClasses) {
        let Lines {
            first,
            lines,
            later,
        } = self;
        let end = first + lines.len();
        let from = unplaced.partition_point(|of| of.end as usize <= first);
        let of_lines = unplaced.iter().skip(from);
        for of in of_lines.take_while(|of| (of.first as usize) < end) {
            let behind = |place: u32| (place as usize).clamp(first, end) - first;
            let lines = lines.get_mut(behind(of.first)..behind(of.end));
            if let (Some(lines), Some(places)) = (lines, of.places.get()) {
                lines
                    .iter_mut()
                    .for_each(|line| line.is_placed(places, classes));
            }
        }
        for (line, later) in lines.iter_mut().zip(later) {
            line.catch_up(std::mem::take(later), classes);
        }
    }
}
