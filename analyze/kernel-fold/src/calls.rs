//! System calls of a stretch: of a thread, from one switch to the next, on one CPU.
//!
//! Most calls end in the stretch in which they began. What a thread leaves open, or ends that it began
//! elsewhere, becomes an item: see [`Lane`](crate::Lane).

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Body, Syscall, SyscallExit};

use crate::sources::CpuKey;

/// What happens on a CPU, by whoever runs there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum CallStep {
    /// That call begins.
    Enter(Syscall),
    /// Exit, of that call or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
    /// A thread with that id is made.
    Make(i32),
    /// Events of calls were lost: whether the call that is open ends is not known.
    Lose,
}

/// The same, by the thread that the event's context names, if it names one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CallEvent {
    /// The thread, if it is known.
    pub tid: Option<i32>,
    /// What it does.
    pub step: CallStep,
}

/// What is known of a call when it begins.
pub trait Beginning: Copy {
    /// The call.
    fn call(&self) -> Syscall;
    /// When it begins.
    fn time(&self) -> i64;
}

/// What is known of a call when it ends.
pub trait Ending: Copy {
    /// The call; `None` if the event does not name it.
    fn call(&self) -> Option<Syscall>;
    /// When it ends.
    fn time(&self) -> i64;

    /// True if it ends that call: if another one ends, the events between were lost.
    #[inline(always)]
    fn ends(&self, entered: &impl Beginning) -> bool {
        self.call().is_none_or(|call| call == entered.call())
    }
}

/// What a thread leaves to other stretches, or finds that they left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum CallItem<E = Entered, X = Exited> {
    /// The stretch's first event of a call is an entry: no call of the thread was open.
    Enters(i32),
    /// The stretch's first event of a call is an exit.
    Arrives(i32, X),
    /// The stretch ends in a call.
    Leaves(i32, E),
    /// The thread is made: no call of it is open, whoever had its id before.
    Made(i32),
    /// The thread, which had the second id, has the first one from now on, and its call is open there.
    TakesOver(i32, i32),
}

/// A call begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Entered {
    /// Which call.
    pub call: Syscall,
    /// When it begins, in nanoseconds from the origin.
    pub time: i64,
}

/// A call ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Exited {
    /// `None` if the event does not name it.
    pub call: Option<Syscall>,
    /// What it gives: below 0 an error.
    pub result: i64,
    /// When it ends, in nanoseconds from the origin.
    pub time: i64,
}

impl Beginning for Entered {
    #[inline(always)]
    fn call(&self) -> Syscall {
        self.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.time
    }
}

impl Ending for Exited {
    #[inline(always)]
    fn call(&self) -> Option<Syscall> {
        self.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.time
    }
}

impl CallStep {
    /// What an exit tells.
    #[inline(always)]
    pub fn of_exit(exit: &SyscallExit, body: &mut Body<'_, '_>) -> CallStep {
        // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
        let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
        CallStep::Exit(call, exit.result.get(body).unwrap_or(0))
    }
}

impl<E, X> CallItem<E, X> {
    /// The thread.
    #[inline]
    pub fn tid(&self) -> i32 {
        match *self {
            CallItem::Enters(tid)
            | CallItem::Arrives(tid, _)
            | CallItem::Leaves(tid, _)
            | CallItem::Made(tid)
            | CallItem::TakesOver(tid, _) => tid,
        }
    }
}

/// The calls of a stretch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CallStretch<E = Entered> {
    /// Who runs, if that is known.
    tid: Option<i32>,
    /// Some call began or ended.
    has_calls: bool,
    open: Option<E>,
}

impl<E> Default for CallStretch<E> {
    fn default() -> Self {
        CallStretch {
            tid: None,
            has_calls: false,
            open: None,
        }
    }
}

/// What ends.
#[derive(Clone, Copy, Debug)]
pub enum EndedCall<E = Entered> {
    /// That call, which began in the stretch.
    Call(E),
    /// A call that began in an earlier stretch, if any.
    Elsewhere,
    /// Nothing that is known.
    Nothing,
}

impl<E: Beginning> CallStretch<E> {
    /// That thread runs, if it is known who does.
    pub fn new(tid: Option<i32>) -> Self {
        CallStretch {
            tid,
            ..CallStretch::default()
        }
    }

    /// Who runs.
    #[inline(always)]
    pub fn tid(&self) -> Option<i32> {
        self.tid
    }

    /// True if another thread than this one runs there, as that context tells.
    #[inline(always)]
    pub fn is_left(&self, tid: Option<i32>) -> bool {
        tid.is_some() && tid != self.tid
    }

    /// Who makes calls: idle threads make none, the switch to whoever did was lost.
    #[inline(always)]
    pub fn caller(&self) -> Option<i32> {
        self.tid.filter(|&tid| tid != 0)
    }

    /// A call begins; true if that is the stretch's first event of a call.
    #[inline(always)]
    pub fn enter(&mut self, entered: E) -> bool {
        self.enter_any(Some(entered))
    }

    /// The same of a call that may be one of which nothing needs to be known.
    #[inline(always)]
    pub fn enter_any(&mut self, entered: Option<E>) -> bool {
        self.open = entered;
        !std::mem::replace(&mut self.has_calls, true)
    }

    /// Events of calls were lost; true if none began or ended before.
    pub fn lose(&mut self) -> bool {
        self.enter_any(None)
    }

    /// A call ends: that one, if the event names it.
    #[inline(always)]
    pub fn exit(&mut self, exited: &impl Ending) -> EndedCall<E> {
        let had_calls = std::mem::replace(&mut self.has_calls, true);
        match self.open.take() {
            Some(entered) if exited.ends(&entered) => EndedCall::Call(entered),
            None if !had_calls => EndedCall::Elsewhere,
            _ => EndedCall::Nothing,
        }
    }

    /// True if some call began or ended.
    #[inline(always)]
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// The call that is open.
    #[inline(always)]
    pub fn open(&self) -> Option<E> {
        self.open
    }

    /// The same, to be changed.
    pub fn open_mut(&mut self) -> Option<&mut E> {
        self.open.as_mut()
    }

    /// The call that is open will not end.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// The call that is open, and whose it is.
    pub fn into_open(self) -> Option<(i32, E)> {
        self.tid.zip(self.open)
    }
}

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

impl<E: Beginning, X: Ending> OpenCall<E, X> {
    /// Something is left or found: gives the call that is known to have ended by now.
    pub fn play(&mut self, cpu: CpuKey, time: i64, item: &CallItem<E, X>) -> Option<WholeCall<E, X>> {
        match *item {
            CallItem::Enters(_) => {
                self.parked = None;
                self.changed = self.changed.max(Some(time));
                None
            }
            CallItem::Arrives(_, exited) => self.arrives(cpu, exited),
            CallItem::Leaves(_, entered) => self.leaves(entered),
            CallItem::Made(_) => {
                let changed = Some(time);
                *self = OpenCall {
                    changed,
                    ..OpenCall::default()
                };
                None
            }
            // Whoever holds the calls of both hands them on.
            CallItem::TakesOver(..) => None,
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

    fn leaves(&mut self, entered: E) -> Option<WholeCall<E, X>> {
        let time = Some(entered.time());
        let is_of_it = |missed: &Missed<X>| {
            let fits = missed.after < time && entered.time() <= missed.exited.time();
            fits && missed.exited.ends(&entered)
        };
        if let Some(at) = self.missed.iter().position(is_of_it) {
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
