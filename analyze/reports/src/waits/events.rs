//! What events are, as CPUs are followed.

use tracebraid_kernel_model::events::block::{BioStep, BlockStep, RequestStep};
use tracebraid_kernel_model::events::sched::{Migrate, WakeStep, Wakeup};
use tracebraid_kernel_model::{Body, KernelEvent, Switch, Syscall, SyscallEntry, SyscallExit, TaskState};

use crate::kernel::InterruptStep;
use crate::waits::WaitRules;
use crate::waits::context::Change;
use crate::waits::futex::Operation;
use crate::waits::kind::Kind;
use crate::waits::step::{Details, Item, Left, What};

pub(super) fn is_made(step: BlockStep) -> bool {
    use BlockStep::{Bio, Request};
    matches!(
        step,
        Request(RequestStep::Insert | RequestStep::Issue) | Bio(BioStep::Queue)
    )
}

pub(super) fn is_done(step: BlockStep) -> bool {
    matches!(step, BlockStep::Request(RequestStep::Complete))
}

impl WaitRules {
    #[inline(always)]
    pub(super) fn enters(&self, entry: &SyscallEntry, body: &mut Body<'_, '_>) -> What {
        let call = entry.call(body);
        let mut details = Details::default();
        match self.kinds.of(call) {
            Kind::Futex => {
                details.argument = entry.wide_argument(call, 0, body).unwrap_or(0);
                let operation = entry.argument(call, 1, body).unwrap_or(0) as i32;
                details.operation = Operation::of(call, operation);
            }
            // The family of the socket.
            Kind::Socket => details.argument = entry.argument(call, 0, body).unwrap_or(0),
            kind => {
                if let Some(place) = kind.descriptor() {
                    details.argument = entry.argument(call, place, body).unwrap_or(-1);
                }
            }
        }
        What::Enter(call, details)
    }
}

#[inline(always)]
pub(super) fn exits(exit: &SyscallExit, body: &mut Body<'_, '_>) -> What {
    // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
    let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
    What::Exit(call, exit.result.get(body).unwrap_or(0))
}

/// How the thread leaves that was switched from.
#[inline(always)]
pub(super) fn left(switch: &Switch, body: &mut Body<'_, '_>) -> Left {
    match switch.prev_state(body) {
        Some(TaskState::Runnable | TaskState::Preempted) => Left::Runnable,
        Some(TaskState::DiskSleep) => Left::DiskSleep,
        _ => Left::Blocked,
    }
}

#[inline(always)]
pub(super) fn wakes(wakeup: &Wakeup, body: &mut Body<'_, '_>) -> Option<What> {
    let was_awake = wakeup.success.as_ref().and_then(|success| success.get(body)) == Some(0);
    let woken = wakeup.tid.get(body).filter(|_| !was_awake)? as i32;
    let is_ready = wakeup.step != WakeStep::Waking;
    let target = wakeup.cpu.as_ref().and_then(|cpu| cpu.get(body));
    let target = target.and_then(|cpu| u16::try_from(cpu).ok());
    Some(What::Wake {
        woken,
        is_ready,
        target,
    })
}

/// A thread goes to another CPU.
#[cold]
pub(super) fn moves(migrate: &Migrate, body: &mut Body<'_, '_>) -> Option<Item> {
    let cpu = |cpu: i64| u32::try_from(cpu).ok();
    Some(Item::Moves {
        tid: migrate.tid.get(body)? as i32,
        from: cpu(migrate.from.get(body)?)?,
        to: cpu(migrate.to.get(body)?)?,
    })
}

/// What interrupts threads, and block requests.
#[inline]
pub(super) fn interrupts(event: &KernelEvent, body: &mut Body<'_, '_>) -> Option<What> {
    match event {
        KernelEvent::Block(block) if is_done(block.step) => Some(What::Context(Change::Completes)),
        KernelEvent::Block(_) => Some(What::Request),
        other => {
            let step = InterruptStep::of(other, body)?;
            Some(What::Context(Change::Interrupt(step)))
        }
    }
}
