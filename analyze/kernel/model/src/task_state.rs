//! States in which threads leave their CPUs: `prev_state` of `sched_switch`.

use serde::{Deserialize, Serialize};

use crate::field::{Body, IntField, TextField};
use crate::state_numbers::{RawStates, StateNumbers};

/// State of a thread when it left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Runnable: the thread yielded or was preempted. Kernels before 3.2, and those without
    /// CONFIG_PREEMPT before 4.4, do not distinguish these cases; others mark preemption.
    Runnable,
    /// Runnable, and preempted.
    Preempted,
    /// Waiting; a signal wakes it.
    Sleeping,
    /// Waiting, mostly for a disk; signals do not wake it, or only fatal ones.
    DiskSleep,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by a tracer.
    Traced,
    /// Ending, with no parent that waits for it.
    Dead,
    /// Ended; its parent has not collected its status yet.
    Zombie,
    /// A parked kernel thread.
    Parked,
    /// A kernel thread that waits without counting as load.
    Idle,
    /// A user-level thread that could run, and waits for an LWP: only in traces of several levels.
    Ready,
    /// Another state.
    Other,
}

impl TaskState {
    /// All states, in the order of reports.
    pub const ALL: [TaskState; 12] = [
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
        TaskState::Ready,
        TaskState::Other,
    ];

    /// Number of [`TaskState::Ready`] in all numberings: a bit that no kernel uses.
    pub const READY: i64 = 0x4000_0000;

    /// State for the number in a trace.
    #[inline]
    pub fn new(state: i64, numbers: StateNumbers) -> TaskState {
        if state == TaskState::READY {
            return TaskState::Ready;
        }
        match numbers {
            StateNumbers::Report => Self::of_report(state),
            StateNumbers::Shifted => Self::of_shifted(state),
            StateNumbers::Index => Self::of_index(state),
            StateNumbers::Raw(raw) => Self::of_raw(state, raw),
        }
    }

    /// A bit for each letter of `ps`, and preemption (TASK_REPORT_MAX) as the highest bit. Numbers
    /// outside of this encoding come from a trace whose other states did not show its encoding.
    fn of_report(state: i64) -> TaskState {
        match state {
            0..=0xff if state.count_ones() < 2 => {
                Self::of_index(i64::from(64 - state.leading_zeros()))
            }
            0x100 | 0x800 | 0x1000 => TaskState::Preempted,
            0x101.. => Self::of_raw(state, RawStates::LATEST),
            _ => TaskState::Other,
        }
    }

    /// Like [`TaskState::of_report`], shifted left by one. 0x100 is both preemption and `I`: see
    /// [`StateField`].
    fn of_shifted(state: i64) -> TaskState {
        match state {
            0 => TaskState::Runnable,
            1..=0xff if state.count_ones() == 1 => {
                Self::of_index(i64::from(state.trailing_zeros()))
            }
            0x100.. => Self::of_report(state),
            _ => TaskState::Other,
        }
    }

    /// Index of the letter of `ps`; preemption as in Linux 4.14 (TASK_STATE_MAX).
    fn of_index(state: i64) -> TaskState {
        match state {
            0 => TaskState::Runnable,
            1 => TaskState::Sleeping,
            2 => TaskState::DiskSleep,
            3 => TaskState::Stopped,
            4 => TaskState::Traced,
            5 => TaskState::Dead,
            6 => TaskState::Zombie,
            7 => TaskState::Parked,
            8 => TaskState::Idle,
            0x100.. => Self::of_report(state),
            _ => TaskState::Other,
        }
    }

    /// `task->state`: bits for how a thread may be woken, besides its state.
    fn of_raw(state: i64, raw: RawStates) -> TaskState {
        const UNINTERRUPTIBLE: i64 = 2;
        let has = |bit: i64| state & bit != 0;
        match state {
            0 => TaskState::Runnable,
            // The bit moves up with each state that is added, and vendors add some states earlier.
            _ if raw.preempted != 0 && state >= raw.preempted && state.count_ones() == 1 => {
                TaskState::Preempted
            }
            _ if has(UNINTERRUPTIBLE) && has(raw.no_load) => TaskState::Idle,
            _ if has(UNINTERRUPTIBLE) => TaskState::DiskSleep,
            _ if has(1) => TaskState::Sleeping,
            _ if has(4) => TaskState::Stopped,
            _ if has(8) => TaskState::Traced,
            _ if has(raw.dead) => TaskState::Dead,
            _ if has(raw.parked) => TaskState::Parked,
            // EXIT_DEAD and EXIT_ZOMBIE: neither is in `state` of a thread that is switched.
            _ if has(0x30) => TaskState::Zombie,
            // A sleeping spinlock (PREEMPT_RT).
            _ if has(raw.lock_wait) => TaskState::DiskSleep,
            _ => TaskState::Other,
        }
    }

    /// True if the thread could have continued.
    pub fn is_runnable(self) -> bool {
        matches!(
            self,
            TaskState::Runnable | TaskState::Preempted | TaskState::Ready
        )
    }

    /// True if the thread ends.
    pub fn is_end(self) -> bool {
        matches!(self, TaskState::Dead | TaskState::Zombie)
    }

    /// Letters as in `ps`; `R+` if preempted.
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
            TaskState::Ready => "r",
            TaskState::Other => "?",
        }
    }

    /// Name in reports.
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
            TaskState::Ready => "ready",
            TaskState::Other => "other",
        }
    }
}

