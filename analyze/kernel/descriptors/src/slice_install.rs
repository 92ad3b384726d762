//! Joining a slice to what was before it: its changes become changes of [`Descriptors`].

use std::hash::Hash;

use tracebraid_follow::ThreadKey;

use crate::contents::Held;
use crate::descriptors::Descriptors;
use crate::slice_history::{From, SlicedTable};
use crate::sliced::Sliced;
use crate::values::{LateCall, Resolved, ValueId};

/// A table's descriptor, and what it was from which time on.
type HistoryOf = (ThreadKey, i32, Vec<(i64, ValueId)>);

/// A table's descriptor became that. Of changes before `since` only the last one matters, and when it was.
fn install_one<K: Held>(
    (table, fd): (ThreadKey, i32),
    history: &[(i64, ValueId)],
    known: &Resolved<K>,
    descriptors: &mut Descriptors<K>,
    since: i64,
) {
    let first = history.partition_point(|(time, _)| *time <= since);
    let mut first = first.saturating_sub(1);
    // What turns out to have been the same was no change.
    let is_same = |at: usize| match history.get(at.wrapping_sub(1)..=at) {
        Some([before, now]) => known.get(before.1) == known.get(now.1),
        _ => false,
    };
    while first > 0 && is_same(first) {
        first -= 1;
    }
    for (at, &(time, value)) in history.iter().enumerate().skip(first) {
        let (kind, cloexec) = known.get(value);
        if at == first && at > 0 {
            descriptors.contents.touch(table, fd, time);
        }
        descriptors.contents.set(table, fd, time, kind, cloexec);
    }
}

/// Whether what seems to have changed turns out to have been the same.
fn is_same<K: Held>(known: &Resolved<K>, history: &[From<ValueId>], at: usize) -> bool {
    match history.get(at.saturating_sub(1)..=at) {
        Some([before, now]) => known.get(before.value) == known.get(now.value),
        _ => false,
    }
}

impl<A: Copy + Eq + Hash> Sliced<A> {
    /// Turns the descriptors at the beginning of the slice into those at its end; of changes before `since` (nanoseconds from
    /// the origin) only the last one of each descriptor matters. `targets` are all descriptors that late calls change.
    pub fn install<K: Held>(
        &mut self,
        known: &mut Resolved<K>,
        descriptors: &mut Descriptors<K>,
        since: i64,
        what: &dyn Fn(A) -> K,
        late: LateCall<'_, K>,
        targets: &[i32],
    ) {
        let (mut of_bases, mut own) = (Vec::new(), Vec::new());
        for (table, of_table) in std::mem::take(&mut self.tables).into_entries() {
            if !of_table.bases.is_empty() {
                let fds = self.fds_of_bases((table, &of_table), descriptors, since, targets);
                self.base_changes((table, &of_table), &fds, &mut of_bases);
            }
            for (fd, history) in of_table.fds {
                let values = |from: &From<ValueId>| (from.time, from.value);
                for from in &history {
                    self.resolve_one(known, from.value, descriptors, what, late);
                }
                let mut first = history.partition_point(|from| from.time <= since);
                // The last one before, and when that came to be so.
                first = first.saturating_sub(1);
                while first > 0 && is_same(known, &history, first) {
                    first -= 1;
                }
                let history = history.iter().skip(first.saturating_sub(1)).map(values);
                own.push((table, fd, history.collect()));
            }
        }
        // All of them before any changes what they are made of.
        for (_, value) in of_bases.iter().flat_map(|(.., history)| history) {
            self.resolve_one(known, *value, descriptors, what, late);
        }
        for (table, fd, history) in of_bases.into_iter().chain(own) {
            install_one((table, fd), &history, known, descriptors, since);
        }
    }

    /// Changes of descriptors of which the slice says nothing but what becomes of the whole table.
    fn base_changes(
        &mut self,
        (table, of_table): (ThreadKey, &SlicedTable),
        fds: &[i32],
        changes: &mut Vec<HistoryOf>,
    ) {
        for &fd in fds {
            let own = of_table.fds.get(&fd).and_then(|history| history.first());
            let bases = of_table.bases.iter();
            let bases = bases.filter(|base| own.is_none_or(|own| base.order < own.order));
            let history = bases.map(|base| (base.time, self.values.of_base(base.value, fd)));
            let history = history.collect();
            changes.push((table, fd, history));
        }
    }

    /// The descriptors that changes of whole tables may change.
    fn fds_of_bases<K: Held>(
        &self,
        (table, of_table): (ThreadKey, &SlicedTable),
        descriptors: &Descriptors<K>,
        since: i64,
        targets: &[i32],
    ) -> Vec<i32> {
        let bases = of_table.bases_since(since);
        let roots = bases.iter().filter_map(|base| self.values.root(base.value));
        let mut fds: Vec<i32> = roots
            .chain([table])
            .flat_map(|table| descriptors.contents.fds(table))
            .collect();
        if bases.iter().any(|base| self.values.is_late(base.value)) {
            fds.extend(targets);
        }
        fds.sort_unstable();
        fds.dedup();
        fds
    }
}
