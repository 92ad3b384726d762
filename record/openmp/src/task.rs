//! Tasks, teams and task groups, as far as the library must know them.
//!
//! All are nodes of atomics (`pool`): a task is changed by the thread that runs it, and by those that
//! end its waits.

#![allow(unsafe_code)]

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::counts::{Awaited, BarrierCount};
use crate::functions::{ult_block, ult_exit, ult_wake};
use crate::names::Label;
use crate::pool::{Node, Shared};

/// Number of spans of a task that may be open at once: worksharing within `taskloop`.
pub(crate) const MOST_SPANS: usize = 4;

/// A user-level thread.
#[derive(Default)]
pub(crate) struct Task {
    link: AtomicPtr<Task>,
    pub(crate) id: AtomicU64,
    /// Number of the library's references: 1 until it has ended, and 1 for each child.
    pub(crate) references: AtomicU32,
    pub(crate) flags: AtomicU32,
    pub(crate) parent: AtomicPtr<Task>,
    pub(crate) team: AtomicPtr<Team>,
    /// Innermost task group that contains tasks which it creates.
    pub(crate) group: AtomicPtr<Group>,
    /// Unfinished children, awaited by `taskwait`.
    pub(crate) children: Awaited,
    /// Unfinished predecessors by dependences.
    pub(crate) predecessors: AtomicU32,
    /// Guards `successors` and `is_complete`.
    pub(crate) lock: AtomicBool,
    pub(crate) is_complete: AtomicBool,
    pub(crate) successors: AtomicPtr<Edge>,
    /// Recorded as blocked, and not as woken since.
    is_blocked: AtomicBool,
    /// The thread waits in the runtime on behalf of the task, and may run other tasks.
    pub(crate) is_in_wait: AtomicBool,
    has_exited: AtomicBool,
    /// Implicit tasks: the next member of the team.
    pub(crate) next_member: AtomicPtr<Task>,
    /// Implicit tasks: the task that the thread ran before. A `taskwait` with dependences: the task
    /// that waits.
    pub(crate) resumed: AtomicPtr<Task>,
    /// Function that contains the construct.
    pub(crate) label: Label,
    pub(crate) spans: [AtomicU64; MOST_SPANS],
    pub(crate) open_spans: AtomicU32,
}

// SAFETY: atomics only.
unsafe impl Node for Task {
    fn link(&self) -> &AtomicPtr<Task> {
        &self.link
    }
    fn shared() -> &'static Shared<Task> {
        static SHARED: Shared<Task> = Shared::new();
        &SHARED
    }
}

impl Task {
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// Records that it waits. A wake-up is recorded only after that.
    pub(crate) fn block(&self, reason: &CStr) {
        ult_block(self.id(), reason);
        self.is_blocked.store(true, Ordering::SeqCst);
    }

    /// Records that it is ready, if it is blocked; true then.
    pub(crate) fn wake(&self) -> bool {
        let wakes = self.is_blocked.swap(false, Ordering::SeqCst);
        if wakes {
            ult_wake(self.id());
        }
        wakes
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::SeqCst)
    }

    /// Records its end, once.
    pub(crate) fn exit(&self) {
        if !self.has_exited.swap(true, Ordering::AcqRel) {
            ult_exit(self.id());
        }
    }

    pub(crate) fn has_exited(&self) -> bool {
        self.has_exited.load(Ordering::Acquire)
    }

    pub(crate) fn has(&self, flag: i32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag as u32 != 0
    }

    /// Prepares a reused node.
    pub(crate) fn reset(&self, id: u64, flags: i32) {
        self.id.store(id, Ordering::Relaxed);
        self.references.store(1, Ordering::Relaxed);
        self.flags.store(flags as u32, Ordering::Relaxed);
        self.parent.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.team.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.group.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.children.reset();
        self.predecessors.store(0, Ordering::Relaxed);
        self.is_complete.store(false, Ordering::Relaxed);
        self.successors
            .store(core::ptr::null_mut(), Ordering::Relaxed);
        self.is_blocked.store(false, Ordering::Relaxed);
        self.is_in_wait.store(false, Ordering::Relaxed);
        self.has_exited.store(false, Ordering::Relaxed);
        self.resumed.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.label.clear();
        self.open_spans.store(0, Ordering::Relaxed);
    }
}

/// The threads of a parallel region.
#[derive(Default)]
pub(crate) struct Team {
    link: AtomicPtr<Team>,
    /// 1 until the region has ended, and 1 for each implicit task that has not.
    pub(crate) references: AtomicU32,
    /// Nesting depth; 0 for the initial team.
    pub(crate) level: AtomicU32,
    pub(crate) requested: AtomicU32,
    /// The id of its first implicit task, and the number of those that were created with the region.
    pub(crate) first_id: AtomicU64,
    pub(crate) created: AtomicU32,
    pub(crate) span: AtomicU64,
    pub(crate) codeptr: AtomicU64,
    /// Counts threads and tasks that its barrier awaits.
    pub(crate) barrier: BarrierCount,
    pub(crate) members: AtomicPtr<Task>,
    pub(crate) encountering: AtomicPtr<Task>,
    /// The region around it on the thread that has begun it.
    pub(crate) outer: AtomicPtr<Team>,
    pub(crate) label: Label,
}

// SAFETY: atomics only.
unsafe impl Node for Team {
    fn link(&self) -> &AtomicPtr<Team> {
        &self.link
    }
    fn shared() -> &'static Shared<Team> {
        static SHARED: Shared<Team> = Shared::new();
        &SHARED
    }
}

impl Team {
    /// Prepares a reused node.
    pub(crate) fn reset(&self) {
        self.references.store(1, Ordering::Relaxed);
        self.level.store(0, Ordering::Relaxed);
        self.requested.store(0, Ordering::Relaxed);
        self.first_id.store(0, Ordering::Relaxed);
        self.created.store(0, Ordering::Relaxed);
        self.span.store(0, Ordering::Relaxed);
        self.codeptr.store(0, Ordering::Relaxed);
        self.barrier.reset();
        self.members.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.encountering
            .store(core::ptr::null_mut(), Ordering::Relaxed);
        self.outer.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.label.clear();
    }
}

/// A `taskgroup` region.
#[derive(Default)]
pub(crate) struct Group {
    link: AtomicPtr<Group>,
    pub(crate) outer: AtomicPtr<Group>,
    pub(crate) waiter: AtomicPtr<Task>,
    /// Unfinished tasks of the group.
    pub(crate) tasks: Awaited,
}

// SAFETY: atomics only.
unsafe impl Node for Group {
    fn link(&self) -> &AtomicPtr<Group> {
        &self.link
    }
    fn shared() -> &'static Shared<Group> {
        static SHARED: Shared<Group> = Shared::new();
        &SHARED
    }
}

/// A dependence of a task on an earlier one, in the list of that one's successors.
#[derive(Default)]
pub(crate) struct Edge {
    link: AtomicPtr<Edge>,
    pub(crate) next: AtomicPtr<Edge>,
    pub(crate) successor: AtomicPtr<Task>,
}

// SAFETY: atomics only.
unsafe impl Node for Edge {
    fn link(&self) -> &AtomicPtr<Edge> {
        &self.link
    }
    fn shared() -> &'static Shared<Edge> {
        static SHARED: Shared<Edge> = Shared::new();
        &SHARED
    }
}
