//! What a thread does, and where the time of its call goes.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};

use crate::kernel::CpuKey;
use crate::waits::item::Left;
use crate::waits::kind::{Kind, Kinds};
use crate::waits::losses::Losses;
use crate::waits::sums::{Wait, Waker};
use crate::waits::why::Why;

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
    /// A wake-up that came before it was seen leaving its CPU.
    early: Option<Woken>,
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
    pub(super) call: Option<Open>,
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

/// A call that has not ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) call: Syscall,
    pub(super) begin: i64,
    pub(super) operation: i32,
    pub(super) argument: i64,
    pub(super) peer: Option<Box<Peer>>,
    /// The thread that last woke it from a futex.
    pub(super) waker: Option<u32>,
}

/// It was woken.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Woken {
    pub(super) why: Why,
    pub(super) waker: Waker,
    /// What woke it may have been told before.
    pub(super) is_ready: bool,
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
        self.call = None;
    }

    /// The call that is open.
    pub(super) fn call(&self) -> Option<Syscall> {
        self.call.as_ref().map(|open| open.call)
    }

    /// The kind of its call; dying is one, too.
    #[inline(always)]
    pub(super) fn kind(&self, kinds: &Kinds) -> Option<Kind> {
        if self.is_dying {
            return Some(Kind::Exit);
        }
        self.call.as_ref().map(|open| kinds.of(open.call))
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
    }

    /// It enters a call.
    #[inline]
    pub(super) fn enter(&mut self, open: Open, cpu: CpuKey, losses: &Losses) {
        if !self.is_plain {
            self.parts = Parts::default();
        }
        self.parts[Why::Running as usize] = 0;
        self.is_plain = true;
        self.since = open.begin;
        self.call = Some(open);
        self.early = None;
        self.requested = false;
        self.has_called = true;
        self.is_dying = false;
        self.waits.clear();
        self.begins(Now::Running(cpu), losses.of_cpu(cpu));
    }

    /// Its call ends: the call, and its parts; none if it did nothing but run.
    #[inline]
    pub(super) fn exit(
        &mut self,
        time: i64,
        cpu: CpuKey,
        losses: &Losses,
        kinds: &Kinds,
    ) -> Option<(Open, Option<&Parts>)> {
        let why = self.runs_on(cpu);
        self.end(time, why, Waker::NOBODY, losses.of_cpu(cpu));
        self.early = None;
        self.has_called = true;
        self.begins(Now::Running(cpu), losses.of_cpu(cpu));
        let open = self.call.take();
        self.has_closed = open
            .as_ref()
            .is_some_and(|open| kinds.of(open.call) == Kind::Close);
        let open = open?;
        Some((open, (!self.is_plain).then_some(&self.parts)))
    }

    fn runs_on(&self, cpu: CpuKey) -> Why {
        match self.now == Now::Running(cpu) {
            true => Why::Running,
            false => Why::Unknown,
        }
    }

    /// It leaves its CPU. What ends by it is listed only if it is not that it ran.
    pub(super) fn leave(&mut self, time: i64, cpu: CpuKey, left: Left, losses: &Losses) -> Stretch {
        let why = self.runs_on(cpu);
        let stretch = self.end(time, why, Waker::NOBODY, losses.of_cpu(cpu));
        let now = match left {
            Left::Runnable => Now::Runnable,
            Left::Blocked | Left::DiskSleep => Now::Blocked,
        };
        if now == Now::Runnable {
            self.early = None;
        }
        self.in_disk_sleep = left == Left::DiskSleep;
        self.begins(now, losses.of_trace(cpu));
        stretch
    }

    /// It comes to a CPU.
    pub(super) fn come(&mut self, time: i64, cpu: CpuKey, losses: &Losses) -> Stretch {
        let (why, waker) = match (self.now, self.early) {
            (Now::Runnable, _) => (Why::Runnable, Waker::NOBODY),
            (Now::Blocked, Some(woken)) => {
                // It was woken on its way out, so it did not wait.
                self.waited(woken.why);
                (Why::Runnable, Waker::NOBODY)
            }
            (Now::Blocked, None) => {
                self.waited(Why::Unknown);
                (Why::Unknown, Waker::NOBODY)
            }
            (Now::Unknown | Now::Running(_), _) => (Why::Unknown, Waker::NOBODY),
        };
        let stretch = self.end(time, why, waker, losses.of_trace(cpu));
        self.early = None;
        self.begins(Now::Running(cpu), losses.of_cpu(cpu));
        stretch
    }

    fn waited(&mut self, why: Why) {
        self.waited_for = why;
        self.requested = false;
    }

    /// It is woken: what it waited for, if that is what it did.
    pub(super) fn wake(&mut self, time: i64, cpu: CpuKey, woken: Woken, losses: &Losses) -> Option<Stretch> {
        let why = match woken.why {
            Why::Kernel | Why::Unknown if self.in_disk_sleep && self.requested => Why::Disk,
            why => why,
        };
        match (self.now, self.early) {
            // It was woken on its way out, and is ready only now: it did not wait.
            (Now::Blocked, Some(early)) if woken.is_ready && !early.is_ready => {
                self.waited(early.why);
                self.early = None;
                self.now = Now::Runnable;
                None
            }
            (Now::Blocked, _) => {
                let stretch = self.end(time, why, woken.waker, losses.of_trace(cpu));
                self.waited(stretch.why);
                self.early = None;
                self.begins(Now::Runnable, losses.of_trace(cpu));
                Some(stretch)
            }
            (Now::Running(_), Some(early)) if woken.is_ready && !early.is_ready => None,
            (Now::Running(_), _) => {
                self.early = Some(Woken { why, ..woken });
                None
            }
            (Now::Unknown | Now::Runnable, _) => None,
        }
    }
}
