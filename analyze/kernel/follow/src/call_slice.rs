//! System calls that span several stretches, in a slice of time, without knowledge of the calls
//! that were open before the slice.
//!
//! A thread's calls are unknown until it enters a call, ends a call, or leaves its CPU in a call
//! that began in the slice. Earlier items, and items recorded late about an earlier call, are kept.
//! Composing a slice replays them on the state at its beginning, at a cost that depends on the
//! number of threads. Once known, a thread's calls are appended to the earlier calls
//! ([`LaterCalls`]), including exits whose entries are missing. An entry from before the slice that
//! is recorded after such an exit could belong to exits on both sides: then the calls are appended
//! first, and are unknown from then on.

use serde::{Deserialize, Serialize};

use crate::calls::{Beginning, CallItem, Ending, Entered, Exited};
use crate::open_call::{LaterCalls, OpenCall};
use crate::people::ThreadKey;
use crate::sources::CpuKey;
use crate::table::Table;

/// A call from its entry to its exit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadCall<E = Entered, X = Exited> {
    /// Thread that made the call.
    pub thread: ThreadKey,
    /// CPU on which the call ended.
    pub cpu: CpuKey,
    /// Entry of the call.
    pub entered: E,
    /// Exit of the call.
    pub exited: X,
}

/// The open calls of threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenCalls<E = Entered, X = Exited>(Table<OpenCall<E, X>>);

impl<E, X> Default for OpenCalls<E, X> {
    fn default() -> Self {
        OpenCalls(Table::default())
    }
}

impl<E: Beginning, X: Ending> OpenCalls<E, X> {
    /// Plays an item; returns the call that is now known to have ended.
    #[inline]
    pub fn play(
        &mut self,
        cpu: CpuKey,
        time: i64,
        item: &CallItem<E, X>,
    ) -> Option<ThreadCall<E, X>> {
        let thread = key(cpu, item);
        if let CallItem::TakesOver(_, old) = *item {
            let open = std::mem::take(self.0.get(thread.with(old)));
            *self.0.get(thread) = open;
            return None;
        }
        let (entered, exited, cpu) = self.0.get(thread).play(cpu, time, item)?;
        Some(ThreadCall {
            thread,
            cpu,
            entered,
            exited,
        })
    }

    /// Threads that left or came to a CPU during a call.
    pub fn threads(&self) -> impl Iterator<Item = ThreadKey> {
        self.0.entries().map(|(thread, _)| thread)
    }

    /// All known threads, with their calls.
    pub fn into_threads(self) -> Vec<(ThreadKey, OpenCall<E, X>)> {
        self.0.into_entries()
    }

    /// Threads in a call, with the entry of the call.
    pub fn parked(&self) -> impl Iterator<Item = (ThreadKey, &E)> {
        let open = self.0.entries();
        open.filter_map(|(thread, open)| Some((thread, open.parked.as_ref()?)))
    }
}

/// The calls of a slice. Its size depends on the number of threads that make calls in it, and on
/// the number of items that are recorded late.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallSlice<E = Entered, X = Exited> {
    /// Lower bound of the times of the items, in nanoseconds from the origin.
    begin: i64,
    threads: Table<Calls<E, X>>,
    kept: Vec<Kept<E, X>>,
}

/// A thread's calls as far as the slice alone determines them.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Calls<E, X> {
    /// A call that begins at `from` or later and is open when its thread leaves its CPU is the last
    /// call; so is a call that ends at `from` or later.
    Unknown { from: i64 },
    Known {
        calls: LaterCalls<E, X>,
        /// Calls before this time are unknown.
        since: i64,
        /// A call ended at `since`.
        by_end: bool,
    },
}

impl<E, X> Default for Calls<E, X> {
    fn default() -> Self {
        Calls::Unknown { from: i64::MIN }
    }
}

/// Parts of a slice that are replayed on the state at its beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Kept<E, X> {
    Item(CpuKey, i64, CallItem<E, X>),
    /// A thread's calls as far as the slice knows them, which follow the earlier ones.
    Known(ThreadKey, LaterCalls<E, X>),
}

/// Treatment of an item.
enum Use {
    /// Play it, on the known calls or on none.
    Play,
    /// Keep it.
    Keep,
    /// Keep it; the thread's calls are known from `since` on.
    KeepAndKnow { since: i64, by_end: bool },
    /// Keep it; the thread's calls are unknown again.
    KeepAndForget,
}

