//! Contents of tables of descriptors over time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Table, ThreadKey};
use tracebraid_kernel_model::FdType;

use crate::belongings::Effect;
use crate::call::NO_FD;
use crate::change::Change;

/// The file of a descriptor. The default stands for a descriptor that is not known to be open.
pub trait Held: Copy + Eq + Default {
    /// The file of a connection that is accepted from this socket.
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

/// File and close-on-exec flag of a descriptor from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Since<K> {
    time: i64,
    kind: K,
    cloexec: bool,
}

/// Descriptors by number, each with its history.
type Fds<K> = BTreeMap<i32, Vec<Since<K>>>;

/// Contents of all tables. Changes must come in time order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "K: Deserialize<'de>"))]
pub(crate) struct Contents<K> {
    /// Keyed by the process that had the table first, or by a negative number that is no thread's
    /// id.
    tables: Table<Fds<K>>,
    /// Number of entries in all histories.
    entries: usize,
    kept: usize,
    /// Changes of descriptors, if requested.
    #[serde(skip)]
    turns: Option<Vec<Turn<K>>>,
}

impl<K> Default for Contents<K> {
    fn default() -> Self {
        Contents {
            tables: Table::default(),
            entries: 0,
            kept: 0,
            turns: None,
        }
    }
}

/// A change of a descriptor, reported on request ([`Descriptors::tell`](crate::Descriptors::tell)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn<K = FdType> {
    /// The descriptor refers to another file than before.
    Is {
        /// Table of the descriptor.
        table: ThreadKey,
        /// Number of the descriptor.
        fd: i32,
        /// The new file.
        kind: K,
        /// The file is unchanged, but turns out to have another name or type.
        is_same: bool,
    },
    /// The descriptors of a range are closed, if they were open.
    Closed {
        /// Table of the descriptors.
        table: ThreadKey,
        /// First and last number of the range, inclusive.
        fds: (i32, i32),
    },
}

/// Result of a lookup, and the time until which it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<K = FdType> {
    /// The file of the descriptor.
    pub kind: K,
    /// From this time on, the file may be another one.
    pub until: Option<i64>,
}

/// Number of latest entries of a history that are searched first: most lookups end in them.
const LATEST: usize = 4;

/// Number of entries at the start of a history for which `is_before` holds.
fn end_of<T>(history: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let late = history.len().saturating_sub(LATEST);
    let (early, latest) = history.split_at(late);
    match early.last().is_none_or(&is_before) {
        true => late + latest.partition_point(is_before),
        false => early.partition_point(is_before),
    }
}

impl<K: Held> Contents<K> {
    /// A descriptor that is not known to be open.
    fn nothing() -> (K, bool) {
        (K::default(), false)
    }

    pub(crate) fn is_sound(&self) -> bool {
        const MOST: usize = 1 << 30;
        self.tables.is_sound() && self.entries.max(self.kept) < MOST
    }

    fn history(&self, table: ThreadKey, fd: i32) -> &[Since<K>] {
        let history = self.tables.find(table).and_then(|fds| fds.get(&fd));
        history.map(Vec::as_slice).unwrap_or_default()
    }

    /// The file of a table's descriptor at a time.
    pub(crate) fn at(&self, table: ThreadKey, fd: i32, time: i64) -> Answer<K> {
        let history = self.history(table, fd);
        let after = end_of(history, |since| since.time <= time);
        let since = after.checked_sub(1).and_then(|at| history.get(at));
        Answer {
            kind: since.map_or(K::default(), |since| since.kind),
            until: history.get(after).map(|since| since.time),
        }
    }

    /// Whether a table's descriptor has had the same file since `time`.
    pub(crate) fn is_same_since(&self, table: ThreadKey, fd: i32, time: i64) -> bool {
        let kind = self.at(table, fd, time).kind;
        let mut later = self.history(table, fd).iter().rev();
        // Later entries may differ only in the close-on-exec flag.
        later
            .by_ref()
            .take_while(|since| since.time > time)
            .all(|since| since.kind == kind)
    }

    pub(crate) fn tell(&mut self) {
        self.turns.get_or_insert_default();
    }

