//! The result of the first pass: the LWPs and user-level threads of a host, and the state of each
//! at the beginning of each window.

use std::collections::{BTreeMap, BTreeSet};

use tracebraid_engine::parallel;
use tracebraid_kernel_model::events::user_level::FIRST_USER_LEVEL_TID;

use crate::names::{NAME, short};
use crate::survey::{Edges, Ends, Known, LwpSight, Map, Marks, Moment, Sight, Tables, UltKey};
use crate::vocabulary::reason_word;

/// First virtual thread id of the first process; each process has a range of this size.
const RANGE: i64 = FIRST_USER_LEVEL_TID as i64;
/// Processes with a range of their own; all others share the range that follows.
const RANGES: usize = 20;
/// Most reasons of waits with event classes of their own.
const MOST_REASONS: usize = 64;

/// Stands for all reasons beyond these.
const OTHER: &str = "other";

/// Content of a CPU or an LWP, by window.
#[derive(Clone, Debug)]
pub(crate) struct Timeline<T>(Vec<(u32, Ends<T>)>);

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Timeline(Vec::new())
    }
}

impl<T: Copy> Timeline<T> {
    /// True if nothing was ever stated.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Content at the beginning of a window: the latest statement before it, or what the next one
    /// after it says about the time before.
    pub(crate) fn at(&self, window: u32) -> Option<T> {
        let next = self.0.partition_point(|(of, _)| *of < window);
        let before = next.checked_sub(1).and_then(|before| self.0.get(before));
        if let Some((_, ends)) = before
            && let Known::Is(content) = ends.last.1
        {
            return Some(content);
        }
        match self.0.get(next)?.1.first.1 {
            Known::Is(content) => Some(content),
            Known::Lost => None,
        }
    }
}

/// State of a user-level thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UltState {
    /// Not ready: index of the reason.
    pub(crate) blocked: Option<u16>,
    /// Left its LWP blocked, and has not run since: index of the reason.
    pub(crate) waits: Option<u16>,
    pub(crate) has_ended: bool,
}

/// A user-level thread.
#[derive(Clone, Debug)]
pub(crate) struct Ult {
    pub(crate) key: UltKey,
    /// Virtual thread id.
    pub(crate) tid: i32,
    /// The first record of the thread is its creation: it did not exist when the trace began.
    pub(crate) is_created: bool,
    /// Names with the time from which each holds, in order.
    names: Vec<(i64, Box<[u8]>)>,
    /// The same as scheduling events contain them; one entry for a thread without a name.
    short_names: Vec<(i64, [u8; NAME])>,
    /// State from the end of a window on.
    states: Vec<(u32, UltState)>,
    /// See [`Ult::late_block`].
    late: Vec<(u32, u16)>,
}

impl Ult {
    fn new(key: UltKey, tid: i32, sight: Sight, marks: &[(u32, Marks)], reasons: &[String]) -> Ult {
        let mut names = sight.names;
        names.sort();
        names.dedup_by(|next, before| next.1 == before.1);
        let names = names.into_iter();
        let names: Vec<(i64, Box<[u8]>)> =
            names.map(|((from, _), name)| (from, name.into())).collect();
        let course = Course::new(marks, reasons);
        Ult {
            key,
            tid,
            is_created: sight.is_created,
            short_names: short_names(key, &names),
            names,
            states: course.states,
            late: course.late,
        }
    }

    /// Name at a time: the latest so far, else the first.
    pub(crate) fn name(&self, time: i64) -> &[u8] {
        let after = self.names.partition_point(|(from, _)| *from <= time);
        self.names
            .get(after.saturating_sub(1))
            .map_or(&[], |(_, name)| name)
    }

