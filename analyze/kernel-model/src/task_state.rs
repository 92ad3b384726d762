//! Why a thread left its CPU: `prev_state` of `sched_switch`.

use serde::{Deserialize, Serialize};

use crate::field::{Body, IntField};

/// State of a thread when it left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// It could have run on. It gave way, or was preempted: kernels before 3.16 do not tell which,
    /// later ones mark preemption.
    Runnable,
    /// It could have run on, and was preempted.
    Preempted,
    /// It waits; a signal wakes it.
    Sleeping,
    /// It waits, for a disk mostly; signals do not wake it, or only fatal ones.
    DiskSleep,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by a tracer.
    Traced,
    /// It ends, nobody waits for it.
    Dead,
    /// It ends, its parent has yet to learn that.
    Zombie,
    /// A kernel thread that is put aside.
    Parked,
    /// A kernel thread that waits without being load.
    Idle,
    /// None of these.
    Other,
}

/// Which of Linux's two ways to number states a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateNumbers {
    /// Since 4.14: bits in the order of the letters of `ps`, preemption as a bit above all.
    #[default]
    Report,
    /// Before: the kernel's internal bits.
    Internal,
}

impl StateNumbers {
    /// By the release of the kernel; the newer for one that is not known.
    pub fn of_release(release: Option<&str>) -> StateNumbers {
        match release.and_then(version) {
            Some(version) if version < (4, 14) => StateNumbers::Internal,
            _ => StateNumbers::Report,
        }
    }
}

/// The first two numbers of a release of the kernel.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release
        .split(|byte: char| !byte.is_ascii_digit())
        .map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

impl TaskState {
    /// All, in the order of reports.
    pub const ALL: [TaskState; 11] = [
        TaskState::Runnable,
        TaskState::Preempted,
        TaskState::Sleeping,
        TaskState::DiskSleep,
        TaskState::Stopped,
        TaskState::Traced,
        TaskState::Dead,
        TaskState::Zombie,
        TaskState::Parked,
        TaskState::Idle,
        TaskState::Other,
    ];

    /// From the number in a trace.
    #[inline]
    pub fn new(state: i64, numbers: StateNumbers) -> TaskState {
        match numbers {
            StateNumbers::Report => Self::of_report(state),
            StateNumbers::Internal => Self::of_internal(state),
        }
    }

    /// `task_state_index` since Linux 4.14, as a bit. TASK_REPORT_MAX is the bit of preemption.
    fn of_report(state: i64) -> TaskState {
        match state {
            0 => TaskState::Runnable,
            1 => TaskState::Sleeping,
            2 => TaskState::DiskSleep,
            4 => TaskState::Stopped,
            8 => TaskState::Traced,
            0x10 => TaskState::Dead,
            0x20 => TaskState::Zombie,
            0x40 => TaskState::Parked,
            0x80 => TaskState::Idle,
            // 4.14 itself still had 0x800 or 0x1000 (TASK_STATE_MAX).
            0x100 | 0x800 | 0x1000 => TaskState::Preempted,
            _ => TaskState::Other,
        }
    }

    /// `task->state` before Linux 4.14. The bit of preemption (TASK_STATE_MAX) moved upwards with
    /// each state that came: 0x200 to 0x1000.
    fn of_internal(state: i64) -> TaskState {
        const UNINTERRUPTIBLE: i64 = 2;
        const NO_LOAD: i64 = 0x400;
        match state {
            0 => TaskState::Runnable,
            0x200 | 0x400 | 0x800 | 0x1000 => TaskState::Preempted,
            _ if state & UNINTERRUPTIBLE != 0 && state & NO_LOAD != 0 => TaskState::Idle,
            _ if state & UNINTERRUPTIBLE != 0 => TaskState::DiskSleep,
            _ if state & 1 != 0 => TaskState::Sleeping,
            _ if state & 4 != 0 => TaskState::Stopped,
            _ if state & 8 != 0 => TaskState::Traced,
            _ if state & 0x40 != 0 => TaskState::Dead,
            // The two changed places in 3.14; neither is in `state` of a thread that is switched.
            _ if state & 0x30 != 0 => TaskState::Zombie,
            _ => TaskState::Other,
        }
    }

    /// True if it could have run on.
    pub fn is_runnable(self) -> bool {
        matches!(self, TaskState::Runnable | TaskState::Preempted)
    }

    /// True if the thread ends.
    pub fn is_end(self) -> bool {
        matches!(self, TaskState::Dead | TaskState::Zombie)
    }

    /// Letters as of `ps`; `R+` for one that was preempted.
    pub fn letters(self) -> &'static str {
        match self {
            TaskState::Runnable => "R",
            TaskState::Preempted => "R+",
            TaskState::Sleeping => "S",
            TaskState::DiskSleep => "D",
            TaskState::Stopped => "T",
            TaskState::Traced => "t",
            TaskState::Dead => "X",
            TaskState::Zombie => "Z",
            TaskState::Parked => "P",
            TaskState::Idle => "I",
            TaskState::Other => "?",
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Runnable => "runnable",
            TaskState::Preempted => "preempted",
            TaskState::Sleeping => "sleeping",
            TaskState::DiskSleep => "disk-sleep",
            TaskState::Stopped => "stopped",
            TaskState::Traced => "traced",
            TaskState::Dead => "dead",
            TaskState::Zombie => "zombie",
            TaskState::Parked => "parked",
            TaskState::Idle => "idle",
            TaskState::Other => "other",
        }
    }
}

/// A field with a thread's state.
#[derive(Clone, Debug)]
pub struct StateField {
    pub(crate) field: IntField,
    pub(crate) numbers: StateNumbers,
}

impl StateField {
    /// The state.
    #[inline]
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<TaskState> {
        Some(TaskState::new(self.field.get(body)?, self.numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_both_numberings() {
        let report = |state| TaskState::new(state, StateNumbers::Report).letters();
        let internal = |state| TaskState::new(state, StateNumbers::Internal).letters();
        assert_eq!([0, 1, 2, 0x100].map(report), ["R", "S", "D", "R+"]);
        assert_eq!([0x10, 0x20, 0x40, 0x80, 3].map(report), ["X", "Z", "P", "I", "?"]);
        assert_eq!([0, 1, 2, 0x400, 0x800].map(internal), ["R", "S", "D", "R+", "R+"]);
        // TASK_KILLABLE, TASK_IDLE, TASK_DEAD.
        assert_eq!([0x82, 0x402, 0x40].map(internal), ["D", "I", "X"]);
    }

    #[test]
    fn numbering_follows_the_release() {
        let of = |release| StateNumbers::of_release(Some(release));
        assert_eq!(of("4.4.3-1-ARCH"), StateNumbers::Internal);
        assert_eq!(of("3.10.0-327.el7"), StateNumbers::Internal);
        assert_eq!(of("4.14.1"), StateNumbers::Report);
        assert_eq!(of("6.1.0-56-amd64"), StateNumbers::Report);
        assert_eq!(of("strange"), StateNumbers::Report);
        assert_eq!(StateNumbers::of_release(None), StateNumbers::Report);
    }
}
