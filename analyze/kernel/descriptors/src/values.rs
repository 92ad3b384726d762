//! Values of descriptors in terms of their state at the beginning of a slice of time, which is
//! unknown while the slice is played.

use std::hash::Hash;

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;

use crate::contents::{Contents, Held};
use crate::interned::Interned;

/// Number of a value in a slice. The default stands for a descriptor that is not open.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ValueId(u32);

/// The value of a descriptor in a slice. `A` is a file as the slice knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value<A> {
    /// A known file, and the close-on-exec flag.
    Is(A, bool),
    /// The value of a table's descriptor at the beginning of the slice.
    Start(ThreadKey, i32),
    /// The value after exec: not open if it was close-on-exec.
    Exec(ValueId),
    /// The value with this close-on-exec flag.
    Flagged(ValueId, bool),
    /// The file of the first value, with the flag of the second.
    Renamed(ValueId, ValueId),
    /// The first value if it is open, else the second.
    OrElse(ValueId, ValueId),
    /// A connection accepted from the value, with this close-on-exec flag.
    Accepted(ValueId, bool),
    /// The value after a late call: number of the call, number of the descriptor, value before.
    Late(u32, i32, ValueId),
}

/// The value of all descriptors that a slice has not set individually.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// The state of the table at the beginning of the slice.
    Start(ThreadKey),
    Empty,
    Exec(u32),
    /// Closed if the number is in the range.
    Closed(u32, i64, i64),
    /// Close-on-exec if the number is in the range.
    Flagged(u32, i64, i64),
    Late(u32, u32),
}

/// Values of a slice, each made of earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct Values<A> {
    values: Interned<Value<A>>,
    bases: Interned<Base>,
}

impl<A> Default for Values<A> {
    fn default() -> Self {
        Values {
            values: Interned::default(),
            bases: Interned::default(),
        }
    }
}

impl<A: Copy + Eq + Hash> Values<A> {
    fn put(&mut self, value: Value<A>) -> ValueId {
        ValueId(self.values.number(value) + 1)
    }

    pub(crate) fn get(&self, id: ValueId) -> Option<Value<A>> {
        let at = (id.0 as usize).checked_sub(1)?;
        self.values.keys().get(at).copied()
    }

    /// The values that a value is made of.
    fn parts(&self, id: ValueId) -> impl Iterator<Item = ValueId> + use<A> {
        let (first, second) = match self.get(id) {
            None | Some(Value::Is(..) | Value::Start(..)) => (None, None),
            Some(
                Value::Exec(of)
                | Value::Flagged(of, _)
                | Value::Accepted(of, _)
                | Value::Late(_, _, of),
            ) => (Some(of), None),
            Some(Value::Renamed(of, other) | Value::OrElse(of, other)) => (Some(of), Some(other)),
        };
        first.into_iter().chain(second)
    }

    pub(crate) fn is(&mut self, what: A) -> ValueId {
        self.put(Value::Is(what, false))
    }

    pub(crate) fn flagged(&mut self, id: ValueId, cloexec: bool) -> ValueId {
        let value = match self.get(id) {
            None => return id,
            Some(Value::Is(what, _)) => Value::Is(what, cloexec),
            Some(Value::Flagged(of, _) | Value::Renamed(of, _)) => Value::Flagged(of, cloexec),
            Some(Value::Accepted(from, _)) => Value::Accepted(from, cloexec),
            Some(_) => Value::Flagged(id, cloexec),
        };
        self.put(value)
    }

    pub(crate) fn renamed(&mut self, what: ValueId, of: ValueId) -> ValueId {
        match self.get(of) {
            None => self.flagged(what, false),
            Some(Value::Is(_, cloexec)) => self.flagged(what, cloexec),
            Some(_) => self.put(Value::Renamed(what, of)),
        }
    }

    pub(crate) fn executed(&mut self, id: ValueId) -> ValueId {
        match self.get(id) {
            None
            | Some(Value::Is(_, true) | Value::Flagged(_, true) | Value::Accepted(_, true)) => {
                ValueId::default()
            }
            Some(Value::Is(_, false) | Value::Flagged(_, false) | Value::Accepted(_, false)) => id,
            Some(Value::Exec(_)) => id,
            Some(_) => self.put(Value::Exec(id)),
        }
    }

    pub(crate) fn or_else(&mut self, id: ValueId, other: ValueId) -> ValueId {
        match self.get(id) {
            None => other,
            Some(Value::Is(..)) => id,
            Some(_) => self.put(Value::OrElse(id, other)),
        }
    }

    pub(crate) fn accepted(&mut self, from: ValueId, cloexec: bool) -> ValueId {
        self.put(Value::Accepted(from, cloexec))
    }

    pub(crate) fn late(&mut self, call: u32, fd: i32, before: ValueId) -> ValueId {
        self.put(Value::Late(call, fd, before))
    }

    pub(crate) fn base(&mut self, base: Base) -> u32 {
        // Closing the close-on-exec descriptors a second time has no effect.
        match base {
            Base::Exec(of) if matches!(self.base_at(of), Base::Exec(_) | Base::Empty) => of,
            _ => self.bases.number(base),
        }
    }

    pub(crate) fn base_at(&self, base: u32) -> Base {
        let base = self.bases.keys().get(base as usize);
        base.copied().unwrap_or(Base::Empty)
    }

