//! Events reduced to the parts that the states of threads at both levels depend on.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_kernel_model::{Syscall, UserWake};
use tracebraid_threads::{LeftAs, ThreadState, WakeEvent, WakeSource, Wakeup};

use crate::levels::cpu_turns::UNKNOWN;

/// CPU and time of an event.
pub(super) type LevelMoment = (CpuKey, i64);

/// An event to play in the order of time over all CPUs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum LevelItem {
    Switch {
        prev: i32,
        next: i32,
        left: LeftAs,
        /// The kernel thread that is switched from, or whose runtime switches; -1 if unknown.
        lwp: i32,
        is_user: bool,
    },
    Wake(LevelWake),
    /// A thread is created.
    Made(i32),
    /// A user-level thread is about to wait, for this reason.
    Waits(i32, Syscall),
    /// A system call of a user-level thread begins, or ends.
    Call(i32, bool),
    /// A thread enters a function, or leaves it.
    Function {
        tid: i32,
        enters: bool,
        key: u64,
    },
    /// A user-level thread enters a system call, or leaves one.
    SystemCall(i32, Option<Syscall>),
    /// A thread records another event of its program.
    Probe(i32),
    /// Another thread ends a user-level thread.
    Ended(i32),
    /// Events were lost on the CPU.
    Lost,
}

/// A wake-up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LevelWake {
    pub(super) woken: i32,
    is_ready: bool,
    target: u16,
    user: Option<UserWake>,
}

impl From<WakeEvent> for LevelWake {
    fn from(wake: WakeEvent) -> LevelWake {
        LevelWake {
            woken: wake.woken,
            is_ready: wake.is_ready,
            target: wake.target.unwrap_or(ThreadState::NO_CPU),
            user: wake.user,
        }
    }
}

/// An event of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum LevelAct {
    Leave {
        left: LeftAs,
        lwp: i32,
        is_user: bool,
        /// The thread that gets the CPU or the LWP.
        next: i32,
    },
    Come {
        lwp: i32,
        is_user: bool,
    },
    Wake(Wakeup<()>, u16),
    Made,
    Waits(Syscall),
    Call(bool),
    /// The thread enters the function, or leaves it.
    Function(u64, bool),
    /// The thread enters the system call, or leaves one.
    SystemCall(Option<Syscall>),
    /// The thread records an event of its program.
    Probe,
    /// Another thread ends the thread.
    Ended,
}

impl LevelItem {
    /// The thread whose turn on the CPU ends.
    pub(super) fn ends_turn(&self) -> Option<i32> {
        match *self {
            LevelItem::Switch { prev, .. } => Some(prev),
            LevelItem::Lost => Some(UNKNOWN),
            _ => None,
        }
    }

    /// The acts of the threads that the event concerns, in order; none for a loss.
    pub(super) fn acts(
        self,
        (cpu, time): LevelMoment,
    ) -> impl Iterator<Item = (ThreadKey, LevelAct)> {
        let key = |tid: i32| ThreadKey {
            trace: cpu.trace,
            tid,
        };
        let two = match self {
            LevelItem::Switch {
                prev,
                next,
                left,
                lwp,
                is_user,
            } => {
                let leave = LevelAct::Leave {
                    left,
                    lwp,
                    is_user,
                    next,
                };
                let come = LevelAct::Come { lwp, is_user };
                [Some((key(prev), leave)), Some((key(next), come))]
            }
            LevelItem::Wake(wake) => {
                // The reasons of waits are not used here: any cause does.
                let source = wake.user.map_or(WakeSource::Timer, WakeSource::User);
                let wakeup = Wakeup {
                    time,
                    source,
                    waking: None,
                    is_ready: wake.is_ready,
                    is_whole: true,
                    cause: (),
                };
                [
                    Some((key(wake.woken), LevelAct::Wake(wakeup, wake.target))),
                    None,
                ]
            }
            LevelItem::Made(tid) => [Some((key(tid), LevelAct::Made)), None],
            LevelItem::Waits(tid, reason) => [Some((key(tid), LevelAct::Waits(reason))), None],
            LevelItem::Call(tid, begins) => {
                let act = LevelAct::Call(begins);
                [Some((key(tid), act)), Some((key(tid), LevelAct::Probe))]
            }
            LevelItem::Probe(tid) => [Some((key(tid), LevelAct::Probe)), None],
            LevelItem::Ended(tid) => [Some((key(tid), LevelAct::Ended)), None],
            LevelItem::Function {
                tid,
                enters,
                key: of,
            } => {
                let act = LevelAct::Function(of, enters);
                [Some((key(tid), act)), Some((key(tid), LevelAct::Probe))]
            }
            LevelItem::SystemCall(tid, call) => {
                [Some((key(tid), LevelAct::SystemCall(call))), None]
            }
            LevelItem::Lost => [None, None],
        };
        // The idle threads of all CPUs have one id.
        two.into_iter().flatten().filter(|(key, _)| key.tid != 0)
    }
}
