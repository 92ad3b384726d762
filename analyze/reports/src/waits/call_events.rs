//! Handles event records of system calls and block requests while following a CPU.

use tracebraid_kernel_model::events::block::{BioStep, BlockStep, RequestStep};
use tracebraid_kernel_model::events::uring::UringStep;
use tracebraid_kernel_model::{Body, KernelEvent, SyscallEntry};
use tracebraid_threads::{BegunCall, CallClass, ContextStep};

use crate::waits::futex::Operation;
use crate::waits::wait_step::Act;
use crate::waits::{WaitPartial, WaitRules};
use tracebraid_follow::InterruptStep;

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

/// True if the event completes requests of an io_uring.
pub(super) fn completes_ring(step: UringStep) -> bool {
    step == UringStep::Complete
}

impl WaitRules {
    #[inline(always)]
    pub(super) fn enters(
        &self,
        entry: &SyscallEntry,
        time: i64,
        body: &mut Body<'_, '_>,
    ) -> BegunCall {
        let call = entry.call(body);
        let class = self.classes.of(call);
        let (mut argument, mut operation) = (0, Operation::default());
        match class {
            CallClass::Futex => {
                argument = entry.wide_argument(call, 0, body).unwrap_or(0);
                let command = entry.argument(call, 1, body).unwrap_or(0) as i32;
                operation = Operation::of(call, command);
            }
            // The argument is the address family of the socket.
            CallClass::Socket => argument = entry.argument(call, 0, body).unwrap_or(0),
            CallClass::Sync => {}
            class => {
                if let Some(place) = class.descriptor() {
                    argument = entry.argument(call, place, body).unwrap_or(-1);
                }
            }
        }
        BegunCall {
            call,
            class,
            operation: operation.number(),
            time,
            argument,
        }
    }

    /// The act of an event of interrupts, block requests or io_uring.
    #[inline]
    pub(super) fn interrupts(
        partial: &mut WaitPartial,
        event: &KernelEvent,
        body: &mut Body<'_, '_>,
    ) -> Option<Act> {
        match event {
            KernelEvent::Block(block) if is_done(block.step) => {
                Some(Act::Context(ContextStep::Complete))
            }
            KernelEvent::Block(_) => Some(Act::Request),
            KernelEvent::Uring(_) => Some(Act::Linger),
            other => {
                let step = InterruptStep::of(other, body)?;
                let device = partial.handlers.of_step(other, step, body);
                Some(Act::Context(ContextStep::Interrupt(step, device)))
            }
        }
    }
}
