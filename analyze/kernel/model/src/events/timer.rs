//! Timers of the kernel and of processes.

use crate::field::IntField;
use crate::finder::Finder;

/// Step of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerStep {
    /// The timer is initialized.
    Init,
    /// The timer is started.
    Start,
    /// The timer is cancelled.
    Cancel,
    /// The timer function begins.
    ExpireEntry,
    /// The timer function ends.
    ExpireExit,
}

impl TimerStep {
    /// True if the timer function begins, false if it ends; `None` for other steps.
    #[inline]
    pub fn expires(self) -> Option<bool> {
        match self {
            TimerStep::ExpireEntry => Some(true),
            TimerStep::ExpireExit => Some(false),
            _ => None,
        }
    }
}

/// A high-resolution timer. Times are in nanoseconds of the timer's clock.
#[derive(Clone, Debug)]
pub struct Hrtimer {
    /// Step of the timer.
    pub step: TimerStep,
    /// Address of the timer.
    pub timer: IntField,
    /// Address of the timer function.
    pub function: Option<IntField>,
    /// Latest time of expiry.
    pub expires: Option<IntField>,
    /// Earliest time of expiry.
    pub soft_expires: Option<IntField>,
    /// Current time of the clock.
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

/// A timer of the timer wheel. Times are in ticks (jiffies).
#[derive(Clone, Debug)]
pub struct Timer {
    /// Step of the timer.
    pub step: TimerStep,
    /// Address of the timer.
    pub timer: IntField,
    /// Address of the timer function.
    pub function: Option<IntField>,
    /// Time of expiry.
    pub expires: Option<IntField>,
    /// Current time.
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

/// Step of an interval timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItimerStep {
    /// The timer is set or stopped.
    State,
    /// The timer expires.
    Expire,
}

/// An interval timer of a process (`setitimer`).
#[derive(Clone, Debug)]
pub struct Itimer {
    /// Step of the timer.
    pub step: ItimerStep,
    /// ITIMER_REAL 0, ITIMER_VIRTUAL 1, ITIMER_PROF 2.
    pub which: IntField,
    /// Process whose timer expires.
    pub pid: Option<IntField>,
    /// Time of expiry, in nanoseconds of the timer's clock.
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