    /// A base and the bases that it is made of, from the last to the first.
    fn chain(&self, base: u32) -> Vec<Base> {
        let of = |base: &Base| match *base {
            Base::Start(_) | Base::Empty => None,
            Base::Exec(of) | Base::Closed(of, ..) | Base::Flagged(of, ..) | Base::Late(_, of) => {
                Some(self.base_at(of))
            }
        };
        std::iter::successors(Some(self.base_at(base)), of).collect()
    }

    /// The table that a base comes from.
    pub(crate) fn root(&self, base: u32) -> Option<ThreadKey> {
        match self.chain(base).last() {
            Some(Base::Start(table)) => Some(*table),
            _ => None,
        }
    }

    /// Whether a base depends on late calls.
    pub(crate) fn is_late(&self, base: u32) -> bool {
        self.chain(base)
            .iter()
            .any(|base| matches!(base, Base::Late(..)))
    }

    /// The value of a descriptor according to a base.
    pub(crate) fn of_base(&mut self, base: u32, fd: i32) -> ValueId {
        // Fast path: most tables have no changes of the whole table.
        match self.base_at(base) {
            Base::Start(table) => return self.put(Value::Start(table, fd)),
            Base::Empty => return ValueId::default(),
            _ => {}
        }
        let mut value = ValueId::default();
        for base in self.chain(base).into_iter().rev() {
            let is_in = |first: i64, last: i64| (first..=last).contains(&i64::from(fd));
            value = match base {
                Base::Start(table) => self.put(Value::Start(table, fd)),
                Base::Empty => ValueId::default(),
                Base::Exec(_) => self.executed(value),
                Base::Closed(_, first, last) if is_in(first, last) => ValueId::default(),
                Base::Flagged(_, first, last) if is_in(first, last) => self.flagged(value, true),
                Base::Closed(..) | Base::Flagged(..) => value,
                Base::Late(call, _) => self.late(call, fd, value),
            };
        }
        value
    }
}

/// Returns the value of a descriptor after a late call, from the number of the call, the number of
/// the descriptor, and its value before.
pub type LateCall<'a, K> = &'a dyn Fn(u32, i32, (K, bool)) -> (K, bool);

/// Files and close-on-exec flags of resolved values.
#[derive(Clone, Debug)]
pub struct Resolved<K> {
    known: Vec<Option<(K, bool)>>,
}

impl<K> Default for Resolved<K> {
    fn default() -> Self {
        Resolved { known: Vec::new() }
    }
}

/// Inputs for resolving values.
pub(crate) struct Resolving<'a, A, K> {
    pub(crate) values: &'a Values<A>,
    /// Contents of tables at the beginning of the slice.
    pub(crate) start: &'a Contents<K>,
    pub(crate) what: &'a dyn Fn(A) -> K,
    pub(crate) late: LateCall<'a, K>,
}

impl<K: Held> Resolved<K> {
    /// File and close-on-exec flag of a value; not open if it was not resolved.
    pub fn get(&self, id: ValueId) -> (K, bool) {
        self.find(id).unwrap_or((K::default(), false))
    }

    fn find(&self, id: ValueId) -> Option<(K, bool)> {
        match (id.0 as usize).checked_sub(1) {
            None => Some((K::default(), false)),
            Some(at) => self.known.get(at).copied().flatten(),
        }
    }

    fn put(&mut self, at: usize, known: (K, bool)) {
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
        }
        self.known[at] = Some(known);
    }

    /// Resolves a value and its parts.
    pub(crate) fn resolve_one<A: Copy + Eq + Hash>(
        &mut self,
        by: &Resolving<'_, A, K>,
        id: ValueId,
    ) {
        let (mut id, mut open) = (id, Vec::new());
        loop {
            if self.find(id).is_none() {
                let mut parts = by.values.parts(id);
                if let Some(missing) = parts.find(|part| self.find(*part).is_none()) {
                    open.push(std::mem::replace(&mut id, missing));
                    continue;
                }
                if let (Some(value), Some(at)) = (by.values.get(id), (id.0 as usize).checked_sub(1))
                {
                    let known = self.of(by, value);
                    self.put(at, known);
                }
            }
            match open.pop() {
                Some(next) => id = next,
                None => return,
            }
        }
    }

    /// The value, from its resolved parts.
    fn of<A: Copy>(&self, by: &Resolving<'_, A, K>, value: Value<A>) -> (K, bool) {
        let (kind, cloexec) = match value {
            Value::Is(what, cloexec) => ((by.what)(what), cloexec),
            Value::Start(table, fd) => by.start.now(table, fd),
            Value::Exec(of) => match self.get(of) {
                (_, true) => (K::default(), false),
                known => known,
            },
            Value::Flagged(of, cloexec) => (self.get(of).0, cloexec),
            Value::Renamed(what, of) => (self.get(what).0, self.get(of).1),
            Value::OrElse(of, other) => match self.get(of) {
                (kind, _) if kind == K::default() => self.get(other),
                known => known,
            },
            Value::Accepted(from, cloexec) => (self.get(from).0.accepted(), cloexec),
            Value::Late(call, fd, before) => (by.late)(call, fd, self.get(before)),
        };
        // The flag of an unknown descriptor is not kept.
        (kind, cloexec && kind != K::default())
    }
}
