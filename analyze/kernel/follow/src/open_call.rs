//! A thread's call from one stretch to another.

use serde::{Deserialize, Serialize};

use crate::calls::{Beginning, CallItem, Ending, Entered, Exited};
use crate::sources::CpuKey;

/// What is known of a thread's calls that are not of one stretch. A stretch may end long after its thread
/// has left: where no event says so, or that one was lost, the next thread's first event tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenCall<E = Entered, X = Exited> {
    /// The call that it was in when a stretch ended.
    pub parked: Option<E>,
    /// The last time that a call of it is known to have begun or ended.
    changed: Option<i64>,
    /// Ends of calls of which it is not known that they began; few, the last ones.
    missed: Vec<Missed<X>>,
}

impl<E, X> Default for OpenCall<E, X> {
    fn default() -> Self {
        OpenCall {
            parked: None,
            changed: None,
            missed: Vec::new(),
        }
    }
}

/// The end of a call of which it is not known that it began.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Missed<X> {
    exited: X,
    cpu: CpuKey,
    /// It began after that.
    after: Option<i64>,
}

/// How many ends may wait to be told what they end.
const MOST_MISSED: usize = 4;

/// A call that is not of one stretch, from its beginning to its end on that CPU.
pub type WholeCall<E = Entered, X = Exited> = (E, X, CpuKey);

/// Result of an item.
pub(crate) enum Change<E, X> {
    /// No call is known to have ended.
    None,
    /// That call has ended; the end was known before or is told now.
    Ended(WholeCall<E, X>),
    /// The beginning of a call whose end had been missed: its place among these, from the last one.
    Found(WholeCall<E, X>, usize),
    /// The end of a call whose beginning is not known.
    Missed(Missed<X>),
}

impl<E: Beginning, X: Ending> OpenCall<E, X> {
    /// Something is left or found: gives the call that is known to have ended by now.
    #[inline]
    pub fn play(&mut self, cpu: CpuKey, time: i64, item: &CallItem<E, X>) -> Option<WholeCall<E, X>> {
        match self.change(cpu, time, item) {
            Change::Ended(call) | Change::Found(call, _) => Some(call),
            Change::None | Change::Missed(_) => None,
        }
    }

    /// The same, and tells what becomes of ends whose beginnings are not known.
    #[inline]
    pub(crate) fn change(&mut self, cpu: CpuKey, time: i64, item: &CallItem<E, X>) -> Change<E, X> {
        match *item {
            CallItem::Enters(_) => {
                self.parked = None;
                self.changed = self.changed.max(Some(time));
                Change::None
            }
            CallItem::Arrives(_, exited) => self.arrives(cpu, exited),
            CallItem::Leaves(_, entered) => self.leaves(entered),
            CallItem::Made(_) => {
                *self = OpenCall::changed_at(time);
                Change::None
            }
            // Whoever holds the calls of both hands them on.
            CallItem::TakesOver(..) => Change::None,
        }
    }

    /// No call is open, and one began or ended then.
    pub fn changed_at(time: i64) -> Self {
        OpenCall {
            changed: Some(time),
            ..OpenCall::default()
        }
    }

    /// True if a call began or ended after that time.
    pub fn has_changed_after(&self, time: i64) -> bool {
        self.changed > Some(time)
    }

    /// What is known of calls since the beginning of a slice replaces what was known before, but for ends whose
    /// beginnings are not known.
    pub fn install(&mut self, later: &OpenCall<E, X>) {
        self.parked = later.parked;
        self.changed = self.changed.max(later.changed);
    }

    /// Adds an end whose beginning is not known.
    pub(crate) fn miss(&mut self, missed: Missed<X>) {
        if self.missed.len() >= MOST_MISSED {
            self.missed.remove(0);
        }
        self.missed.push(missed);
    }

    /// Its beginning is known: its place from the last one.
    pub(crate) fn find_missed(&mut self, from_last: usize) {
        if let Some(at) = self.missed.len().checked_sub(1 + from_last) {
            self.missed.remove(at);
        }
    }

    /// The call that it was in, and ends of calls that wait, to be changed.
    pub fn parts(&mut self) -> (Option<&mut E>, impl Iterator<Item = &mut X>) {
        let missed = self.missed.iter_mut().map(|missed| &mut missed.exited);
        (self.parked.as_mut(), missed)
    }

    /// The same, with beginnings and ends as they are known elsewhere.
    pub fn map<F, Y>(self, mut begin: impl FnMut(E) -> F, mut end: impl FnMut(X) -> Y) -> OpenCall<F, Y> {
        let mut missed = |missed: Missed<X>| Missed {
            exited: end(missed.exited),
            cpu: missed.cpu,
            after: missed.after,
        };
        OpenCall {
            parked: self.parked.map(&mut begin),
            changed: self.changed,
            missed: self.missed.into_iter().map(&mut missed).collect(),
        }
    }

