//! Passes events to a lane.

use tracebraid_descriptors::{Change, Exit, Holder, O_CLOEXEC, Open};
use tracebraid_kernel_model::{
    Body, Exec, FdType, Fork, IntField, KernelEvent, StateFd, Syscall, SyscallEntry, SyscallExit,
};

use crate::io::item::IoAction;
use crate::io::lane::IoCpu;
use tracebraid_follow::Window;

/// A system call begins.
#[inline(always)]
pub(super) fn entry(lane: &mut IoCpu, entry: &SyscallEntry, time: i64, body: &mut Body<'_, '_>) {
    let call = entry.call(body);
    let action = call.action();
    if action.is_io() {
        lane.entry(Open::io(call, action, time, |place| {
            entry.argument(call, place, body)
        }));
    } else {
        other_entry(lane, entry, time, body);
    }
}

/// The entry of a call that moves no bytes.
#[inline(never)]
fn other_entry(lane: &mut IoCpu, entry: &SyscallEntry, time: i64, body: &mut Body<'_, '_>) {
    let call = entry.call(body);
    let mut argument = |place| entry.argument(call, place, body);
    match Change::at_entry(call, &mut argument) {
        Some(change) => lane.entry_of(time, change),
        None => {
            let mut open = Open::new(call, time, &mut argument);
            if open.kind == FdType::File
                && let Some(path) = entry.path(body)
            {
                open.kind = FdType::of_opened(path);
            }
            lane.entry(open);
        }
    }
}

/// A system call ends.
#[inline(always)]
pub(super) fn exit(
    lane: &mut IoCpu,
    exit: &SyscallExit,
    window: Window,
    time: i64,
    body: &mut Body<'_, '_>,
) {
    let Some(result) = exit.result.get(body) else {
        return;
    };
    let (call, counts) = (exit.call(body), lane.counts && window.contains(time));
    if lane.exit_of_io(time, call, result, counts) {
        return;
    }
    let exit = other_exit(exit, call, result, counts, body);
    lane.exit(time, exit);
}

/// The exit of a call that moves no bytes, or that began in another stretch.
#[inline(never)]
fn other_exit(
    exit: &SyscallExit,
    call: Option<Syscall>,
    result: i64,
    counts: bool,
    body: &mut Body<'_, '_>,
) -> Exit {
    let pair = match &exit.pair {
        Some(pair) => pair.0.get(body).zip(pair.1.get(body)),
        None => None,
    };
    let family = exit.family.as_ref().and_then(|family| family.get(body));
    Exit {
        result,
        pair: pair.map_or(Exit::NO_PAIR, |(first, second)| {
            (first as i32, second as i32)
        }),
        call,
        peer: family.filter(|&family| family > 0).map(FdType::of_family),
        counts,
    }
}

/// Other events that affect descriptors and tables.
pub(super) fn other(lane: &mut IoCpu, event: &KernelEvent, time: i64, body: &mut Body<'_, '_>) {
    match event {
        KernelEvent::Fork(event) => fork(lane, event, time, body),
        KernelEvent::Exec(event) => exec(lane, event, time, body),
        KernelEvent::ThreadExit(tid) => {
            if let Some(tid) = tid.get(body) {
                lane.tell(time, tid as i32, IoAction::End);
            }
        }
        KernelEvent::ProcessState(state) => {
            let table = get(&state.table, body);
            if let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) {
                let pid = pid as i32;
                lane.tell(time, tid as i32, IoAction::Member { pid, table });
            }
        }
        KernelEvent::StateFd(state) => {
            if let Some(what) = holds(state, body) {
                // The event belongs to no thread.
                lane.tell(time, 0, what);
            }
        }
        _ => {}
    }
}

fn get(field: &Option<IntField>, body: &mut Body<'_, '_>) -> Option<i64> {
    field.as_ref().and_then(|field| field.get(body))
}

fn id(field: &Option<IntField>, body: &mut Body<'_, '_>) -> Option<i32> {
    get(field, body).map(|id| id as i32)
}

fn fork(lane: &mut IoCpu, fork: &Fork, time: i64, body: &mut Body<'_, '_>) {
    let parent = id(&fork.parent_tid, body).or(lane.tid());
    if let (Some(parent), Some(child)) = (parent, fork.child_tid.get(body)) {
        let what = IoAction::Fork {
            child: child as i32,
            child_pid: id(&fork.child_pid, body),
            parent_pid: id(&fork.parent_pid, body),
        };
        lane.tell(time, parent, what);
    }
}

fn exec(lane: &mut IoCpu, exec: &Exec, time: i64, body: &mut Body<'_, '_>) {
    let tid = id(&exec.tid, body);
    if let (Some(old), Some(tid)) = (id(&exec.old_tid, body), tid)
        && old != tid
    {
        lane.switch(time, Some(old), tid);
    }
    if let Some(tid) = tid.or(lane.tid()) {
        lane.tell(time, tid, IoAction::Exec);
    }
}

fn holds(state: &StateFd, body: &mut Body<'_, '_>) -> Option<IoAction> {
    let (pid, table) = (id(&state.pid, body), get(&state.table, body));
    let flags = get(&state.flags, body).unwrap_or(0);
    let fd = state.fd.get(body)? as i32;
    let path = state.path.as_ref().and_then(|path| path.bytes(body));
    Some(IoAction::Holds {
        holder: pid.map(Holder::Process).or(table.map(Holder::Table))?,
        fd,
        kind: FdType::of_path(path.unwrap_or_default()),
        cloexec: flags & O_CLOEXEC != 0,
    })
}
