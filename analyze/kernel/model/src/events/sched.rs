//! Scheduling.

use tracebraid_ctf::schema::Scope;

use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;
use crate::state_numbers::StateNumbers;
use crate::task_state::{StateField, TaskState};

/// A CPU switches from one thread to another.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Id of the previous thread.
    pub prev_tid: IntField,
    /// Id of the next thread.
    pub next_tid: IntField,
    /// Name of the previous thread.
    pub prev_name: Option<TextField>,
    /// Name of the next thread.
    pub next_name: Option<TextField>,
    /// Boxed, since most lookups need only the threads.
    detail: Box<SwitchDetail>,
}

#[derive(Clone, Debug)]
struct SwitchDetail {
    prev_priority: Option<PriorityField>,
    next_priority: Option<PriorityField>,
    prev_state: Option<StateField>,
    level: Option<IntField>,
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
                level: finder.int(&["level"]),
            }),
        })
    }

    /// State in which the previous thread leaves the CPU.
    #[inline]
    pub fn prev_state(&self, body: &mut Body<'_, '_>) -> Option<TaskState> {
        self.detail.prev_state.as_ref()?.get(body)
    }

    /// True if a runtime switches between its user-level threads.
    #[inline]
    pub fn is_user_level(&self, body: &mut Body<'_, '_>) -> bool {
        let level = self.detail.level.as_ref();
        level
            .and_then(|level| level.get(body))
            .is_some_and(|level| level > 0)
    }

    /// Priority of the previous thread.
    #[inline]
    pub fn prev_priority(&self, body: &mut Body<'_, '_>) -> Option<Priority> {
        self.detail.prev_priority.as_ref()?.get(body)
    }

    /// Priority of the next thread.
    #[inline]
    pub fn next_priority(&self, body: &mut Body<'_, '_>) -> Option<Priority> {
        self.detail.next_priority.as_ref()?.get(body)
    }
}

/// A priority on the kernel's scale: -1 deadline, 0 (highest) to 99 real time, 100 to 139 the rest
/// (120 plus the nice value).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

/// Numbers of real-time priorities and of other priorities.
const REAL_TIME: i32 = 100;
const OTHERS: i32 = 40;

impl Priority {
    /// Converts the number in a trace. Some events of early lttng-modules use the kernel's scale:
    /// on LTTng's own scale, no number is that large.
    fn new(priority: i32, is_lttng: bool) -> Priority {
        Priority(match is_lttng && priority < OTHERS {
            true => priority.saturating_add(REAL_TIME),
            false => priority,
        })
    }

    /// The priority on the scale of lttng-modules and lttng-analyses: 100 less, 20 for a nice value
    /// of 0.
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
    /// True if the number counts from the first priority below real time.
    is_lttng: bool,
}

impl PriorityField {
    fn find(finder: &Finder<'_>, name: &str) -> Option<PriorityField> {
        // A tracer that names threads `tid` also uses this scale for priorities.
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

/// Step of waking a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeStep {
    /// The running thread begins to wake the other thread.
    Waking,
    /// The thread can run, on its target CPU.
    Wakeup,
    /// The thread can run for the first time.
    WakeupNew,
}

/// Cause of the end of a wait of a user-level thread, as its runtime reports it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum UserWake {
    /// Another thread: a lock, a channel, the end of a thread.
    Thread,
    /// A time that was reached.
    Timer,
    /// The network.
    Network,
    /// Another device.
    Device,
}

impl UserWake {
    /// The number in the field `level` of a wake-up.
    pub fn level(self) -> u8 {
        self as u8 + 1
    }

    /// The cause for a number in the field `level`; `None` for 0, the kernel's wake-ups. Unknown
    /// numbers are those of threads.
    pub fn of_level(level: i64) -> Option<UserWake> {
        match level {
            0 => None,
            2 => Some(UserWake::Timer),
            3 => Some(UserWake::Network),
            4 => Some(UserWake::Device),
            _ => Some(UserWake::Thread),
        }
    }
}

/// A thread is woken.
#[derive(Clone, Debug)]
pub struct Wakeup {
    /// Step of the wake-up.
    pub step: WakeStep,
    /// Id of the woken thread.
    pub tid: IntField,
    /// Name of the woken thread.
    pub name: Option<TextField>,
    /// Priority of the woken thread.
    pub priority: Option<PriorityField>,
    /// Target CPU.
    pub cpu: Option<IntField>,
    /// 0 if the thread was already awake. Absent on newer kernels.
    pub success: Option<IntField>,
    /// In traces of several levels: 0 in the kernel's records, otherwise the cause of the end of a
    /// user-level thread's wait.
    level: Option<IntField>,
}

impl Wakeup {
    /// `in_kernel_scale`: priorities are on the kernel's scale, whatever scale the tracer uses
    /// otherwise.
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
            level: finder.int(&["level"]),
        }))
    }

    /// Cause of the end of a user-level thread's wait; `None` for a wake-up by the kernel.
    #[inline]
    pub fn user_wake(&self, body: &mut Body<'_, '_>) -> Option<UserWake> {
        UserWake::of_level(self.level.as_ref()?.get(body)?)
    }
}

/// Names in LTTng, and in perf and ftrace.
const TID: &[&str] = &["tid", "pid"];

/// A thread migrates to another CPU.
#[derive(Clone, Debug)]
pub struct Migrate {
    /// Id of the thread.
    pub tid: IntField,
    /// Priority of the thread.
    pub priority: Option<PriorityField>,
    /// Old CPU.
    pub from: IntField,
    /// New CPU.
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

/// A thread inherits the priority of a thread that waits for it.
#[derive(Clone, Debug)]
pub struct Inherit {
    /// Id of the thread.
    pub tid: IntField,
    /// Old priority.
    pub old: PriorityField,
    /// New priority.
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

/// Kind of time that the scheduler accounts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatKind {
    /// Time in which the thread was runnable but did not run.
    Wait,
    /// Time in which the thread slept.
    Sleep,
    /// Time in which the thread waited for I/O.
    IoWait,
    /// Time in which the thread was blocked.
    Blocked,
    /// Time in which the thread ran.
    Runtime,
}

/// The scheduler updates a thread's times.
#[derive(Clone, Debug)]
pub struct SchedStat {
    /// Kind of time.
    pub kind: StatKind,
    /// Id of the thread.
    pub tid: IntField,
    /// Additional time in nanoseconds.
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

/// Step in the end of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndStep {
    /// The thread's structure is freed: its id can be used again.
    Free,
    /// A process waits for a child, or for any child (id 0).
    Wait,
    /// A thread waits until this thread is off its CPU.
    WaitTask,
}

/// A late step in the end of a thread.
#[derive(Clone, Debug)]
pub struct ThreadEnd {
    /// Step of the end.
    pub step: EndStep,
    /// Id of the thread.
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
