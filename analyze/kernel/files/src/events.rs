//! Decoding of events into calls, forks and descriptors.

use tracebraid_descriptors::{Change, Exit, Holder, NO_FD, O_CLOEXEC, Open, Text, descriptor};
use tracebraid_kernel_model::{
    Action, Body, Exec, FdType, Fork, IntField, KernelEvent, NameBase, ProcessState, StateFd,
    Syscall, SyscallEntry, SyscallExit,
};

use crate::call::{Entered, Exited, Forked};
use crate::class::Class;
use crate::item::{FileAction, FileItem, FileStep, Holds};
use crate::names::AT_FDCWD;
use crate::rules::FileRules;
use crate::seen::Seen;
use tracebraid_follow::{Event, learn, learn_switch, taken_over};

/// Decodes the entry of a system call.
#[inline(always)]
pub(crate) fn enters(
    seen: &mut Seen,
    event: &Event<'_>,
    entry: &SyscallEntry,
    body: &mut Body<'_, '_>,
) -> FileAction {
    let call = entry.call(body);
    let action = call.action();
    if !action.is_io() {
        return enters_other(seen, event, entry, body);
    }
    let open = Open::io(call, action, event.time, |place| {
        entry.argument(call, place, body)
    });
    let entered = Entered {
        open,
        class: Class::of(&open),
        text: Text::NONE,
        dir: NO_FD,
    };
    FileAction::Enter(Some(entered), None)
}

/// Decodes the entry of a call that moves no bytes.
#[inline(never)]
fn enters_other(
    seen: &mut Seen,
    event: &Event<'_>,
    entry: &SyscallEntry,
    body: &mut Body<'_, '_>,
) -> FileAction {
    let call = entry.call(body);
    let change = Change::at_entry(call, |place| entry.argument(call, place, body));
    let entered = match change {
        Some(_) if call.action() != Action::Close => None,
        _ => Some(entered(seen, (call, event.time), entry, body)),
    };
    FileAction::Enter(entered, change)
}

impl FileRules {
    /// Decodes the exit of a system call.
    #[inline(always)]
    pub(crate) fn exits(
        &self,
        seen: &mut Seen,
        event: &Event<'_>,
        exit: &SyscallExit,
        body: &mut Body<'_, '_>,
    ) -> Option<FileAction> {
        let Event { cpu, time, .. } = *event;
        let result = exit.result.get(body)?;
        let (pair, peer, text) = made(seen, exit, body);
        let exit = Exit {
            result,
            pair,
            call: exit.call(body).filter(|&call| call != Syscall::OTHER),
            peer,
            counts: self.selection.counts(time, cpu.cpu),
        };
        Some(FileAction::Exit(Exited { exit, time, text }))
    }

    /// Handles events other than entries and exits of system calls.
    #[inline(never)]
    pub(crate) fn other(&self, seen: &mut Seen, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        if let KernelEvent::Switch(switch) = &model.event {
            let near = &mut seen.near;
            if let Some((_, next)) = learn_switch(&mut seen.people, near, event, switch, body) {
                self.goes_over(seen, cpu, time, Some(next));
            }
            return;
        }
        learn(&mut seen.people, model, cpu, time, body);
        match &model.event {
            KernelEvent::Fork(fork) => self.fork(seen, event, fork, body),
            KernelEvent::Exec(exec) => self.exec(seen, event, exec, body),
            KernelEvent::ThreadExit(tid) => {
                if let Some(tid) = tid.get(body) {
                    self.put(seen, event, FileItem::End(tid as i32));
                }
            }
            KernelEvent::ProcessState(state) => self.process(seen, event, state, body),
            KernelEvent::StateFd(state) => {
                if let Some(holds) = holds(seen, state, body) {
                    self.put(seen, event, FileItem::Holds(Box::new(holds)));
                }
            }
            _ => {}
        }
    }

    /// Adds an item whose thread is known.
    fn put(&self, seen: &mut Seen, event: &Event<'_>, item: FileItem) {
        self.running(seen, event, FileAction::Item(item));
    }

    /// Adds an action of the thread that runs on the CPU.
    fn running(&self, seen: &mut Seen, event: &Event<'_>, what: FileAction) {
        let (tid, pid) = (None, None);
        self.rare(seen, event.cpu, event.time, FileStep { tid, pid, what });
    }

    /// A new thread has no open call, even if an earlier thread with its id had one.
    fn fork(&self, seen: &mut Seen, event: &Event<'_>, fork: &Fork, body: &mut Body<'_, '_>) {
        let Some(child) = fork.child_tid.get(body) else {
            return;
        };
        let child = child as i32;
        self.put(seen, event, FileItem::Born(child));
        let forked = Forked {
            child,
            child_pid: id(&fork.child_pid, body),
            parent_pid: id(&fork.parent_pid, body),
        };
        match id(&fork.parent_tid, body) {
            Some(parent) => self.put(seen, event, FileItem::Fork(parent, forked)),
            None => self.running(seen, event, FileAction::Fork(forked)),
        }
    }

