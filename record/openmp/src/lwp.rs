//! State of the calling thread, an LWP of the runtime.

use core::cell::Cell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::abi::task_flag;
use crate::functions::ult_switch;
use crate::names::NameCache;
use crate::pool::{Cache, load};
use crate::task::{Edge, Group, Task, Team};

pub(crate) struct Lwp {
    /// The task that the thread runs, or waits for.
    pub(crate) task: Cell<Option<&'static Task>>,
    /// The innermost parallel region that this thread has begun.
    pub(crate) region: Cell<Option<&'static Team>>,
    /// The user-level thread of the last recorded switch; 0 while the runtime's own code runs.
    current: Cell<u64>,
    ults: Ids,
    spans: Ids,
    pub(crate) tasks: Cache<Task>,
    pub(crate) teams: Cache<Team>,
    pub(crate) groups: Cache<Group>,
    pub(crate) edges: Cache<Edge>,
    pub(crate) names: NameCache,
    /// The task that has ended last. Its node is freed after the next one: until this thread has
    /// returned to the runtime, another may report a dependence on the task.
    condemned: Cell<Option<&'static Task>>,
    /// Between the begin and the end of a reduction.
    pub(crate) is_reducing: Cell<bool>,
}

/// Calls a function with the state of this thread.
pub(crate) fn with<R>(call: impl FnOnce(&Lwp) -> R) -> R {
    thread_local! {
        static LWP: Lwp = const { Lwp::new() };
    }
    LWP.with(call)
}

/// Numbers of one LWP, taken in blocks from the process's.
struct Ids {
    next: Cell<u64>,
    end: Cell<u64>,
}

const IDS: u64 = 64;

impl Ids {
    const fn new() -> Ids {
        Ids {
            next: Cell::new(0),
            end: Cell::new(0),
        }
    }

    fn take(&self, counter: &AtomicU64) -> u64 {
        if self.next.get() == self.end.get() {
            let first = counter.fetch_add(IDS, Ordering::Relaxed);
            self.next.set(first);
            self.end.set(first + IDS);
        }
        self.next.replace(self.next.get() + 1)
    }
}

/// Numbers user-level threads from here in programs that contain Python, where tasks of asyncio have
/// lower ids.
const BESIDE_PYTHON: u64 = 50_000_001;

/// Chooses the first id of a user-level thread, before there is any.
pub(crate) fn choose_ids(has_python: bool) {
    if has_python {
        ULTS.store(BESIDE_PYTHON, Ordering::Relaxed);
    }
}

/// The next id of a user-level thread.
static ULTS: AtomicU64 = AtomicU64::new(1);
/// The next id of a span: far from the ids that programs choose for their own spans.
static SPANS: AtomicU64 = AtomicU64::new(1 << 62);

impl Lwp {
    const fn new() -> Lwp {
        Lwp {
            task: Cell::new(None),
            region: Cell::new(None),
            current: Cell::new(0),
            ults: Ids::new(),
            spans: Ids::new(),
            tasks: Cache::new(),
            teams: Cache::new(),
            groups: Cache::new(),
            edges: Cache::new(),
            names: NameCache::new(),
            condemned: Cell::new(None),
            is_reducing: Cell::new(false),
        }
    }

    pub(crate) fn new_id(&self) -> u64 {
        self.ults.take(&ULTS)
    }

    /// The first of `count` ids in a row.
    pub(crate) fn new_ids(&self, count: u32) -> u64 {
        ULTS.fetch_add(u64::from(count), Ordering::Relaxed)
    }

    pub(crate) fn new_span(&self) -> u64 {
        self.spans.take(&SPANS)
    }

    /// Records that this LWP switches to a user-level thread, or to 0.
    pub(crate) fn switch(&self, to: u64) {
        let from = self.current.replace(to);
        if from != to {
            ult_switch(from, to);
        }
    }

    /// Switches to a task, or to 0 while the thread still waits on its behalf.
    pub(crate) fn resume(&self, task: &Task) {
        match task.is_in_wait.load(Ordering::Relaxed) {
            true => self.switch(0),
            false => self.switch(task.id()),
        }
    }

    /// Records that a task which has not run yet waits: as a run without length, so that it waits
    /// as others do, from a switch to a wake-up.
    pub(crate) fn block_at_begin(&self, task: &Task, reason: &CStr) {
        let current = self.current.get();
        self.switch(task.id());
        task.block(reason);
        self.switch(current);
    }

    /// The task begins to wait in the runtime.
    pub(crate) fn leave(&self, task: &Task) {
        task.is_in_wait.store(true, Ordering::Relaxed);
        self.switch(0);
    }

    /// The task's wait in the runtime ends.
    pub(crate) fn come_back(&self, task: &Task) {
        if task.is_in_wait.swap(false, Ordering::Relaxed) && !task.has_exited() {
            // If what ended the wait is unknown, the scheduler did.
            task.wake();
            self.switch(task.id());
        }
    }

    /// Releases a task that has ended, after the next one.
    pub(crate) fn condemn(&self, task: &'static Task) {
        if let Some(earlier) = self.condemned.replace(Some(task)) {
            self.release(earlier);
        }
    }

    /// Drops a reference to a task, and to its parent with the last one.
    fn release(&self, task: &'static Task) {
        let mut task = task;
        while task.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            let parent = load(&task.parent);
            self.tasks.free(task);
            let Some(parent) = parent else { return };
            task = parent;
        }
    }

    /// Drops a reference to a team, and to its implicit tasks with the last one.
    pub(crate) fn release_team(&self, team: &'static Team) {
        if team.references.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let mut member = load(&team.members);
        while let Some(task) = member {
            member = load(&task.next_member);
            debug_assert!(!task.has(task_flag::TASKWAIT));
            self.release(task);
        }
        self.teams.free(team);
    }

    /// The thread ends: others may use its memory.
    pub(crate) fn end(&self) {
        if let Some(task) = self.condemned.take() {
            self.release(task);
        }
        self.switch(0);
        self.task.set(None);
        self.region.set(None);
        self.tasks.share(usize::MAX);
        self.teams.share(usize::MAX);
        self.groups.share(usize::MAX);
        self.edges.share(usize::MAX);
    }
}
