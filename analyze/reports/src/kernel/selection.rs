//! What part of a trace a report is about.

use std::collections::BTreeSet;

use tracebraid_ctf::clock::Timestamp;

use crate::kernel::people::Thread;

/// A stretch of time: `from` belongs to it, `to` does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its beginning; none: the trace's.
    pub from: Option<Timestamp>,
    /// Its end; none: the trace's.
    pub to: Option<Timestamp>,
}

impl Window {
    /// True if the time is in it.
    #[inline(always)]
    pub(crate) fn contains(&self, time: i64) -> bool {
        self.from.is_none_or(|from| from.0 <= time) && self.to.is_none_or(|to| time < to.0)
    }

    /// Nanoseconds of `from..to` that are in it.
    #[inline(always)]
    pub(crate) fn clip(&self, from: i64, to: i64) -> u64 {
        let from = self.from.map_or(from, |window| from.max(window.0));
        let to = self.to.map_or(to, |window| to.min(window.0));
        if to <= from { 0 } else { to.abs_diff(from) }
    }
}

/// CPUs by number; none: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(pub Option<BTreeSet<u32>>);

impl CpuSet {
    /// True if it is chosen.
    pub(crate) fn contains(&self, cpu: u32) -> bool {
        self.0.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}

/// Threads to show: those that any of the lists names; all if all lists are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Threads.
    pub tids: Vec<i32>,
    /// Processes.
    pub pids: Vec<i32>,
    /// Last known names of threads.
    pub names: Vec<String>,
}

impl ThreadFilter {
    /// True if it is to be shown.
    pub(crate) fn shows(&self, thread: &Thread) -> bool {
        let Thread { tid, pid, name, .. } = thread;
        let all = self.tids.is_empty() && self.pids.is_empty() && self.names.is_empty();
        all || tid.is_some_and(|tid| self.tids.contains(&tid))
            || pid.is_some_and(|pid| self.pids.contains(&pid))
            || name.as_ref().is_some_and(|name| self.names.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cut_exactly() {
        let window = Window { from: Some(Timestamp(10)), to: Some(Timestamp(20)) };
        assert_eq!([window.clip(0, 5), window.clip(0, 15), window.clip(12, 13), window.clip(15, 99)], [0, 5, 1, 5]);
        assert_eq!(Window::default().clip(5, 3), 0);
        assert_eq!(Window::default().clip(i64::MIN, i64::MAX), u64::MAX);
        assert!(window.contains(10) && window.contains(19) && !window.contains(20) && !window.contains(9));
    }
}
