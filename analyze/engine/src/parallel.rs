//! Parallel loops for the end of a fold, when its workers are idle.
//!
//! An analysis makes its report in one call. Its work on each of many rows goes through [`map`] or
//! [`map_pieces`], which use as many threads as the fold had. Results come in the order of the
//! items, so they do not depend on the number of threads.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::timings::Stopwatch;

/// Minimum number of items for which starting a thread pays off, which takes some ten microseconds.
const LEAST: usize = 64;

thread_local! {
    /// Number of threads of the fold whose report this thread makes.
    static THREADS: Cell<usize> = const { Cell::new(1) };
    /// CPU time of parallel work in nanoseconds: on this thread, and on others on its behalf.
    static OWN: Cell<u64> = const { Cell::new(0) };
    static OTHERS: Cell<u64> = const { Cell::new(0) };
}

/// CPU time of parallel work in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BesideTimes {
    /// On the calling thread.
    pub(crate) own: u64,
    /// On other threads.
    pub(crate) others: u64,
}

/// Does the work; [`map`] and [`map_pieces`] within it use `threads` threads.
pub(crate) fn with_threads<R>(threads: usize, work: impl FnOnce() -> R) -> (R, BesideTimes) {
    THREADS.set(threads.max(1));
    OWN.set(0);
    OTHERS.set(0);
    let result = work();
    THREADS.set(1);
    let times = BesideTimes {
        own: OWN.get(),
        others: OTHERS.get(),
    };
    (result, times)
}

/// Maps each item to a result, in the order of the items.
pub fn map<T: Send, R: Send>(items: Vec<T>, make: impl Fn(T) -> R + Sync) -> Vec<R> {
    let make_all = |items: Vec<T>| items.into_iter().map(&make).collect::<Vec<R>>();
    if items.len() < 2 * LEAST {
        return make_all(items);
    }
    let pieces = pieces_of(items, THREADS.get());
    beside(pieces, make_all).into_iter().flatten().collect()
}

/// Like [`map`], for few items that take long: each free thread takes the next item.
pub fn map_large<T: Send, R: Send>(items: Vec<T>, make: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = THREADS.get().min(items.len());
    let rest = Mutex::new(items.into_iter().enumerate());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let make_some = |()| {
        let some = std::iter::from_fn(next).map(|(number, item)| (number, make(item)));
        some.collect::<Vec<(usize, R)>>()
    };
    let mut made: Vec<(usize, R)> = beside(vec![(); threads], make_some)
        .into_iter()
        .flatten()
        .collect();
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, made)| made).collect()
}

/// Maps each piece of a list, one piece per thread, in order. The results must add up to the same
/// total however the list is cut.
pub fn map_pieces<'a, T: Sync, R: Send>(
    items: &'a [T],
    make: impl Fn(&'a [T]) -> R + Sync,
) -> Vec<R> {
    if items.len() < 2 * LEAST {
        return vec![make(items)];
    }
    let length = items.len().div_ceil(count(items.len(), THREADS.get()));
    beside(items.chunks(length).collect(), make)
}

