//! Timers of the kernel, and those of processes.

use crate::field::IntField;
use crate::finder::Finder;

/// What happens to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerStep {
    /// It is made.
    Init,
    /// It is set.
    Start,
    /// It is no longer set.
    Cancel,
    /// Its function begins.
    ExpireEntry,
    /// Its function ends.
    ExpireExit,
}

impl TimerStep {
    /// Whether its function begins or ends, if it does either.
    #[inline]
    pub fn expires(self) -> Option<bool> {
        match self {
            TimerStep::ExpireEntry => Some(true),
            TimerStep::ExpireExit => Some(false),
            _ => None,
        }
    }
}

/// A timer of high resolution. Times are nanoseconds of the timer's clock.
#[derive(Clone, Debug)]
pub struct Hrtimer {
    /// What happens to it.
    pub step: TimerStep,
    /// Its address.
    pub timer: IntField,
    /// Address of its function.
    pub function: Option<IntField>,
    /// When it must expire.
    pub expires: Option<IntField>,
    /// When it may expire.
    pub soft_expires: Option<IntField>,
    /// Time of its clock.
    pub now: Option<IntField>,
}

impl Hrtimer {
    pub(crate) fn find(finder: &Finder<'_>, step: TimerStep) -> Option<Box<Hrtimer>> {
        Some(Box::new(Hrtimer {
            step,
            timer: finder.int(&["hrtimer"])?,
            function: finder.int(&["function"]),
            expires: finder.int(&["expires"]),
            soft_expires: finder.int(&["softexpires"]),
            now: finder.int(&["now"]),
        }))
    }
}

/// A timer of the timer wheel. Times are ticks (jiffies).
#[derive(Clone, Debug)]
pub struct Timer {
    /// What happens to it.
    pub step: TimerStep,
    /// Its address.
    pub timer: IntField,
    /// Address of its function.
    pub function: Option<IntField>,
    /// When it is to expire.
    pub expires: Option<IntField>,
    /// Ticks now.
    pub now: Option<IntField>,
}

impl Timer {
    pub(crate) fn find(finder: &Finder<'_>, step: TimerStep) -> Option<Timer> {
        Some(Timer {
            step,
            timer: finder.int(&["timer"])?,
            function: finder.int(&["function"]),
            expires: finder.int(&["expires"]),
            now: finder.int(&["now", "jiffies"]),
        })
    }
}

/// What happens to an interval timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItimerStep {
    /// It is set or stopped.
    State,
    /// It expires.
    Expire,
}

/// An interval timer of a process (`setitimer`).
#[derive(Clone, Debug)]
pub struct Itimer {
    /// What happens to it.
    pub step: ItimerStep,
    /// ITIMER_REAL 0, ITIMER_VIRTUAL 1, ITIMER_PROF 2.
    pub which: IntField,
    /// Process whose timer expires.
    pub pid: Option<IntField>,
    /// When it is to expire, in nanoseconds of its clock.
    pub expires: Option<IntField>,
}

impl Itimer {
    pub(crate) fn find(finder: &Finder<'_>, step: ItimerStep) -> Option<Itimer> {
        Some(Itimer {
            step,
            which: finder.int(&["which"])?,
            pid: finder.int(&["pid"]),
            expires: finder.int(&["expires"]),
        })
    }
}
