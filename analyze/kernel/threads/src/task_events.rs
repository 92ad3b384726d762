//! Event records about threads, as states of threads depend on them.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::sched::{Migrate, WakeStep, Wakeup};
use tracebraid_kernel_model::{Body, Switch, Syscall, SyscallExit, TaskState};

/// How a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftAs {
    /// It could run on.
    Runnable,
    /// It waits.
    Blocked,
    /// It waits where signals do not wake it.
    DiskSleep,
    /// It waits for work, as threads of the kernel do that are no load (`TASK_IDLE`).
    Idle,
    /// It ends.
    Ended,
}

impl LeftAs {
    /// True if it waits.
    #[inline]
    pub fn waits(self) -> bool {
        matches!(self, LeftAs::Blocked | LeftAs::DiskSleep | LeftAs::Idle)
    }

    /// How the thread leaves that is switched from.
    #[inline(always)]
    pub fn of(switch: &Switch, body: &mut Body<'_, '_>) -> LeftAs {
        match switch.prev_state(body) {
            Some(state) if state.is_runnable() => LeftAs::Runnable,
            Some(state) if state.is_end() => LeftAs::Ended,
            Some(TaskState::DiskSleep) => LeftAs::DiskSleep,
            Some(TaskState::Idle) => LeftAs::Idle,
            _ => LeftAs::Blocked,
        }
    }
}

/// A wake-up, as its event record describes it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WakeEvent {
    /// The thread.
    pub woken: i32,
    /// It can run from now on; its waker may have been recorded before.
    pub is_ready: bool,
    /// The CPU where it ran last, or is to run.
    pub target: Option<u16>,
}

impl WakeEvent {
    /// `None` if the thread was awake.
    #[inline(always)]
    pub fn of(wakeup: &Wakeup, body: &mut Body<'_, '_>) -> Option<WakeEvent> {
        let was_awake = wakeup
            .success
            .as_ref()
            .and_then(|success| success.get(body))
            == Some(0);
        let woken = wakeup.tid.get(body).filter(|_| !was_awake)? as i32;
        let target = wakeup.cpu.as_ref().and_then(|cpu| cpu.get(body));
        Some(WakeEvent {
            woken,
            is_ready: wakeup.step != WakeStep::Waking,
            target: target.and_then(|cpu| u16::try_from(cpu).ok()),
        })
    }
}

/// A thread goes to another CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MigrateEvent {
    /// The thread.
    pub tid: i32,
    /// The CPU that it comes from.
    pub from: u32,
    /// The one that it goes to.
    pub to: u32,
}

impl MigrateEvent {
    /// `None` if a field is missing.
    #[cold]
    pub fn of(migrate: &Migrate, body: &mut Body<'_, '_>) -> Option<MigrateEvent> {
        let cpu = |cpu: i64| u32::try_from(cpu).ok();
        Some(MigrateEvent {
            tid: migrate.tid.get(body)? as i32,
            from: cpu(migrate.from.get(body)?)?,
            to: cpu(migrate.to.get(body)?)?,
        })
    }
}

/// Call and result of an exit; of a call that the event record does not name, `None`.
#[inline(always)]
pub fn exit_of(exit: &SyscallExit, body: &mut Body<'_, '_>) -> (Option<Syscall>, i64) {
    // `rt_sigreturn` restores the register of its number: an exit without one ends whatever call is
    // open.
    let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
    (call, exit.result.get(body).unwrap_or(0))
}
