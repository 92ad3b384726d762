//! What a thread does, and where the time of its call goes.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};

use crate::kernel::{CpuKey, Entered, Losses, OpenCall, Sight, ThreadKey, WakeTells};
use crate::waits::context::Source;
use crate::waits::early::Early;
use crate::waits::kind::{Kind, Kinds};

use crate::waits::step::{Details, Left, Parked};
use crate::waits::sums::{Wait, Waker};
use crate::waits::why::{WakingThread, Why, why};

/// Nanoseconds by why.
pub(super) type Parts = [u64; Why::ALL.len()];

/// What is known of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Life {
    now: Now,
    /// Since when.
    since: i64,
    /// Losses up to then that would make it unknown.
    losses: u64,
    /// Wake-ups while it runs.
    early: Early,
    /// Only used where a CPU was not recorded: the thread may have run there while it seems to wait.
    sight: Sight,
    /// The wake-up that came before it was seen leaving its CPU.
    woken: Option<Woken>,
    /// When a call of it began or ended last.
    called: i64,
    in_disk_sleep: bool,
    /// It is dying.
    is_dying: bool,
    /// It has made a block request since it last waited.
    pub(super) requested: bool,
    /// It has made a call: it is no thread of the kernel.
    pub(super) has_called: bool,
    /// The last call that ended closed a descriptor.
    pub(super) has_closed: bool,
    /// What it waited for last.
    pub(super) waited_for: Why,
    pub(super) pid: Option<i32>,
    pub(super) calls: OpenCall,
    /// Of the call that is open.
    pub(super) details: Details,
    pub(super) peer: Option<Box<Peer>>,
    /// The thread that woke it last as one wakes those who wait at a futex, and when.
    pub(super) freed: Option<(i64, ThreadKey)>,
    /// The parts of its call so far.
    parts: Parts,
    /// It did nothing but run in its call.
    is_plain: bool,
    /// The waits of its call that are to be listed.
    pub(super) waits: Vec<Wait>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Now {
    #[default]
    Unknown,
    Running(CpuKey),
    Runnable,
    Blocked,
}

/// It was woken, for that.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Woken {
    why: Why,
    is_ready: bool,
}

/// Somebody wakes it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Wakeup {
    pub(super) time: i64,
    pub(super) waker: Waker,
    /// The thread that does.
    pub(super) waking: Option<WakingThread>,
    /// What woke it may have been told before.
    pub(super) is_ready: bool,
    /// The wake-up shows that the thread has slept since it was last seen.
    pub(super) tells_sleep: bool,
    /// All CPUs are recorded.
    pub(super) is_whole: bool,
}

/// A stretch of time in a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) begin: i64,
    pub(super) duration: u64,
    pub(super) why: Why,
    pub(super) waker: Waker,
}

impl Life {
    /// It dies, by a call or by a signal.
    pub(super) fn dies(&mut self) {
        self.is_dying = true;
        self.calls.parked = None;
    }

    /// The call that is open.
    pub(super) fn call(&self) -> Option<Syscall> {
        self.calls.parked.map(|open| open.call)
    }

    /// The kind of its call; dying is one, too.
    #[inline(always)]
    pub(super) fn kind(&self, kinds: &Kinds) -> Option<Kind> {
        if self.is_dying {
            return Some(Kind::Exit);
        }
        self.call().map(|call| kinds.of(call))
    }

    /// What somebody has to know who is woken by it.
    pub(super) fn waking(&self, kinds: &Kinds, requested: bool) -> WakingThread {
        WakingThread {
            call: self.kind(kinds),
            has_called: self.has_called,
            has_closed: self.has_closed,
            is_local: false,
            is_at_disk: requested || self.requested || self.waited_for == Why::Disk,
        }
    }

    /// What it did up to now ends: it was that, unless events were lost.
    fn end(&mut self, time: i64, why: Why, waker: Waker, losses: u64) -> Stretch {
        let why = if losses == self.losses { why } else { Why::Unknown };
        let stretch = Stretch {
            begin: self.since,
            duration: time.abs_diff(self.since),
            why,
            waker,
        };
        self.since = time;
        self.parts[why as usize] += stretch.duration;
        self.is_plain &= why == Why::Running;
        stretch
    }

    fn begins(&mut self, now: Now, losses: u64) {
        (self.now, self.losses) = (now, losses);
        (self.early, self.woken) = (Early::default(), None);
        self.sight = Sight::default();
    }

    /// It enters a call, and was in none when it came.
    pub(super) fn enters(&mut self, time: i64, cpu: CpuKey, losses: &Losses) {
        self.since = time;
        self.called = time;
        self.has_called = true;
        (self.requested, self.is_dying) = (false, false);
        self.peer = None;
        self.waits.clear();
        self.begins(Now::Running(cpu), losses.of_cpu(cpu));
    }

    /// Its call ends that was open when it came.
    pub(super) fn exits(&mut self, time: i64, cpu: CpuKey, losses: &Losses) {
        let why = self.runs_on(cpu);
        self.end(time, why, Waker::NOBODY, losses.of_cpu(cpu));
        self.called = time;
        self.has_called = true;
        self.begins(Now::Running(cpu), losses.of_cpu(cpu));
    }

    /// The parts of its call; none if it did nothing but run.
    pub(super) fn parts(&self) -> Option<Parts> {
        (!self.is_plain).then_some(self.parts)
    }

