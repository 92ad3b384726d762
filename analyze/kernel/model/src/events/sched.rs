//! Scheduling.

use tracebraid_ctf::schema::Scope;

use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;
use crate::state_numbers::StateNumbers;
use crate::task_state::{StateField, TaskState};

/// A CPU goes from one thread to another.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Thread before.
    pub prev_tid: IntField,
    /// Thread after.
    pub next_tid: IntField,
    /// Its name.
    pub prev_name: Option<TextField>,
    /// Its name.
    pub next_name: Option<TextField>,
    /// Out of the way of those who only ask who runs.
    detail: Box<SwitchDetail>,
}

#[derive(Clone, Debug)]
struct SwitchDetail {
    prev_priority: Option<PriorityField>,
    next_priority: Option<PriorityField>,
    prev_state: Option<StateField>,
}

impl Switch {
    pub(crate) fn find(finder: &Finder<'_>, numbers: StateNumbers) -> Option<Switch> {
        let prev_name = finder.text(&["prev_comm"]);
        let state = |field| StateField::new(field, numbers, prev_name.as_ref());
        let prev_state = finder.int(&["prev_state"]).map(state);
        Some(Switch {
            prev_tid: finder.int(&["prev_tid", "prev_pid"])?,
            next_tid: finder.int(&["next_tid", "next_pid"])?,
            prev_name,
            next_name: finder.text(&["next_comm"]),
            detail: Box::new(SwitchDetail {
                prev_priority: PriorityField::find(finder, "prev_prio"),
                next_priority: PriorityField::find(finder, "next_prio"),
                prev_state,
            }),
        })
    }

    /// Why the thread before leaves the CPU.
    #[inline]
    pub fn prev_state(&self, body: &mut Body<'_, '_>) -> Option<TaskState> {
        self.detail.prev_state.as_ref()?.get(body)
    }

    /// Priority of the thread before.
    #[inline]
    pub fn prev_priority(&self, body: &mut Body<'_, '_>) -> Option<Priority> {
        self.detail.prev_priority.as_ref()?.get(body)
    }

    /// Priority of the thread after.
    #[inline]
    pub fn next_priority(&self, body: &mut Body<'_, '_>) -> Option<Priority> {
        self.detail.next_priority.as_ref()?.get(body)
    }
}

/// A priority in the kernel's scale: -1 deadline, 0 (highest) to 99 real time, 100 to 139 the rest
/// (120 plus the nice value).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

/// How many priorities of real time there are, and others.
const REAL_TIME: i32 = 100;
const OTHERS: i32 = 40;

impl Priority {
    /// From the number in a trace. Some events of early lttng-modules count as the kernel does: no
    /// other way to count has numbers that large.
    fn new(priority: i32, is_lttng: bool) -> Priority {
        Priority(match is_lttng && priority < OTHERS {
            true => priority.saturating_add(REAL_TIME),
            false => priority,
        })
    }

    /// As lttng-modules and lttng-analyses give it: 100 less, 20 for a nice value of 0.
    pub fn in_lttng(self) -> i32 {
        self.0.saturating_sub(REAL_TIME)
    }

    /// True for real time and deadlines.
    pub fn is_real_time(self) -> bool {
        self.0 < REAL_TIME
    }
}

/// A field with a priority.
#[derive(Clone, Debug)]
pub struct PriorityField {
    field: IntField,
    /// True if it counts from the first that is not of real time.
    is_lttng: bool,
}

impl PriorityField {
    fn find(finder: &Finder<'_>, name: &str) -> Option<PriorityField> {
        // Who calls threads so also counts priorities so.
        let is_lttng = ["tid", "prev_tid"]
            .iter()
            .any(|name| finder.has(Scope::Payload, name));
        let field = finder.int(&[name])?;
        Some(PriorityField { field, is_lttng })
    }

    /// The priority.
    #[inline]
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<Priority> {
        Some(Priority::new(self.field.get(body)? as i32, self.is_lttng))
    }
}

/// What is known of a thread that wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeStep {
    /// The waker, whoever runs where the event is, begins to wake it.
    Waking,
    /// It can run, on the CPU that is to run it.
    Wakeup,
    /// It can run for the first time.
    WakeupNew,
}

