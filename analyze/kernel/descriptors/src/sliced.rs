//! Descriptors in a slice of time, which is played without knowledge of earlier slices.

use std::hash::Hash;

use tracebraid_follow::{Table, ThreadKey};

use crate::ahead::Ahead;
use crate::belongings::{Belonging, Effect};
use crate::call::NO_FD;
use crate::change::Change;
use crate::contents::Held;
use crate::descriptors::Descriptors;
use crate::members::Members;
use crate::shared::Shared;
use crate::slice_history::{From, Moment, SlicedTable, at, before, begin};
use crate::values::{Base, LateCall, Resolved, Resolving, Value, ValueId, Values};

/// The answer depends on the state before the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfBefore;

/// Result of a lookup in a slice, and the time until which it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicedAnswer {
    /// The file of the descriptor.
    pub value: ValueId,
    /// From this time on, the file may be another one.
    pub until: Option<i64>,
}

/// Descriptors in a slice. `A` is a file as the slice knows it.
#[derive(Debug)]
pub struct Sliced<A> {
    start: Shared<Members>,
    effects: std::iter::Peekable<std::vec::IntoIter<(u32, Effect)>>,
    /// Number of acts so far.
    acts: u32,
    /// Threads whose process or table has changed since the beginning of the slice.
    pub(crate) members: Table<Vec<From<Belonging>>>,
    pub(crate) tables: Table<SlicedTable>,
    pub(crate) values: Values<A>,
    changes: u32,
}

impl<A: Copy + Eq + Hash> Sliced<A> {
    /// The state at the beginning of a slice.
    pub fn new(ahead: Ahead) -> Sliced<A> {
        Sliced {
            start: ahead.start,
            effects: ahead.effects.into_iter().peekable(),
            acts: 0,
            members: Table::default(),
            tables: Table::default(),
            values: Values::default(),
            changes: 0,
        }
    }

    /// The current point between changes.
    pub fn moment(&self) -> Moment {
        Moment(self.changes)
    }

    /// A value for a known file.
    pub fn is(&mut self, what: A) -> ValueId {
        self.values.is(what)
    }

    /// The file of a value; `None` if the descriptor is not open.
    ///
    /// # Errors
    /// If the file depends on the state before the slice.
    pub fn known(&self, value: ValueId) -> Result<Option<A>, OfBefore> {
        match self.values.get(value) {
            None => Ok(None),
            Some(Value::Is(what, _)) => Ok(Some(what)),
            Some(Value::Renamed(what, _) | Value::Flagged(what, _)) => {
                match self.values.get(what) {
                    Some(Value::Is(what, _)) => Ok(Some(what)),
                    _ => Err(OfBefore),
                }
            }
            Some(_) => Err(OfBefore),
        }
    }

    fn belonging(&self, thread: ThreadKey) -> Belonging {
        let now = self.members.find(thread).and_then(|history| history.last());
        now.map_or_else(|| self.start.belonging(thread), |from| from.value)
    }