    pub(crate) fn turns(&mut self) -> impl Iterator<Item = Turn<K>> + '_ {
        self.turns.iter_mut().flat_map(|turns| turns.drain(..))
    }

    fn turned(&mut self, turn: impl FnOnce() -> Turn<K>) {
        if let Some(turns) = &mut self.turns {
            turns.push(turn());
        }
    }

    /// The current file of a table's descriptor, and its close-on-exec flag.
    pub(crate) fn now(&self, table: ThreadKey, fd: i32) -> (K, bool) {
        let last = self.history(table, fd).last();
        last.map_or(Self::nothing(), |since| (since.kind, since.cloexec))
    }

    /// Whether no descriptor of a table is known to be open.
    pub(crate) fn is_empty(&self, table: ThreadKey) -> bool {
        let mut fds = self.fds(table).into_iter();
        fds.all(|fd| self.now(table, fd) == Self::nothing())
    }

    /// Numbers of the descriptors of a table that have a history.
    pub(crate) fn fds(&self, table: ThreadKey) -> Vec<i32> {
        let fds = self.tables.find(table);
        fds.map(|fds| fds.keys().copied().collect())
            .unwrap_or_default()
    }

    /// Sets the file of a descriptor from `time` on.
    pub(crate) fn set(&mut self, table: ThreadKey, fd: i32, time: i64, kind: K, cloexec: bool) {
        self.set_or_rename(table, fd, time, (kind, cloexec), false);
    }

    /// Moves the last change of a descriptor to `time`.
    pub(crate) fn touch(&mut self, table: ThreadKey, fd: i32, time: i64) {
        let history = self.tables.get(table).get_mut(&fd);
        let last = history.and_then(|history| history.last_mut());
        if let Some(last) = last.filter(|last| last.time <= time) {
            // The values in between are not looked up any more.
            last.time = time;
        }
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
            // The descriptor may have been open without being known.
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
        // The flag of an unknown descriptor is not kept.
        let cloexec = cloexec && kind != K::default();
        let history = match (kind, cloexec) == Self::nothing() {
            true => self.tables.find_mut(table).and_then(|fds| fds.get_mut(&fd)),
            false => Some(self.tables.get(table).entry(fd).or_default()),
        };
        let Some(history) = history else { return };
        let last = history.last().map(|since| (since.kind, since.cloexec));
        if last.unwrap_or_else(Self::nothing) == (kind, cloexec) {
            return;
        }
        if history.is_empty() {
            // Most descriptors are opened and closed once.
            history.reserve_exact(2);
        }
        history.push(Since {
            time,
            kind,
            cloexec,
        });
        self.entries += 1;
    }

    /// Sets the close-on-exec flag of a descriptor, whether its file is known or not.
    fn flag(&mut self, table: ThreadKey, fd: i32, time: i64, cloexec: bool) {
        let kind = self.now(table, fd).0;
        self.set_or_rename(table, fd, time, (kind, cloexec), true);
    }

    /// Changes the contents of a table, but not the tables of threads.
    pub(crate) fn change(&mut self, table: ThreadKey, time: i64, change: Change<K>) {
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
                ..
            } => self.close_range(table, time, first..=last, only_flag),
            Change::Cloning(_) | Change::Unshared => {}
        }
    }

    /// Gives a descriptor another file, and keeps its close-on-exec flag.
    pub(crate) fn rename(&mut self, table: ThreadKey, fd: i32, time: i64, kind: K) {
        let cloexec = self.now(table, fd).1;
        self.set_or_rename(table, fd, time, (kind, cloexec), true);
    }

    fn close_range(
        &mut self,
        table: ThreadKey,
        time: i64,
        range: RangeInclusive<i64>,
        only_flag: bool,
    ) {
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

    fn clear(&mut self, table: ThreadKey, time: i64) {
        let fds = (0, i32::MAX);
        self.turned(|| Turn::Closed { table, fds });
        for fd in self.fds(table) {
            self.set(table, fd, time, K::default(), false);
        }
    }

    /// Applies the effect of an act on the contents of tables.
    pub(crate) fn apply(&mut self, time: i64, effect: Effect) {
        match effect {
            Effect::Belongs(..) | Effect::Held(_) => {}
            Effect::Copied { from, to } => {
                self.clear(to, time);
                for fd in self.fds(from) {
                    let (kind, cloexec) = self.now(from, fd);
                    self.set(to, fd, time, kind, cloexec);
                }
            }
            Effect::Executed(table) => {
                for fd in self.fds(table) {
                    if self.now(table, fd).1 {
                        self.set(table, fd, time, K::default(), false);
                    }
                }
            }
            Effect::Closed(table) => self.clear(table, time),
            Effect::Moved { from, to, since } => self.moved(from, to, since, time),
            Effect::Left(table) => self.turned(|| Turn::Closed {
                table,
                fds: (0, i32::MAX),
            }),
        }
    }

    /// Moves descriptors that a thread seemed to have alone to the table of its process.
    fn moved(&mut self, from: ThreadKey, to: ThreadKey, since: i64, time: i64) {
        for fd in self.fds(from) {
            let (kind, cloexec) = self.now(from, fd);
            // An inherited descriptor is not moved: if the process lacks it, the process has closed
            // it.
            let changed = self.history(from, fd).last().map(|since| since.time);
            let is_news = changed.is_some_and(|time| time > since);
            let is_known = kind != K::default();
            if is_news && is_known && self.now(to, fd).0 == K::default() {
                self.set(to, fd, time, kind, cloexec);
            }
            self.set(from, fd, time, K::default(), false);
        }
        if to != from {
            // Descriptors that are not known to be open are gone from this table too.
            self.apply(time, Effect::Left(from));
        }
    }

    /// Removes a table in which no descriptor is open, and whose history is no longer needed.
    pub(crate) fn remove(&mut self, table: ThreadKey) {
        // The empty entry stays: a table counts as forgotten only when it leaves the list of
        // tables.
        self.tables.find_mut(table).map(std::mem::take);
        let fds = (0, i32::MAX);
        self.turned(|| Turn::Closed { table, fds });
    }

    /// Forgets changes before `before`, if that frees enough memory; they must not be looked up any
    /// more.
    pub(crate) fn forget(&mut self, before: i64) {
        if self.entries < 2 * self.kept + 64 {
            return;
        }
        self.entries = 0;
        for fds in self.tables.values() {
            fds.retain(|_, history| {
                let after = history.partition_point(|since| since.time <= before);
                history.drain(..after.saturating_sub(1));
                let gone = |since: &Since<K>| {
                    since.time <= before && (since.kind, since.cloexec) == Self::nothing()
                };
                history.shrink_to(2 * history.len());
                self.entries += history.len();
                !matches!(history.as_slice(), [only] if gone(only))
            });
        }
        self.tables.retain(|fds| !fds.is_empty());
        self.kept = self.entries;
    }
}
