//! The truth about a generated recording: owners of records, states of threads.

use std::collections::BTreeMap;

/// Owner of an event record. `ult`: 0 for none, also in interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub cpu: u32,
    /// The kernel thread; in an interrupt the interrupted one.
    pub lwp: i32,
    pub ult: u64,
    /// The user-level thread that is current on the LWP, also in an interrupt.
    pub current: u64,
    /// Process of the LWP.
    pub pid: i32,
}

/// An event record by its serial number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTruth {
    pub name: String,
    pub owner: Owner,
    /// Nanoseconds of the recording's clock, without the error of the user clock.
    pub time: u64,
    pub is_kernel: bool,
}

/// State of a user-level thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserLevelState {
    /// Runs: the LWP has a CPU.
    Active { cpu: u32, lwp: i32 },
    /// The kernel took the CPU from its LWP, for another kernel thread and its user-level thread.
    LwpPreempted { lwp: i32, by: i32, by_ult: u64 },
    /// Has an LWP, which waits in the kernel.
    LwpBlocked { lwp: i32 },
    /// Has an LWP, which was woken and waits for a CPU.
    LwpReady { lwp: i32 },
    /// Ready, without an LWP.
    Ready,
    /// Blocked by the runtime, for the reason that the program recorded.
    Blocked { reason: String },
}

/// A stretch of time in one state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserLevelStretch {
    pub from: u64,
    pub to: u64,
    pub state: UserLevelState,
}

/// Use that an LWP makes of its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// Runs a user-level thread.
    Thread(u64),
    /// Runs its scheduler.
    Scheduler,
}

/// A call of a function or a system call by a user-level thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTruth {
    pub life: UserLevelLife,
    pub name: String,
    pub is_system: bool,
    /// Index of the function call around it.
    pub within: Option<usize>,
    pub from: u64,
    /// `None` if it has not ended.
    pub to: Option<u64>,
}

/// Life of a user-level thread: process, id, and number of its life among those with this id.
pub type UserLevelLife = (i32, u64, u32);

/// Owners of all records, and states of all user-level threads.
#[derive(Clone, Debug, Default)]
pub struct LevelTruth {
    /// By serial number: the records that are in the traces.
    pub records: BTreeMap<u64, RecordTruth>,
    /// Serial numbers of the records that were lost.
    pub lost: Vec<u64>,
    /// Stretches in order of time, without gaps from the creation to the end.
    pub lives: BTreeMap<UserLevelLife, Vec<UserLevelStretch>>,
    /// By LWP: what it did on a CPU, in order of time.
    pub duties: BTreeMap<i32, Vec<(u64, u64, Duty)>>,
    /// Calls that began while recording, in order of their begin.
    pub calls: Vec<CallTruth>,
    /// Time of the end of the recording.
    pub end: u64,
}

impl LevelTruth {
    /// Nanoseconds of a life in the states that `counts` selects.
    pub fn sum(&self, life: UserLevelLife, counts: impl Fn(&UserLevelState) -> bool) -> u64 {
        let stretches = self.lives.get(&life).into_iter().flatten();
        let counted = stretches.filter(|stretch| counts(&stretch.state));
        counted.map(|stretch| stretch.to - stretch.from).sum()
    }
}