    /// The process of a thread, if known; else the thread itself.
    pub fn process(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belonging(thread).pid)
    }

    /// The table of a thread.
    pub fn table(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belonging(thread).table)
    }

    /// The file of a thread's descriptor at a time in the slice.
    pub fn at(&mut self, thread: ThreadKey, fd: i32, time: i64) -> SlicedAnswer {
        let history = self
            .members
            .find(thread)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let (table, moves) = match at(history, time) {
            Some((belonging, until)) => (belonging.table, until),
            None => (self.start.belonging(thread).table, begin(history)),
        };
        let SlicedAnswer { value, until } = self.in_table(thread.with(table), fd, time);
        let until = moves.into_iter().chain(until).min();
        SlicedAnswer { value, until }
    }

    fn in_table(&mut self, table: ThreadKey, fd: i32, time: i64) -> SlicedAnswer {
        let of_table = self.tables.find(table);
        let history = of_table.and_then(|of_table| of_table.fds.get(&fd));
        let history = history.map(Vec::as_slice).unwrap_or_default();
        if let Some((value, until)) = at(history, time) {
            return SlicedAnswer { value, until };
        }
        let bases = of_table.map(|of_table| of_table.bases.as_slice());
        let bases = bases.unwrap_or_default();
        let (base, changes) = match at(bases, time) {
            Some((base, changes)) => (Some(base), changes),
            None => (None, begin(bases)),
        };
        let until = changes.into_iter().chain(begin(history)).min();
        let base = base.unwrap_or_else(|| self.values.base(Base::Start(table)));
        let value = self.values.of_base(base, fd);
        SlicedAnswer { value, until }
    }

    /// The file of a table's descriptor after the changes before `moment`, or after all changes if
    /// `moment` is `None`.
    pub fn now(&mut self, table: ThreadKey, fd: i32, moment: Option<Moment>) -> ValueId {
        let moment = moment.unwrap_or(Moment::LAST);
        let of_table = self.tables.find(table);
        let history = of_table.and_then(|of_table| of_table.fds.get(&fd));
        if let Some(value) = before(history.map(Vec::as_slice).unwrap_or_default(), moment) {
            return value;
        }
        let bases = of_table.map(|of_table| of_table.bases.as_slice());
        let base = before(bases.unwrap_or_default(), moment);
        let base = base.unwrap_or_else(|| self.values.base(Base::Start(table)));
        self.values.of_base(base, fd)
    }

    fn current_base(&mut self, table: ThreadKey) -> u32 {
        let bases = self.tables.find(table).and_then(|table| table.bases.last());
        match bases {
            Some(from) => from.value,
            None => self.values.base(Base::Start(table)),
        }
    }

    fn order(&mut self) -> u32 {
        self.changes = self.changes.saturating_add(1);
        self.changes - 1
    }

    fn set(&mut self, table: ThreadKey, fd: i32, time: i64, value: ValueId) {
        if fd == NO_FD {
            return;
        }
        let order = self.order();
        let history = self.tables.get(table).fds.entry(fd).or_default();
        if history.last().is_none_or(|last| last.value != value) {
            history.push(From { order, time, value });
        }
    }

    fn set_base(&mut self, table: ThreadKey, time: i64, base: Base) {
        let value = self.values.base(base);
        let order = self.order();
        self.tables
            .get(table)
            .bases
            .push(From { order, time, value });
    }

    /// The descriptors of a table that the slice has set, with their current values.
    fn fds(&self, table: ThreadKey) -> Vec<(i32, ValueId)> {
        let of_table = self.tables.find(table);
        let fds = of_table.into_iter().flat_map(|of_table| &of_table.fds);
        let last = |(fd, history): (&i32, &Vec<From<ValueId>>)| Some((*fd, history.last()?.value));
        fds.filter_map(last).collect()
    }

    /// Applies a change by a thread, other than an [`Act`](crate::Act).
    pub fn change(&mut self, thread: ThreadKey, time: i64, change: Change<ValueId>) {
        let table = self.table(thread);
        match change {
            Change::Opened { fd, kind, cloexec } => {
                let value = self.values.flagged(kind, cloexec);
                self.set(table, fd, time, value);
            }
            Change::Pair {
                fds: (first, second),
                kind,
                cloexec,
            } => {
                let value = self.values.flagged(kind, cloexec);
                self.set(table, first, time, value);
                self.set(table, second, time, value);
            }
            Change::Accepted {
                fd,
                from,
                kind,
                cloexec,
            } => {
                let value = match kind {
                    Some(kind) => self.values.flagged(kind, cloexec),
                    None => {
                        let from = self.now(table, from, None);
                        self.values.accepted(from, cloexec)
                    }
                };
                self.set(table, fd, time, value);
            }
            Change::Duplicated { from, to, cloexec } => {
                let from = self.now(table, from, None);
                let value = self.values.flagged(from, cloexec);
                self.set(table, to, time, value);
            }
            Change::CloseOnExec { fd, cloexec } => {
                let value = self.now(table, fd, None);
                let value = self.values.flagged(value, cloexec);
                self.set(table, fd, time, value);
            }
            Change::Closed { fd } => self.set(table, fd, time, ValueId::default()),
            Change::Range {
                first,
                last,
                only_flag,
                ..
            } => self.range(table, time, (first, last), only_flag),
            Change::Cloning(_) | Change::Unshared => {}
        }
    }

    fn range(&mut self, table: ThreadKey, time: i64, (first, last): (i64, i64), only_flag: bool) {
        for (fd, value) in self.fds(table) {
            if (first..=last).contains(&i64::from(fd)) {
                let value = match only_flag {
                    true => self.values.flagged(value, true),
                    false => ValueId::default(),
                };
                self.set(table, fd, time, value);
            }
        }
        let base = self.current_base(table);
        let base = match only_flag {
            true => Base::Flagged(base, first, last),
            false => Base::Closed(base, first, last),
        };
        self.set_base(table, time, base);
    }

    /// Gives a thread's descriptor another file, and keeps its close-on-exec flag.
    pub fn rename(&mut self, thread: ThreadKey, fd: i32, time: i64, what: ValueId) {
        let table = self.table(thread);
        let before = self.now(table, fd, None);
        let value = self.values.renamed(what, before);
        self.set(table, fd, time, value);
    }

    /// Sets the file of a table's descriptor from a state dump, if it is not known.
    pub fn holds(
        &mut self,
        table: ThreadKey,
        time: i64,
        (fd, what, cloexec): (i32, ValueId, bool),
    ) {
        let before = self.now(table, fd, None);
        let what = self.values.flagged(what, cloexec);
        let value = self.values.or_else(before, what);
        self.set(table, fd, time, value);
    }

    /// Ends a call of a thread that may change its table, but whose change is not known yet.
    pub fn late(&mut self, thread: ThreadKey, time: i64, call: u32) {
        let table = self.table(thread);
        for (fd, before) in self.fds(table) {
            let value = self.values.late(call, fd, before);
            self.set(table, fd, time, value);
        }
        let base = self.current_base(table);
        self.set_base(table, time, Base::Late(call, base));
    }

    /// Applies the next of the acts that were looked ahead. Returns the table of a descriptor in a
    /// state dump.
    pub fn act(&mut self, time: i64) -> Option<ThreadKey> {
        let number = self.acts;
        self.acts += 1;
        let mut holder = None;
        while let Some((_, effect)) = self.effects.next_if(|(of, _)| *of == number) {
            match effect {
                Effect::Belongs(thread, belonging) => {
                    let order = self.order();
                    let value = belonging;
                    self.members.get(thread).push(From { order, time, value });
                }
                Effect::Copied { from, to } => self.copy(from, to, time),
                Effect::Executed(table) => self.execute(table, time),
                Effect::Closed(table) => self.clear(table, time),
                Effect::Held(table) => holder = Some(table),
                // The thread has only descriptors inherited from its creator, which are not moved.
                Effect::Moved { from, .. } => self.clear(from, time),
                Effect::Left(_) => {}
            }
        }
        holder
    }

    fn clear(&mut self, table: ThreadKey, time: i64) {
        for (fd, _) in self.fds(table) {
            self.set(table, fd, time, ValueId::default());
        }
        self.set_base(table, time, Base::Empty);
    }

    fn execute(&mut self, table: ThreadKey, time: i64) {
        for (fd, value) in self.fds(table) {
            let value = self.values.executed(value);
            self.set(table, fd, time, value);
        }
        let base = self.current_base(table);
        self.set_base(table, time, Base::Exec(base));
    }

    fn copy(&mut self, from: ThreadKey, to: ThreadKey, time: i64) {
        if from == to {
            return self.clear(to, time);
        }
        let base = self.current_base(from);
        let copied = self.fds(from);
        self.clear(to, time);
        for (fd, _) in self.fds(to) {
            if copied.binary_search_by_key(&fd, |copied| copied.0).is_err() {
                let value = self.values.of_base(base, fd);
                self.set(to, fd, time, value);
            }
        }
        for (fd, value) in copied {
            self.set(to, fd, time, value);
        }
        let order = self.order();
        let value = base;
        self.tables.get(to).bases.push(From { order, time, value });
    }

    /// Resolves a value and its parts.
    pub fn resolve_one<K: Held>(
        &self,
        known: &mut Resolved<K>,
        value: ValueId,
        start: &Descriptors<K>,
        what: &dyn Fn(A) -> K,
        late: LateCall<'_, K>,
    ) -> K {
        let by = Resolving {
            values: &self.values,
            start: &start.contents,
            what,
            late,
        };
        known.resolve_one(&by, value);
        known.get(value).0
    }
}
