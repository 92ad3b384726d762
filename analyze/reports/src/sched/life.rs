//! What a thread does, as far as the scheduler is concerned.

use serde::{Deserialize, Serialize};

use crate::kernel::CpuKey;
use crate::sched::waker::Waker;

/// What is known of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Life {
    /// What happened to it up to the first thing that says what it does: the chunks before know
    /// what each was.
    pub(super) head: Vec<Marked>,
    pub(super) now: Now,
    /// The first wake-up since it was last switched to.
    pub(super) woken: Option<Woken>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Now {
    /// What it did when the chunk began, and what is in the head.
    #[default]
    Before,
    /// It sleeps, or nothing is known.
    Off,
    Running(Queue),
    /// It can run, or soon can; no event says where.
    Pending {
        since: i64,
        queue: Option<Queue>,
    },
    /// It can run, and waits for a CPU.
    Waiting {
        since: i64,
        /// Since when for that CPU.
        moved: i64,
        queue: Queue,
    },
}

/// A CPU; what is lost there after so many losses makes unknown what its threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Queue {
    pub(super) cpu: CpuKey,
    pub(super) losses: usize,
}

/// It was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Woken {
    pub(super) time: i64,
    pub(super) waker: Waker,
}

/// What happens to a thread, and in which order: marks count what a chunk cannot know all of.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Marked {
    pub(super) mark: u64,
    pub(super) step: Step,
}

/// What happens to a thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// It is woken, to run on that CPU. `is_ready`: it can run from now on.
    Wake {
        woken: Woken,
        cpu: Option<CpuKey>,
        is_ready: bool,
    },
    Migrate {
        time: i64,
        cpu: CpuKey,
    },
    /// A CPU is switched to it.
    In {
        time: i64,
        cpu: CpuKey,
        priority: Option<i32>,
    },
    /// A CPU is switched from it. `waits`: it could have run on.
    Out {
        time: i64,
        cpu: CpuKey,
        waits: bool,
    },
    /// It is made, and has yet to be woken.
    Made {
        time: i64,
        cpu: CpuKey,
    },
    /// Nothing is left of it.
    Gone,
    /// What runs there has this id from now on.
    Becomes(CpuKey),
    /// Somebody else runs there.
    Left(CpuKey),
}

impl Step {
    /// True if it does not matter afterwards what was before.
    pub(super) fn is_certain(&self) -> bool {
        !matches!(self, Step::Wake { .. } | Step::Migrate { .. } | Step::Left(_))
    }
}

impl Life {
    /// True if it is not known what it does.
    #[inline]
    pub(super) fn is_before(&self) -> bool {
        self.now == Now::Before
    }

    /// The CPU that it runs on or waits for.
    pub(super) fn queue(&self) -> Option<Queue> {
        match self.now {
            Now::Running(queue) | Now::Waiting { queue, .. } => Some(queue),
            Now::Pending { queue, .. } => queue,
            Now::Before | Now::Off => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn queue_mut(&mut self) -> Option<&mut Queue> {
        match &mut self.now {
            Now::Running(queue) | Now::Waiting { queue, .. } => Some(queue),
            Now::Pending { queue, .. } => queue.as_mut(),
            Now::Before | Now::Off => None,
        }
    }

    /// Nothing is known of it any longer.
    pub(super) fn lose(&mut self) {
        self.now = Now::Off;
        self.woken = None;
    }

    /// All wakers of wake-ups that have not ended.
    pub(super) fn wakers(&mut self) -> impl Iterator<Item = &mut Waker> {
        let waiting = self.woken.iter_mut().map(|woken| &mut woken.waker);
        let head = self.head.iter_mut().filter_map(|marked| match &mut marked.step {
            Step::Wake { woken, .. } => Some(&mut woken.waker),
            _ => None,
        });
        waiting.chain(head)
    }
}
