//! Joining a slice to the state before it: its changes become changes of [`Descriptors`].

use std::hash::Hash;

use tracebraid_follow::ThreadKey;

use crate::contents::Held;
use crate::descriptors::Descriptors;
use crate::slice_history::SlicedTable;
use crate::sliced::Sliced;
use crate::values::{LateCall, Resolved, ValueId};

/// Value of a descriptor of a table from `time` on.
struct Installed<K> {
    table: ThreadKey,
    fd: i32,
    time: i64,
    /// The file, and the close-on-exec flag.
    held: (K, bool),
    /// The value was different earlier in the slice, though it may have been the same at the
    /// beginning of the slice.
    is_change: bool,
}

/// Passes the relevant changes to `put`: the last change at or before `since`, with the time from
/// which its value holds, and all later changes. `time` and `held` return time and value of each
/// change.
fn since_last<K: Held>(
    count: usize,
    since: i64,
    time: impl Fn(usize) -> i64,
    mut held: impl FnMut(usize) -> (K, bool),
    mut put: impl FnMut(i64, (K, bool), bool),
) {
    if count == 0 {
        return;
    }
    let last = (0..count).rev().find(|at| time(*at) <= since).unwrap_or(0);
    let held_last = held(last);
    let mut first = last;
    // A change to an equal value was no change.
    while first > 0 && held(first - 1) == held_last {
        first -= 1;
    }
    put(time(first), held_last, first > 0);
    for at in last + 1..count {
        put(time(at), held(at), false);
    }
}

/// Inputs for resolving the values of a slice.
struct By<'a, A, K> {
    what: &'a dyn Fn(A) -> K,
    late: LateCall<'a, K>,
    since: i64,
    /// All descriptors that late calls change.
    targets: &'a [i32],
}

impl<A: Copy + Eq + Hash> Sliced<A> {
    /// Updates `descriptors` from the beginning to the end of the slice; of changes before `since`
    /// (nanoseconds from the origin) only the last one of each descriptor matters. `targets` are
    /// all descriptors that late calls change.
    pub fn install<K: Held>(
        &mut self,
        known: &mut Resolved<K>,
        descriptors: &mut Descriptors<K>,
        since: i64,
        what: &dyn Fn(A) -> K,
        late: LateCall<'_, K>,
        targets: &[i32],
    ) {
        let by = By {
            what,
            late,
            since,
            targets,
        };
        let (mut of_bases, mut own, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (table, of_table) in std::mem::take(&mut self.tables).into_entries() {
            if of_table.is_gone {
                gone.push(table);
                continue;
            }
            if !of_table.bases.is_empty() {
                self.base_changes((table, &of_table), (known, descriptors), &by, &mut of_bases);
            }
            for (fd, history) in of_table.fds {
                let held = |at: usize| self.held(history[at].value, (known, descriptors), &by);
                let put = |time, held, is_change| {
                    own.push(Installed {
                        table,
                        fd,
                        time,
                        held,
                        is_change,
                    });
                };
                since_last(history.len(), since, |at| history[at].time, held, put);
            }
        }
        // Installed only now, since all values are resolved with the tables at the beginning of the
        // slice.
        for installed in of_bases.into_iter().chain(own) {
            installed.put(descriptors);
        }
        gone.into_iter()
            .for_each(|table| descriptors.contents.remove(table));
    }

    fn held<K: Held>(
        &self,
        value: ValueId,
        (known, start): (&mut Resolved<K>, &Descriptors<K>),
        by: &By<'_, A, K>,
    ) -> (K, bool) {
        self.resolve_one(known, value, start, by.what, by.late);
        known.get(value)
    }

    /// Changes of descriptors that the slice changes only through changes of the whole table.
    fn base_changes<K: Held>(
        &mut self,
        (table, of_table): (ThreadKey, &SlicedTable),
        (known, start): (&mut Resolved<K>, &Descriptors<K>),
        by: &By<'_, A, K>,
        changes: &mut Vec<Installed<K>>,
    ) {
        for fd in self.fds_of_bases((table, of_table), start, by) {
            let own = of_table.fds.get(&fd).and_then(|history| history.first());
            let bases = &of_table.bases;
            let count = own.map_or(bases.len(), |own| {
                bases.partition_point(|base| base.order < own.order)
            });
            let held = |at: usize| {
                let value = self.values.of_base(bases[at].value, fd);
                self.held(value, (known, start), by)
            };
            let put = |time, held, is_change| {
                changes.push(Installed {
                    table,
                    fd,
                    time,
                    held,
                    is_change,
                });
            };
            since_last(count, by.since, |at| bases[at].time, held, put);
        }
    }

    /// The descriptors that changes of whole tables may change.
    fn fds_of_bases<K: Held>(
        &self,
        (table, of_table): (ThreadKey, &SlicedTable),
        descriptors: &Descriptors<K>,
        by: &By<'_, A, K>,
    ) -> Vec<i32> {
        let bases = of_table.bases_since(by.since);
        let roots = bases.iter().filter_map(|base| self.values.root(base.value));
        let mut fds: Vec<i32> = roots
            .chain([table])
            .flat_map(|table| descriptors.contents.fds(table))
            .collect();
        if bases.iter().any(|base| self.values.is_late(base.value)) {
            fds.extend(by.targets);
        }
        fds.sort_unstable();
        fds.dedup();
        fds
    }
}

impl<K: Held> Installed<K> {
    fn put(self, descriptors: &mut Descriptors<K>) {
        let (table, fd, time) = (self.table, self.fd, self.time);
        if self.is_change {
            descriptors.contents.touch(table, fd, time);
        }
        let (kind, cloexec) = self.held;
        descriptors.contents.set(table, fd, time, kind, cloexec);
    }
}