/// Sums the values of all items by key: `values` returns the keys and values of an item, `merge`
/// adds a value to the sum of its key.
pub fn sums_by_key<'a, T: Sync, K: Ord + Send, V: Default + Send + 'a, I>(
    items: &'a [T],
    values: impl Fn(&'a T) -> I + Sync,
    merge: impl Fn(&mut V, &V) + Sync,
) -> BTreeMap<K, V>
where
    I: Iterator<Item = (K, &'a V)>,
{
    let of_piece = |items: &'a [T]| {
        let mut sums: BTreeMap<K, V> = BTreeMap::new();
        for (key, value) in items.iter().flat_map(&values) {
            merge(sums.entry(key).or_default(), value);
        }
        sums
    };
    let add = |mut all: BTreeMap<K, V>, piece: BTreeMap<K, V>| {
        for (key, sum) in piece {
            merge(all.entry(key).or_default(), &sum);
        }
        all
    };
    let pieces = map_pieces(items, of_piece);
    pieces.into_iter().reduce(add).unwrap_or_default()
}

/// Joins neighbours, all pairs of a round in parallel, until one item is left; `None` without
/// items.
pub(crate) fn join<T: Send>(mut items: Vec<T>, join: impl Fn(&mut T, T) + Sync) -> Option<T> {
    while items.len() > 1 {
        let mut left = items.into_iter();
        let pair = || Some((left.next()?, left.next()));
        let pairs: Vec<_> = std::iter::from_fn(pair).collect();
        items = beside(pairs, |(mut own, other)| {
            if let Some(other) = other {
                join(&mut own, other);
            }
            own
        });
    }
    items.pop()
}

/// Number of pieces to cut `items` items into.
fn count(items: usize, threads: usize) -> usize {
    (items / LEAST).clamp(1, threads)
}

fn pieces_of<T>(items: Vec<T>, threads: usize) -> Vec<Vec<T>> {
    let length = items.len().div_ceil(count(items.len(), threads));
    let mut items = items.into_iter();
    let piece =
        || Some(items.by_ref().take(length).collect::<Vec<T>>()).filter(|piece| !piece.is_empty());
    std::iter::from_fn(piece).collect()
}

/// Runs each piece on its own thread, the first one on this thread.
fn beside<T: Send, R: Send>(pieces: Vec<T>, make: impl Fn(T) -> R + Sync) -> Vec<R> {
    let timed = |piece: T| {
        let watch = Stopwatch::start();
        let made = make(piece);
        (made, watch.elapsed())
    };
    let mut pieces = pieces.into_iter();
    let Some(first) = pieces.next() else {
        return Vec::new();
    };
    let made: Vec<(R, u64)> = thread::scope(|scope| {
        let timed = &timed;
        let others: Vec<_> = pieces
            .map(|piece| scope.spawn(move || timed(piece)))
            .collect();
        let first = timed(first);
        let others = others.into_iter().map(|other| match other.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(first).chain(others).collect()
    });
    let mut times = made.iter().map(|(_, time)| *time);
    OWN.set(OWN.get() + times.next().unwrap_or(0));
    OTHERS.set(OTHERS.get() + times.sum::<u64>());
    made.into_iter().map(|(made, _)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_with_any_number_of_threads() {
        for threads in [1, 2, 3, 7, 64] {
            for length in [0, 1, 127, 128, 129, 1000, 4096] {
                let ((), times) = with_threads(threads, || {
                    let made = map((0..length).collect(), |number: usize| number * 2);
                    assert_eq!(
                        made,
                        (0..length).map(|number| number * 2).collect::<Vec<_>>()
                    );
                    let list: Vec<usize> = (0..length).collect();
                    let sums = map_pieces(&list, |piece| piece.iter().sum::<usize>());
                    assert!(sums.len() <= threads);
                    assert_eq!(sums.iter().sum::<usize>(), (0..length).sum::<usize>());
                });
                assert_eq!(times.others > 0, threads > 1 && length >= 2 * LEAST);
            }
        }
    }

    #[test]
    fn few_results_come_in_order_with_any_number_of_threads() {
        for threads in [1, 2, 3, 7] {
            for length in [0, 1, 2, 5, 100] {
                let (made, _) = with_threads(threads, || {
                    map_large((0..length).collect(), |number: usize| {
                        thread::sleep(std::time::Duration::from_micros(number as u64 % 3));
                        number * 2
                    })
                });
                assert_eq!(
                    made,
                    (0..length).map(|number| number * 2).collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn sums_are_those_of_one_thread() {
        let items: Vec<[u64; 2]> = (0..1000).map(|number| [number, number * 3]).collect();
        let items: &'static [[u64; 2]] = items.leak();
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        for value in items.iter().flatten() {
            *expected.entry(value % 7).or_default() += value;
        }
        for threads in [1, 2, 5] {
            let values = |item: &'static [u64; 2]| item.iter().map(|value| (value % 7, value));
            let add = |sum: &mut u64, value: &u64| *sum += value;
            let (found, _) = with_threads(threads, || sums_by_key(items, values, add));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn neighbours_are_joined_in_order() {
        for count in 0..20 {
            let texts: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let whole = texts.concat();
            let joined = join(texts, |own, other| own.push_str(&other));
            assert_eq!(joined.unwrap_or_default(), whole);
        }
    }
}
