//! Whether a thread's wait for a CPU can be trusted if some CPUs were not recorded: the thread may
//! have run on such a CPU.

use serde::{Deserialize, Serialize};

use crate::sources::CpuKey;

/// Information in a wake-up about a thread that may have been on CPUs that were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeTells {
    /// The thread has slept since it was last seen.
    pub slept: bool,
    /// The CPU that the thread waits for is known.
    pub is_placed: bool,
    /// The thread goes to a CPU that was not recorded.
    pub is_gone: bool,
    /// The thread can run from now on.
    pub(crate) is_ready: bool,
    /// All CPUs are recorded: nothing is uncertain.
    pub(crate) is_whole: bool,
    /// The CPU that recorded the wake-up, and the CPU that the wake-up names.
    pub(crate) cpus: (u32, Option<u32>),
}

impl WakeTells {
    /// Wake-up in a trace with all CPUs.
    pub const ALL: WakeTells = WakeTells {
        slept: true,
        is_placed: true,
        is_gone: false,
        is_ready: true,
        is_whole: true,
        cpus: (0, None),
    };

    /// A thread is created on `cpu`; its first wake-up follows there.
    pub fn made(cpu: CpuKey) -> WakeTells {
        WakeTells {
            slept: true,
            is_placed: false,
            is_gone: false,
            is_ready: false,
            is_whole: false,
            cpus: (cpu.cpu, None),
        }
    }

    /// True if all CPUs are recorded.
    pub fn is_whole(self) -> bool {
        self.is_whole
    }
}

/// Whether a thread's wait for a CPU was recorded without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// The thread was woken again, or from an unrecorded CPU, so it has run on such a CPU.
    is_lost: bool,
    /// The CPU that the thread waits for is not known yet.
    is_unplaced: bool,
    /// A wake-up showed that the thread can run.
    is_ready: bool,
    /// The CPU that recorded the wake-up, and the CPU where the thread had last run.
    waking: Option<(u32, Option<u32>)>,
    /// The CPU that the thread waits for, if known.
    place: Option<u32>,
}

impl Sight {
    /// Applies a wake-up; `waited`: the thread waited for a CPU before.
    pub fn wakes(&mut self, tells: WakeTells, waited: bool) {
        if tells.is_whole {
            return;
        }
        self.is_lost |= match (tells.is_ready, waited) {
            // The thread may still be running where it last ran.
            (false, waited) => waited || !tells.slept,
            (true, true) => {
                // The same wake-up is recorded by the waker, or by the CPU where the thread last
                // ran.
                let is_same = |(cpu, target)| cpu == tells.cpus.0 || target == tells.cpus.1;
                self.is_ready || self.waking.map_or(!tells.slept, |waking| !is_same(waking))
            }
            (true, false) => !tells.slept,
        };
        if tells.is_ready {
            self.place = tells.cpus.1;
        } else {
            self.waking = Some(tells.cpus);
        }
        self.is_ready |= tells.is_ready;
        self.is_unplaced = !tells.is_placed;
    }

    /// The thread was preempted on `cpu`, and waits for it.
    pub fn preempted_on(cpu: u32) -> Sight {
        Sight {
            place: Some(cpu),
            ..Sight::default()
        }
    }

    /// Applies a migration. `is_gone`: the new CPU was not recorded. A thread that waited for a CPU
    /// other than the one it comes from has run on an unrecorded CPU.
    pub fn moves(&mut self, from: u32, to: u32, is_gone: bool) {
        self.is_lost |= is_gone || self.place.is_some_and(|place| place != from);
        if self.place.is_some() {
            self.place = Some(to);
        }
    }

    /// True if a thread that is switched to on `cpu` may have run on an unrecorded CPU.
    pub fn comes_lost(self, cpu: u32) -> bool {
        self.is_lost() || self.place.is_some_and(|place| place != cpu)
    }

    /// True if the thread may have run on an unrecorded CPU.
    pub fn is_lost(self) -> bool {
        self.is_lost || self.is_unplaced
    }
}