    /// Name at a time in scheduling events; the id of a thread without a name.
    #[inline]
    pub(crate) fn short_name(&self, time: i64) -> &[u8; NAME] {
        let names = &self.short_names;
        let after = match names.as_slice() {
            [_] => 0,
            names => names.partition_point(|(from, _)| *from <= time),
        };
        names
            .get(after.saturating_sub(1))
            .map_or(&[0; NAME], |(_, name)| name)
    }

    /// Reason of a block that a later window records first about the thread, which left its LWP
    /// in this window.
    pub(crate) fn late_block(&self, window: u32) -> Option<u16> {
        let place = self
            .late
            .binary_search_by_key(&window, |(of, _)| *of)
            .ok()?;
        self.late.get(place).map(|(_, reason)| *reason)
    }

    /// State at the beginning of a window.
    pub(crate) fn state(&self, window: u32) -> UltState {
        let next = self.states.partition_point(|(of, _)| *of < window);
        let before = next
            .checked_sub(1)
            .and_then(|before| self.states.get(before));
        before.map_or_else(UltState::default, |(_, state)| *state)
    }
}

/// A kernel thread that records steps of user-level scheduling.
#[derive(Clone, Debug)]
pub(crate) struct Lwp {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// Process and user-level thread that it runs, by window.
    pub(crate) runs: Timeline<UltKey>,
}

/// All levels of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct States {
    pub(crate) cpus: BTreeMap<u32, Timeline<i32>>,
    /// Hard interrupt and softirq at the end of a window, where they are known, by CPU.
    edges: BTreeMap<u32, Vec<(u32, [Option<bool>; 2])>>,
    /// Lost records of CPUs and of LWPs, from and to, in order; those of an LWP are disjoint.
    pub(crate) cpu_losses: Vec<(u32, i64, i64)>,
    pub(crate) lwp_losses: Vec<(i32, i64, i64)>,
    pub(crate) lwps: Vec<Lwp>,
    pub(crate) lwp_of_tid: Map<i32, u32>,
    /// Ordered by process and id.
    pub(crate) ults: Vec<Ult>,
    pub(crate) ult_of_key: Map<UltKey, u32>,
    /// Reasons of waits as words, in order; the last stands for all others if there are too many.
    pub(crate) reasons: Vec<String>,
    /// Index of the word of each reason as recorded, in order.
    recorded_reasons: Vec<(Box<[u8]>, u16)>,
    /// Processes with user-level threads, in order, and their runtimes.
    pub(crate) processes: BTreeMap<i32, String>,
}

impl States {
    pub(crate) fn new(mut tables: Tables) -> States {
        tables.share_losses();
        let mut states = States {
            reasons: reasons(&tables),
            recorded_reasons: Vec::new(),
            cpus: timelines(tables.cpus),
            edges: edges(tables.edges),
            cpu_losses: tables.cpu_losses,
            lwp_losses: tables.lwp_losses,
            ..States::default()
        };
        let recorded = tables.reasons.iter();
        let recorded = recorded.map(|own| (own.as_slice().into(), states.reason_of_word(own)));
        states.recorded_reasons = recorded.collect();
        states.cpu_losses.sort_unstable();
        states.lwp_losses = joined_losses(states.lwp_losses);
        states.lwps = lwps(tables.lwps, &tables.lwp_sights);
        let places = states
            .lwps
            .iter()
            .zip(0..)
            .map(|(lwp, place)| (lwp.tid, place));
        states.lwp_of_tid = places.collect();
        let mut sights: Vec<(UltKey, Sight)> = tables.sights.into_iter().collect();
        sights.sort_unstable_by_key(|(key, _)| *key);
        let keys: Vec<UltKey> = sights.iter().map(|(key, _)| *key).collect();
        states.processes = processes(&tables.lwp_sights, keys.iter());
        let numbers = numbers(&keys, |key| {
            let place = keys.binary_search(&key).ok()?;
            sights.get(place).map(|(_, sight)| sight.first)
        });
        let marks = by_ult(&keys, tables.marks);
        let threads: Vec<_> = sights.into_iter().zip(numbers).zip(marks).collect();
        let reasons = &states.reasons;
        let ults = parallel::map(threads, |(((key, sight), tid), marks)| {
            Ult::new(key, tid, sight, &marks, reasons)
        });
        states.ult_of_key = keys.into_iter().zip(0..).collect();
        states.ults = ults;
        states
    }

