//! What part of a trace a report is about.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_kernel_model::Syscall;
use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;

use crate::people::Thread;
use crate::recorded::Recorded;
use crate::view::{Ranges, View};

/// What part of the traces a report is about.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Time.
    pub window: Window,
    /// How many nanoseconds behind its end are read besides, by analyses to which that matters.
    pub behind: u64,
    /// CPUs.
    pub cpus: CpuSet,
    /// Threads to show.
    pub threads: ThreadFilter,
    /// What to show of it; nothing: statistics and the greatest.
    pub views: Vec<View>,
    /// Rows of what is greatest.
    pub rows: usize,
    /// Only what lasts that long, or is that large.
    pub limits: Limits,
    /// Only what is that large, in bytes; what has no size is as large as may be.
    pub sizes: Limits,
    /// Patterns of names of files; none: all.
    pub paths: Vec<Glob>,
    /// Patterns of names of system calls; none: all.
    pub calls: Vec<Glob>,
    /// True if one page is made of it, which shows sums of all and what took longest: how values are distributed and
    /// whose they are need not be known, and calls in which threads wait for work are no longest calls.
    pub is_summary: bool,
    /// Patterns of names of disks and interfaces; none: all.
    pub devices: Vec<Glob>,
    /// Patterns of names or numbers of interrupts; none: all, unless there are some of softirqs.
    pub interrupts: Vec<Glob>,
    /// Patterns of names, in capitals, or numbers of softirqs; none: all, unless there are some of interrupts.
    pub softirqs: Vec<Glob>,
    /// Priorities as the kernel counts them; none: all.
    pub priorities: Vec<i32>,
    /// For a second pass that counts how often values of each size occur: their bounds.
    pub ranges: Option<Ranges>,
    /// The recorded CPUs, if already known: analyses in one pass share them.
    pub recorded: Option<Arc<Recorded>>,
}

/// Rows of what is greatest where nobody says how many.
pub const ROWS: usize = 20;

/// Bounds of durations (nanoseconds) or sizes (bytes); both belong to what is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The least.
    pub min: Option<u64>,
    /// The greatest.
    pub max: Option<u64>,
}

impl Limits {
    /// True if a value is within them.
    #[inline(always)]
    pub fn contain(&self, value: u64) -> bool {
        self.min.is_none_or(|min| min <= value) && self.max.is_none_or(|max| value <= max)
    }
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            window: Window::default(),
            behind: 0,
            cpus: CpuSet::default(),
            threads: ThreadFilter::default(),
            views: Vec::new(),
            rows: ROWS,
            limits: Limits::default(),
            sizes: Limits::default(),
            paths: Vec::new(),
            calls: Vec::new(),
            is_summary: false,
            devices: Vec::new(),
            interrupts: Vec::new(),
            softirqs: Vec::new(),
            priorities: Vec::new(),
            ranges: None,
            recorded: None,
        }
    }
}

impl Selection {
    /// True if what happens at that time and place is asked for.
    #[inline(always)]
    pub fn counts(&self, time: i64, cpu: u32) -> bool {
        self.window.contains(time) && self.cpus.contains(cpu)
    }

    /// What happens at or after this time is not read.
    pub fn read_until(&self) -> Option<Timestamp> {
        let to = self.window.to?;
        Some(Timestamp(to.0.saturating_add_unsigned(self.behind)))
    }

    /// True if that view is asked for.
    pub fn shows(&self, view: View) -> bool {
        match self.views.as_slice() {
            [] => matches!(view, View::Stats | View::Top),
            views => views.contains(&view),
        }
    }

    /// True if a device of that name is asked for.
    pub fn shows_device(&self, name: &str) -> bool {
        let globs = &self.devices;
        globs.is_empty() || globs.iter().any(|glob| glob.matches(name.as_bytes()))
    }

    /// The system calls that are asked for.
    pub fn chosen_calls(&self) -> ChosenCalls {
        if self.calls.is_empty() {
            return ChosenCalls::default();
        }
        let known = (0..Syscall::count()).map(Syscall);
        ChosenCalls {
            known: Some(known.map(|call| are_called(&self.calls, call)).collect()),
            globs: self.calls.clone(),
        }
    }

