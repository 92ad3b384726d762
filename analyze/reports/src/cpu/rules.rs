//! The options, resolved for the analysis.

use std::collections::BTreeMap;

use crate::cpu::options::{CpuOptions, GROUPINGS};
use tracebraid_follow::{By, Selection, ThreadKey};
use tracebraid_statistics::Ranges;
use tracebraid_tables::View;

/// The options, resolved for the analysis.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) selection: Selection,
    pub(super) options: CpuOptions,
    /// Whether the tables of active time by CPU, process and thread are requested.
    pub(super) shows_use: bool,
    /// Whether statistics of stretches are requested.
    pub(super) is_counted: bool,
    /// Whether single stretches, or statistics by thread, are requested.
    pub(super) is_listed: bool,
    /// Whether the distribution of each thread's stretches is requested.
    pub(super) is_counted_by_thread: bool,
    /// True if these are by CPU, too.
    pub(super) is_counted_by_cpu: bool,
    /// Number of the longest stretches kept for each thread.
    pub(super) top: usize,
    /// Whether all stretches are kept.
    pub(super) is_logged: bool,
    /// Bounds of the histograms, in a second pass.
    pub(super) bounds: Option<Bounds>,
}

/// Shortest and longest stretch: of all threads, and of single threads.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) all: Option<(u64, u64)>,
    pub(super) threads: BTreeMap<ThreadKey, (u64, u64)>,
}

impl Rules {
    pub(super) fn new(selection: Selection, options: CpuOptions) -> Rules {
        let bounds = options.views.ranges.as_ref().map(Bounds::new);
        // A second pass only builds histograms. Other users of this analysis request no view.
        let is_asked = |view| bounds.is_none() && options.views.views.contains(&view);
        Rules {
            shows_use: bounds.is_none() && options.views.shows(View::Stats),
            is_counted: is_asked(View::Stats),
            is_listed: bounds.is_some()
                || [View::Top, View::Log, View::Freq].into_iter().any(is_asked),
            is_counted_by_thread: is_asked(View::Freq),
            is_counted_by_cpu: options.views.groupings(GROUPINGS).contains(&By::Cpu),
            top: if is_asked(View::Top) {
                options.views.rows
            } else {
                0
            },
            is_logged: is_asked(View::Log),
            bounds,
            selection,
            options,
        }
    }
}

impl Bounds {
    fn new(ranges: &Ranges) -> Bounds {
        let mut bounds = Bounds::default();
        for (key, &range) in ranges {
            let mut words = key.split(' ').skip(1).map(str::parse::<i64>);
            match (words.next(), words.next()) {
                (Some(Ok(trace)), Some(Ok(tid))) => {
                    let (trace, tid) = (trace as u32, tid as i32);
                    bounds.threads.insert(ThreadKey { trace, tid }, range);
                }
                _ => bounds.all = Some(range),
            }
        }
        bounds
    }

    /// Name of the bounds of all stretches.
    pub(super) const ALL: &str = "all";

    /// Name of the bounds of a thread's stretches.
    pub(super) fn name(key: ThreadKey) -> String {
        format!("thread {} {}", key.trace, key.tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ranges_are_understood() {
        let key = ThreadKey { trace: 2, tid: 17 };
        let ranges = [
            (Bounds::ALL.to_owned(), (1, 9)),
            (Bounds::name(key), (3, 4)),
        ];
        let bounds = Bounds::new(&ranges.into());
        assert_eq!(bounds.all, Some((1, 9)));
        assert_eq!(bounds.threads, BTreeMap::from([(key, (3, 4))]));
    }
}
