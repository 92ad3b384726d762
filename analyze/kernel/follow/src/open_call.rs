//! A thread's call that spans several stretches.

use serde::{Deserialize, Serialize};

use crate::calls::{Beginning, CallItem, Ending, Entered, Exited};
use crate::sources::CpuKey;

/// A thread's calls that span several stretches, as far as known. A stretch may end long after its
/// thread has left the CPU: if no event shows the switch, or the event was lost, the next thread's
/// first event ends the stretch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenCall<E = Entered, X = Exited> {
    /// The call that was open at the end of the last stretch.
    pub parked: Option<E>,
    /// Latest time at which a call is known to have begun or ended.
    changed: Option<i64>,
    /// Exits without a known entry; only the last few are kept.
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

/// An exit without a known entry.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Missed<X> {
    exited: X,
    cpu: CpuKey,
    /// The call began after this time.
    after: Option<i64>,
}

/// Number of exits that may wait for their entries.
const MOST_MISSED: usize = 4;

/// A call that spans several stretches: entry, exit, and CPU of the exit.
pub type WholeCall<E = Entered, X = Exited> = (E, X, CpuKey);

/// A thread's calls in a slice of time, from the time on at which they are known without earlier
/// slices: to be appended to those of the earlier slices ([`OpenCall::append`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaterCalls<E = Entered, X = Exited> {
    open: OpenCall<E, X>,
    /// Number of missed exits from earlier slices, counted from the last one, that still wait.
    earlier: usize,
}

/// More than the number of missed exits that can wait.
const ALL_WAIT: usize = usize::MAX;

impl<E: Beginning, X: Ending> LaterCalls<E, X> {
    /// No call is open, and a call began or ended at `time` (nanoseconds from the origin).
    pub fn since(time: i64) -> Self {
        LaterCalls {
            open: OpenCall::changed_at(time),
            earlier: ALL_WAIT,
        }
    }

    /// The thread was created at `time` (nanoseconds from the origin): waiting exits belong to
    /// another thread.
    pub fn made(time: i64) -> Self {
        LaterCalls {
            open: OpenCall::changed_at(time),
            earlier: 0,
        }
    }

    /// The calls of the slice, if the earlier slices already know its missed exits.
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

    /// True if an exit was missed.
    pub fn has_missed_any(&self) -> bool {
        self.earlier < ALL_WAIT
    }
}

impl<E, X> LaterCalls<E, X> {
    /// The same calls, with the entry of the open call converted by `begin`.
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

    /// Exits whose entries are missing, mutable.
    pub fn ends(&mut self) -> impl Iterator<Item = &mut X> {
        self.open.missed.iter_mut().map(|missed| &mut missed.exited)
    }
}

impl<E: Beginning, X: Ending> OpenCall<E, X> {
    /// Plays an item; returns the call that is now known to have ended.
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
            // The owner of both threads' calls transfers them.
            CallItem::TakesOver(..) => None,
        }
    }

    /// No call is open, and a call began or ended at `time`.
    pub fn changed_at(time: i64) -> Self {
        OpenCall {
            changed: Some(time),
            ..OpenCall::default()
        }
    }

    /// True if a call began or ended after `time`.
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

    /// The open call, and waiting exits, mutable.
    pub fn parts(&mut self) -> (Option<&mut E>, impl Iterator<Item = &mut X>) {
        let missed = self.missed.iter_mut().map(|missed| &mut missed.exited);
        (self.parked.as_mut(), missed)
    }

    /// Whether playing items can have produced this value.
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

    /// Index of the missed exit of a call, if its exit is known.
    fn missed_end(&self, entered: &E) -> Option<usize> {
        let time = Some(entered.time());
        let is_of_it = |missed: &Missed<X>| {
            let fits = missed.after < time && entered.time() <= missed.exited.time();
            fits && missed.exited.ends(entered)
        };
        self.missed.iter().position(is_of_it)
    }

    /// True if the exit of a call is known already.
    pub fn has_missed(&self, entered: &E) -> bool {
        self.missed_end(entered).is_some()
    }

    fn leaves(&mut self, entered: E) -> Option<WholeCall<E, X>> {
        let time = Some(entered.time());
        if let Some(at) = self.missed_end(&entered) {
            let Missed { exited, cpu, .. } = self.missed.remove(at);
            return Some((entered, exited, cpu));
        }
        // Later changes have been reported already.
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
        // The call began after the last known change.
        let late = call.play(CPU, 130, &CallItem::Leaves(7, enters(50)));
        assert_eq!(times(late), None);
        let late = call.play(CPU, 130, &CallItem::Leaves(7, enters(110)));
        assert_eq!(times(late), Some((110, 120)));
    }
}