fn key<E, X>(cpu: CpuKey, item: &CallItem<E, X>) -> ThreadKey {
    ThreadKey {
        trace: cpu.trace,
        tid: item.tid(),
    }
}

impl<E: Beginning, X: Ending> Calls<E, X> {
    fn known(since: i64, by_end: bool) -> Self {
        Calls::Known {
            calls: LaterCalls::since(since),
            since,
            by_end,
        }
    }

    fn use_of(&self, time: i64, item: &CallItem<E, X>, begin: i64) -> Use {
        match (item, self) {
            // An entry that is recorded next may belong to an exit with the same time that was
            // kept.
            (CallItem::Enters(_), Calls::Unknown { from }) if time < *from => Use::Keep,
            (CallItem::Enters(_), _) | (CallItem::Arrives(..), Calls::Known { .. }) => Use::Play,
            // An earlier exit that is recorded late need not be the last change.
            (CallItem::Arrives(_, exited), Calls::Unknown { from })
                if exited.time() >= begin.max(*from) =>
            {
                Use::KeepAndKnow {
                    since: exited.time(),
                    by_end: true,
                }
            }
            (CallItem::Arrives(..), Calls::Unknown { .. }) => Use::Keep,
            (CallItem::Made(_), _) => Use::KeepAndKnow {
                since: time,
                by_end: false,
            },
            (CallItem::Leaves(_, entered), _) => self.leaves(entered.time(), begin),
            (CallItem::TakesOver(..), _) => Use::Keep,
        }
    }

    /// Treatment of an open call that began at `entered`. A call that began before the calls are
    /// known may be the call that a kept exit ends.
    fn leaves(&self, entered: i64, begin: i64) -> Use {
        match self {
            Calls::Unknown { from } if entered >= begin.max(*from) => Use::Play,
            Calls::Unknown { .. } => Use::Keep,
            Calls::Known {
                calls,
                since,
                by_end,
            } => {
                let is_by_end = *by_end && entered == *since;
                let is_last = is_by_end && !calls.has_changed_after(entered);
                match entered < begin.max(*since) || is_by_end {
                    true if is_last || calls.has_missed_any() => Use::KeepAndForget,
                    true => Use::Keep,
                    false => Use::Play,
                }
            }
        }
    }
}

impl<E: Beginning, X: Ending> CallSlice<E, X> {
    /// A slice whose items are not earlier than `begin`, in nanoseconds from the origin.
    pub fn new(begin: i64) -> Self {
        CallSlice {
            begin,
            threads: Table::default(),
            kept: Vec::new(),
        }
    }

    /// Plays an item; returns the call that is now known to have ended.
    #[inline]
    pub fn play(
        &mut self,
        cpu: CpuKey,
        time: i64,
        item: &CallItem<E, X>,
    ) -> Option<ThreadCall<E, X>> {
        let thread = key(cpu, item);
        let calls = self.threads.get(thread);
        match calls.use_of(time, item, self.begin) {
            Use::Play => return self.play_known(cpu, time, item),
            Use::Keep => {}
            Use::KeepAndKnow { since, by_end } => *calls = Calls::known(since, by_end),
            Use::KeepAndForget => {
                let from = time.saturating_add(1);
                if let Calls::Known { calls, .. } =
                    std::mem::replace(calls, Calls::Unknown { from })
                {
                    self.kept.push(Kept::Known(thread, calls));
                }
            }
        }
        if let CallItem::TakesOver(_, old) = *item {
            let calls = std::mem::take(self.threads.get(thread.with(old)));
            *self.threads.get(thread) = calls;
        }
        self.kept.push(Kept::Item(cpu, time, *item));
        None
    }

    /// Plays an item whose effect does not depend on the state before the slice.
    #[inline]
    fn play_known(
        &mut self,
        cpu: CpuKey,
        time: i64,
        item: &CallItem<E, X>,
    ) -> Option<ThreadCall<E, X>> {
        let thread = key(cpu, item);
        let calls = self.threads.get(thread);
        if let Calls::Unknown { .. } = calls {
            let since = match item {
                CallItem::Leaves(_, entered) => entered.time(),
                _ => time,
            };
            *calls = Calls::known(since, false);
        }
        let Calls::Known { calls, .. } = calls else {
            return None;
        };
        let (entered, exited, cpu) = calls.play(cpu, time, item)?;
        Some(ThreadCall {
            thread,
            cpu,
            entered,
            exited,
        })
    }

