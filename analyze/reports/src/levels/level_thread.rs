//! A thread besides its state: where it ran last, and who took its CPU or LWP.

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;
use tracebraid_kernel_model::Syscall;
use tracebraid_kernel_model::events::user_level::is_user_level;
use tracebraid_threads::{Past, PastStretch};

use crate::levels::LevelRules;
use crate::levels::cpu_turns::{self, PastTurns};
use crate::levels::level_step::{LevelAct, LevelMoment};
use crate::levels::level_sums::LevelSums;

/// Circumstances in which a thread last left its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LevelPlace {
    /// CPU and LWP.
    pub(super) last: Option<(u32, i32)>,
    /// The LWP on which it runs, if it runs.
    pub(super) on: Option<i32>,
    /// The thread that got the CPU or the LWP.
    pub(super) next: i32,
    /// The runtime took it from its LWP.
    pub(super) is_user: bool,
    /// Reason of the wait that begins, or has begun.
    pub(super) reason: Option<Syscall>,
    /// Begin of its system call, as the runtime reports it.
    pub(super) called: Option<i64>,
}

impl LevelPlace {
    /// Follows an act, after its effect on sums.
    pub(super) fn follow(&mut self, (cpu, time): LevelMoment, act: &LevelAct) {
        match *act {
            LevelAct::Leave {
                lwp, is_user, next, ..
            } => {
                self.last = Some((cpu.cpu, lwp));
                (self.next, self.is_user) = (next, is_user);
            }
            LevelAct::Come { lwp, is_user } => {
                self.reason = None;
                // The kernel lets an LWP go on with the user-level thread that it had.
                let same = self.last.map(|(_, lwp)| lwp);
                self.on = if is_user { Some(lwp) } else { same };
            }
            LevelAct::Made => *self = LevelPlace::default(),
            LevelAct::Waits(reason) => self.reason = Some(reason),
            LevelAct::Call(begins) => self.called = begins.then_some(time),
            LevelAct::Wake(..) | LevelAct::Function(..) => {}
            LevelAct::SystemCall(_) | LevelAct::Probe | LevelAct::Ended => {}
        }
    }
}

/// Adds to the sums of a thread.
pub(super) struct LevelCounter<'a> {
    pub(super) rules: &'a LevelRules,
    pub(super) sums: &'a mut LevelSums,
    pub(super) key: ThreadKey,
    /// Turns of threads on the CPU.
    pub(super) turns: PastTurns<'a>,
}

impl LevelCounter<'_> {
    /// A stretch of time has ended at `at`. `lwp` is that on which the thread ran in it.
    pub(super) fn spend(
        &mut self,
        place: &LevelPlace,
        stretch: PastStretch<()>,
        at: LevelMoment,
        lwp: i32,
    ) {
        let (cpu, end) = at;
        let key = self.key;
        let lwp_key = ThreadKey { tid: lwp, ..key };
        let selection = &self.rules.selection;
        let ns = selection.window.clip(stretch.begin, end);
        let is_in_window = ns > 0 || selection.window.contains(end);
        let counts = is_in_window && selection.cpus.contains(cpu.cpu);
        let last_lwp = ThreadKey {
            tid: place.last.map_or(-1, |last| last.1),
            ..key
        };
        let sums = &mut *self.sums;
        if let Past::Running = stretch.past {
            let own = sums.lwp(lwp_key);
            let has_thread = lwp != key.tid;
            if has_thread {
                own.runs(key.tid);
            }
            if counts {
                own.cpus.insert(cpu.cpu);
                if has_thread {
                    own.threads.add(ns);
                }
                sums.threads.get(key).active.add(ns);
            }
            return;
        }
        if !counts {
            return;
        }
        // The LWP is held up together with its user-level thread.
        let with_lwp = !place.is_user && last_lwp.tid != key.tid;
        let of = sums.threads.get(key);
        match stretch.past {
            Past::Running => {}
            Past::Preempted => {
                of.preempted.add(ns);
                of.preempted_by.entry(place.next).or_default().add(ns);
                if with_lwp {
                    sums.lwp(last_lwp).preempted.add(ns);
                }
            }
            Past::Runnable => {
                of.lwp_ready.add(ns);
                if with_lwp {
                    sums.lwp(last_lwp).ready.add(ns);
                }
            }
            Past::Ready => {
                of.ready.add(ns);
                // An LWP's own thread is ready while it runs user-level threads.
                if !is_user_level(key.tid) {
                    return;
                }
                let window = &self.rules.selection.window;
                let mut kept_by = std::mem::take(&mut of.kept_by);
                self.turns.divide(stretch.begin, end, |tid, (from, to)| {
                    let ns = window.clip(from, to);
                    if ns == 0 {
                        return;
                    }
                    let keeper = cpu_turns::keeper(key.tid, tid);
                    kept_by.entry(keeper).or_default().add(ns);
                    if is_user_level(tid) {
                        let keeper = ThreadKey { tid, ..key };
                        sums.threads.get(keeper).keeps.add(ns);
                    }
                });
                sums.threads.get(key).kept_by = kept_by;
            }
            Past::Waited(_) if place.is_user => {
                let reason = place.reason.unwrap_or(Syscall::OTHER);
                of.blocked.entry(reason).or_default().add(ns);
            }
            Past::Waited(_) => {
                of.kernel.add(ns);
                if with_lwp {
                    sums.lwp(last_lwp).blocked.add(ns);
                }
            }
            // Before its first event, nothing is known of a thread.
            Past::Unknown if stretch.begin > 0 => of.unknown_ns += ns,
            Past::Unknown => {}
        }
    }

    /// The thread gets a CPU, and from its runtime an LWP.
    pub(super) fn comes(
        &mut self,
        place: &LevelPlace,
        past: Past<()>,
        (cpu, time): LevelMoment,
        (lwp, is_user): (i32, bool),
    ) {
        if !self.rules.selection.counts(time, cpu.cpu) {
            return;
        }
        let trace = self.key.trace;
        if is_user && lwp != self.key.tid {
            self.sums.lwp(ThreadKey { trace, tid: lwp }).switches += 1;
        }
        let of = self.sums.threads.get(self.key);
        of.idle_slices += u64::from(past != Past::Unknown);
        let Some((last_cpu, last_lwp)) = place.last else {
            return;
        };
        of.cpu_migrations += u64::from(last_cpu != cpu.cpu);
        if is_user {
            of.returns += 1;
            of.same_cpu += u64::from(last_cpu == cpu.cpu);
            of.same_lwp += u64::from(last_lwp == lwp);
        }
    }

    /// The thread has recorded an event.
    pub(super) fn probes(&mut self, time: i64) {
        if self.rules.selection.window.contains(time) {
            self.sums.threads.get(self.key).probes += 1;
        }
    }

    /// A system call that the runtime reports has ended.
    pub(super) fn returns(&mut self, place: &LevelPlace, time: i64) {
        if let Some(called) = place.called {
            let ns = self.rules.selection.window.clip(called, time);
            self.sums.threads.get(self.key).calls.add(ns);
        }
    }
}
