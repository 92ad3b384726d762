//! Which process has which descriptors, and what each of them was when.

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;
use tracebraid_kernel_model::FdType;

use crate::belongings::{Act, Belongings, Effect};
use crate::change::Change;
use crate::contents::{Answer, Contents, Held, Turn};

/// Descriptors of all processes. Changes must be told in the order of time.
///
/// A change at a time holds for calls that begin at that time.
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
    /// Whether it can have come about by changes: nothing in it overflows then.
    pub fn is_sound(&self) -> bool {
        self.belongings.is_sound() && self.contents.is_sound()
    }

    /// What a thread's descriptor was at a time.
    pub fn kind(&self, thread: ThreadKey, fd: i32, time: i64) -> Answer<K> {
        let (table, moves) = self.belongings.table_at(thread, time);
        let Answer { kind, until } = self.contents.at(table, fd, time);
        let until = moves.into_iter().chain(until).min();
        Answer { kind, until }
    }

    /// What a thread's descriptor is now.
    pub fn now(&self, thread: ThreadKey, fd: i32) -> K {
        self.contents.now(self.table_of(thread), fd).0
    }

    /// From now on, what becomes of descriptors is kept until it is taken ([`Descriptors::turns`]).
    pub fn tell(&mut self) {
        self.contents.tell();
    }

    /// Takes what became of descriptors.
    pub fn turns(&mut self) -> impl Iterator<Item = Turn<K>> + '_ {
        self.contents.turns()
    }

    /// The table that a thread's descriptor is in, if since a time neither has become another one.
    pub fn holder(&self, thread: ThreadKey, fd: i32, time: i64) -> Option<ThreadKey> {
        let (table, _) = self.belongings.table_at(thread, time);
        let is_same = self.belongings.had_since(thread, table, time)
            && self.contents.is_same_since(table, fd, time);
        is_same.then_some(table)
    }

    /// The process of a thread, as far as is known; else the thread itself.
    pub fn process(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belongings.belonging(thread).pid)
    }

    pub(crate) fn table_of(&self, thread: ThreadKey) -> ThreadKey {
        thread.with(self.belongings.belonging(thread).table)
    }

    /// A thread changed its descriptors.
    pub fn change(&mut self, thread: ThreadKey, time: i64, change: Change<K>) {
        if let Some(act) = change.act() {
            self.act(thread, time, act);
        }
        self.contents.change(self.table_of(thread), time, change);
    }

    /// A thread's descriptor turns out to be something else, and is closed at exec as before.
    pub fn rename(&mut self, thread: ThreadKey, fd: i32, time: i64, kind: K) {
        self.contents.rename(self.table_of(thread), fd, time, kind);
    }

    /// Something decides which thread has which table.
    pub fn act(&mut self, thread: ThreadKey, time: i64, act: Act) {
        self.acted(thread, time, act);
    }

    /// The same of a descriptor in a state dump. What is known of it already was seen when it was
    /// opened, and is better.
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
        // Nothing is unclear where it is known what is in tables.
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

    /// Forgets what was before a time for which nobody will ask any more, if that is worth it.
    pub fn forget(&mut self, before: i64) {
        self.contents.forget(before);
        self.belongings.forget(before);
    }
}

impl<K> Change<K> {
    /// What it does to the question which thread has which table, if it does.
    pub fn act(&self) -> Option<Act> {
        match self {
            Change::Cloning(sharing) => Some(Act::Cloning(*sharing)),
            Change::Unshared | Change::Range { unshared: true, .. } => Some(Act::Unshare),
            _ => None,
        }
    }
}
