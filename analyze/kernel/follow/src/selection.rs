//! The part of traces that a report is about.

use std::collections::BTreeSet;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_language::glob::Glob;

use crate::people::Thread;

/// The part of the traces that a report is about: time, CPUs and threads.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Time window.
    pub window: Window,
    /// Nanoseconds after the end of the window that are also read, only to decide about events in
    /// the window (a later event ends a wait that began in it).
    pub behind: u64,
    /// CPUs of the window.
    pub cpus: CpuSet,
    /// Threads to show.
    pub threads: ThreadFilter,
}

impl Selection {
    /// Default of `behind` for graphs of waits, in nanoseconds: nearly all waits are shorter.
    pub const BEHIND_NS: u64 = 1_000_000_000;

    /// True if an event at this time and CPU is selected.
    #[inline(always)]
    pub fn counts(&self, time: i64, cpu: u32) -> bool {
        self.window.contains(time) && self.cpus.contains(cpu)
    }

    /// Events at or after this time are not read.
    pub fn read_until(&self) -> Option<Timestamp> {
        let to = self.window.to?;
        Some(Timestamp(to.0.saturating_add_unsigned(self.behind)))
    }
}

/// A window of time, including `from` and excluding `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start of the window; `None` for that of the trace.
    pub from: Option<Timestamp>,
    /// End of the window; `None` for that of the trace.
    pub to: Option<Timestamp>,
}

impl Window {
    /// True if the time is in the window.
    #[inline(always)]
    pub fn contains(&self, time: i64) -> bool {
        self.from.is_none_or(|from| from.0 <= time) && self.to.is_none_or(|to| time < to.0)
    }

    /// True if the time is after the window.
    #[inline(always)]
    pub fn is_over(&self, time: i64) -> bool {
        self.to.is_some_and(|to| to.0 <= time)
    }

    /// Nanoseconds of `from..to` in the window.
    #[inline(always)]
    pub fn clip(&self, from: i64, to: i64) -> u64 {
        let from = self.from.map_or(from, |window| from.max(window.0));
        let to = self.to.map_or(to, |window| to.min(window.0));
        if to <= from { 0 } else { to.abs_diff(from) }
    }
}

/// CPUs by number; `None` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(pub Option<BTreeSet<u32>>);

impl CpuSet {
    /// True if the CPU is selected.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}

/// Threads to show: a thread must match every list that is not empty.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    /// Ids of threads.
    pub tids: Vec<i64>,
    /// Ids of processes.
    pub pids: Vec<i64>,
    /// Patterns of threads' last known names, with `*` and `?`.
    pub names: Vec<Glob>,
    /// Processes to leave out, each with the index of its trace.
    pub without: Vec<(u32, i64)>,
}

impl ThreadFilter {
    /// True if the thread must be shown.
    pub fn shows(&self, thread: &Thread) -> bool {
        let among = |list: &[i64], id: Option<i32>| {
            list.is_empty() || id.is_some_and(|id| list.contains(&i64::from(id)))
        };
        let named = || {
            thread
                .name
                .as_ref()
                .is_some_and(|name| self.names.iter().any(|glob| glob.matches(name.as_bytes())))
        };
        let is_left_out = |pid: i32| self.without.contains(&(thread.trace, i64::from(pid)));
        among(&self.tids, thread.tid)
            && among(&self.pids, thread.pid)
            && (self.names.is_empty() || named())
            && !thread.pid.is_some_and(is_left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_must_name_a_thread() {
        let thread = |tid, pid, name: &str| Thread {
            trace: 0,
            tid: Some(tid),
            pid,
            name: Some(name.to_owned()),
        };
        let filter = ThreadFilter {
            tids: Vec::new(),
            pids: vec![7, 8],
            names: vec![Glob::new("red*")],
            without: Vec::new(),
        };
        assert!(filter.shows(&thread(9, Some(7), "redis")));
        assert!(!filter.shows(&thread(9, Some(6), "redis")));
        assert!(!filter.shows(&thread(9, None, "redis")));
        assert!(!filter.shows(&thread(9, Some(8), "bored")));
        assert!(ThreadFilter::default().shows(&Thread::default()));
        let without = |trace| ThreadFilter {
            without: vec![(trace, 7)],
            ..ThreadFilter::default()
        };
        assert!(!without(0).shows(&thread(9, Some(7), "redis")));
        assert!(without(0).shows(&thread(9, Some(8), "redis")));
        assert!(without(0).shows(&thread(9, None, "redis")));
        // A process with the same id on another machine.
        assert!(without(1).shows(&thread(9, Some(7), "redis")));
        assert!(
            !ThreadFilter {
                tids: vec![1],
                ..ThreadFilter::default()
            }
            .shows(&Thread::default())
        );
    }

    #[test]
    fn windows_cut_exactly() {
        let window = Window {
            from: Some(Timestamp(10)),
            to: Some(Timestamp(20)),
        };
        assert_eq!(
            [
                window.clip(0, 5),
                window.clip(0, 15),
                window.clip(12, 13),
                window.clip(15, 99)
            ],
            [0, 5, 1, 5]
        );
        assert_eq!(Window::default().clip(5, 3), 0);
        assert_eq!(Window::default().clip(i64::MIN, i64::MAX), u64::MAX);
        assert!(
            window.contains(10)
                && window.contains(19)
                && !window.contains(20)
                && !window.contains(9)
        );
    }
}