    /// Composes with the calls at the beginning of the slice. Passes to `ended` the calls that are
    /// then known to have ended. `self` keeps memory that the caller frees.
    pub fn compose(
        &mut self,
        calls: &mut OpenCalls<E, X>,
        mut ended: impl FnMut(ThreadCall<E, X>),
    ) {
        for kept in self.kept.drain(..) {
            match kept {
                Kept::Item(cpu, time, item) => calls
                    .play(cpu, time, &item)
                    .into_iter()
                    .for_each(&mut ended),
                Kept::Known(thread, known) => calls.0.get(thread).append(known),
            }
        }
        for (thread, known) in self.threads.entries_mut() {
            if let Calls::Known { calls: known, .. } = known {
                calls.0.get(thread).append_from(known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tracebraid_kernel_model::Syscall;

    use super::*;

    /// An item: kind, thread, CPU, time since the previous item, and duration of its call so far.
    type Told = (u8, i32, u32, i64, i64);

    fn items(told: &[Told]) -> Vec<(CpuKey, i64, CallItem)> {
        let mut time = 100;
        let item = |&(kind, tid, cpu, after, ago): &Told| {
            time += after;
            let call = Syscall(u16::from(kind) % 3);
            let item = match kind % 12 {
                0..3 => CallItem::Enters(tid),
                3..7 => CallItem::Arrives(
                    tid,
                    Exited {
                        call: Some(call).filter(|_| kind % 2 == 0),
                        result: 0,
                        // The exit may be recorded late.
                        time: time - i64::from(kind / 128),
                    },
                ),
                7..11 => CallItem::Leaves(
                    tid,
                    Entered {
                        call,
                        time: time - ago,
                    },
                ),
                _ if ago == 0 => CallItem::Made(tid),
                _ => CallItem::TakesOver(tid, (tid + 1) % 3),
            };
            (CpuKey { trace: 0, cpu }, time, item)
        };
        told.iter().map(item).collect()
    }

    fn described(mut ended: Vec<ThreadCall>, calls: &OpenCalls) -> String {
        ended.sort_by_key(|call| {
            (
                call.thread,
                call.exited.time,
                call.entered.time,
                call.entered.call,
                call.cpu,
            )
        });
        let mut open: Vec<_> = calls.0.entries().collect();
        open.sort_by_key(|open| open.0);
        // A thread without known calls need not be in the table.
        open.retain(|(_, open)| {
            format!("{open:?}") != format!("{:?}", OpenCall::<Entered, Exited>::default())
        });
        format!("{ended:#?} {open:#?}")
    }

    fn whole(items: &[(CpuKey, i64, CallItem)]) -> String {
        let mut calls = OpenCalls::default();
        let ended = items
            .iter()
            .filter_map(|(cpu, time, item)| calls.play(*cpu, *time, item));
        let ended = ended.collect();
        described(ended, &calls)
    }

    /// The outcome if the items are cut at these times.
    fn sliced(items: &[(CpuKey, i64, CallItem)], cuts: &[i64]) -> String {
        let (mut calls, mut ended) = (OpenCalls::default(), Vec::new());
        let mut rest = items;
        let mut begin = i64::MIN;
        for cut in cuts.iter().copied().chain([i64::MAX]) {
            let (now, later) = rest.split_at(rest.partition_point(|item| item.1 < cut));
            let mut slice = CallSlice::new(begin);
            ended.extend(
                now.iter()
                    .filter_map(|(cpu, time, item)| slice.play(*cpu, *time, item)),
            );
            slice.compose(&mut calls, |call| ended.push(call));
            (rest, begin) = (later, cut);
        }
        described(ended, &calls)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn slices_are_composed_to_the_whole(
            told in prop::collection::vec((any::<u8>(), 0..3_i32, 0..2_u32, 0..3_i64, 0..8_i64), 0..40),
            cuts in prop::collection::vec(100..160_i64, 0..5),
        ) {
            let items = items(&told);
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(sliced(&items, &cuts), whole(&items));
        }
    }

    #[test]
    fn little_is_kept_of_threads_that_make_calls() {
        let told: Vec<Told> = (0..999)
            .map(|number| ([0, 7, 4][number % 3], 1, 0, 2, 1))
            .collect();
        let mut slice = CallSlice::new(0);
        let items = items(&told);
        let ended = items
            .iter()
            .filter_map(|(cpu, time, item)| slice.play(*cpu, *time, item));
        assert!(ended.count() > 300);
        assert!(slice.kept.len() < 3, "{:?}", slice.kept);
    }
}