    /// What it has done since it came, but for the call that is open.
    pub(super) fn acted(&mut self, acts: &Parked) {
        if acts.called > i64::MIN {
            self.called = acts.called;
            self.has_called = true;
        }
        self.has_closed = acts.has_closed.unwrap_or(self.has_closed);
        if acts.has_entered {
            (self.requested, self.is_dying) = (false, false);
        }
        self.requested |= acts.requested;
        self.is_dying |= acts.is_dying;
    }

    /// It is in a call that began since it came.
    pub(super) fn is_in(&mut self, open: Entered, details: Details) {
        if !self.is_plain {
            self.parts = Parts::default();
        }
        self.parts[Why::Running as usize] = 0;
        self.is_plain = true;
        self.since = open.time;
        self.details = details;
        self.peer = None;
        self.waits.clear();
    }

    fn runs_on(&self, cpu: CpuKey) -> Why {
        match self.now == Now::Running(cpu) {
            true => Why::Running,
            false => Why::Unknown,
        }
    }

    /// It leaves its CPU. What ends by it is listed only if it is not that it ran.
    pub(super) fn leave(
        &mut self,
        time: i64,
        cpu: CpuKey,
        left: Left,
        losses: &Losses,
        kinds: &Kinds,
    ) -> Stretch {
        let why = self.runs_on(cpu);
        let stretch = self.end(time, why, Waker::NOBODY, losses.of_cpu(cpu));
        self.in_disk_sleep = left == Left::DiskSleep;
        let early = self.early.after(self.called);
        let woken = early.map(|early| Woken {
            why: self.why(kinds, &early),
            is_ready: early.is_ready,
        });
        let now = match left {
            Left::Runnable => Now::Runnable,
            Left::Blocked | Left::DiskSleep => Now::Blocked,
        };
        self.begins(now, losses.of_trace(cpu));
        if now == Now::Runnable {
            self.sight = Sight::preempted_on(cpu.cpu);
        }
        self.woken = woken.filter(|_| now == Now::Blocked);
        stretch
    }

    /// It comes to a CPU.
    /// `is_whole`: all CPUs are recorded.
    pub(super) fn come(&mut self, time: i64, cpu: CpuKey, losses: &Losses, is_whole: bool) -> Stretch {
        let why = match (self.now, self.woken) {
            (Now::Runnable, _) if !is_whole && self.sight.comes_lost(cpu.cpu) => Why::Unknown,
            (Now::Runnable, _) => Why::Runnable,
            (Now::Blocked, Some(woken)) if is_whole => {
                // It was woken on its way out, so it did not wait.
                self.waited(woken.why);
                Why::Runnable
            }
            (Now::Blocked, _) => {
                self.waited(Why::Unknown);
                Why::Unknown
            }
            (Now::Unknown | Now::Running(_), _) => Why::Unknown,
        };
        let stretch = self.end(time, why, Waker::NOBODY, losses.of_trace(cpu));
        self.begins(Now::Running(cpu), losses.of_cpu(cpu));
        stretch
    }

    /// Begin of the current state, in nanoseconds from the origin.
    pub(super) fn since(&self) -> i64 {
        self.since
    }

    /// True if it waits for a CPU.
    pub(super) fn lacks_cpu(&self) -> bool {
        self.now == Now::Runnable
    }

    /// Target of a wake-up; `waited`: the thread waited for a CPU before.
    pub(super) fn goes(&mut self, tells: WakeTells, waited: bool) {
        if self.now != Now::Runnable && self.now != Now::Blocked {
            return;
        }
        self.sight.wakes(tells, waited);
        if tells.is_gone {
            self.now = Now::Unknown;
        }
    }

    /// A migration. `is_gone`: the new CPU was not recorded.
    pub(super) fn moves(&mut self, from: u32, to: u32, is_gone: bool) {
        if self.now == Now::Runnable {
            self.sight.moves(from, to, is_gone);
        }
    }

    fn waited(&mut self, why: Why) {
        self.waited_for = why;
        self.requested = false;
    }

    /// Why it waited if that ends it.
    fn why(&self, kinds: &Kinds, wakeup: &Wakeup) -> Why {
        match why(self.kind(kinds), wakeup.waker.source, wakeup.waking) {
            Why::Kernel | Why::Unknown if self.in_disk_sleep && self.requested => Why::Disk,
            // The cause of a kernel thread's wait may lie on an unrecorded CPU.
            Why::Kernel if !wakeup.is_whole && wakeup.waker.source == Source::Thread => Why::Unknown,
            why => why,
        }
    }

    /// It is woken: what it waited for, if that is what it did.
    pub(super) fn wake(
        &mut self,
        wakeup: Wakeup,
        cpu: CpuKey,
        losses: &Losses,
        kinds: &Kinds,
    ) -> Option<Stretch> {
        match (self.now, self.woken) {
            // It was woken on its way out, and is ready only now: it did not wait.
            (Now::Blocked, Some(woken)) if wakeup.is_ready && !woken.is_ready => {
                self.waited(woken.why);
                self.woken = None;
                self.now = Now::Runnable;
                None
            }
            (Now::Blocked, _) => {
                let (why, waker) = match wakeup.tells_sleep {
                    true => (self.why(kinds, &wakeup), wakeup.waker),
                    false => (Why::Unknown, Waker::NOBODY),
                };
                let stretch = self.end(wakeup.time, why, waker, losses.of_trace(cpu));
                self.waited(stretch.why);
                self.begins(Now::Runnable, losses.of_trace(cpu));
                Some(stretch)
            }
            (Now::Running(_), _) => {
                self.early.add(wakeup);
                None
            }
            (Now::Unknown | Now::Runnable, _) => None,
        }
    }
}
