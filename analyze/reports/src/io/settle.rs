//! Putting together what happened on several CPUs: calls that threads took from one CPU to
//! another, and what their descriptors were.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::io::call::{Done, Exit, Io, Open, Sums, Types};
use crate::io::descriptors::Descriptors;
use crate::io::group::{Arenas, Group};
use crate::io::stretch::{Item, What};
use crate::kernel::{CpuKey, CpuSet, Table, ThreadKey, Window};

/// What counts.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) window: Window,
    pub(super) cpus: &'a CpuSet,
}

impl Scope<'_> {
    pub(super) fn counts(&self, time: i64, cpu: CpuKey) -> bool {
        self.window.contains(time) && self.cpus.contains(cpu.cpu)
    }
}

/// Sums by system call and type of descriptor.
pub(super) type Sheet = Vec<(Syscall, FdType, Sums)>;

/// Calls that lost one of their events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Losses {
    pub(super) unfinished: u64,
    pub(super) unstarted: u64,
}

/// A call that left its CPU with its thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Parked {
    open: Open,
    cpu: CpuKey,
    /// Of its descriptors when it began, once that is known.
    types: Option<Types>,
}

/// All that has been put together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Settled {
    descriptors: Descriptors,
    parked: Table<Option<Parked>>,
    /// Threads whose parked call's types are still to be looked up.
    fresh: Vec<ThreadKey>,
    pub(super) sheets: Table<Sheet>,
    pub(super) losses: Table<Losses>,
}

impl Settled {
    /// Takes what happened next, ordered by time, and from the groups those whose calls all began
    /// before `until`, which is not before any item.
    pub(super) fn settle(
        &mut self,
        scope: Scope<'_>,
        items: &[Item],
        groups: &mut Vec<Group>,
        arenas: &mut Arenas,
        until: i64,
    ) {
        let mut taken = Vec::new();
        for item in items {
            self.item(scope, item, &mut taken);
        }
        let mut at = 0;
        while let Some(group) = groups.get(at) {
            if group.last < until {
                self.group(&groups.swap_remove(at), arenas);
            } else {
                at += 1;
            }
        }
        // Only now all changes of the time are known.
        for (thread, io, types) in taken {
            let types = types.unwrap_or_else(|| self.types(thread, &io).0);
            self.add(&Group::new(thread, &io), types);
        }
        for thread in std::mem::take(&mut self.fresh) {
            let Some(Some(parked)) = self.parked.find(thread).copied() else {
                continue;
            };
            if parked.types.is_some() {
                continue;
            }
            let exit = Exit {
                call: None,
                time: parked.open.time,
                result: 0,
                pair: None,
                family: None,
                counts: true,
            };
            if let Done::Io(io) = parked.open.end(&exit) {
                let types = Some(self.types(thread, &io).0);
                *self.parked.get(thread) = Some(Parked { types, ..parked });
            }
        }
    }

    fn item(&mut self, scope: Scope<'_>, item: &Item, taken: &mut Vec<(ThreadKey, Io, Option<Types>)>) {
        let Item {
            time,
            cpu,
            thread,
            what,
        } = *item;
        let unknown = thread.tid == ThreadKey::UNKNOWN;
        match what {
            What::Exit(exit) => self.exit(scope, item, &exit, taken),
            What::Entry => self.drop_parked(scope, thread),
            What::Park(open) if unknown => self.unfinished(scope, thread, open, cpu),
            What::Park(open) => {
                self.drop_parked(scope, thread);
                *self.parked.get(thread) = Some(Parked {
                    open,
                    cpu,
                    types: None,
                });
                self.fresh.push(thread);
            }
            What::Unfinished(began) => {
                self.losses.get(thread).unfinished += u64::from(scope.counts(began, cpu));
            }
            What::Unstarted => self.losses.get(thread).unstarted += 1,
            What::Change(_) if unknown => {}
            What::Change(change) => self.descriptors.change(thread, time, change),
            What::Fork {
                child,
                child_pid,
                parent_pid,
            } => {
                self.descriptors.fork(thread, time, child, child_pid, parent_pid);
            }
            What::Exec => self.descriptors.exec(thread, time),
            What::End => self.descriptors.exit(thread, time),
            What::Member { pid, table } => {
                if let Some(address) = table {
                    self.descriptors.table(thread.with(pid), time, address);
                }
                self.descriptors.member(thread, time, pid);
            }
            What::Holds {
                pid,
                table,
                fd,
                kind,
                cloexec,
            } => {
                self.descriptors
                    .holds(thread.trace, time, pid, table, fd, kind, cloexec);
            }
        }
    }