    /// The system calls that may be among the longest.
    pub fn longest_calls(&self) -> ChosenCalls {
        let works = |call: Syscall| !call.waits_for_work();
        let chosen = self
            .is_summary
            .then(|| (0..Syscall::count()).map(Syscall).map(works).collect());
        ChosenCalls {
            known: chosen,
            globs: Vec::new(),
        }
    }

    /// Says of each pattern of names of system calls that chooses none of those that `counted` gives
    /// what is amiss with it.
    pub fn unmatched_calls(&self, counted: impl Iterator<Item = Syscall>) -> Vec<String> {
        let counted: BTreeSet<&str> = counted.flat_map(names_of).collect();
        let patterns = self.calls.iter().filter_map(|glob| {
            let matches = |name: &str| glob.matches(name.as_bytes());
            if counted.iter().any(|name| matches(name)) {
                return None;
            }
            let option = format!("--syscall {}", glob.text());
            let exists = Syscall::all().flat_map(names_of).any(matches);
            Some(match exists {
                true => format!("{option} matches no call that ended in what was chosen"),
                false => {
                    let instead = did_you_mean(glob, Syscall::all().flat_map(names_of));
                    format!("{option} matches nothing: Linux has no such system call{instead}")
                }
            })
        });
        patterns.collect()
    }

    /// How many rows of what is greatest are asked for.
    pub fn top(&self) -> usize {
        if self.shows(View::Top) { self.rows } else { 0 }
    }
}

/// What a system call is called: by the kernel, and by programs.
fn names_of(call: Syscall) -> [&'static str; 2] {
    [call.name(), call.user_name()]
}

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
    pub fn contains(&self, time: i64) -> bool {
        self.from.is_none_or(|from| from.0 <= time) && self.to.is_none_or(|to| time < to.0)
    }

    /// True for times behind it.
    #[inline(always)]
    pub fn is_over(&self, time: i64) -> bool {
        self.to.is_some_and(|to| to.0 <= time)
    }

    /// Nanoseconds of `from..to` that are in it.
    #[inline(always)]
    pub fn clip(&self, from: i64, to: i64) -> u64 {
        let from = self.from.map_or(from, |window| from.max(window.0));
        let to = self.to.map_or(to, |window| to.min(window.0));
        if to <= from { 0 } else { to.abs_diff(from) }
    }
}

/// True if one of the patterns is a name of that call.
fn are_called(globs: &[Glob], call: Syscall) -> bool {
    let matches = |name: &str| globs.iter().any(|glob| glob.matches(name.as_bytes()));
    names_of(call).into_iter().any(matches)
}

/// The selected system calls.
#[derive(Clone, Debug, Default)]
pub struct ChosenCalls {
    /// By number; none selects all.
    known: Option<Vec<bool>>,
    /// For calls named by traces that are opened later; none selects all.
    globs: Vec<Glob>,
}

impl ChosenCalls {
    /// True if it is asked for.
    #[inline(always)]
    pub fn contain(&self, call: Syscall) -> bool {
        let Some(known) = &self.known else {
            return true;
        };
        let chosen = known.get(usize::from(call.0)).copied();
        chosen.unwrap_or_else(|| self.globs.is_empty() || are_called(&self.globs, call))
    }
}

/// CPUs by number; none: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(pub Option<BTreeSet<u32>>);

impl CpuSet {
    /// True if it is chosen.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}

/// Threads to show: those that every list that is not empty names.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    /// Threads.
    pub tids: Vec<i64>,
    /// Processes.
    pub pids: Vec<i64>,
    /// Patterns of threads' last known names, with `*` and `?`.
    pub names: Vec<Glob>,
    /// Processes to leave out, each with the index of its trace.
    pub without: Vec<(u32, i64)>,
}

impl ThreadFilter {
    /// True if it is to be shown.
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
        // A process of that number on another machine.
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
        assert!(window.contains(10) && window.contains(19) && !window.contains(20) && !window.contains(9));
    }
}
