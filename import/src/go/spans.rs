//! Spans: tasks and regions of the program, and phases of the runtime.

use std::collections::HashMap;

/// Ids of spans that are no tasks begin here; those of tasks are the numbers of the tasks.
const FIRST_ID: u64 = 1 << 63;

/// Name and task of a region.
pub(super) type Region = (u64, String);

/// A phase of the runtime, of which one can be active at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// The garbage collector marks.
    Mark,
    /// A goroutine has stopped all others.
    Stop(u64),
    /// A processor sweeps.
    Sweep(u64),
    /// A goroutine helps to mark.
    Assist(u64),
}

/// The spans that are open.
#[derive(Debug, Default)]
pub(super) struct Spans {
    count: u64,
    tasks: HashMap<u64, ()>,
    phases: HashMap<Phase, u64>,
    /// By goroutine, innermost last.
    regions: HashMap<u64, Vec<(Region, u64)>>,
}

impl Spans {
    fn id(&mut self) -> u64 {
        self.count += 1;
        FIRST_ID | self.count
    }

    /// The id of a task's span; `None` if the task has begun before, or has no valid number.
    pub(super) fn begin_task(&mut self, task: u64) -> Option<u64> {
        let is_new = task < FIRST_ID && self.tasks.insert(task, ()).is_none();
        is_new.then_some(task)
    }

    /// The id of a task's span; `None` if its begin was not recorded or it has ended before.
    pub(super) fn end_task(&mut self, task: u64) -> Option<u64> {
        self.tasks.remove(&task).map(|()| task)
    }

    /// The id of a phase's span; `None` if it is active already.
    pub(super) fn begin_phase(&mut self, phase: Phase) -> Option<u64> {
        if self.phases.contains_key(&phase) {
            return None;
        }
        let id = self.id();
        self.phases.insert(phase, id);
        Some(id)
    }

    pub(super) fn end_phase(&mut self, phase: Phase) -> Option<u64> {
        self.phases.remove(&phase)
    }

    pub(super) fn begin_region(&mut self, goroutine: u64, region: Region) -> u64 {
        let id = self.id();
        self.regions
            .entry(goroutine)
            .or_default()
            .push((region, id));
        id
    }

    /// The id of the innermost such region; `None` if its begin was not recorded.
    pub(super) fn end_region(&mut self, goroutine: u64, region: &Region) -> Option<u64> {
        let open = self.regions.get_mut(&goroutine)?;
        let index = open.iter().rposition(|(of, _)| of == region)?;
        let (_, id) = open.remove(index);
        if open.is_empty() {
            self.regions.remove(&goroutine);
        }
        Some(id)
    }

    /// The ids of a goroutine's regions that end with it, innermost first.
    pub(super) fn end_regions(&mut self, goroutine: u64) -> Vec<u64> {
        let open = self.regions.remove(&goroutine).unwrap_or_default();
        open.into_iter().rev().map(|(_, id)| id).collect()
    }
}
