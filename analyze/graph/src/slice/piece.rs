//! The part of a thread's time line that lies in a slice of time.

use tracebraid_follow::{CpuKey, Interrupt, Losses};
use tracebraid_kernel_model::Comm;
use tracebraid_threads::{CallClasses, Past};

use crate::cause::Wake;
use crate::graph::{State, Stretch};
use crate::later::Line;
use crate::slice::places::{Places, SlicePlaces};
use crate::thread_life::{ThreadLife, TimeLine};

/// A change at the start of a piece, where the end of the earlier time line matters and is unknown.
#[derive(Clone, Copy, Debug)]
enum PieceChange {
    /// Replaces the last state.
    Is(State),
    /// Begins a state at a time.
    Begins(i64, State),
    /// Ends an apparent wait.
    HasWaited(Past<Wake>),
    /// An interruption on a CPU between two times, if the thread ran there; with the number of
    /// losses on that CPU in the slice up to then.
    Interrupted(CpuKey, (i64, i64), Interrupt, u64),
}

/// A piece of a time line.
#[derive(Clone, Debug)]
pub(crate) struct LinePiece {
    /// Changes up to `until`: later ones do not depend on the end of the earlier time line.
    changes: Vec<PieceChange>,
    until: i64,
    /// State after these; `None` if unknown.
    now: Option<State>,
    /// Stretches after `until`.
    stretches: Vec<Stretch>,
    /// True for the whole time line of a thread that was created in the slice: no piece precedes
    /// it.
    is_whole: bool,
}

impl Default for LinePiece {
    fn default() -> Self {
        LinePiece::after(i64::MIN, None)
    }
}

impl LinePiece {
    /// An empty piece after a time; `now`: the state at that time, if known.
    pub(crate) fn after(until: i64, now: Option<State>) -> LinePiece {
        LinePiece {
            changes: Vec::new(),
            until,
            now,
            stretches: Vec::new(),
            is_whole: false,
        }
    }

    /// The time line of a new thread, from its first state on. Reuses the memory of the empty list
    /// `stretches`.
    pub(crate) fn whole(begin: i64, state: State, mut stretches: Vec<Stretch>) -> LinePiece {
        stretches.push(Stretch { begin, state });
        LinePiece {
            stretches,
            is_whole: true,
            ..LinePiece::after(i64::MIN, None)
        }
    }

    pub(crate) fn take_all(&mut self) -> LinePiece {
        std::mem::take(self)
    }

    /// Takes all stretches of a whole time line; later ones follow them. Their memory is added to
    /// `spare`.
    pub(crate) fn take_whole(&mut self, spare: &mut Vec<Vec<Stretch>>) -> Vec<Stretch> {
        let mut stretches = self.take().stretches;
        let exact = stretches.to_vec();
        stretches.clear();
        spare.push(stretches);
        exact
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.stretches.is_empty()
    }

    /// Takes the piece so far; later changes follow it.
    pub(crate) fn take(&mut self) -> LinePiece {
        let until = self.stretches.last().map_or(self.until, |last| last.begin);
        let rest = LinePiece::after(until, self.now());
        std::mem::replace(self, rest)
    }

    /// A thread in an unknown state was interrupted if it ran on that CPU.
    pub(crate) fn may_be_interrupted(
        &mut self,
        (cpu, time): (CpuKey, i64),
        (begin, by): (i64, Interrupt),
        losses: u64,
    ) {
        let change = PieceChange::Interrupted(cpu, (begin, time), by, losses);
        self.changes.push(change);
    }

    /// Adds the piece to the time line. Returns an upper bound of the number of new stretches.
    /// `before`: losses before the slice; `places`, `all`: the number maps known now and at the
    /// end; `names`: names with the times from which they are valid.
    pub(crate) fn add_to(
        self,
        life: &ThreadLife,
        line: &mut Line<'_>,
        before: &Losses,
        (places, classes): (&Places, &CallClasses),
        (all, names): (&SlicePlaces, Vec<(i64, Comm)>),
    ) -> usize {
        let count = self.changes.len() + self.stretches.len();
        for change in self.changes {
            match change {
                PieceChange::Is(state) => line.is(places.state(state, classes)),
                PieceChange::Begins(time, state) => line.begins(time, places.state(state, classes)),
                PieceChange::HasWaited(past) => line.has_waited(placed(past, places)),
                PieceChange::Interrupted(cpu, (begin, end), by, losses) => {
                    if life.cell.runs_on(cpu, before.of_cpu(cpu) + losses) {
                        line.was_interrupted((cpu, end), (begin, by));
                    }
                }
            }
        }
        line.does(all, self.stretches, names);
        count
    }
}

fn placed(past: Past<Wake>, places: &Places) -> Past<Wake> {
    match past {
        Past::Waited(Some((why, wake))) => Past::Waited(Some((why, places.wake(wake)))),
        other => other,
    }
}

impl TimeLine for LinePiece {
    #[inline]
    fn now(&self) -> Option<State> {
        self.stretches.last().map(|last| last.state).or(self.now)
    }

    #[inline]
    fn is(&mut self, state: State) {
        match self.stretches.last_mut() {
            Some(last) => last.state = state,
            None => {
                self.changes.push(PieceChange::Is(state));
                self.now = Some(state);
            }
        }
    }

    #[inline]
    fn begins(&mut self, time: i64, state: State) {
        let mut begin = time;
        match self.stretches.last() {
            Some(last) => {
                begin = begin.max(last.begin);
                if last.begin == begin {
                    self.stretches.pop();
                }
            }
            // The earlier state may be the same: then no stretch begins.
            None if !self.is_whole && (time <= self.until || self.now.is_none()) => {
                self.changes.push(PieceChange::Begins(time, state));
                self.now = Some(state);
                self.until = self.until.max(time);
                return;
            }
            None => {}
        }
        if self.now() != Some(state) {
            self.stretches.push(Stretch { begin, state });
        }
    }

    fn has_waited(&mut self, past: Past<Wake>) {
        match self.now() {
            Some(state) => {
                if let Some(state) = state.after_wait(past) {
                    self.is(state);
                }
            }
            None => self.changes.push(PieceChange::HasWaited(past)),
        }
    }
}