/// A thread wakes.
#[derive(Clone, Debug)]
pub struct Wakeup {
    /// How far.
    pub step: WakeStep,
    /// Thread.
    pub tid: IntField,
    /// Its name.
    pub name: Option<TextField>,
    /// Its priority.
    pub priority: Option<PriorityField>,
    /// CPU that is to run it.
    pub cpu: Option<IntField>,
    /// 0 if it was awake already. Not with newer kernels.
    pub success: Option<IntField>,
}

impl Wakeup {
    /// `in_kernel_scale`: if priorities count as in the kernel, whatever the tracer does otherwise.
    pub(crate) fn find(
        finder: &Finder<'_>,
        step: WakeStep,
        in_kernel_scale: bool,
    ) -> Option<Box<Wakeup>> {
        let priority = PriorityField::find(finder, "prio").map(|priority| PriorityField {
            is_lttng: priority.is_lttng && !in_kernel_scale,
            ..priority
        });
        Some(Box::new(Wakeup {
            step,
            tid: finder.int(TID)?,
            name: finder.text(&["comm"]),
            priority,
            cpu: finder.int(&["target_cpu", "cpu"]),
            success: finder.int(&["success"]),
        }))
    }
}

/// LTTng's name and that of perf and ftrace.
const TID: &[&str] = &["tid", "pid"];

/// A thread goes to another CPU.
#[derive(Clone, Debug)]
pub struct Migrate {
    /// Thread.
    pub tid: IntField,
    /// Its priority.
    pub priority: Option<PriorityField>,
    /// CPU before.
    pub from: IntField,
    /// CPU after.
    pub to: IntField,
}

impl Migrate {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Migrate> {
        Some(Migrate {
            tid: finder.int(TID)?,
            priority: PriorityField::find(finder, "prio"),
            from: finder.int(&["orig_cpu"])?,
            to: finder.int(&["dest_cpu"])?,
        })
    }
}

/// A thread takes another priority, by inheritance from one who waits for it.
#[derive(Clone, Debug)]
pub struct Inherit {
    /// Thread.
    pub tid: IntField,
    /// Priority before.
    pub old: PriorityField,
    /// Priority after.
    pub new: PriorityField,
}

impl Inherit {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Inherit> {
        Some(Inherit {
            tid: finder.int(TID)?,
            old: PriorityField::find(finder, "oldprio")?,
            new: PriorityField::find(finder, "newprio")?,
        })
    }
}

/// What the scheduler adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatKind {
    /// Time that it could have run and did not.
    Wait,
    /// Time that it slept.
    Sleep,
    /// Time that it waited for I/O.
    IoWait,
    /// Time that it was blocked.
    Blocked,
    /// Time that it ran.
    Runtime,
}

/// The scheduler adds to a thread's times.
#[derive(Clone, Debug)]
pub struct SchedStat {
    /// To which.
    pub kind: StatKind,
    /// Thread.
    pub tid: IntField,
    /// How much, in nanoseconds.
    pub time: IntField,
}

impl SchedStat {
    pub(crate) fn find(finder: &Finder<'_>, kind: StatKind) -> Option<SchedStat> {
        Some(SchedStat {
            kind,
            tid: finder.int(TID)?,
            time: finder.int(&["delay", "runtime"])?,
        })
    }
}

/// Something of a thread's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndStep {
    /// What was left of it is freed: its number can be used again.
    Free,
    /// A process waits for a child, or any (tid 0).
    Wait,
    /// Somebody waits until the thread is off its CPU.
    WaitTask,
}

/// A thread's remains.
#[derive(Clone, Debug)]
pub struct ThreadEnd {
    /// What of it.
    pub step: EndStep,
    /// Thread.
    pub tid: IntField,
}

impl ThreadEnd {
    pub(crate) fn find(finder: &Finder<'_>, step: EndStep) -> Option<ThreadEnd> {
        let tid = finder.int(TID)?;
        Some(ThreadEnd { step, tid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_in_the_scale_of_the_kernel() {
        let lttng = |priority| Priority::new(priority, true).0;
        let kernel = |priority| Priority::new(priority, false).0;
        // Nice 0, nice -20, real time 99, real time 1.
        assert_eq!([20, 0, -100, -2].map(lttng), [120, 100, 0, 98]);
        assert_eq!([120, 100, 0, 98].map(kernel), [120, 100, 0, 98]);
        // lttng-modules 2.1 in `sched_wakeup`.
        assert_eq!([120, 100, 98].map(lttng), [120, 100, 98]);
        assert!(Priority(98).is_real_time() && !Priority(100).is_real_time());
        assert_eq!(Priority(120).in_lttng(), 20);
    }
}