    /// The exit of a call that may have begun on another CPU.
    fn exit(
        &mut self,
        scope: Scope<'_>,
        item: &Item,
        exit: &Exit,
        taken: &mut Vec<(ThreadKey, Io, Option<Types>)>,
    ) {
        let thread = item.thread;
        let parked = self
            .parked
            .find(thread)
            .copied()
            .flatten()
            .filter(|_| thread.tid != ThreadKey::UNKNOWN);
        let alone = |what| Item { what, ..*item };
        let Some(parked) = parked else {
            exit.alone()
                .for_each(|what| self.item(scope, &alone(what), taken));
            return;
        };
        *self.parked.get(thread) = None;
        match parked.open.end(exit) {
            Done::Io(io) => taken.push((thread, io, parked.types)),
            Done::Change(change) => self.descriptors.change(thread, item.time, change),
            Done::Nothing => {}
            Done::Mismatch => {
                self.unfinished(scope, thread, parked.open, parked.cpu);
                exit.alone()
                    .for_each(|what| self.item(scope, &alone(what), taken));
            }
        }
    }

    fn drop_parked(&mut self, scope: Scope<'_>, thread: ThreadKey) {
        if let Some(Some(parked)) = self.parked.find(thread).copied() {
            *self.parked.get(thread) = None;
            self.unfinished(scope, thread, parked.open, parked.cpu);
        }
    }

    fn unfinished(&mut self, scope: Scope<'_>, thread: ThreadKey, open: Open, cpu: CpuKey) {
        if open.is_io() && scope.counts(open.time, cpu) {
            self.losses.get(thread).unfinished += 1;
        }
    }

    /// Types of a call's descriptors when it began, and up to when they stay so.
    fn types(&self, thread: ThreadKey, io: &Io) -> (Types, Option<i64>) {
        self.types_at(thread, io.call, io.fds, io.entry)
    }

    fn types_at(&self, thread: ThreadKey, call: Syscall, fds: (i32, i32), time: i64) -> (Types, Option<i64>) {
        if thread.tid == ThreadKey::UNKNOWN {
            return ((FdType::Unknown, FdType::Unknown), None);
        }
        let from = self.descriptors.kind(thread, fds.0, time);
        if call.action() != Action::Copy {
            return ((from.kind, from.kind), from.until);
        }
        let to = self.descriptors.kind(thread, fds.1, time);
        ((from.kind, to.kind), from.until.into_iter().chain(to.until).min())
    }

    /// Adds up calls whose descriptors are known.
    pub(super) fn group(&mut self, group: &Group, arenas: &mut Arenas) {
        let (types, until) = self.types_at(group.thread, group.call, group.fds, group.first);
        if group.is_single() || until.is_none_or(|until| until > group.last) {
            self.add(group, types);
        } else {
            for single in arenas.split(group) {
                let (types, _) = self.types_at(single.thread, single.call, single.fds, single.first);
                self.add(&single, types);
            }
        }
        arenas.release(group);
    }

    fn add(&mut self, group: &Group, types: Types) {
        let sheet = self.sheets.get(group.thread);
        let (first, second) = group.sums();
        for (kind, sums) in [(types.0, Some(first)), (types.1, second)] {
            let Some(sums) = sums else { continue };
            match sheet
                .iter_mut()
                .find(|(call, other, _)| *call == group.call && *other == kind)
            {
                Some((_, _, sum)) => sum.add(&sums),
                None => sheet.push((group.call, kind, sums)),
            }
        }
    }

    /// Nothing follows: what is parked stays unfinished.
    pub(super) fn finish(&mut self, scope: Scope<'_>) {
        let parked: Vec<_> = self
            .parked
            .entries()
            .filter_map(|(key, parked)| Some((key, (*parked)?)))
            .collect();
        for (thread, parked) in parked {
            self.unfinished(scope, thread, parked.open, parked.cpu);
        }
    }

    /// Nobody will ask for what was before that time.
    pub(super) fn forget(&mut self, before: i64) {
        self.descriptors.forget(before);
    }
}
