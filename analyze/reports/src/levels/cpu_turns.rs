//! The threads that had a CPU while a user-level thread was ready without an LWP.
//!
//! A ready user-level thread would have run earlier if the CPU on which it finally ran had been
//! free for it. The turns of threads on this CPU are therefore the cause of the delay: those of
//! user-level threads and schedulers of the process, and those of threads for which the kernel
//! preempted the LWPs. The alternative, the LWP on which it finally ran, was rejected: with more LWPs than
//! CPUs, an LWP mostly waits for a CPU itself. Without a kernel trace, an LWP takes the place of a
//! CPU.
//!
//! Turns follow from the switches of a CPU alone, so that a slice of time knows all of its turns.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey};
use tracebraid_kernel_model::events::user_level::{FIRST_USER_LEVEL_TID, is_user_level};

/// Stands for a thread in times in which events were lost, or that no CPU ended.
pub(super) const UNKNOWN: i32 = -1;
/// Stands for all threads with turns too long ago.
pub(super) const EARLIER: i32 = -2;
/// Stands for all user-level threads of the process that waits.
pub(super) const SIBLINGS: i32 = -3;
/// Stands for all user-level threads of other processes.
pub(super) const STRANGERS: i32 = -4;

/// The id under which the turns of thread `tid` are added to the sums of `waiter`. User-level
/// threads are grouped, since sums for each pair of N threads would take N² entries.
pub(super) fn keeper(waiter: i32, tid: i32) -> i32 {
    let process = |tid: i32| tid / FIRST_USER_LEVEL_TID;
    match is_user_level(tid) {
        false => tid,
        true if process(tid) == process(waiter) => SIBLINGS,
        true => STRANGERS,
    }
}

/// Number of turns to which a delay is attributed; those before are [`EARLIER`]. It bounds the time for
/// each delay.
const MOST: usize = 512;

/// The end of a thread's turn on a CPU, in nanoseconds from the origin. It begins at the end of the
/// previous one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Turn {
    end: i64,
    tid: i32,
}

/// Turns on a CPU, by time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CpuTurns(Vec<Turn>);

/// Turns on all CPUs.
pub(super) type Turns = ByCpu<CpuTurns>;

impl CpuTurns {
    pub(super) fn end(&mut self, time: i64, tid: i32) {
        self.0.push(Turn { end: time, tid });
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn first(&self, count: usize) -> &[Turn] {
        self.0.get(..count).unwrap_or(&self.0)
    }

    /// Appends later turns, and drops those that are no longer needed.
    fn append(&mut self, later: &CpuTurns) {
        let needed = later.0.len().saturating_sub(MOST);
        self.0
            .extend_from_slice(later.0.get(needed..).unwrap_or_default());
        self.shorten(MOST);
    }

    /// Drops turns that are no longer needed, at most once in `MOST` calls.
    pub(super) fn shorten_at_times(&mut self) {
        self.shorten(2 * MOST);
    }

    fn shorten(&mut self, most: usize) {
        if self.0.len() > most {
            self.0.drain(..self.0.len() - MOST);
        }
    }
}

/// Appends the turns of a slice.
pub(super) fn append(turns: &mut Turns, later: Turns) {
    for (cpu, later) in later {
        turns.get(cpu).append(&later);
    }
}

/// The turns on the CPU of an event up to its time, those before a slice and those in it.
#[derive(Clone, Copy, Default)]
pub(super) struct PastTurns<'a> {
    pub(super) earlier: &'a [Turn],
    pub(super) later: &'a [Turn],
}

impl PastTurns<'_> {
    /// Divides the time from `from` to `to` between the threads that had the CPU.
    pub(super) fn divide(&self, from: i64, to: i64, mut add: impl FnMut(i32, (i64, i64))) {
        let turns = self.later.iter().rev().chain(self.earlier.iter().rev());
        let mut turns = turns.peekable();
        let (mut at, mut count) = (to, 0);
        while let Some(turn) = turns.next().filter(|_| at > from) {
            count += 1;
            if count > MOST {
                break;
            }
            let begin = turns.peek().map_or(from, |before| before.end).max(from);
            // The end of the range is after the last switch.
            if turn.end < at {
                add(UNKNOWN, (turn.end.max(from), at));
                at = turn.end.max(from);
            }
            if begin < at {
                add(turn.tid, (begin, at));
                at = begin;
            }
        }
        if at > from {
            add(if count > 0 { EARLIER } else { UNKNOWN }, (from, at));
        }
    }
}

/// Turns on the CPU of an event so far.
pub(super) fn of(turns: &mut Turns, cpu: CpuKey) -> &[Turn] {
    &turns.get(cpu).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(turns: &[(i64, i32)], from: i64, to: i64) -> Vec<(i32, i64, i64)> {
        let turns: Vec<Turn> = turns.iter().map(|&(end, tid)| Turn { end, tid }).collect();
        let mut parts = Vec::new();
        let past = PastTurns {
            earlier: &turns[..turns.len() / 2],
            later: &turns[turns.len() / 2..],
        };
        past.divide(from, to, |tid, (begin, end)| parts.push((tid, begin, end)));
        parts
    }

    #[test]
    fn the_threads_that_had_the_cpu_share_a_delay() {
        let turns = [(10, 1), (20, 2), (20, 3), (50, 4)];
        assert_eq!(divided(&turns, 15, 50), [(4, 20, 50), (2, 15, 20)]);
        assert_eq!(
            divided(&turns, 0, 50),
            [(4, 20, 50), (2, 10, 20), (1, 0, 10)]
        );
        assert_eq!(divided(&turns, 40, 60), [(UNKNOWN, 50, 60), (4, 40, 50)]);
        assert_eq!(divided(&[], 40, 60), [(UNKNOWN, 40, 60)]);
    }

    #[test]
    fn turns_long_ago_are_not_distinguished() {
        let turns: Vec<(i64, i32)> = (1..=5000).map(|at| (at, at as i32)).collect();
        let parts = divided(&turns, 0, 5000);
        assert_eq!(parts.len(), MOST + 1);
        assert_eq!(parts[MOST], (EARLIER, 0, 5000 - MOST as i64));
    }
}
