//! Which process has which descriptors, and what each of them was when.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::FdType;

use crate::io::call::NO_FD;
use crate::io::change::{Change, Sharing};
use crate::io::item::Holder;
use crate::kernel::{Table, ThreadKey};

/// What a descriptor may be; the default stands for what is not open, as far as is known.
pub(crate) trait Held: Copy + Eq + Default {
    /// What a connection is that comes from a socket that is this.
    fn accepted(self) -> Self;
}

impl Held for FdType {
    fn accepted(self) -> FdType {
        match self {
            FdType::Unknown => FdType::Socket,
            kind => kind,
        }
    }
}

/// What a descriptor was from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Since<K> {
    time: i64,
    kind: K,
    cloexec: bool,
}

/// Descriptors by number, each with its history: those of a process, or of several that share them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct FdTable<K> {
    fds: BTreeMap<i32, Vec<Since<K>>>,
    /// Threads that are known to have it, but for one.
    others: u32,
    /// Some of them are of other processes.
    shared: bool,
    /// The process whose id it has as its own has another one by now.
    lent: bool,
}

/// Which process a thread belongs to, and which table it has, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Belonging {
    since: i64,
    pid: i32,
    table: i32,
    /// Process and table of the thread that made it, as long as nothing tells whether it has the same.
    maker: Option<(i32, i32)>,
}

/// Descriptors of all processes. Changes must be told in the order of time.
///
/// A change at a time holds for calls that begin at that time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Descriptors<K = FdType> {
    /// By the process that had it first, or by a negative number that no thread has.
    tables: Table<FdTable<K>>,
    /// Belongings of threads, with their history; who is not in it is alone in its process.
    members: Table<Vec<Belonging>>,
    /// What threads are about to make.
    cloning: Table<Option<Sharing>>,
    /// Processes by trace and address of their table, in the state dump.
    addresses: BTreeMap<u32, BTreeMap<i64, i32>>,
    /// How many tables have negative numbers.
    numbered: i32,
    /// Entries of histories, and how many there were after the last forgetting.
    entries: usize,
    kept: usize,
    /// What became of descriptors, if somebody asked.
    #[serde(skip)]
    turns: Option<Vec<Turn<K>>>,
}

/// What becomes of descriptors, for whoever asks to be told ([`Descriptors::tell`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn<K = FdType> {
    /// It is something else than before; `is_same`: the same thing turns out to be called otherwise.
    Is {
        table: ThreadKey,
        fd: i32,
        kind: K,
        is_same: bool,
    },
    /// Those from the first to the last are closed, if they were open.
    Closed { table: ThreadKey, fds: (i32, i32) },
}

/// What is looked up, and up to when it stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer<K = FdType> {
    pub(crate) kind: K,
    /// It may be another from this time on.
    pub(crate) until: Option<i64>,
}

/// Of how many of the latest entries of a history it is one that is most often asked for.
const LATEST: usize = 4;

/// How many entries of a history, from the first on, are of its beginning, as `is_before` says.
fn end_of<T>(history: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let late = history.len().saturating_sub(LATEST);
    let (early, latest) = history.split_at(late);
    match early.last().is_none_or(&is_before) {
        true => late + latest.partition_point(is_before),
        false => early.partition_point(is_before),
    }
}

impl<K: Held> Descriptors<K> {
    /// A descriptor that is not open, as far as is known.
    fn nothing() -> (K, bool) {
        (K::default(), false)
    }

    /// Whether it can have come about by changes: nothing in it overflows then.
    pub(crate) fn is_sound(&self) -> bool {
        const MOST: usize = 1 << 30;
        let tables = self.tables.entries();
        self.tables.is_sound()
            && self.members.is_sound()
            && self.cloning.is_sound()
            && self.entries.max(self.kept) < MOST
            && (0..MOST as i32).contains(&self.numbered)
            && tables
                .map(|(_, table)| table.others as usize)
                .all(|others| others < MOST)
    }

