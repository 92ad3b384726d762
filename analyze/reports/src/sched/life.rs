//! The scheduling state of a thread.

use serde::{Deserialize, Serialize};
use tracebraid_threads::Waker;

use tracebraid_follow::CpuKey;

/// The scheduling state of a thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Life {
    /// True if an event has set the state. Otherwise it is unknown in a slice of time, and
    /// [`Now::Off`] in the whole trace.
    pub(super) is_seen: bool,
    pub(super) now: Now,
    /// The first wake-up since the thread was last switched to.
    pub(super) woken: Option<Woken>,
}

/// The activity of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Now {
    /// Sleeping, or unknown.
    #[default]
    Off,
    Running(CpuEpoch),
    /// Runnable, or soon to be; no event records the CPU.
    Pending {
        since: i64,
        place: Option<CpuEpoch>,
    },
    /// Runnable, and waiting for a CPU.
    Waiting {
        since: i64,
        /// Start of the wait for this CPU.
        moved: i64,
        place: CpuEpoch,
        /// The thread that preempted it; 0 is the idle thread.
        by: Option<i32>,
    },
}

/// A CPU and its number of losses so far. A later loss there makes the state of the thread unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CpuEpoch {
    pub(super) cpu: CpuKey,
    pub(super) losses: usize,
}

/// A wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Woken {
    pub(super) time: i64,
    pub(super) by: Waker,
    /// True if a wake-up showed that the thread is runnable.
    pub(super) is_ready: bool,
}

impl Now {
    /// True if a thread that is switched to on `cpu` can have waited there all the time. Where some
    /// CPUs were not recorded, a thread known to be elsewhere may have run on one of them.
    pub(super) fn leads_to(&self, cpu: CpuKey) -> bool {
        match self {
            Now::Waiting { place, .. } => place.cpu == cpu,
            Now::Pending { .. } => false,
            Now::Off | Now::Running(_) => true,
        }
    }
}

impl Life {
    /// A life in state `now`, not woken.
    #[inline]
    pub(super) fn of(now: Now) -> Life {
        Life {
            is_seen: true,
            now,
            woken: None,
        }
    }

    /// The CPU that the thread runs on or waits for.
    #[inline]
    pub(super) fn place(&self) -> Option<CpuEpoch> {
        match self.now {
            Now::Running(place) | Now::Waiting { place, .. } => Some(place),
            Now::Pending { place, .. } => place,
            Now::Off => None,
        }
    }

    /// The same, mutable.
    pub(super) fn place_mut(&mut self) -> Option<&mut CpuEpoch> {
        match &mut self.now {
            Now::Running(place) | Now::Waiting { place, .. } => Some(place),
            Now::Pending { place, .. } => place.as_mut(),
            Now::Off => None,
        }
    }

    /// Makes the state unknown.
    pub(super) fn lose(&mut self) {
        *self = Life::of(Now::Off);
    }
}