    /// How many ends of calls more may wait.
    pub fn room(&self) -> usize {
        MOST_MISSED.saturating_sub(self.missed.len())
    }

    /// Takes out the ends of calls that wait.
    #[must_use]
    pub fn take_missed(&mut self) -> OpenCall<E, X> {
        OpenCall {
            missed: std::mem::take(&mut self.missed),
            parked: self.parked,
            changed: self.changed,
        }
    }

    /// What is known since a time at which no call was open, whose ends that waited then may still wait: so many of them, the
    /// last ones.
    pub fn goes_on(&mut self, later: OpenCall<E, X>, most: usize) {
        let gone = self.missed.len().saturating_sub(most);
        self.missed.drain(..gone);
        self.missed.extend(later.missed);
        (self.parked, self.changed) = (later.parked, later.changed);
    }

    /// Whether it can have come about by what was played.
    pub fn is_sound(&self) -> bool {
        self.missed.len() <= MOST_MISSED
    }

    fn arrives(&mut self, cpu: CpuKey, exited: X) -> Change<E, X> {
        let after = self.changed;
        self.changed = after.max(Some(exited.time()));
        match self.parked.take() {
            Some(entered) if exited.ends(&entered) => Change::Ended((entered, exited, cpu)),
            Some(_) => Change::None,
            None => {
                let missed = Missed { exited, cpu, after };
                self.miss(missed);
                Change::Missed(missed)
            }
        }
    }

    /// The place of the missed end of a call, if that is known.
    fn missed_end(&self, entered: &E) -> Option<usize> {
        let time = Some(entered.time());
        let is_of_it = |missed: &Missed<X>| {
            let fits = missed.after < time && entered.time() <= missed.exited.time();
            fits && missed.exited.ends(entered)
        };
        self.missed.iter().position(is_of_it)
    }

    /// True if the end of a call is known already.
    pub fn has_missed(&self, entered: &E) -> bool {
        self.missed_end(entered).is_some()
    }

    fn leaves(&mut self, entered: E) -> Change<E, X> {
        let time = Some(entered.time());
        if let Some(at) = self.missed_end(&entered) {
            let from_last = self.missed.len() - 1 - at;
            let Missed { exited, cpu, .. } = self.missed.remove(at);
            return Change::Found((entered, exited, cpu), from_last);
        }
        // What was known later is told already.
        if self.changed <= time {
            (self.parked, self.changed) = (Some(entered), time);
        }
        Change::None
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_kernel_model::Syscall;

    use super::*;

    const CPU: CpuKey = CpuKey { trace: 0, cpu: 1 };

    fn enters(time: i64) -> Entered {
        Entered {
            call: Syscall(3),
            time,
        }
    }

    fn exits(time: i64) -> Exited {
        Exited {
            call: Some(Syscall(3)),
            result: 0,
            time,
        }
    }

    fn times(call: Option<WholeCall>) -> Option<(i64, i64)> {
        call.map(|(entered, exited, _)| (entered.time, exited.time))
    }

    #[test]
    fn who_left_may_be_told_after_who_arrived() {
        let mut call = OpenCall::default();
        assert_eq!(times(call.play(CPU, 50, &CallItem::Arrives(7, exits(50)))), None);
        assert_eq!(times(call.play(CPU, 95, &CallItem::Leaves(7, enters(90)))), None);
        let late = call.play(CPU, 100, &CallItem::Leaves(7, enters(1)));
        assert_eq!(times(late), Some((1, 50)));
        let next = call.play(CPU, 200, &CallItem::Arrives(7, exits(200)));
        assert_eq!(times(next), Some((90, 200)));
    }

    #[test]
    fn what_was_left_before_is_not_open() {
        let mut call = OpenCall::default();
        assert!(call.play(CPU, 60, &CallItem::Enters(7)).is_none());
        assert!(call.play(CPU, 100, &CallItem::Leaves(7, enters(1))).is_none());
        assert!(call.parked.is_none());
        assert!(call.play(CPU, 120, &CallItem::Arrives(7, exits(120))).is_none());
        // It began after what was known last.
        let late = call.play(CPU, 130, &CallItem::Leaves(7, enters(50)));
        assert_eq!(times(late), None);
        let late = call.play(CPU, 130, &CallItem::Leaves(7, enters(110)));
        assert_eq!(times(late), Some((110, 120)));
    }
}