    /// What a thread's descriptor was at a time.
    pub(crate) fn kind(&self, thread: ThreadKey, fd: i32, time: i64) -> Answer<K> {
        let (table, moves) = self.table_at(thread, time);
        let history = self.tables.find(table).and_then(|table| table.fds.get(&fd));
        let history = history.map(Vec::as_slice).unwrap_or_default();
        let after = end_of(history, |since| since.time <= time);
        let kind = after
            .checked_sub(1)
            .and_then(|at| history.get(at))
            .map_or(K::default(), |since| since.kind);
        let changes = history.get(after).map(|since| since.time);
        Answer {
            kind,
            until: moves.into_iter().chain(changes).min(),
        }
    }

    /// From now on, what becomes of descriptors is kept until it is taken ([`Descriptors::turns`]).
    pub(crate) fn tell(&mut self) {
        self.turns.get_or_insert_default();
    }

    /// Takes what became of descriptors.
    pub(crate) fn turns(&mut self) -> impl Iterator<Item = Turn<K>> + '_ {
        self.turns.iter_mut().flat_map(|turns| turns.drain(..))
    }

    fn turned(&mut self, turn: impl FnOnce() -> Turn<K>) {
        if let Some(turns) = &mut self.turns {
            turns.push(turn());
        }
    }

    /// The table that a thread's descriptor is in, if since a time neither has become another one.
    pub(crate) fn holder(&self, thread: ThreadKey, fd: i32, time: i64) -> Option<ThreadKey> {
        let (table, _) = self.table_at(thread, time);
        let belongings = self.members.find(thread).into_iter().flatten();
        let mut later = belongings.rev().take_while(|belonging| belonging.since > time);
        if !later.all(|belonging| belonging.table == table.tid) {
            return None;
        }
        let kind = self.kind(thread, fd, time).kind;
        let history = self.tables.find(table).and_then(|table| table.fds.get(&fd));
        let entries = history.into_iter().flatten().rev();
        // It may be told anew whether it is closed at exec.
        let mut later = entries.take_while(|since| since.time > time);
        later.all(|since| since.kind == kind).then_some(table)
    }

    /// The table of a thread at a time, and when it gets another one.
    fn table_at(&self, thread: ThreadKey, time: i64) -> (ThreadKey, Option<i64>) {
        let Some(history) = self.members.find(thread) else {
            return (thread, None);
        };
        let after = end_of(history, |belonging| belonging.since <= time);
        let table = after
            .checked_sub(1)
            .and_then(|at| history.get(at))
            .map_or(thread.tid, |belonging| belonging.table);
        (
            thread.with(table),
            history.get(after).map(|belonging| belonging.since),
        )
    }

    /// What a thread belongs to now.
    fn belonging(&self, thread: ThreadKey) -> Belonging {
        let last = self.members.find(thread).and_then(|history| history.last());
        last.copied().unwrap_or(Belonging {
            since: i64::MIN,
            pid: thread.tid,
            table: thread.tid,
            maker: None,
        })
    }

    /// The process of a thread, as far as is known; else the thread itself.
    pub(crate) fn process(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belonging(thread).pid)
    }

    fn table_of(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belonging(thread).table)
    }

    /// The table of a process now.
    fn table_of_process(&self, process: ThreadKey) -> ThreadKey {
        let first = self.belonging(process);
        // The id may have been that of another process's thread.
        if first.pid == process.tid {
            process.with(first.table)
        } else {
            process
        }
    }

    /// What a table's descriptor is now.
    fn now(&self, table: ThreadKey, fd: i32) -> (K, bool) {
        let history = self.tables.find(table).and_then(|table| table.fds.get(&fd));
        history
            .and_then(|history| history.last())
            .map_or(Self::nothing(), |since| (since.kind, since.cloexec))
    }

    fn set(&mut self, table: ThreadKey, fd: i32, time: i64, kind: K, cloexec: bool) {
        self.set_or_rename(table, fd, time, (kind, cloexec), false);
    }

    fn set_or_rename(
        &mut self,
        table: ThreadKey,
        fd: i32,
        time: i64,
        (kind, cloexec): (K, bool),
        is_same: bool,
    ) {
        if fd == NO_FD {
            return;
        }
        if self.turns.is_some() {
            let fds = (fd, fd);
            // It may be closed without having been known.
            if kind == K::default() && !is_same {
                self.turned(|| Turn::Closed { table, fds });
            } else if self.now(table, fd).0 != kind {
                self.turned(|| Turn::Is {
                    table,
                    fd,
                    kind,
                    is_same,
                });
            }
        }
        // Nothing more is known of what is not known.
        let cloexec = cloexec && kind != K::default();
        let fds = &mut self.tables.get(table).fds;
        if (kind, cloexec) == Self::nothing() && !fds.contains_key(&fd) {
            return;
        }
        let history = fds.entry(fd).or_default();
        if history
            .last()
            .is_some_and(|last| (last.kind, last.cloexec) == (kind, cloexec))
        {
            return;
        }
        if history.is_empty() {
            // Most are opened and closed, and that is all.
            history.reserve_exact(2);
        }
        history.push(Since { time, kind, cloexec });
        self.entries += 1;
    }

    /// A descriptor is closed at exec from now on, or no longer. It is what it was, known or not.
    fn flag(&mut self, table: ThreadKey, fd: i32, time: i64, cloexec: bool) {
        let kind = self.now(table, fd).0;
        self.set_or_rename(table, fd, time, (kind, cloexec), true);
    }

    /// A thread changed its descriptors.
    pub(crate) fn change(&mut self, thread: ThreadKey, time: i64, change: Change<K>) {
        let table = self.table_of(thread);
        match change {
            Change::Opened { fd, kind, cloexec } => self.set(table, fd, time, kind, cloexec),
            Change::Pair {
                fds: (first, second),
                kind,
                cloexec,
            } => {
                self.set(table, first, time, kind, cloexec);
                self.set(table, second, time, kind, cloexec);
            }
            Change::Accepted {
                fd,
                from,
                kind,
                cloexec,
            } => {
                let kind = kind.unwrap_or_else(|| self.now(table, from).0.accepted());
                self.set(table, fd, time, kind, cloexec);
            }
            Change::Duplicated { from, to, cloexec } => {
                let kind = self.now(table, from).0;
                self.set(table, to, time, kind, cloexec);
            }
            Change::CloseOnExec { fd, cloexec } => self.flag(table, fd, time, cloexec),
            Change::Closed { fd } => self.set(table, fd, time, K::default(), false),
            Change::Range {
                first,
                last,
                only_flag,
                unshared,
            } => {
                let table = if unshared {
                    self.unshare(thread, time)
                } else {
                    table
                };
                self.close_range(table, time, first..=last, only_flag);
            }
            Change::Cloning(sharing) => *self.cloning.get(thread) = sharing,
            Change::Unshared => {
                self.unshare(thread, time);
            }
        }
    }

    /// A thread's descriptor turns out to be something else, and is closed at exec as before.
    pub(crate) fn rename(&mut self, thread: ThreadKey, fd: i32, time: i64, kind: K) {
        let table = self.table_of(thread);
        let cloexec = self.now(table, fd).1;
        self.set_or_rename(table, fd, time, (kind, cloexec), true);
    }

    fn close_range(&mut self, table: ThreadKey, time: i64, range: RangeInclusive<i64>, only_flag: bool) {
        if !only_flag {
            let descriptor = |fd: i64| fd.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            let fds = (descriptor(*range.start()), descriptor(*range.end()));
            self.turned(|| Turn::Closed { table, fds });
        }
        for fd in self.fds(table) {
            if range.contains(&i64::from(fd)) {
                match only_flag {
                    true => self.flag(table, fd, time, true),
                    false => self.set(table, fd, time, K::default(), false),
                }
            }
        }
    }

    fn fds(&self, table: ThreadKey) -> Vec<i32> {
        self.tables
            .find(table)
            .map(|table| table.fds.keys().copied().collect())
            .unwrap_or_default()
    }

    fn clear(&mut self, table: ThreadKey, time: i64) {
        let fds = (0, i32::MAX);
        self.turned(|| Turn::Closed { table, fds });
        for fd in self.fds(table) {
            self.set(table, fd, time, K::default(), false);
        }
    }

    /// Makes one table a copy of another one.
    fn copy(&mut self, from: ThreadKey, to: ThreadKey, time: i64) {
        self.clear(to, time);
        for fd in self.fds(from) {
            let (kind, cloexec) = self.now(from, fd);
            self.set(to, fd, time, kind, cloexec);
        }
        *self.tables.get(to) = FdTable {
            fds: std::mem::take(&mut self.tables.get(to).fds),
            ..FdTable::default()
        };
    }

    /// A table that nobody has.
    fn unused(&mut self, thread: ThreadKey) -> ThreadKey {
        self.numbered = self.numbered.saturating_add(1);
        // No thread has the number below 0, which stands for all that are not known.
        thread.with(ThreadKey::UNKNOWN - self.numbered)
    }

    /// A thread gets a copy of its table for itself, if others have it too.
    fn unshare(&mut self, thread: ThreadKey, time: i64) -> ThreadKey {
        let Belonging { pid, table, .. } = self.belonging(thread);
        let old = thread.with(table);
        if self.tables.find(old).is_none_or(|table| table.others == 0) {
            return old;
        }
        let new = self.unused(thread);
        self.copy(old, new, time);
        self.belongs(thread, time, pid, new.tid);
        let left = self.tables.get(old);
        left.others = left.others.saturating_sub(1);
        left.shared &= left.others > 0;
        left.lent |= old == thread;
        new
    }

    /// A process executes a program: what it shared with other processes it shares no more.
    pub(crate) fn exec(&mut self, thread: ThreadKey, time: i64) {
        let mut table = self.table_of(thread);
        if self.tables.find(table).is_some_and(|table| table.shared) {
            table = self.unshare(thread, time);
        }
        for fd in self.fds(table) {
            if self.now(table, fd).1 {
                self.set(table, fd, time, K::default(), false);
            }
        }
    }

    /// A thread is made. If nothing tells its process, it is taken for a process of its own.
    pub(crate) fn fork(
        &mut self,
        parent: ThreadKey,
        time: i64,
        child: i32,
        child_pid: Option<i32>,
        parent_pid: Option<i32>,
    ) {
        if let Some(pid) = parent_pid {
            self.member(parent, time, pid);
        }
        let child = parent.with(child);
        let from = self.belonging(parent);
        // The call may have failed, and another one have been lost.
        let fits = |how: &Sharing| child_pid.is_none_or(|pid| (pid != child.tid) == how.process);
        let how = self.cloning.get(parent).take().filter(fits);
        let same_process = how.is_some_and(|how| how.process);
        let pid = child_pid.unwrap_or(if same_process { from.pid } else { child.tid });
        if how.map_or(pid != child.tid, |how| how.files) {
            let table = if how.is_some() || pid == from.pid {
                parent.with(from.table)
            } else {
                self.table_of_process(parent.with(pid))
            };
            self.belongs(child, time, pid, table.tid);
            let files = self.tables.get(table);
            files.others += 1;
            files.shared |= pid != from.pid;
        } else {
            let is_lent = self.tables.find(child).is_some_and(|table| table.lent);
            let table = if is_lent { self.unused(child) } else { child };
            self.belongs(child, time, pid, table.tid);
            let is_told = how.is_some() || child_pid.is_some();
            let last = self.members.get(child).last_mut().filter(|_| !is_told);
            last.into_iter()
                .for_each(|last| last.maker = Some((from.pid, from.table)));
            self.copy(parent.with(from.table), table, time);
        }
    }

    /// A thread ends. With the last thread that has a table everything in it is closed.
    pub(crate) fn exit(&mut self, thread: ThreadKey, time: i64) {
        let table = self.table_of(thread);
        if self.tables.find(table).is_none() {
            let fds = (0, i32::MAX);
            return self.turned(|| Turn::Closed { table, fds });
        }
        let files = self.tables.get(table);
        if files.others > 0 {
            files.others -= 1;
            files.shared &= files.others > 0;
            return;
        }
        files.lent = false;
        self.clear(table, time);
    }

    fn belongs(&mut self, thread: ThreadKey, since: i64, pid: i32, table: i32) {
        self.members.get(thread).push(Belonging {
            since,
            pid,
            table,
            maker: None,
        });
        self.entries += 1;
    }

    /// A thread turns out to belong to a process; what it seemed to have alone is the process's.
    pub(crate) fn member(&mut self, thread: ThreadKey, time: i64, pid: i32) {
        let before = self.belonging(thread);
        if before.pid == pid {
            return;
        }
        let table = match before.maker {
            Some((process, table)) if process == pid => thread.with(table),
            _ => self.table_of_process(thread.with(pid)),
        };
        self.belongs(thread, time, pid, table.tid);
        if before.table != thread.tid {
            return;
        }
        for fd in self.fds(thread) {
            let (kind, cloexec) = self.now(thread, fd);
            // What it had from the one that made it the process has closed, if it is not there.
            let is_news = self.changed(thread, fd).is_some_and(|time| time > before.since);
            let is_known = kind != K::default();
            if is_news && is_known && self.now(table, fd).0 == K::default() {
                self.set(table, fd, time, kind, cloexec);
            }
            self.set(thread, fd, time, K::default(), false);
        }
        self.leaves_own(thread, table);
        self.tables.get(table).others += 1;
    }

    /// A thread turns out to have another table than its own: what is not known to be open is not there, either.
    fn leaves_own(&mut self, thread: ThreadKey, table: ThreadKey) {
        let fds = (0, i32::MAX);
        if table != thread {
            self.turned(|| Turn::Closed { table: thread, fds });
        }
    }

    /// When a table's descriptor changed for the last time.
    fn changed(&self, table: ThreadKey, fd: i32) -> Option<i64> {
        let history = self.tables.find(table)?.fds.get(&fd)?;
        history.last().map(|since| since.time)
    }

    /// State dump: a process's table is at that address. Who has the same address as another one
    /// before, and of whom nothing is known yet, shares that one's.
    pub(crate) fn table(&mut self, process: ThreadKey, time: i64, address: i64) {
        let mut fds = self.fds(process).into_iter();
        let is_known =
            self.members.find(process).is_some() || fds.any(|fd| self.now(process, fd) != Self::nothing());
        let addresses = self.addresses.entry(process.trace).or_default();
        let first = *addresses.entry(address).or_insert(process.tid);
        if first == process.tid {
            return;
        }
        if is_known {
            addresses.insert(address, process.tid);
            return;
        }
        let table = self.table_of_process(process.with(first));
        self.belongs(process, time, process.tid, table.tid);
        self.leaves_own(process, table);
        let files = self.tables.get(table);
        files.others += 1;
        files.shared = true;
    }

    /// State dump: a process, or whoever has the table, has a descriptor. What is known of it
    /// already was seen when it was opened, and is better.
    pub(crate) fn holds(&mut self, trace: u32, time: i64, holder: Holder, fd: i32, kind: K, cloexec: bool) {
        let pid = match holder {
            Holder::Process(pid) => Some(pid),
            Holder::Table(address) => self
                .addresses
                .get(&trace)
                .and_then(|processes| processes.get(&address).copied()),
        };
        let Some(pid) = pid else { return };
        let table = self.table_of_process(ThreadKey { trace, tid: pid });
        if self.now(table, fd).0 == K::default() {
            self.set(table, fd, time, kind, cloexec);
        }
    }

    /// Forgets what was before a time for which nobody will ask any more, if that is worth it.
    pub(crate) fn forget(&mut self, before: i64) {
        if self.entries < 2 * self.kept + 512 {
            return;
        }
        self.entries = 0;
        for table in self.tables.values() {
            table.fds.retain(|_, history| {
                let after = history.partition_point(|since| since.time <= before);
                history.drain(..after.saturating_sub(1));
                let gone =
                    |since: &Since<K>| since.time <= before && (since.kind, since.cloexec) == Self::nothing();
                history.shrink_to(2 * history.len());
                self.entries += history.len();
                !matches!(history.as_slice(), [only] if gone(only))
            });
        }
        self.tables
            .retain(|table| !table.fds.is_empty() || table.others > 0 || table.lent);
        self.cloning.retain(Option::is_some);
        for history in self.members.values() {
            let after = history.partition_point(|belonging| belonging.since <= before);
            history.drain(..after.saturating_sub(1));
            self.entries += history.len();
        }
        self.kept = self.entries;
    }
}
