//! Histograms of latencies: in total, by thread and by priority.

use serde::{Deserialize, Serialize};

use tracebraid_follow::ThreadKey;
use tracebraid_statistics::{Bins, Ranges};

/// A group of latencies with a common histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    All,
    Thread(ThreadKey),
    Priority(i32),
}

impl Group {
    /// The key of the group's bounds.
    pub(super) fn key(self) -> String {
        match self {
            Group::All => "all".to_owned(),
            Group::Thread(key) => format!("thread {} {}", key.trace, key.tid),
            Group::Priority(priority) => format!("priority {priority}"),
        }
    }

    fn parse(text: &str) -> Option<Group> {
        let words: Vec<&str> = text.split(' ').collect();
        match words.as_slice() {
            ["all"] => Some(Group::All),
            ["thread", trace, tid] => Some(Group::Thread(ThreadKey {
                trace: trace.parse().ok()?,
                tid: tid.parse().ok()?,
            })),
            ["priority", priority] => Some(Group::Priority(priority.parse().ok()?)),
            _ => None,
        }
    }
}

/// Groups with the bounds of their latencies, sorted by group.
pub(super) type Bounds = Vec<(Group, (u64, u64))>;

pub(super) fn bounds(ranges: &Ranges) -> Bounds {
    let ranges = ranges.iter();
    let mut bounds: Bounds = ranges
        .filter_map(|(key, &range)| Some((Group::parse(key)?, range)))
        .collect();
    bounds.sort_by_key(|(group, _)| *group);
    bounds
}

/// Histograms by group, parallel to the bounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Freq(Vec<Bins>);

impl Freq {
    /// Counts a latency, if its thread has bounds.
    pub(super) fn add(
        &mut self,
        bounds: &Bounds,
        key: ThreadKey,
        priority: Option<i32>,
        latency: u64,
    ) {
        let find = |group| bounds.binary_search_by_key(&group, |entry| entry.0).ok();
        let Some(thread) = find(Group::Thread(key)) else {
            return;
        };
        if self.0.is_empty() {
            self.0.resize(bounds.len(), Bins::default());
        }
        let priority = priority.and_then(|priority| find(Group::Priority(priority)));
        for at in [Some(thread), find(Group::All), priority]
            .into_iter()
            .flatten()
        {
            if let (Some(bins), Some((_, range))) = (self.0.get_mut(at), bounds.get(at)) {
                bins.add(*range, latency);
            }
        }
    }

    /// Adds other histograms.
    pub(super) fn merge(&mut self, other: &Freq) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Bins::default());
        }
        for (own, bins) in self.0.iter_mut().zip(&other.0) {
            own.merge(bins);
        }
    }

    pub(super) fn groups<'a>(
        &'a self,
        bounds: &'a Bounds,
    ) -> impl Iterator<Item = (Group, (u64, u64), &'a Bins)> {
        let both = bounds.iter().zip(&self.0);
        both.map(|((group, range), bins)| (*group, *range, bins))
    }
}
