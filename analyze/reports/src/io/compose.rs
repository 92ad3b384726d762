//! Appends a played slice of time to the state before it.

use std::any::Any;

use tracebraid_descriptors::{Change, Held, LateChange, Resolved, ValueId};
use tracebraid_kernel_model::FdType;

use crate::io::item::IoAction;
use crate::io::machine::{Around, IoMachine};
use crate::io::parking::Parked;
use crate::io::slice::{Cell, Late, Left, SliceCall};
use crate::io::stretch;
use crate::io::sums::Types;

/// A slice that is being appended to the state before it.
struct Composer<'a> {
    around: Around<'a>,
    machine: &'a mut IoMachine,
    left: Left,
    known: Resolved<FdType>,
    /// Effects of late events, by number.
    changes: Vec<LateChange<FdType>>,
}

/// Appends a slice to the state before it. Descriptors before the time `since` are no longer
/// needed. Returns the remains of the slice, for the caller to free.
pub(super) fn compose(
    around: Around<'_>,
    machine: &mut IoMachine,
    mut left: Left,
    since: i64,
) -> impl Any + Send + Sync + use<> {
    let late = std::mem::take(&mut left.late);
    let mut composer = Composer {
        around,
        machine,
        left,
        known: Resolved::default(),
        changes: Vec::new(),
    };
    late.iter().for_each(|late| composer.late(late));
    composer.calls();
    composer.sums();
    composer.threads();
    (composer.end(since), late)
}

impl Composer<'_> {
    /// The type that a value stands for, given the effects of late events so far.
    fn resolve(&mut self, value: ValueId) -> FdType {
        let changes = &self.changes;
        let late = |number: u32, fd, before| match changes.get(number as usize) {
            Some(change) => change.of(fd, before),
            None => before,
        };
        let start = &self.machine.descriptors;
        let sliced = &self.left.descriptors;
        sliced.resolve_one(&mut self.known, value, start, &|kind| kind, &late)
    }

    /// An exit that may end a call which began before the slice.
    fn late(&mut self, late: &Late) {
        let Late {
            thread, time, exit, ..
        } = *late;
        let ended = self.machine.ends(&mut self.around, time, thread, &exit);
        if let Some((io, types)) = ended.io {
            let looked_up = || self.machine.types(thread, io.call, io.fds, io.entry).0;
            let types = types.unwrap_or_else(looked_up);
            self.around.totals.add(thread, io.call, &io.tally(), types);
        }
        let mut change = ended.change;
        if ended.is_alone {
            for item in stretch::alone(&exit, time, thread.tid) {
                match item.what {
                    IoAction::Change(alone) => change = Some(alone),
                    _ => self.around.unstarted(thread),
                }
            }
        }
        if late.may_change {
            let change = change.map_or(LateChange::Nothing, |change| self.changed(late, change));
            self.changes.push(change);
        }
    }

    fn changed(&mut self, late: &Late, change: Change) -> LateChange<FdType> {
        let mut now = |fd| {
            let value = self.left.descriptors.now(late.table, fd, Some(late.moment));
            self.resolve(value)
        };
        match change {
            Change::Accepted {
                from, kind: None, ..
            } => LateChange::Change {
                change: change.with(now(from).accepted()),
                copied: FdType::default(),
            },
            Change::Duplicated { from, .. } => LateChange::Change {
                change,
                copied: now(from),
            },
            change => LateChange::Change {
                change,
                copied: FdType::default(),
            },
        }
    }

    /// Adds calls that began before the slice.
    fn calls(&mut self) {
        for (thread, io) in std::mem::take(&mut self.left.calls) {
            let types = self.machine.types(thread, io.call, io.fds, io.entry).0;
            self.around.totals.add(thread, io.call, &io.tally(), types);
        }
    }

    /// Adds sums for descriptors that were open when the slice began.
    fn sums(&mut self) {
        let unknown = std::mem::take(&mut self.left.unknown);
        let sums = std::mem::take(&mut self.left.sums);
        for (&(thread, call, value), sums) in unknown.keys().iter().zip(&sums) {
            let kind = self.resolve(value);
            self.around.totals.add_sums(thread, (call, kind), sums);
        }
        self.left.unknown = unknown;
    }

    /// Installs the open calls of threads.
    fn threads(&mut self) {
        for (thread, cell) in std::mem::take(&mut self.left.cells).into_entries() {
            let Cell::Known { is_lost, parked } = cell else {
                continue;
            };
            if is_lost {
                self.machine.drop_parked(&mut self.around, thread);
            }
            if let Some(SliceCall { open, cpu, held }) = parked {
                let types = held.map(|held| self.types_of(held));
                let looked_up = || self.machine.types(thread, open.call, open.fds, open.time).0;
                let types = types.or_else(|| open.is_io().then(looked_up));
                self.machine.parked.put(thread, Parked { open, cpu, types });
            }
        }
    }

    fn types_of(&mut self, held: (ValueId, ValueId)) -> Types {
        (self.resolve(held.0), self.resolve(held.1))
    }

    /// Installs the descriptors at the end of the slice.
    fn end(mut self, since: i64) -> Left {
        let changes = &self.changes;
        let late = |number: u32, fd, before| match changes.get(number as usize) {
            Some(change) => change.of(fd, before),
            None => before,
        };
        let targets: Vec<i32> = changes.iter().flat_map(LateChange::fds).collect();
        let descriptors = &mut self.machine.descriptors;
        let sliced = &mut self.left.descriptors;
        sliced.install(
            &mut self.known,
            descriptors,
            since,
            &|kind| kind,
            &late,
            &targets,
        );
        descriptors.forget(since);
        self.left
    }
}