    fn exec(&self, seen: &mut Seen, event: &Event<'_>, exec: &Exec, body: &mut Body<'_, '_>) {
        // The thread takes over the id of the first thread of its process.
        if let Some((old, tid)) = taken_over(exec, body) {
            self.goes_over(seen, event.cpu, event.time, Some(tid));
            self.put(seen, event, FileItem::TakesOver(tid, old));
        }
        match id(&exec.tid, body) {
            Some(tid) => self.put(seen, event, FileItem::Exec(tid)),
            None => self.running(seen, event, FileAction::Exec),
        }
    }

    fn process(
        &self,
        seen: &mut Seen,
        event: &Event<'_>,
        state: &ProcessState,
        body: &mut Body<'_, '_>,
    ) {
        if let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) {
            let member = FileItem::Member {
                tid: tid as i32,
                pid: pid as i32,
                table: state.table.as_ref().and_then(|table| table.get(body)),
            };
            self.put(seen, event, member);
        }
    }
}

fn id(field: &Option<IntField>, body: &mut Body<'_, '_>) -> Option<i32> {
    field
        .as_ref()
        .and_then(|field| field.get(body))
        .map(|id| id as i32)
}

/// Decodes the entry of a call that moves no bytes.
fn entered(
    seen: &mut Seen,
    (call, time): (Syscall, i64),
    entry: &SyscallEntry,
    body: &mut Body<'_, '_>,
) -> Entered {
    let mut open = Open::new(call, time, &mut |place| entry.argument(call, place, body));
    let (mut text, mut dir) = (Text::NONE, NO_FD);
    let argument =
        |place, body: &mut _| entry.argument(call, place, body).map_or(NO_FD, descriptor);
    match call.action() {
        Action::Open(..) => {
            text = path(seen, call, entry, body);
            dir = match call.name_base() {
                NameBase::Descriptor => directory(entry.argument(call, 1, body)),
                NameBase::WorkingDirectory => AT_FDCWD,
                NameBase::None => NO_FD,
            };
        }
        Action::ChangeDirectory => {
            text = path(seen, call, entry, body);
            open.fds.0 = argument(0, body);
        }
        Action::Connect => {
            open.fds.0 = argument(0, body);
            if let Some(address) = entry.peer(body).and_then(|peer| peer.socket_address()) {
                text = seen.texts.0.number(&format!("socket {address}"));
            }
        }
        Action::Sync | Action::Close => open.fds.0 = argument(0, body),
        _ => {}
    }
    Entered {
        class: Class::of(&open),
        open,
        text,
        dir,
    }
}

/// Path argument of a call.
fn path(seen: &mut Seen, call: Syscall, entry: &SyscallEntry, body: &mut Body<'_, '_>) -> Text {
    let Some(path) = entry.path(body) else {
        return Text::NONE;
    };
    let path = String::from_utf8_lossy(path);
    match call.name_prefix() {
        "" => seen.texts.0.number(&path),
        prefix => seen.texts.0.number(&format!("{prefix}{path}")),
    }
}

/// Descriptor of a directory, or [`AT_FDCWD`].
fn directory(argument: Option<i64>) -> i32 {
    match argument {
        // Some tracers record the argument as unsigned.
        Some(argument) if argument as i32 == AT_FDCWD => AT_FDCWD,
        argument => argument.map_or(NO_FD, descriptor),
    }
}

/// Descriptors that the call made, type of the peer, and address of the peer, as far as the exit
/// records them.
#[inline(always)]
fn made(
    seen: &mut Seen,
    exit: &SyscallExit,
    body: &mut Body<'_, '_>,
) -> ((i32, i32), Option<FdType>, Text) {
    if exit.pair.is_none() && exit.family.is_none() {
        return (Exit::NO_PAIR, None, Text::NONE);
    }
    let pair = match &exit.pair {
        Some(pair) => pair.0.get(body).zip(pair.1.get(body)),
        None => None,
    };
    let pair = pair.map_or(Exit::NO_PAIR, |(first, second)| {
        (first as i32, second as i32)
    });
    let family = exit.family.as_ref().and_then(|family| family.get(body));
    let peer = family.filter(|&family| family > 0).map(FdType::of_family);
    let address = exit
        .peer
        .as_ref()
        .and_then(|peer| peer.get(body)?.socket_address());
    // The port of a connecting peer is arbitrary, so the name leaves it out.
    let text = address.map(|address| {
        seen.texts
            .0
            .number(&format!("socket from {}", address.ip()))
    });
    (pair, peer, text.unwrap_or(Text::NONE))
}

fn holds(seen: &mut Seen, state: &StateFd, body: &mut Body<'_, '_>) -> Option<Holds> {
    let table = state.table.as_ref().and_then(|table| table.get(body));
    let holder = id(&state.pid, body)
        .map(Holder::Process)
        .or(table.map(Holder::Table))?;
    let fd = state.fd.get(body)? as i32;
    let flags = state.flags.as_ref().and_then(|flags| flags.get(body));
    let path = state.path.as_ref().and_then(|path| path.bytes(body));
    let text = path.map(|path| seen.texts.0.number(&String::from_utf8_lossy(path)));
    Some(Holds {
        holder,
        fd,
        text: text.unwrap_or(Text::NONE),
        cloexec: flags.unwrap_or(0) & O_CLOEXEC != 0,
    })
}
