//! The table of each process, and the file of each descriptor over time.

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;
use tracebraid_kernel_model::FdType;

use crate::belongings::{Act, Belongings, Effect};
use crate::change::Change;
use crate::contents::{Answer, Contents, Held, Turn};

/// Descriptors of all processes. Changes must be applied in time order.
///
/// A change at a time is in effect for calls that begin at that time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Descriptors<K = FdType> {
    pub(crate) belongings: Belongings,
    pub(crate) contents: Contents<K>,
    #[serde(skip)]
    effects: Vec<Effect>,
}

impl<K> Default for Descriptors<K> {
    fn default() -> Self {
        Descriptors {
            belongings: Belongings::default(),
            contents: Contents::default(),
            effects: Vec::new(),
        }
    }
}

impl<K: Held> Descriptors<K> {
    /// Whether changes can have produced this value. A sound value causes no overflow.
    pub fn is_sound(&self) -> bool {
        self.belongings.is_sound() && self.contents.is_sound()
    }

    /// The file of a thread's descriptor at a time.
    pub fn kind(&self, thread: ThreadKey, fd: i32, time: i64) -> Answer<K> {
        let (table, moves) = self.belongings.table_at(thread, time);
        let Answer { kind, until } = self.contents.at(table, fd, time);
        let until = moves.into_iter().chain(until).min();
        Answer { kind, until }
    }

    /// The current file of a thread's descriptor.
    pub fn now(&self, thread: ThreadKey, fd: i32) -> K {
        self.contents.now(self.table_of(thread), fd).0
    }

    /// From now on, changes of descriptors are kept until they are taken ([`Descriptors::turns`]).
    pub fn tell(&mut self) {
        self.contents.tell();
    }

    /// Takes the changes of descriptors since the last call.
    pub fn turns(&mut self) -> impl Iterator<Item = Turn<K>> + '_ {
        self.contents.turns()
    }

    /// The table of a thread's descriptor, if neither the table nor the file has changed since
    /// `time`.
    pub fn holder(&self, thread: ThreadKey, fd: i32, time: i64) -> Option<ThreadKey> {
        let (table, _) = self.belongings.table_at(thread, time);
        let is_same = self.belongings.had_since(thread, table, time)
            && self.contents.is_same_since(table, fd, time);
        is_same.then_some(table)
    }

    /// The process of a thread, if known; else the thread itself.
    pub fn process(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belongings.belonging(thread).pid)
    }

    pub(crate) fn table_of(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belongings.belonging(thread).table)
    }

    /// Applies a change by a thread.
    pub fn change(&mut self, thread: ThreadKey, time: i64, change: Change<K>) {
        if let Some(act) = change.act() {
            self.act(thread, time, act);
        }
        self.contents.change(self.table_of(thread), time, change);
    }

    /// Gives a thread's descriptor another file, and keeps its close-on-exec flag.
    pub fn rename(&mut self, thread: ThreadKey, fd: i32, time: i64, kind: K) {
        self.contents.rename(self.table_of(thread), fd, time, kind);
    }

    /// Applies an act, which decides the tables of threads.
    pub fn act(&mut self, thread: ThreadKey, time: i64, act: Act) {
        self.acted(thread, time, act);
    }

    /// Applies a descriptor of a state dump. If the descriptor is already known, it was recorded
    /// when it was opened, which is more precise.
    pub fn holds(
        &mut self,
        thread: ThreadKey,
        time: i64,
        act: Act,
        (fd, kind, cloexec): (i32, K, bool),
    ) {
        if let Some(table) = self.acted(thread, time, act)
            && self.contents.now(table, fd).0 == K::default()
        {
            self.contents.set(table, fd, time, kind, cloexec);
        }
    }

    fn acted(&mut self, thread: ThreadKey, time: i64, act: Act) -> Option<ThreadKey> {
        let Descriptors {
            belongings,
            contents,
            effects,
        } = self;
        let is_empty = |table| contents.is_empty(table);
        // No act is unclear if the contents of tables are known.
        let _ = belongings
            .acting(effects, Some(&is_empty))
            .act(thread, time, act);
        let mut holder = None;
        for effect in effects.drain(..) {
            if let Effect::Held(table) = effect {
                holder = Some(table);
            }
            contents.apply(time, effect);
        }
        holder
    }

    /// Forgets the state before `before`, if that frees enough memory; it must not be looked up any
    /// more.
    pub fn forget(&mut self, before: i64) {
        self.contents.forget(before);
        self.belongings.forget(before);
    }
}

impl<K> Change<K> {
    /// Effect of the change on the tables of threads, if it has one.
    pub fn act(&self) -> Option<Act> {
        match self {
            Change::Cloning(sharing) => Some(Act::Cloning(*sharing)),
            Change::Unshared | Change::Range { unshared: true, .. } => Some(Act::Unshare),
            _ => None,
        }
    }
}
