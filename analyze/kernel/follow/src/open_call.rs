//! A thread's call from one stretch to another.

use serde::{Deserialize, Serialize};

use crate::calls::{Beginning, CallItem, Ending, Entered, Exited};
use crate::sources::CpuKey;

/// A thread's calls that are not of one stretch, as far as they are known. A stretch may end long
/// after its thread has left: where no event shows that, or the event was lost, the next thread's
/// first event does.
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
struct Missed<X> {
    exited: X,
    cpu: CpuKey,
    /// It began after that.
    after: Option<i64>,
}

/// How many ends may wait to be told what they end.
const MOST_MISSED: usize = 4;

/// A call that is not of one stretch, from its beginning to its end on that CPU.
pub type WholeCall<E = Entered, X = Exited> = (E, X, CpuKey);

/// A thread's calls in a slice of time, since a time from which on they are known without knowledge
/// of what was before: to be appended to those of the earlier slices ([`OpenCall::append`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaterCalls<E = Entered, X = Exited> {
    open: OpenCall<E, X>,
    /// How many of the missed ends from before, the last ones, still wait.
    earlier: usize,
}

/// More missed ends than can wait.
const ALL_WAIT: usize = usize::MAX;

impl<E: Beginning, X: Ending> LaterCalls<E, X> {
    /// No call is open, and one began or ended then (nanoseconds from the origin).
    pub fn since(time: i64) -> Self {
        LaterCalls {
            open: OpenCall::changed_at(time),
            earlier: ALL_WAIT,
        }
    }

    /// The thread was made then (nanoseconds from the origin): whatever waits is of another thread.
    pub fn made(time: i64) -> Self {
        LaterCalls {
            open: OpenCall::changed_at(time),
            earlier: 0,
        }
    }

    /// The calls of the slice, where missed ends are known to the earlier slices already.
    pub fn without_missed(open: &OpenCall<E, X>) -> Self {
        let OpenCall {
            parked, changed, ..
        } = *open;
        LaterCalls {
            open: OpenCall {
                parked,
                changed,
                missed: Vec::new(),
            },
            earlier: ALL_WAIT,
        }
    }

    /// See [`OpenCall::play`].
    #[inline]
    pub fn play(
        &mut self,
        cpu: CpuKey,
        time: i64,
        item: &CallItem<E, X>,
    ) -> Option<WholeCall<E, X>> {
        let whole = self.open.play(cpu, time, item);
        if !self.open.missed.is_empty() {
            self.earlier = self.earlier.min(MOST_MISSED - self.open.missed.len());
        }
        whole
    }

    /// See [`OpenCall::has_changed_after`].
    pub fn has_changed_after(&self, time: i64) -> bool {
        self.open.has_changed_after(time)
    }

    /// True if an end has been missed.
    pub fn has_missed_any(&self) -> bool {
        self.earlier < ALL_WAIT
    }
}

impl<E, X> LaterCalls<E, X> {
    /// The same, with the beginning of the open call as it is known elsewhere.
    pub fn map<F>(self, begin: impl FnOnce(E) -> F) -> LaterCalls<F, X> {
        let OpenCall {
            parked,
            changed,
            missed,
        } = self.open;
        let open = OpenCall {
            parked: parked.map(begin),
            changed,
            missed,
        };
        LaterCalls {
            open,
            earlier: self.earlier,
        }
    }

    /// Ends of calls whose beginnings are missing, to be changed.
    pub fn ends(&mut self) -> impl Iterator<Item = &mut X> {
        self.open.missed.iter_mut().map(|missed| &mut missed.exited)
    }
}

