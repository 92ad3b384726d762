//! Groups of calls on the same descriptor, whose type most often stays the same.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

use crate::io::call::Io;
use crate::io::span::Span;
use crate::io::sums::Tally;
use crate::pages::Pages;

/// Calls of one thread, by one system call, with the same descriptors. If the descriptors changed
/// between the calls, each call is examined alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    /// Time of the first entry.
    pub(super) first: i64,
    bytes: u64,
    latency: u64,
    longest: u64,
    count: u32,
    errors: u32,
    /// Nanoseconds from the first to the last entry.
    span: u32,
    pub(super) tid: i32,
    pub(super) fds: (i32, i32),
    /// Index of the last call among the singles; [`NONE`] if the group has one call.
    tail: u32,
    pub(super) call: Syscall,
}

/// One call of a group. There are almost as many as calls, and all wait until the types of
/// descriptors are known, so they are small: a call that does not fit begins a group of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Single {
    /// Nanoseconds from the group's first entry.
    after: u32,
    latency: u32,
    /// Negative if the call failed.
    result: i32,
    /// Index of the previous call of the group, or [`NONE`].
    before: u32,
}

/// No index.
const NONE: u32 = u32::MAX;
/// Limit that leaves room for two more.
const MOST_SINGLES: usize = NONE as usize - 2;

impl Single {
    #[inline]
    fn new(after: i64, latency: u64, result: i64, before: u32) -> Option<Single> {
        Some(Single {
            after: u32::try_from(after).ok()?,
            latency: u32::try_from(latency).ok()?,
            result: i32::try_from(result.max(-1)).ok()?,
            before,
        })
    }
}

/// Calls on one CPU, from a part of the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Calls {
    groups: Pages<Group>,
    singles: Pages<Single>,
}

/// A position in [`Calls`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    groups: usize,
}

impl Calls {
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The position after the last group.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            groups: self.groups.len(),
        }
    }

    /// Begins a group with a call; returns the group's index.
    pub(super) fn begin(&mut self, tid: i32, io: &Io) -> usize {
        self.groups.push(Group::new(tid, io));
        self.groups.len() - 1
    }

    /// Adds a call to a group; false if it does not belong or fit there.
    #[inline]
    pub(super) fn join(&mut self, place: usize, tid: i32, io: &Io) -> bool {
        let Some(group) = self.groups.get_mut(place) else {
            return false;
        };
        if group.tid != tid || group.call != io.call || group.fds != io.fds {
            return false;
        }
        let after = io.entry.saturating_sub(group.first);
        let Some(mut single) = Single::new(after, io.latency, io.result, group.tail) else {
            return false;
        };
        if self.singles.len() >= MOST_SINGLES {
            return false;
        }
        if group.tail == NONE {
            let Some(first) = group.only() else {
                return false;
            };
            single.before = self.singles.len() as u32;
            self.singles.push(first);
        }
        group.tail = self.singles.len() as u32;
        self.singles.push(single);
        group.add(io, single.after);
        true
    }

    /// The calls of a group that has several, last first.
    pub(super) fn split<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = Io> + use<'a> {
        self.chain(group.tail).map(|single| Io {
            entry: group.first.saturating_add(i64::from(single.after)),
            latency: u64::from(single.latency),
            result: i64::from(single.result),
            fds: group.fds,
            call: group.call,
        })
    }

    fn chain(&self, tail: u32) -> impl Iterator<Item = Single> {
        let single = |at: u32| self.singles.get(at as usize).copied();
        std::iter::successors(single(tail), move |later| single(later.before))
    }

    /// Takes the groups that were made since the mark.
    pub(super) fn split_off(&mut self, mark: Mark) -> Calls {
        let mut taken = Calls::default();
        for mut group in self.groups.split_off(mark.groups) {
            let tail = std::mem::replace(&mut group.tail, NONE);
            let mut singles = Vec::from_iter(self.chain(tail));
            while let Some(mut single) = singles.pop() {
                single.before = std::mem::replace(&mut group.tail, taken.singles.len() as u32);
                taken.singles.push(single);
            }
            taken.groups.push(group);
        }
        taken
    }

    /// Sets the thread of the groups that were made since the mark.
    pub(super) fn name(&mut self, since: Mark, tid: i32) {
        for at in since.groups..self.groups.len() {
            if let Some(group) = self.groups.get_mut(at) {
                group.tid = tid;
            }
        }
    }
}

impl Group {
    fn new(tid: i32, io: &Io) -> Group {
        Group {
            first: io.entry,
            bytes: u64::try_from(io.result).unwrap_or(0),
            latency: io.latency,
            longest: io.latency,
            count: 1,
            errors: u32::from(io.result < 0),
            span: 0,
            tid,
            fds: io.fds,
            tail: NONE,
            call: io.call,
        }
    }

    /// The call of a group of one.
    fn only(&self) -> Option<Single> {
        let result = if self.errors > 0 {
            -1
        } else {
            i64::try_from(self.bytes).ok()?
        };
        Single::new(0, self.latency, result, NONE)
    }

