//! Event records about threads, reduced to the fields on which thread states depend.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::sched::{Migrate, WakeStep, Wakeup};
use tracebraid_kernel_model::{Body, Switch, Syscall, SyscallExit, TaskState, UserWake};

/// State in which a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftAs {
    /// Runnable.
    Runnable,
    /// Ready: a user-level thread without an LWP.
    Ready,
    /// Waiting.
    Blocked,
    /// Waiting uninterruptibly: signals do not wake it.
    DiskSleep,
    /// Waiting for work, as kernel threads do that do not count as load (`TASK_IDLE`).
    Idle,
    /// Ended.
    Ended,
}

impl LeftAs {
    /// True if the thread waits.
    #[inline]
    pub fn waits(self) -> bool {
        matches!(self, LeftAs::Blocked | LeftAs::DiskSleep | LeftAs::Idle)
    }

    /// State in which the previous thread of a switch leaves.
    #[inline(always)]
    pub fn of(switch: &Switch, body: &mut Body<'_, '_>) -> LeftAs {
        match switch.prev_state(body) {
            Some(TaskState::Ready) => LeftAs::Ready,
            Some(state) if state.is_runnable() => LeftAs::Runnable,
            Some(state) if state.is_end() => LeftAs::Ended,
            Some(TaskState::DiskSleep) => LeftAs::DiskSleep,
            Some(TaskState::Idle) => LeftAs::Idle,
            _ => LeftAs::Blocked,
        }
    }
}

/// A wake-up as recorded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WakeEvent {
    /// The woken thread.
    pub woken: i32,
    /// The thread can run from now on; its waker may have been recorded earlier.
    pub is_ready: bool,
    /// CPU on which the thread last ran or will run.
    pub target: Option<u16>,
    /// The thread waits in a call for the commands of a device.
    pub for_device: bool,
    /// Cause of the end of a user-level thread's wait; `None` for a wake-up by the kernel.
    pub user: Option<UserWake>,
}

impl WakeEvent {
    /// Decodes a wake-up; `None` if the thread was awake.
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
            for_device: false,
            user: wakeup.user_wake(body),
        })
    }
}

/// Migration of a thread to another CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MigrateEvent {
    /// Thread that migrates.
    pub tid: i32,
    /// Number of the old CPU.
    pub from: u32,
    /// Number of the new CPU.
    pub to: u32,
}

impl MigrateEvent {
    /// Decodes a migration; `None` if a field is missing.
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

/// System call and result of an exit; the call is `None` if the event record does not name it.
#[inline(always)]
pub fn exit_of(exit: &SyscallExit, body: &mut Body<'_, '_>) -> (Option<Syscall>, i64) {
    // `rt_sigreturn` restores the register with the call number: an exit without a number ends the
    // open call.
    let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
    (call, exit.result.get(body).unwrap_or(0))
}
