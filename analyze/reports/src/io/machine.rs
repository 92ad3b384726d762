//! Combines the events of all CPUs in the order of time: calls that threads take from one CPU to
//! another, and the types of descriptors.

use crate::io::IoRules;
use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Descriptors, Exit, Open};
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::io::call::{Done, EndingCall, Io};
use crate::io::cut::Cut;
use crate::io::item::{IoAction, IoItem};
use crate::io::parking::{Parked, Parking};
use crate::io::stretch;
use crate::io::sums::Types;
use crate::io::totals::Totals;

/// State after a part of the trace. Holds an entry for each thread, and for each descriptor that is
/// open or was changed since the start of the oldest open call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct IoMachine {
    pub(super) descriptors: Descriptors,
    /// Open calls of threads that do not run.
    pub(super) parked: Parking,
    /// Threads with a parked call whose types must still be looked up.
    fresh: Vec<ThreadKey>,
}

/// Options and sums.
pub(super) struct Around<'a> {
    pub(super) rules: &'a IoRules,
    pub(super) totals: &'a mut Totals,
}

/// A completed call, with the types of its descriptors if they were looked up.
type Taken = (ThreadKey, Io, Option<Types>);

impl Around<'_> {
    pub(super) fn unfinished(&mut self, thread: ThreadKey, open: &Open, cpu: CpuKey) {
        if open.is_io() {
            self.lost_exit(thread, open.time, cpu);
        }
    }

    /// The exit of a call that moves bytes, and that began at `began`, was lost.
    pub(super) fn lost_exit(&mut self, thread: ThreadKey, began: i64, cpu: CpuKey) {
        if self.rules.selection.counts(began, cpu.cpu) {
            self.totals.losses.get(thread).unfinished += 1;
        }
    }

    pub(super) fn unstarted(&mut self, thread: ThreadKey) {
        self.totals.losses.get(thread).unstarted += 1;
    }
}

impl IoMachine {
    /// Plays a cut: the items in the order of time, then the calls.
    pub(super) fn play(&mut self, around: &mut Around<'_>, cut: &Cut) {
        let mut taken = Vec::new();
        cut.play(|cpu, item| self.item(around, cpu, item, &mut taken));
        self.calls(around, cut);
        // Looked up last, once all changes in the cut are known.
        for (thread, io, types) in taken {
            let types = types.unwrap_or_else(|| self.types(thread, io.call, io.fds, io.entry).0);
            around.totals.add(thread, io.call, &io.tally(), types);
        }
        for thread in std::mem::take(&mut self.fresh) {
            self.look_up(thread);
        }
    }

    /// Looks up the types of a parked call's descriptors, unless they are known.
    fn look_up(&mut self, thread: ThreadKey) {
        let parked = self.parked.get(thread);
        let Some(parked) = parked.filter(|parked| parked.types.is_none() && parked.open.is_io())
        else {
            return;
        };
        let Open {
            call, fds, time, ..
        } = parked.open;
        let types = Some(self.types(thread, call, fds, time).0);
        self.parked.put(thread, Parked { types, ..parked });
    }

    fn item(&mut self, around: &mut Around<'_>, cpu: CpuKey, item: IoItem, taken: &mut Vec<Taken>) {
        let IoItem { time, tid, what } = item;
        let thread = ThreadKey {
            trace: cpu.trace,
            tid,
        };
        let unknown = tid == ThreadKey::UNKNOWN;
        match what {
            IoAction::Exit(exit) => self.exit(around, cpu, (time, thread), &exit, taken),
            IoAction::Entry => self.drop_parked(around, thread),
            IoAction::Park(open) if unknown => around.unfinished(thread, &open, cpu),
            IoAction::Park(open) => {
                self.drop_parked(around, thread);
                let types = None;
                self.parked.put(thread, Parked { open, cpu, types });
                self.fresh.push(thread);
            }
            IoAction::Unfinished(began) => around.lost_exit(thread, began, cpu),
            IoAction::Unstarted => around.unstarted(thread),
            IoAction::Change(_) if unknown => {}
            what => self.of_descriptors(thread, time, what),
        }
    }

    /// Processes an event that affects descriptors or tables.
    fn of_descriptors(&mut self, thread: ThreadKey, time: i64, what: IoAction) {
        let act = what.act().flatten().filter(|act| *act != Act::Touch);
        match (what, act) {
            (IoAction::Change(change), _) => self.descriptors.change(thread, time, change),
            (
                IoAction::Holds {
                    fd, kind, cloexec, ..
                },
                Some(act),
            ) => self
                .descriptors
                .holds(thread, time, act, (fd, kind, cloexec)),
            (_, Some(act)) => self.descriptors.act(thread, time, act),
            (_, None) => {}
        }
    }

