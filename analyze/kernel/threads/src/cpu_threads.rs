//! The current thread of each CPU, and the time at which it last became idle.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Recorded};

use crate::thread_cell::ThreadState;

/// The current threads of all CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CpuThreads {
    cpus: ByCpu<OnCpu>,
    /// Number of [`Recorded::ends`] that have been processed.
    ended: usize,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OnCpu {
    /// 0 is the idle thread.
    tid: Option<i32>,
    /// The last two times at which the CPU became idle, latest first, in nanoseconds from the
    /// origin.
    idle: (i64, i64),
}

impl Default for OnCpu {
    fn default() -> Self {
        OnCpu {
            tid: None,
            idle: (i64::MIN, i64::MIN),
        }
    }
}

impl CpuThreads {
    /// Records a switch to `next`; `None` is the idle thread.
    #[inline]
    pub fn switch(&mut self, cpu: CpuKey, time: i64, next: Option<i32>) {
        let on = self.cpus.get(cpu);
        let tid = Some(next.unwrap_or(0));
        match next {
            None if on.tid != tid => on.idle = (time, on.idle.0),
            // The CPU was idle for no time.
            Some(_) if on.idle.0 == time && on.tid == Some(0) => on.idle = (on.idle.1, on.idle.1),
            _ => {}
        }
        on.tid = tid;
    }

    /// Records that the current thread `old` has the id `tid` from now on.
    pub fn rename(&mut self, cpu: CpuKey, old: i32, tid: i32) {
        let on = self.cpus.get(cpu);
        if on.tid == Some(old) {
            on.tid = Some(tid);
        }
    }

    /// Records a loss of events: the current thread is unknown until the next switch.
    pub fn lose(&mut self, cpu: CpuKey) {
        self.cpus.get(cpu).tid = None;
    }

    /// True if a thread that has seemed to wait for a CPU since `since` cannot have waited, because
    /// its CPU is unknown or went idle meanwhile. The thread must have run on an unrecorded CPU.
    pub fn is_out_of_sight(&mut self, trace: u32, state: ThreadState, since: i64) -> bool {
        match state {
            ThreadState::Preempted(ThreadState::NO_CPU)
            | ThreadState::Runnable(ThreadState::NO_CPU) => true,
            ThreadState::Preempted(cpu) | ThreadState::Runnable(cpu) => {
                let cpu = u32::from(cpu);
                self.cpus.get(CpuKey { trace, cpu }).idle.0 > since
            }
            _ => false,
        }
    }

    /// Returns the next CPU whose recording ends by `until`, the time of the end, and the thread
    /// running there. Call it until it returns `None`, before applying events at `until`.
    #[inline(always)]
    pub fn next_end(
        &mut self,
        recorded: &Recorded,
        until: i64,
    ) -> Option<(CpuKey, i64, Option<i32>)> {
        let &(time, cpu) = recorded
            .ends()
            .get(self.ended)
            .filter(|end| end.0 <= until)?;
        self.ended += 1;
        let tid = std::mem::take(&mut self.cpus.get(cpu).tid);
        Some((cpu, time, tid.filter(|&tid| tid != 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cpus_show_that_a_thread_is_elsewhere() {
        let cpu = CpuKey { trace: 0, cpu: 1 };
        let mut cpus = CpuThreads::default();
        cpus.switch(cpu, 10, Some(7));
        let waits = ThreadState::Runnable(1);
        assert!(!cpus.is_out_of_sight(0, waits, 15));
        cpus.switch(cpu, 20, None);
        assert!(cpus.is_out_of_sight(0, waits, 15));
        assert!(!cpus.is_out_of_sight(0, waits, 20));
        assert!(!cpus.is_out_of_sight(0, ThreadState::Blocked, 15));
        cpus.switch(cpu, 20, Some(8));
        assert!(!cpus.is_out_of_sight(0, waits, 15));
        assert!(cpus.is_out_of_sight(0, ThreadState::Preempted(ThreadState::NO_CPU), 30));
    }
}
