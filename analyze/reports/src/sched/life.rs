//! What a thread does, as far as the scheduler is concerned.

use serde::{Deserialize, Serialize};
use tracebraid_threads::Waker;

use tracebraid_follow::CpuKey;

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Life {
    /// Something has told what it does: if not, that is not known in a slice of time, and nothing
    /// in the whole.
    pub(super) is_seen: bool,
    pub(super) now: Now,
    /// The first wake-up since it was last switched to.
    pub(super) woken: Option<Woken>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Now {
    /// It sleeps, or nothing is known.
    #[default]
    Off,
    Running(CpuEpoch),
    /// It can run, or soon can; no event says where.
    Pending {
        since: i64,
        place: Option<CpuEpoch>,
    },
    /// It can run, and waits for a CPU.
    Waiting {
        since: i64,
        /// Since when for that CPU.
        moved: i64,
        place: CpuEpoch,
        /// The thread that preempted it; 0 is the idle thread.
        by: Option<i32>,
    },
}

/// A CPU; what is lost there after so many losses makes unknown what its threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CpuEpoch {
    pub(super) cpu: CpuKey,
    pub(super) losses: usize,
}

/// It was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Woken {
    pub(super) time: i64,
    pub(super) by: Waker,
    /// A wake-up showed that the thread can run.
    pub(super) is_ready: bool,
}

impl Now {
    /// True if that CPU is where it waited: where some CPUs were not recorded, a thread that comes
    /// from anywhere else may have been there.
    pub(super) fn leads_to(&self, cpu: CpuKey) -> bool {
        match self {
            Now::Waiting { place, .. } => place.cpu == cpu,
            Now::Pending { .. } => false,
            Now::Off | Now::Running(_) => true,
        }
    }
}

impl Life {
    /// It does that, and was not woken.
    #[inline]
    pub(super) fn of(now: Now) -> Life {
        Life {
            is_seen: true,
            now,
            woken: None,
        }
    }

    /// The CPU that it runs on or waits for.
    #[inline]
    pub(super) fn place(&self) -> Option<CpuEpoch> {
        match self.now {
            Now::Running(place) | Now::Waiting { place, .. } => Some(place),
            Now::Pending { place, .. } => place,
            Now::Off => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn place_mut(&mut self) -> Option<&mut CpuEpoch> {
        match &mut self.now {
            Now::Running(place) | Now::Waiting { place, .. } => Some(place),
            Now::Pending { place, .. } => place.as_mut(),
            Now::Off => None,
        }
    }

    /// Nothing is known of it any longer.
    pub(super) fn lose(&mut self) {
        *self = Life::of(Now::Off);
    }
}