/// A field with a thread's state.
#[derive(Clone, Debug)]
pub struct StateField {
    field: IntField,
    numbers: StateNumbers,
    /// Name of the thread, if its state depends on it.
    name: Option<TextField>,
}

impl StateField {
    pub(crate) fn new(
        field: IntField,
        numbers: StateNumbers,
        name: Option<&TextField>,
    ) -> StateField {
        let name = name.filter(|_| numbers == StateNumbers::Shifted).cloned();
        StateField {
            field,
            numbers,
            name,
        }
    }

    /// The decoded state.
    #[inline]
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<TaskState> {
        let state = self.field.get(body)?;
        if let (Some(name), 0x100) = (&self.name, state) {
            return Some(Self::shifted_top(name, body));
        }
        Some(TaskState::new(state, self.numbers))
    }

    /// Preempted or idle: the same number in [`StateNumbers::Shifted`]. In Linux 4.14 to 4.19, the
    /// threads that wait without counting as load (TASK_IDLE) are workqueue workers and RCU
    /// threads.
    #[cold]
    fn shifted_top(name: &TextField, body: &mut Body<'_, '_>) -> TaskState {
        let name = name.bytes(body).unwrap_or_default();
        let waits = ["kworker/", "rcu_", "rcuo"];
        match waits
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()))
        {
            true => TaskState::Idle,
            false => TaskState::Preempted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters<const N: usize>(numbers: StateNumbers, states: [i64; N]) -> [&'static str; N] {
        states.map(|state| TaskState::new(state, numbers).letters())
    }

    fn raw(release: (u32, u32), state: i64) -> &'static str {
        TaskState::new(state, StateNumbers::Raw(RawStates::of(release))).letters()
    }

    /// No bit, and each of the bits that `sched_switch` reports.
    const BITS: [i64; 10] = [0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x100];

    #[test]
    fn bits_of_letters() {
        assert_eq!(
            letters(StateNumbers::Report, BITS),
            ["R", "S", "D", "T", "t", "X", "Z", "P", "I", "R+"]
        );
        assert_eq!(
            letters(StateNumbers::Report, [3, -1, i64::MIN, i64::MAX]),
            ["?", "?", "?", "I"]
        );
        // A raw trace that was not recognized: only 0x40 and 0x80 are ambiguous.
        let raw = [0x102, 0x402, 0x1000, 0x2001, 0x104, 0x108];
        assert_eq!(
            letters(StateNumbers::Report, raw),
            ["D", "I", "R+", "S", "T", "t"]
        );
    }

    #[test]
    fn bits_of_letters_shifted() {
        assert_eq!(
            letters(StateNumbers::Shifted, BITS),
            ["R", "R", "S", "D", "T", "t", "X", "Z", "P", "R+"]
        );
        assert_eq!(letters(StateNumbers::Shifted, [3, -1]), ["?", "?"]);
    }

    /// A kernel's number of a state never has this bit alone.
    #[test]
    fn ready_is_the_same_in_all_numberings() {
        let raw = StateNumbers::Raw(RawStates::LATEST);
        for numbers in [
            StateNumbers::Report,
            StateNumbers::Shifted,
            StateNumbers::Index,
            raw,
        ] {
            assert_eq!(letters(numbers, [TaskState::READY]), ["r"]);
        }
    }

    #[test]
    fn places_of_letters() {
        let states = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0x1000, 9, -1];
        assert_eq!(
            letters(StateNumbers::Index, states),
            ["R", "S", "D", "T", "t", "X", "Z", "P", "I", "R+", "?", "?"]
        );
    }

    #[test]
    fn the_kernels_own_bits_of_each_era() {
        // TASK_DEAD, TASK_KILLABLE, TASK_STOPPED and TASK_TRACED.
        for release in [(2, 6), (3, 6), (3, 10), (4, 4), (4, 9)] {
            assert_eq!(
                [0, 1, 2, 0x40, 0x82, 0x84, 0x88].map(|state| raw(release, state)),
                ["R", "S", "D", "X", "D", "T", "t"]
            );
        }
        for release in [(4, 14), (4, 15), (5, 3), (5, 15), (6, 1), (6, 12)] {
            assert_eq!(
                [0, 1, 2, 0x80, 0x102, 0x104, 0x108].map(|state| raw(release, state)),
                ["R", "S", "D", "X", "D", "T", "t"]
            );
        }
        // TASK_PARKED.
        for (release, state, expected) in [
            ((3, 6), 0x200, "R+"),
            ((3, 10), 0x200, "P"),
            ((4, 4), 0x200, "P"),
            ((4, 13), 0x200, "P"),
            ((4, 14), 0x40, "P"),
            ((6, 1), 0x40, "P"),
            // TASK_STATE_MAX: preempted.
            ((3, 10), 0x400, "R+"),
            ((4, 1), 0x400, "R+"),
            ((4, 4), 0x800, "R+"),
            ((4, 8), 0x1000, "R+"),
            ((4, 13), 0x1000, "R+"),
            ((4, 15), 0x1000, "R+"),
            ((5, 15), 0x2000, "R+"),
            ((6, 1), 0x10000, "R+"),
            // TASK_IDLE.
            ((4, 4), 0x402, "I"),
            ((4, 15), 0x402, "I"),
            ((6, 1), 0x2402, "I"),
            // TASK_FREEZABLE, TASK_RTLOCK_WAIT, TASK_FROZEN.
            ((6, 1), 0x2001, "S"),
            ((6, 1), 0x1000, "D"),
            ((6, 1), 0x8000, "?"),
        ] {
            assert_eq!(raw(release, state), expected, "{release:?} {state:#x}");
        }
    }
}
