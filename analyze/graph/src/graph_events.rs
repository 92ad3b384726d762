//! Translates kernel events into steps of CPUs.

use tracebraid_follow::InterruptStep;
use tracebraid_kernel_model::events::block::{BioStep, Block, BlockStep, RequestStep};
use tracebraid_kernel_model::events::network::PacketStep;
use tracebraid_kernel_model::events::uring::{Uring, UringStep};
use tracebraid_kernel_model::events::user_level::UserLevelStep;
use tracebraid_kernel_model::events::work::WorkStep;
use tracebraid_kernel_model::{Body, KernelEvent, SyscallEntry};
use tracebraid_threads::{BegunCall, CallClass, CallClasses, Handlers};

use crate::graph_step::{Act, Issued, RequestKey, RingEvent, RingStep};

/// True for event classes that the graph uses.
pub(crate) fn wants(event: &KernelEvent) -> bool {
    use KernelEvent::*;
    match event {
        Entry(_) | Exit(_) | UserWait(_) | UserWaitEnd(_) => true,
        ThreadExit(_) | Wakeup(_) | Migrate(_) => true,
        Block(block) => is_of_request(block.step),
        Packet(packet) => packet.headers.is_some() && is_of_segment(packet.step),
        Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_) => true,
        StateDevice(_) | StateInterrupt(_) => true,
        UserLevel(step) => step.step == UserLevelStep::Thread,
        Work(work) => matches!(work.step, WorkStep::Queue | WorkStep::Start),
        Uring(uring) => ring_step(uring.step).is_some(),
        interrupt => InterruptStep::is_told_by(interrupt),
    }
}

fn is_of_request(step: BlockStep) -> bool {
    use RequestStep::{Complete, Insert, Issue};
    matches!(
        step,
        BlockStep::Request(Insert | Issue | Complete) | BlockStep::Bio(BioStep::Queue)
    )
}

/// A packet counts as sent when it is queued, since drivers take it later, and as received when it
/// goes up the network stack.
fn is_of_segment(step: PacketStep) -> bool {
    matches!(step, PacketStep::Queue | PacketStep::Receive)
}

#[inline(always)]
pub(crate) fn enters(
    classes: &CallClasses,
    entry: &SyscallEntry,
    time: i64,
    body: &mut Body<'_, '_>,
) -> BegunCall {
    use CallClass::*;
    let call = entry.call(body);
    let class = classes.of(call);
    let argument = match class {
        Futex => entry.wide_argument(call, 0, body).unwrap_or(0),
        Read | Receive | Write | Send | Accept | Sync => {
            entry.argument(call, 0, body).unwrap_or(-1)
        }
        _ => -1,
    };
    BegunCall {
        call,
        class,
        operation: 0,
        time,
        argument,
    }
}

/// Steps of interrupts and block requests.
#[inline]
pub(crate) fn interrupts(
    handlers: &mut Handlers,
    event: &KernelEvent,
    body: &mut Body<'_, '_>,
) -> Option<Act> {
    match event {
        KernelEvent::Block(block) if block.step == BlockStep::Bio(BioStep::Queue) => {
            Some(Act::Request)
        }
        KernelEvent::Block(block) => of_block(block, body),
        KernelEvent::Uring(uring) => of_ring(uring, body),
        other => {
            let step = InterruptStep::of(other, body)?;
            Some(Act::Interrupt(step, handlers.of_step(other, step, body)))
        }
    }
}

fn ring_step(step: UringStep) -> Option<RingStep> {
    match step {
        UringStep::Submit => Some(RingStep::Submit),
        UringStep::QueueAsync => Some(RingStep::Queue),
        UringStep::Complete => Some(RingStep::Complete),
        UringStep::CqWait => Some(RingStep::Wait),
        _ => None,
    }
}

/// Older kernels do not record the address of the request; their events are ignored.
fn of_ring(uring: &Uring, body: &mut Body<'_, '_>) -> Option<Act> {
    let step = ring_step(uring.step)?;
    let request = match step {
        RingStep::Wait => 0,
        _ => uring.request.as_ref()?.get(body)?,
    };
    let operation = uring.opcode.as_ref().and_then(|opcode| opcode.get(body));
    Some(Act::Ring(RingEvent {
        step,
        ring: uring.ring.as_ref()?.get(body)?,
        request,
        operation: operation
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX),
    }))
}

fn of_block(block: &Block, body: &mut Body<'_, '_>) -> Option<Act> {
    let sectors = block.sectors.as_ref().and_then(|sectors| sectors.get(body));
    let sector = match (block.sector.get(body)?, sectors) {
        // Flushes have no sector: it is recorded as 0 when they are issued and as -1 when they
        // complete.
        (0, Some(0)) => -1,
        (sector, _) => sector,
    };
    let device = block.device(body)?.0;
    let key = RequestKey { device, sector };
    if block.step == BlockStep::Request(RequestStep::Complete) {
        return Some(Act::Complete(key));
    }
    let issued = Issued {
        sectors: sectors.map_or(0, |sectors| sectors as u32),
        is_taken: block.step == BlockStep::Request(RequestStep::Issue),
    };
    Some(Act::Issue(key, issued))
}
