//! The result of the first pass: the LWPs and user-level threads of a host, and the state of each
//! at the beginning of each window.

use std::collections::{BTreeMap, BTreeSet};

use crate::survey::{Edges, Ends, Known, LwpSight, Map, Moment, Tables, UltKey};
use crate::ult_facts::UltFacts;
use crate::ults::Ults;
use crate::vocabulary::reason_word;

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

/// A kernel thread that records steps of user-level scheduling.
#[derive(Clone, Debug)]
pub(crate) struct Lwp {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// Process and user-level thread that it runs, by window.
    pub(crate) runs: Timeline<UltKey>,
}

/// All levels of a host.
#[derive(Debug, Default)]
pub(crate) struct States {
    pub(crate) cpus: BTreeMap<u32, Timeline<i32>>,
    /// Hard interrupt and softirq at the end of a window, where they are known, by CPU.
    edges: BTreeMap<u32, Vec<(u32, [Option<bool>; 2])>>,
    /// Lost records of CPUs and of LWPs, from and to, in order; those of an LWP are disjoint.
    pub(crate) cpu_losses: Vec<(u32, i64, i64)>,
    pub(crate) lwp_losses: Vec<(i32, i64, i64)>,
    pub(crate) lwps: Vec<Lwp>,
    pub(crate) lwp_of_tid: Map<i32, u32>,
    pub(crate) ults: Ults,
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
            reasons: reasons(&tables.ults),
            recorded_reasons: Vec::new(),
            cpus: timelines(tables.cpus),
            edges: edges(tables.edges),
            cpu_losses: tables.cpu_losses,
            lwp_losses: tables.lwp_losses,
            ..States::default()
        };
        let recorded = recorded_reasons(&tables.ults).into_iter();
        let recorded = recorded.map(|own| (own.into(), states.reason_of_word(own)));
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
        let reason_of = |worker: u32, number: u32| {
            let facts = tables.ults.get(worker as usize);
            states.reason(facts.map_or(&[], |facts| facts.reasons.get(number)))
        };
        let ults = Ults::new(&tables.ults, &reason_of);
        states.processes = processes(&tables.lwp_sights, &ults);
        states.ults = ults;
        UltFacts::drop_all(tables.ults);
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
        self.ults.place(key)
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

fn recorded_reasons(facts: &[UltFacts]) -> BTreeSet<&[u8]> {
    facts.iter().flat_map(|own| own.reasons.all()).collect()
}

fn reasons(facts: &[UltFacts]) -> Vec<String> {
    let recorded = recorded_reasons(facts).into_iter();
    let words: BTreeSet<String> = recorded.map(reason_word).collect();
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

fn processes(sights: &Map<i32, LwpSight>, ults: &Ults) -> BTreeMap<i32, String> {
    let own = ults.processes().into_iter();
    let mut processes: BTreeMap<i32, String> = own.map(|own| (own.pid, String::new())).collect();
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
