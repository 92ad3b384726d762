//! What events are, as CPUs are followed.

use tracebraid_kernel_fold::InterruptStep;
use tracebraid_kernel_model::events::block::{Block, BlockStep, RequestStep};
use tracebraid_kernel_model::events::network::PacketStep;
use tracebraid_kernel_model::events::sched::{Migrate, WakeStep, Wakeup};
use tracebraid_kernel_model::events::uring::{Uring, UringStep};
use tracebraid_kernel_model::events::work::WorkStep;
use tracebraid_kernel_model::{Body, KernelEvent, Switch, Syscall, SyscallEntry, SyscallExit, TaskState};

use crate::kinds::{Kind, Kinds};
use crate::step::{Issued, Item, Left, RequestKey, RingEvent, RingStep, What};

/// True if the graph is made of such events.
pub(crate) fn wants(event: &KernelEvent) -> bool {
    use KernelEvent::*;
    match event {
        Entry(_) | Exit(_) | ThreadExit(_) | Wakeup(_) | Migrate(_) => true,
        Block(block) => is_of_request(block.step),
        Packet(packet) => packet.headers.is_some() && is_of_segment(packet.step),
        Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_) => true,
        StateDevice(_) | StateInterrupt(_) => true,
        Work(work) => matches!(work.step, WorkStep::Queue | WorkStep::Start),
        Uring(uring) => ring_step(uring.step).is_some(),
        interrupt => InterruptStep::is_told_by(interrupt),
    }
}

fn is_of_request(step: BlockStep) -> bool {
    use RequestStep::{Complete, Insert, Issue};
    matches!(step, BlockStep::Request(Insert | Issue | Complete))
}

/// A packet is sent where it is queued, since drivers take it later; it has come in where it goes up the stack.
fn is_of_segment(step: PacketStep) -> bool {
    matches!(step, PacketStep::Queue | PacketStep::Receive)
}

#[inline(always)]
pub(crate) fn enters(kinds: &Kinds, entry: &SyscallEntry, body: &mut Body<'_, '_>) -> What {
    let call = entry.call(body);
    let argument = match kinds.of(call) {
        Kind::Futex => entry.wide_argument(call, 0, body).unwrap_or(0),
        Kind::Descriptor => entry.argument(call, 0, body).unwrap_or(-1),
        Kind::Child | Kind::Close | Kind::Ring | Kind::Other => -1,
    };
    What::Enter(call, argument)
}

#[inline(always)]
pub(crate) fn exits(exit: &SyscallExit, body: &mut Body<'_, '_>) -> What {
    // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
    let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
    What::Exit(call, exit.result.get(body).unwrap_or(0))
}

/// How the thread leaves that was switched from.
#[inline(always)]
pub(crate) fn left(switch: &Switch, body: &mut Body<'_, '_>) -> Left {
    match switch.prev_state(body) {
        Some(state) if state.is_runnable() => Left::Runnable,
        Some(TaskState::Idle) => Left::Idle,
        Some(TaskState::Dead | TaskState::Zombie) => Left::Ended,
        _ => Left::Blocked,
    }
}

#[inline(always)]
pub(crate) fn wakes(wakeup: &Wakeup, body: &mut Body<'_, '_>) -> Option<What> {
    let was_awake = wakeup.success.as_ref().and_then(|success| success.get(body)) == Some(0);
    let woken = wakeup.tid.get(body).filter(|_| !was_awake)? as i32;
    let cpu = wakeup.cpu.as_ref().and_then(|cpu| cpu.get(body));
    Some(What::Wake {
        woken,
        is_ready: wakeup.step != WakeStep::Waking,
        cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
    })
}

/// A thread goes to another CPU.
#[cold]
pub(crate) fn moves(migrate: &Migrate, body: &mut Body<'_, '_>) -> Option<Item> {
    let cpu = |cpu: i64| u32::try_from(cpu).ok();
    Some(Item::Moves {
        tid: migrate.tid.get(body)? as i32,
        from: cpu(migrate.from.get(body)?)?,
        to: cpu(migrate.to.get(body)?)?,
    })
}

/// What interrupts threads, and block requests.
#[inline]
pub(crate) fn interrupts(event: &KernelEvent, body: &mut Body<'_, '_>) -> Option<What> {
    match event {
        KernelEvent::Block(block) => of_block(block, body),
        KernelEvent::Uring(uring) => of_ring(uring, body),
        other => InterruptStep::of(other, body).map(What::Interrupt),
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

/// Events of older kernels that do not give the request's address tell nothing.
fn of_ring(uring: &Uring, body: &mut Body<'_, '_>) -> Option<What> {
    let step = ring_step(uring.step)?;
    let request = match step {
        RingStep::Wait => 0,
        _ => uring.request.as_ref()?.get(body)?,
    };
    let operation = uring.opcode.as_ref().and_then(|opcode| opcode.get(body));
    Some(What::Ring(RingEvent {
        step,
        ring: uring.ring.as_ref()?.get(body)?,
        request,
        operation: operation
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX),
    }))
}

fn of_block(block: &Block, body: &mut Body<'_, '_>) -> Option<What> {
    let sectors = block.sectors.as_ref().and_then(|sectors| sectors.get(body));
    let sector = match (block.sector.get(body)?, sectors) {
        // Flushes have no sector: where they are issued that is 0, where they are done -1.
        (0, Some(0)) => -1,
        (sector, _) => sector,
    };
    let device = block.device(body)?.0;
    let key = RequestKey { device, sector };
    if block.step == BlockStep::Request(RequestStep::Complete) {
        return Some(What::Complete(key));
    }
    let issued = Issued {
        sectors: sectors.map_or(0, |sectors| sectors as u32),
        is_taken: block.step == BlockStep::Request(RequestStep::Issue),
    };
    Some(What::Issue(key, issued))
}
