//! Plays a slice of time without the state before it.
//!
//! Values of descriptors are relative to those at the start of the slice ([`Sliced`]). A thread's
//! call is unknown until the thread enters or ends a call, or leaves its CPU within a call. An exit
//! that may end a call from before the slice is late, and is processed when the slice is composed
//! ([`compose`](crate::io::compose)). There is at most one for each thread.

use crate::io::IoRules;
use tracebraid_descriptors::{Ahead, Change, Exit, Interned, Moment, Open, Sliced, ValueId};
use tracebraid_follow::{CpuKey, Table, ThreadKey};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::io::call::{Done, EndingCall, Io};
use crate::io::cut::{Cut, Piece};
use crate::io::group::Group;
use crate::io::item::{IoAction, IoItem};
use crate::io::machine::Around;
use crate::io::stretch;
use crate::io::sums::{Sums, Tally};
use crate::io::totals::Totals;

/// The values of a call's descriptors at its start.
type Held = (ValueId, ValueId);

/// A slice's knowledge of the call in which a thread left its CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Cell {
    /// The thread is in the same call as at the start of the slice.
    #[default]
    Unknown,
    /// The thread has entered or left a call since.
    Known {
        /// The exit of the call at the start of the slice was lost.
        is_lost: bool,
        /// The current call, if any.
        parked: Option<SliceCall>,
    },
}

impl Cell {
    /// The current call ends. Returns the state before.
    fn ends(&mut self) -> Cell {
        let before = *self;
        let is_lost = matches!(before, Cell::Known { is_lost: true, .. });
        let parked = None;
        *self = Cell::Known { is_lost, parked };
        before
    }
}

/// A call in which a thread left its CPU in a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceCall {
    pub(super) open: Open,
    pub(super) cpu: CpuKey,
    /// Set at the end of the slice; never set if the call began before the slice.
    pub(super) held: Option<Held>,
}

/// An exit that may end a call that began before the slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    pub(super) thread: ThreadKey,
    /// The thread's descriptor table.
    pub(super) table: ThreadKey,
    pub(super) moment: Moment,
    pub(super) time: i64,
    pub(super) exit: Exit,
    /// True if the exit may change descriptors; such exits are numbered from 0, in order.
    pub(super) may_change: bool,
}

/// The results of a played slice, to be composed. Their size depends on the number of threads and
/// descriptors.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) descriptors: Sliced<FdType>,
    pub(super) late: Vec<Late>,
    /// Number of late exits that may change descriptors.
    changes: u32,
    pub(super) cells: Table<Cell>,
    /// Calls that began before the slice.
    pub(super) calls: Vec<(ThreadKey, Io)>,
    /// Use of descriptors that were open when the slice began; parallel to `sums`.
    pub(super) unknown: Interned<(ThreadKey, Syscall, ValueId)>,
    pub(super) sums: Vec<Sums>,
}

/// A slice that is being played.
struct Player<'a> {
    around: Around<'a>,
    begin: i64,
    left: Left,
    /// Calls that ended at the time of their start, processed after all changes of that time.
    taken: Vec<(ThreadKey, Io, Option<Held>)>,
}

/// Plays a cut that begins at `begin`, and adds the sums for known descriptors to the totals.
/// Descriptors before the time `since` are no longer needed.
pub(super) fn play(
    rules: &IoRules,
    totals: &mut Totals,
    cut: &Cut,
    ahead: Ahead,
    (begin, since): (i64, i64),
) -> Left {
    let left = Left {
        descriptors: Sliced::new(ahead),
        late: Vec::new(),
        changes: 0,
        cells: Table::default(),
        calls: Vec::new(),
        unknown: Interned::default(),
        sums: Vec::new(),
    };
    let mut player = Player {
        around: Around { rules, totals },
        begin,
        left,
        taken: Vec::new(),
    };
    cut.play(|cpu, item| player.item(cpu, item));
    for (piece, group) in cut.groups() {
        player.group(piece, group);
    }
    player.end(since)
}