    /// The exit of a call that may have begun on another CPU.
    fn exit(
        &mut self,
        around: &mut Around<'_>,
        cpu: CpuKey,
        (time, thread): (i64, ThreadKey),
        exit: &Exit,
        taken: &mut Vec<Taken>,
    ) {
        let ended = self.ends(around, time, thread, exit);
        if let Some((io, types)) = ended.io {
            taken.push((thread, io, types));
        }
        if let Some(change) = ended.change {
            self.descriptors.change(thread, time, change);
        }
        if ended.is_alone {
            let items = stretch::alone(exit, time, thread.tid);
            items.for_each(|item| self.item(around, cpu, item, taken));
        }
    }

    /// The outcome of an exit, if it ends the call in which the thread left a CPU.
    pub(super) fn ends(
        &mut self,
        around: &mut Around<'_>,
        time: i64,
        thread: ThreadKey,
        exit: &Exit,
    ) -> Ended {
        let known = thread.tid != ThreadKey::UNKNOWN;
        let parked = self.parked.take(thread).filter(|_| known);
        let Some(parked) = parked else {
            return Ended::alone();
        };
        let mut ended = Ended::default();
        match parked.open.end(time, exit, &around.rules.options.limits) {
            Done::Io(io) => ended.io = Some((io, parked.types)),
            Done::Change(change) => ended.change = Some(change),
            Done::Nothing => {}
            Done::Mismatch => {
                around.unfinished(thread, &parked.open, parked.cpu);
                ended.is_alone = true;
            }
        }
        ended
    }

    pub(super) fn drop_parked(&mut self, around: &mut Around<'_>, thread: ThreadKey) {
        if let Some(parked) = self.parked.take(thread) {
            around.unfinished(thread, &parked.open, parked.cpu);
        }
    }

    /// Types of a call's descriptors at its start, and the time until which they stay the same.
    pub(super) fn types(
        &self,
        thread: ThreadKey,
        call: Syscall,
        fds: (i32, i32),
        time: i64,
    ) -> (Types, Option<i64>) {
        if thread.tid == ThreadKey::UNKNOWN {
            return ((FdType::Unknown, FdType::Unknown), None);
        }
        let from = self.descriptors.kind(thread, fds.0, time);
        if call.action() != Action::Copy {
            return ((from.kind, from.kind), from.until);
        }
        let to = self.descriptors.kind(thread, fds.1, time);
        (
            (from.kind, to.kind),
            from.until.into_iter().chain(to.until).min(),
        )
    }

    /// Adds calls whose descriptors are known.
    fn calls(&mut self, around: &mut Around<'_>, cut: &Cut) {
        for (piece, group) in cut.groups() {
            let trace = piece.cpu.trace;
            let thread = ThreadKey {
                trace,
                tid: group.tid,
            };
            let totals = &mut *around.totals;
            if group.is_in(piece.span) {
                let (types, until) = self.types(thread, group.call, group.fds, group.first);
                if group.is_single() || until.is_none_or(|until| until > group.last()) {
                    totals.add(thread, group.call, &group.tally(), types);
                    continue;
                }
            }
            let calls = piece.calls.split(group);
            for io in calls.filter(|io| piece.span.contains(io.entry)) {
                let (types, _) = self.types(thread, io.call, io.fds, io.entry);
                totals.add(thread, io.call, &io.tally(), types);
            }
        }
    }

    /// At the end of the trace, parked calls are unfinished.
    pub(super) fn finish(self, around: &mut Around<'_>) {
        for (thread, parked) in self.parked.iter() {
            around.unfinished(thread, &parked.open, parked.cpu);
        }
    }

    /// Whether a thread may get a table of its own when its call ends.
    pub(super) fn is_unclear(&self) -> bool {
        let mut parked = self.parked.iter();
        parked.any(|(_, parked)| parked.open.deed == Deed::Unshare)
    }
}

/// The outcome of an exit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    /// A call that moved bytes, with the types of its descriptors if they were looked up.
    pub(super) io: Option<(Io, Option<Types>)>,
    pub(super) change: Option<Change>,
    /// True for a call of which only the exit is known.
    pub(super) is_alone: bool,
}

impl Ended {
    fn alone() -> Ended {
        Ended {
            is_alone: true,
            ..Ended::default()
        }
    }
}