    /// Whether a hard interrupt and a softirq are active on a CPU at the beginning of a window.
    pub(crate) fn interrupts(&self, cpu: u32, window: u32) -> [Option<bool>; 2] {
        let Some(list) = self.edges.get(&cpu) else {
            return [None, None];
        };
        let next = list.partition_point(|(of, _)| *of < window);
        let before = next.checked_sub(1).and_then(|before| list.get(before));
        before.map_or([None, None], |(_, active)| *active)
    }

    /// Index of a reason.
    pub(crate) fn reason(&self, reason: &[u8]) -> u16 {
        let recorded = &self.recorded_reasons;
        match recorded.binary_search_by(|(own, _)| (**own).cmp(reason)) {
            Ok(at) => recorded[at].1,
            Err(_) => self.reason_of_word(reason),
        }
    }

    fn reason_of_word(&self, reason: &[u8]) -> u16 {
        reason_place(&self.reasons, reason)
    }

    /// The user-level thread of a key.
    pub(crate) fn ult(&self, key: UltKey) -> Option<u32> {
        self.ult_of_key.get(&key).copied()
    }
}

fn short_names(key: UltKey, names: &[(i64, Box<[u8]>)]) -> Vec<(i64, [u8; NAME])> {
    let numbered = || short(format!("ult {}", key.1).as_bytes());
    let name = |(from, name): &(i64, Box<[u8]>)| match &**name {
        [] => (*from, numbered()),
        name => (*from, short(name)),
    };
    match names {
        [] => vec![(i64::MIN, numbered())],
        names => names.iter().map(name).collect(),
    }
}

/// Losses in order; those of an LWP that overlap, because it records into several streams, as one.
fn joined_losses(mut losses: Vec<(i32, i64, i64)>) -> Vec<(i32, i64, i64)> {
    losses.sort_unstable();
    losses.dedup_by(|next, own| {
        let overlap = own.0 == next.0 && next.1 <= own.2;
        if overlap {
            own.2 = own.2.max(next.2);
        }
        overlap
    });
    losses
}

fn edges(map: Map<(u32, u32), Edges>) -> BTreeMap<u32, Vec<(u32, [Option<bool>; 2])>> {
    let mut all: Vec<((u32, u32), Edges)> = map.into_iter().collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    let mut lists: BTreeMap<u32, Vec<(u32, [Option<bool>; 2])>> = BTreeMap::new();
    for ((cpu, window), edges) in all {
        let list = lists.entry(cpu).or_default();
        let before = list.last().map_or([None, None], |(_, active)| *active);
        let of = |edge: Option<(Moment, bool)>, before: Option<bool>| {
            edge.map_or(before, |(_, active)| Some(active))
        };
        let now = [of(edges.hard, before[0]), of(edges.soft, before[1])];
        if now != before {
            list.push((window, now));
        }
    }
    lists
}

fn reason_place(reasons: &[String], reason: &[u8]) -> u16 {
    let word = reason_word(reason);
    let place = reasons.iter().position(|own| *own == word);
    place.unwrap_or(reasons.len().saturating_sub(1)) as u16
}

fn reasons(tables: &Tables) -> Vec<String> {
    let words: BTreeSet<String> = tables
        .reasons
        .iter()
        .map(|reason| reason_word(reason))
        .collect();
    let words = words
        .into_iter()
        .filter(|word| word != OTHER)
        .take(MOST_REASONS);
    words.chain([OTHER.to_owned()]).collect()
}