impl Player<'_> {
    fn item(&mut self, cpu: CpuKey, item: IoItem) {
        let IoItem { time, tid, what } = item;
        let trace = cpu.trace;
        let thread = ThreadKey { trace, tid };
        let unknown = tid == ThreadKey::UNKNOWN;
        match what {
            IoAction::Exit(exit) => self.exit(cpu, (time, thread), &exit),
            IoAction::Entry => self.parks(thread, None),
            IoAction::Park(open) if unknown => self.around.unfinished(thread, &open, cpu),
            IoAction::Park(open) => {
                let held = None;
                self.parks(thread, Some(SliceCall { open, cpu, held }));
            }
            IoAction::Unfinished(began) => self.around.lost_exit(thread, began, cpu),
            IoAction::Unstarted => self.around.unstarted(thread),
            IoAction::Change(_) if unknown => {}
            IoAction::Change(change) => self.change(thread, time, change),
            IoAction::Holds {
                fd, kind, cloexec, ..
            } => {
                let descriptors = &mut self.left.descriptors;
                if let Some(table) = descriptors.act(time) {
                    let value = value(descriptors, kind);
                    descriptors.holds(table, time, (fd, value, cloexec));
                }
            }
            IoAction::Fork { .. } | IoAction::Exec | IoAction::End | IoAction::Member { .. } => {
                self.left.descriptors.act(time);
            }
            IoAction::Touch => {}
        }
    }

    fn change(&mut self, thread: ThreadKey, time: i64, change: Change) {
        let descriptors = &mut self.left.descriptors;
        if change.act().is_some() {
            descriptors.act(time);
        }
        let change = change.map(|kind| value(descriptors, kind));
        descriptors.change(thread, time, change);
    }

    /// The thread's previous call was lost; it is in `parked` now, or in none.
    fn parks(&mut self, thread: ThreadKey, parked: Option<SliceCall>) {
        let cell = self.left.cells.get(thread);
        let (is_lost, before) = match *cell {
            Cell::Unknown => (true, None),
            Cell::Known { is_lost, parked } => (is_lost, parked),
        };
        *cell = Cell::Known { is_lost, parked };
        if let Some(before) = before {
            self.around.unfinished(thread, &before.open, before.cpu);
        }
    }

    /// An exit that may end a call that began before the slice.
    fn late(&mut self, thread: ThreadKey, time: i64, exit: &Exit) {
        let may_change = exit.may_change();
        let descriptors = &mut self.left.descriptors;
        self.left.late.push(Late {
            thread,
            table: descriptors.table(thread),
            moment: descriptors.moment(),
            time,
            exit: *exit,
            may_change,
        });
        if may_change {
            descriptors.late(thread, time, self.left.changes);
            self.left.changes += 1;
        }
    }

    /// The exit of a call that may have begun on another CPU.
    fn exit(&mut self, cpu: CpuKey, (time, thread): (i64, ThreadKey), exit: &Exit) {
        if thread.tid == ThreadKey::UNKNOWN {
            return self.alone(cpu, (time, thread), exit);
        }
        match self.left.cells.get(thread).ends() {
            Cell::Unknown => self.late(thread, time, exit),
            Cell::Known { parked: None, .. } => self.alone(cpu, (time, thread), exit),
            Cell::Known {
                parked: Some(parked),
                ..
            } => self.ends(cpu, (time, thread), exit, &parked),
        }
    }

    /// The exit of a call that began in the slice.
    fn ends(
        &mut self,
        cpu: CpuKey,
        (time, thread): (i64, ThreadKey),
        exit: &Exit,
        parked: &SliceCall,
    ) {
        match parked
            .open
            .end(time, exit, &self.around.rules.options.limits)
        {
            Done::Io(io) if io.entry < time => self.ended(thread, &io, parked.held),
            Done::Io(io) => self.taken.push((thread, io, parked.held)),
            Done::Change(change) => self.change(thread, time, change),
            Done::Nothing => {}
            Done::Mismatch => {
                self.around.unfinished(thread, &parked.open, parked.cpu);
                self.alone(cpu, (time, thread), exit);
            }
        }
    }

    fn alone(&mut self, cpu: CpuKey, (time, thread): (i64, ThreadKey), exit: &Exit) {
        stretch::alone(exit, time, thread.tid).for_each(|item| self.item(cpu, item));
    }

    /// The values of a call's descriptors at its start, and the time of their next change.
    fn held(
        &mut self,
        thread: ThreadKey,
        call: Syscall,
        fds: (i32, i32),
        time: i64,
    ) -> (Held, Option<i64>) {
        if thread.tid == ThreadKey::UNKNOWN {
            return ((ValueId::default(), ValueId::default()), None);
        }
        let from = self.left.descriptors.at(thread, fds.0, time);
        if call.action() != Action::Copy {
            return ((from.value, from.value), from.until);
        }
        let to = self.left.descriptors.at(thread, fds.1, time);
        let until = from.until.into_iter().chain(to.until).min();
        ((from.value, to.value), until)
    }

    /// A call has ended; `held` has the values of its descriptors, if known.
    fn ended(&mut self, thread: ThreadKey, io: &Io, held: Option<Held>) {
        if held.is_none() && io.entry < self.begin && thread.tid != ThreadKey::UNKNOWN {
            return self.left.calls.push((thread, *io));
        }
        let held = held.unwrap_or_else(|| self.held(thread, io.call, io.fds, io.entry).0);
        self.add(thread, io.call, &io.tally(), held);
    }

    fn group(&mut self, piece: &Piece, group: &Group) {
        let thread = ThreadKey {
            trace: piece.cpu.trace,
            tid: group.tid,
        };
        if group.is_in(piece.span) && group.first >= self.begin {
            let (held, until) = self.held(thread, group.call, group.fds, group.first);
            if group.is_single() || until.is_none_or(|until| until > group.last()) {
                return self.add(thread, group.call, &group.tally(), held);
            }
        }
        if group.is_single() {
            return self.ended(thread, &group.only_io(), None);
        }
        let calls = piece.calls.split(group);
        for io in calls.filter(|io| piece.span.contains(io.entry)) {
            self.ended(thread, &io, None);
        }
    }

    fn add(&mut self, thread: ThreadKey, call: Syscall, tally: &Tally, held: Held) {
        let (first, second) = tally.sums(call);
        self.add_sums(thread, (call, held.0), &first);
        if let Some(second) = second {
            self.add_sums(thread, (call, held.1), &second);
        }
    }

    fn add_sums(&mut self, thread: ThreadKey, (call, value): (Syscall, ValueId), sums: &Sums) {
        if let Ok(kind) = self.left.descriptors.known(value) {
            let kind = kind.unwrap_or_default();
            return self.around.totals.add_sums(thread, (call, kind), sums);
        }
        let at = self.left.unknown.number((thread, call, value)) as usize;
        match self.left.sums.get_mut(at) {
            Some(own) => own.add(sums),
            None => self.left.sums.push(*sums),
        }
    }

    /// Resolves the remaining calls, now that all changes of the slice are known.
    fn end(mut self, since: i64) -> Left {
        for (thread, io, held) in std::mem::take(&mut self.taken) {
            self.ended(thread, &io, held);
        }
        let mut cells = std::mem::take(&mut self.left.cells);
        for at in 0.. {
            let Some(thread) = cells.key(at) else { break };
            if let Some(Cell::Known {
                parked: Some(SliceCall { open, held, .. }),
                ..
            }) = cells.at(at)
                && open.is_io()
                && open.time >= self.begin
            {
                *held = Some(self.held(thread, open.call, open.fds, open.time).0);
            }
        }
        self.left.cells = cells;
        let late = self.left.late.iter().filter(|late| late.may_change);
        let mut asked: Vec<ThreadKey> = late.map(|late| late.table).collect();
        asked.sort_unstable();
        self.left.descriptors.end(since, &asked);
        self.left
    }
}

/// The value for a type of descriptor; the default value for an unknown type.
fn value(descriptors: &mut Sliced<FdType>, kind: FdType) -> ValueId {
    match kind == FdType::default() {
        true => ValueId::default(),
        false => descriptors.is(kind),
    }
}