impl<E: Beginning, X: Ending> OpenCall<E, X> {
    /// Something is left or found: gives the call that is known to have ended by now.
    #[inline]
    pub fn play(
        &mut self,
        cpu: CpuKey,
        time: i64,
        item: &CallItem<E, X>,
    ) -> Option<WholeCall<E, X>> {
        match *item {
            CallItem::Enters(_) => {
                self.parked = None;
                self.changed = self.changed.max(Some(time));
                None
            }
            CallItem::Arrives(_, exited) => self.arrives(cpu, exited),
            CallItem::Leaves(_, entered) => self.leaves(entered),
            CallItem::Made(_) => {
                (self.parked, self.changed) = (None, Some(time));
                self.missed.clear();
                None
            }
            // Whoever holds the calls of both hands them on.
            CallItem::TakesOver(..) => None,
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

    /// Appends the calls of a slice of time.
    pub fn append(&mut self, mut later: LaterCalls<E, X>) {
        self.append_from(&mut later);
    }

    /// Appends the calls of a slice of time. Memory that is no longer needed stays in `later`.
    pub(crate) fn append_from(&mut self, later: &mut LaterCalls<E, X>) {
        let LaterCalls { open, earlier } = later;
        let gone = self.missed.len().saturating_sub(*earlier);
        self.missed.drain(..gone);
        match self.missed.is_empty() {
            true => std::mem::swap(&mut self.missed, &mut open.missed),
            false => self.missed.append(&mut open.missed),
        }
        self.parked = open.parked;
        self.changed = self.changed.max(open.changed);
    }

    /// The call that it was in, and ends of calls that wait, to be changed.
    pub fn parts(&mut self) -> (Option<&mut E>, impl Iterator<Item = &mut X>) {
        let missed = self.missed.iter_mut().map(|missed| &mut missed.exited);
        (self.parked.as_mut(), missed)
    }

    /// Whether it can have come about by what was played.
    pub fn is_sound(&self) -> bool {
        self.missed.len() <= MOST_MISSED
    }

    fn arrives(&mut self, cpu: CpuKey, exited: X) -> Option<WholeCall<E, X>> {
        let after = self.changed;
        self.changed = after.max(Some(exited.time()));
        match self.parked.take() {
            Some(entered) => exited.ends(&entered).then_some((entered, exited, cpu)),
            None => {
                if self.missed.len() >= MOST_MISSED {
                    self.missed.remove(0);
                }
                self.missed.push(Missed { exited, cpu, after });
                None
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

    fn leaves(&mut self, entered: E) -> Option<WholeCall<E, X>> {
        let time = Some(entered.time());
        if let Some(at) = self.missed_end(&entered) {
            let Missed { exited, cpu, .. } = self.missed.remove(at);
            return Some((entered, exited, cpu));
        }
        // What was known later is told already.
        if self.changed <= time {
            (self.parked, self.changed) = (Some(entered), time);
        }
        None
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
        assert_eq!(
            times(call.play(CPU, 50, &CallItem::Arrives(7, exits(50)))),
            None
        );
        assert_eq!(
            times(call.play(CPU, 95, &CallItem::Leaves(7, enters(90)))),
            None
        );
        let late = call.play(CPU, 100, &CallItem::Leaves(7, enters(1)));
        assert_eq!(times(late), Some((1, 50)));
        let next = call.play(CPU, 200, &CallItem::Arrives(7, exits(200)));
        assert_eq!(times(next), Some((90, 200)));
    }

    #[test]
    fn what_was_left_before_is_not_open() {
        let mut call = OpenCall::default();
        assert!(call.play(CPU, 60, &CallItem::Enters(7)).is_none());
        assert!(
            call.play(CPU, 100, &CallItem::Leaves(7, enters(1)))
                .is_none()
        );
        assert!(call.parked.is_none());
        assert!(
            call.play(CPU, 120, &CallItem::Arrives(7, exits(120)))
                .is_none()
        );
        // It began after what was known last.
        let late = call.play(CPU, 130, &CallItem::Leaves(7, enters(50)));
        assert_eq!(times(late), None);
        let late = call.play(CPU, 130, &CallItem::Leaves(7, enters(110)));
        assert_eq!(times(late), Some((110, 120)));
    }
}
