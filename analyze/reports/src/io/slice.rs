//! Playing a slice of time without knowledge of what was before it.
//!
//! What descriptors are is known by what they were when the slice began ([`Sliced`]). A thread's
//! call is unknown until the thread enters one, ends one or leaves its CPU in one: what may have
//! ended a call from before is late, and is done when the slice is composed
//! ([`compose`](crate::io::compose)). There is one for each thread, at most.

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

/// What the descriptors of a call were when it began.
type Held = (ValueId, ValueId);

/// What is known in a slice of the call in which a thread left its CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Cell {
    /// Nothing: it is the one that it was in when the slice began.
    #[default]
    Unknown,
    /// The thread has done something since.
    Known {
        /// The exit of the one that it was in when the slice began is lost.
        is_lost: bool,
        /// It is that, if there is one.
        parked: Option<SliceCall>,
    },
}

impl Cell {
    /// The call ends, or a call of which nothing is known. Gives what was known of it.
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
    /// Once that is looked up; it never is if the call began before the slice.
    pub(super) held: Option<Held>,
}

/// An exit that may end a call that began before the slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    pub(super) thread: ThreadKey,
    /// Its table.
    pub(super) table: ThreadKey,
    pub(super) moment: Moment,
    pub(super) time: i64,
    pub(super) exit: Exit,
    /// It may change descriptors; such ones have numbers from 0 on, in their order.
    pub(super) may_change: bool,
}

/// What is left of a slice that was played, to be composed. Its size depends on the number of
/// threads and descriptors.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) descriptors: Sliced<FdType>,
    pub(super) late: Vec<Late>,
    /// How many of them may change descriptors.
    changes: u32,
    pub(super) cells: Table<Cell>,
    /// Calls that began before the slice.
    pub(super) calls: Vec<(ThreadKey, Io)>,
    /// What is done with descriptors that were there when the slice began; `sums` goes with it.
    pub(super) unknown: Interned<(ThreadKey, Syscall, ValueId)>,
    pub(super) sums: Vec<Sums>,
}

/// A slice that is being played.
struct Player<'a> {
    around: Around<'a>,
    begin: i64,
    left: Left,
    /// Calls that ended at the time at which they began: all changes of that time come first.
    taken: Vec<(ThreadKey, Io, Option<Held>)>,
}

/// Plays the items that were taken out, which begin at `begin`, and adds known amounts to the
/// totals. Descriptors before `since` are not needed afterwards.
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

    /// Whatever call the thread was in, it is in that one now, or in none.
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

    /// The exit of a call that began before the slice, perhaps.
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

    /// What a call's descriptors were when it began, and when one of them becomes something else.
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

    /// A call has ended, of which it may be known what its descriptors were.
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

    /// All changes of the slice are known.
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

/// What a descriptor is, as a value; one that is not known is none.
fn value(descriptors: &mut Sliced<FdType>, kind: FdType) -> ValueId {
    match kind == FdType::default() {
        true => ValueId::default(),
        false => descriptors.is(kind),
    }
}