fn timelines<K: Ord, T>(map: Map<(K, u32), Ends<T>>) -> BTreeMap<K, Timeline<T>> {
    let mut all: Vec<((K, u32), Ends<T>)> = map.into_iter().collect();
    all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut lines: BTreeMap<K, Timeline<T>> = BTreeMap::new();
    for ((key, window), ends) in all {
        lines.entry(key).or_default().0.push((window, ends));
    }
    lines
}

fn lwps(map: Map<(i32, u32), Ends<UltKey>>, sights: &Map<i32, LwpSight>) -> Vec<Lwp> {
    let mut lines = timelines(map);
    let mut tids: Vec<i32> = sights.keys().copied().collect();
    tids.sort_unstable();
    let lwp = |tid: i32| Lwp {
        tid,
        pid: sights
            .get(&tid)
            .and_then(|sight| sight.first)
            .map_or(0, |(_, pid)| pid),
        runs: lines.remove(&tid).unwrap_or_default(),
    };
    tids.into_iter().map(lwp).collect()
}

fn processes<'a>(
    sights: &Map<i32, LwpSight>,
    keys: impl Iterator<Item = &'a UltKey>,
) -> BTreeMap<i32, String> {
    let mut processes: BTreeMap<i32, String> = keys.map(|key| (key.0, String::new())).collect();
    let mut runtimes: Vec<_> = sights
        .values()
        .filter_map(|sight| {
            let (moment, runtime) = sight.runtime.as_ref()?;
            Some((moment, sight.first?.1, runtime))
        })
        .collect();
    runtimes.sort();
    for (_, pid, runtime) in runtimes.into_iter().rev() {
        let runtime = String::from_utf8_lossy(runtime).into_owned();
        processes.entry(pid).and_modify(|own| *own = runtime);
    }
    processes
}

/// Virtual thread ids of user-level threads, in the order of `keys`, which are sorted.
fn numbers<M: Ord>(keys: &[UltKey], first: impl Fn(UltKey) -> M) -> Vec<i32> {
    let mut numbers = Vec::with_capacity(keys.len());
    let mut shared = RANGE * (RANGES as i64 + 1);
    for (place, of_process) in keys.chunk_by(|a, b| a.0 == b.0).enumerate() {
        let start = RANGE * (place as i64 + 1);
        let fits = of_process
            .iter()
            .all(|key| (key.1 as i64) < RANGE && key.1 < RANGE as u64);
        if place < RANGES && fits {
            numbers.extend(of_process.iter().map(|key| (start + key.1 as i64) as i32));
            continue;
        }
        let mut order: Vec<usize> = (0..of_process.len()).collect();
        order.sort_by_key(|&at| (first(of_process[at]), of_process[at]));
        let from = if place < RANGES { start } else { shared };
        let mut own = vec![0; of_process.len()];
        for (number, at) in (1..).zip(order) {
            own[at] = i32::try_from(from + number).unwrap_or(i32::MAX);
        }
        if place >= RANGES {
            shared += of_process.len() as i64;
        }
        numbers.extend(own);
    }
    numbers
}

/// The marks of each thread, by window. Places are sorted instead of marks, which are large.
fn by_ult(keys: &[UltKey], marks: Map<(i32, u64, u32), Marks>) -> Vec<Vec<(u32, Marks)>> {
    let (places, mut marks): (Vec<_>, Vec<_>) = marks
        .into_iter()
        .zip(0usize..)
        .map(|((key, marks), place)| ((key, place), Some(marks)))
        .unzip();
    let mut places: Vec<((i32, u64, u32), usize)> = places;
    places.sort_unstable();
    let mut places = places.into_iter().peekable();
    let of_key = |key: &UltKey| {
        while places
            .next_if(|((pid, ult, _), _)| (*pid, *ult) < *key)
            .is_some()
        {}
        let own = std::iter::from_fn(|| {
            let ((_, _, window), place) =
                places.next_if(|((pid, ult, _), _)| (*pid, *ult) == *key)?;
            Some((window, marks.get_mut(place)?.take()?))
        });
        own.collect()
    };
    keys.iter().map(of_key).collect()
}