    #[inline]
    fn add(&mut self, io: &Io, after: u32) {
        self.span = self.span.max(after);
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(io.result).unwrap_or(0));
        self.latency = self.latency.saturating_add(io.latency);
        self.longest = self.longest.max(io.latency);
        self.count += 1;
        self.errors += u32::from(io.result < 0);
    }

    /// Time of the last entry.
    pub(super) fn last(&self) -> i64 {
        self.first.saturating_add(i64::from(self.span))
    }

    /// Whether all calls of the group began in the span.
    pub(super) fn is_in(&self, span: Span) -> bool {
        span.contains(self.first) && span.contains(self.last())
    }

    /// Sums of the group's calls.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            calls: u64::from(self.count),
            errors: u64::from(self.errors),
            bytes: self.bytes,
            latency: self.latency,
            longest: self.longest,
        }
    }

    /// The call of a group of one.
    pub(super) fn only_io(&self) -> Io {
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        Io {
            entry: self.first,
            latency: self.latency,
            result: if self.errors > 0 { -1 } else { bytes },
            fds: self.fds,
            call: self.call,
        }
    }

    /// True if the group has one call.
    pub(super) fn is_single(&self) -> bool {
        self.tail == NONE
    }
}

impl Io {
    /// Sums of this call alone.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            calls: 1,
            errors: u64::from(self.result < 0),
            bytes: u64::try_from(self.result).unwrap_or(0),
            latency: self.latency,
            longest: self.latency,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracebraid_descriptors::NO_FD;

    fn io(entry: i64, result: i64, latency: u64) -> Io {
        Io {
            entry,
            latency,
            result,
            fds: (3, NO_FD),
            call: Syscall(0),
        }
    }

    const FIRST: i64 = 1_000_000_000_000;

    /// A number of calls, a third of which failed.
    fn ios(count: i64) -> Vec<Io> {
        let one = |at| {
            io(
                FIRST + at * 10,
                if at % 3 == 1 { -1 } else { at * 1000 },
                at as u64,
            )
        };
        (0..count).map(one).collect()
    }

    fn listed(ios: &[Io], tid: i32, calls: &mut Calls) {
        let place = calls.begin(tid, &ios[0]);
        ios[1..]
            .iter()
            .for_each(|io| assert!(calls.join(place, tid, io)));
    }

    fn found(calls: &Calls) -> Vec<(i32, Vec<Io>)> {
        let of_group = |group: &Group| {
            let mut ios: Vec<_> = calls.split(group).collect();
            ios.reverse();
            let sum = ios.iter().fold(Tally::default(), |sum, io| Tally {
                calls: sum.calls + 1,
                errors: sum.errors + u64::from(io.result < 0),
                bytes: sum.bytes + io.result.max(0) as u64,
                latency: sum.latency + io.latency,
                longest: sum.longest.max(io.latency),
            });
            assert_eq!(group.tally(), sum);
            assert_eq!(Some(group.last()), ios.iter().map(|io| io.entry).max());
            (group.tid, ios)
        };
        calls.groups().map(of_group).collect()
    }

    #[test]
    fn groups_give_back_their_calls() {
        let mut calls = Calls::default();
        let [first, second, third] = [ios(1000), ios(2), ios(700)];
        listed(&first, 1, &mut calls);
        let mark = calls.mark();
        listed(&second, 5, &mut calls);
        listed(&third, 6, &mut calls);
        calls.name(mark, 7);
        let all = [(1, first.clone()), (7, second.clone()), (7, third.clone())];
        assert_eq!(found(&calls), all);
        let rest = calls.split_off(mark);
        assert_eq!(found(&calls), [(1, first)]);
        assert_eq!(found(&rest), [(7, second), (7, third)]);
    }

    #[test]
    fn only_calls_of_one_kind_are_joined() {
        let mut calls = Calls::default();
        let first = io(FIRST, 1, 1);
        let place = calls.begin(1, &first);
        for other in [
            Io {
                fds: (4, NO_FD),
                ..first
            },
            Io {
                call: Syscall(1),
                ..first
            },
        ] {
            assert!(!calls.join(place, 1, &other));
        }
        assert!(!calls.join(place, 2, &first));
        assert!(!calls.join(place + 1, 1, &first));
        assert!(calls.join(place, 1, &first));
    }

    #[test]
    fn what_does_not_fit_is_alone() {
        let large = 1 << 32;
        for (first, second) in [
            (io(FIRST, 1, 1), io(FIRST + large, 1, 1)),
            (io(FIRST, 1, 1), io(FIRST - 1, 1, 1)),
            (io(FIRST, 1, 1), io(FIRST, large, 1)),
            (io(FIRST, 1, 1), io(FIRST, 1, large as u64)),
            (io(FIRST, large, 1), io(FIRST, 1, 1)),
            (io(FIRST, 1, large as u64), io(FIRST, 1, 1)),
        ] {
            let mut calls = Calls::default();
            let place = calls.begin(1, &first);
            assert!(!calls.join(place, 1, &second), "{first:?} {second:?}");
            assert!(calls.groups().all(Group::is_single));
        }
    }
}