/// States and late blocks of a user-level thread.
#[derive(Default)]
struct Course {
    /// State after each window in which it changed.
    states: Vec<(u32, UltState)>,
    /// Windows after which the first record about the thread is a block, although it has left its
    /// LWP as ready: the reason.
    late: Vec<(u32, u16)>,
}

impl Course {
    fn new(marks: &[(u32, Marks)], reasons: &[String]) -> Course {
        let mut course = Course::default();
        let mut all = Marks::default();
        let mut late = None;
        // The window in which the last record was the switch from the thread.
        let mut left: Option<u32> = None;
        for (window, of_window) in marks {
            let block = of_window.block.as_ref().map(|(moment, _)| *moment);
            if let (Some(left), Some((moment, Some(reason)))) = (left, &of_window.first) {
                let reason = reason_place(reasons, reason);
                course.late.push((left, reason));
                late = Some(*moment);
                // The second pass begins the wait where the thread left its LWP.
                let last = course
                    .states
                    .last()
                    .map_or_else(UltState::default, |(_, last)| *last);
                let waits = Some(reason);
                course.states.push((left, UltState { waits, ..last }));
            }
            all = all.and_later(of_window);
            let ready = of_window.ready;
            let is_between = of_window.switch_out < ready && ready < block;
            let is_out = all.switch_out > all.switch_in && !is_between;
            if of_window.switch_out.is_some() && block > of_window.switch_out && is_out {
                late = block;
            }
            let others = all.ready.max(all.switch_in).max(all.end);
            let others = others.max(all.block.as_ref().map(|(moment, _)| *moment));
            left = (all.switch_out > others).then_some(*window);
            let state = state(&all, late, reasons);
            let before = course.states.last();
            if before.map_or_else(UltState::default, |(_, last)| *last) != state {
                course.states.push((*window, state));
            }
        }
        course
    }
}

/// State after these marks. `late` is the last block after the switch from the thread.
fn state(marks: &Marks, late: Option<Moment>, reasons: &[String]) -> UltState {
    let alive = marks.switch_in.max(marks.ready);
    let has_ended = marks.end.is_some() && marks.end > alive;
    let mut state = UltState {
        has_ended,
        ..UltState::default()
    };
    let Some((block, reason)) = &marks.block else {
        return state;
    };
    let block = Some(*block);
    // An earlier thread with this id may have blocked.
    if has_ended || block < marks.switch_in || block < marks.end {
        return state;
    }
    let reason = Some(reason_place(reasons, reason));
    if block > marks.ready {
        state.blocked = reason;
    }
    // Woken between the block and the switch: it never waited.
    let was_ready = block < marks.ready && marks.ready < marks.switch_out;
    if block < marks.switch_out && !was_ready || block == late {
        state.waits = reason;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_ids_show_process_and_thread() {
        let keys = [(7, 1), (7, 2), (9, 1)];
        assert_eq!(
            numbers(&keys, |key| key),
            [100_000_001, 100_000_002, 200_000_001]
        );
        let large = [(7, 1 << 40), (7, 1 << 41), (9, 5)];
        assert_eq!(
            numbers(&large, |key| u64::MAX - key.1),
            [100_000_002, 100_000_001, 200_000_005]
        );
    }

    #[test]
    fn processes_without_a_range_share_one() {
        let keys: Vec<UltKey> = (1..=23).flat_map(|pid| [(pid, 1), (pid, 2)]).collect();
        let numbers = numbers(&keys, |key| key);
        assert_eq!(numbers[38..40], [2_000_000_001, 2_000_000_002]);
        assert_eq!(
            numbers[40..44],
            [2_100_000_001, 2_100_000_002, 2_100_000_003, 2_100_000_004]
        );
    }
}
