//! Wake-ups and their causes.

use tracebraid_follow::{CpuKey, Recorded, ThreadKey};
use tracebraid_kernel_model::{Syscall, UserWake};
use tracebraid_threads::{
    CallClass, ThreadState, WakeEvent, WakeSource, WakerFacts, Wakeup, WakingThread,
};

use crate::cause::Wake;
use crate::graph_machine::GraphMachine;
use crate::graph_step::WakeOrigin;

/// The call that contains a wait, as far as the cause of the wake-up depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingCall {
    /// True if the call is known.
    pub(crate) is_known: bool,
    /// When the wait began, in nanoseconds from the origin.
    pub(crate) since: i64,
}

impl GraphMachine {
    /// A thread is woken.
    pub(crate) fn wakes(
        &mut self,
        recorded: &Recorded,
        at: (CpuKey, i64),
        event: WakeEvent,
        origin: WakeOrigin,
    ) {
        let waking = self.waking(at.0.trace, origin);
        let cause = |machine: &mut Self, call| machine.cause(at.0, (origin, waking), Some(call));
        let by = (origin.source(), waking);
        let ends_wait = self.is_woken(recorded, at, event, by, cause);
        if let WakeOrigin::Network(segment) = origin
            && !ends_wait
        {
            self.packets.passes(segment.connection);
        }
    }

    /// Wakes a thread from a context, by a thread if there is one; `cause` is called if the thread
    /// waits. Returns whether it was.
    pub(crate) fn is_woken(
        &mut self,
        recorded: &Recorded,
        at: (CpuKey, i64),
        event: WakeEvent,
        (source, waking): (WakeSource, Option<WakingThread>),
        cause: impl FnOnce(&mut Self, WaitingCall) -> Wake,
    ) -> bool {
        let (cpu, time) = at;
        let woken = ThreadKey {
            trace: cpu.trace,
            tid: event.woken,
        };
        let since = || self.life(woken).cell.since();
        let tells = recorded.wake(at, since, event.is_ready, event.target.map(u32::from));
        let follows_rings = self.rings.are_used;
        let cell = &self.thread(woken).0.cell;
        let since = cell.since();
        let open = cell.call().filter(|open| open.call != Syscall::OTHER);
        // The first wake-up counts for a thread woken before it left its CPU, unless io_uring
        // requests are followed.
        let is_late = cell.only_gets_ready(event.is_ready) && !follows_rings;
        let waits = cell.state() == ThreadState::Blocked && !is_late;
        let mut wake = Wake::Unknown;
        if waits {
            let is_known = open.is_some();
            wake = cause(self, WaitingCall { is_known, since });
            // Without system calls it may wait for one.
            let class = open.map(|open| open.class);
            if matches!(class, None | Some(CallClass::Ring)) {
                self.ring_wakes(time, woken, wake, class.is_some());
            }
        }
        let wakeup = Wakeup {
            time,
            source,
            waking,
            is_ready: event.is_ready,
            is_whole: tells.is_whole(),
            cause: wake,
        };
        let (life, mut line, losses) = self.thread(woken);
        let target = event.target.unwrap_or(ThreadState::NO_CPU);
        life.wakes(&mut line, wakeup, (cpu, target), tells, losses);
        waits
    }

    /// The thread that wakes another, if any.
    #[inline]
    pub(crate) fn waking(&mut self, trace: u32, origin: WakeOrigin) -> Option<WakingThread> {
        let waking = match origin.by() {
            WakerFacts::Nobody => return None,
            WakerFacts::Caller { call, lingers, .. } => WakingThread::caller(call, lingers),
            WakerFacts::Other { tid, requested } => {
                self.life(ThreadKey { trace, tid }).cell.waking(requested)
            }
        };
        Some(origin.describes(waking))
    }

    /// Cause of the end of a wait (`call`), or of work put into a queue (`None`).
    pub(crate) fn cause(
        &mut self,
        cpu: CpuKey,
        (origin, waking): (WakeOrigin, Option<WakingThread>),
        call: Option<WaitingCall>,
    ) -> Wake {
        if let WakeOrigin::Sender(connection, _) = origin
            && let Some(call) = call.filter(|call| call.is_known)
            && let Some(place) = self.packets.answers(connection, call.since)
        {
            return Wake::Packet(place);
        }
        let source = match origin {
            WakeOrigin::Network(segment) => return Wake::Packet(self.packets.wakes(segment)),
            origin => origin.source(),
        };
        match source {
            WakeSource::Command => Wake::Unknown,
            WakeSource::Timer | WakeSource::User(UserWake::Timer) => Wake::Timer,
            WakeSource::Interrupt(interrupt, _) => Wake::Interrupt(interrupt),
            WakeSource::BlockDevice => self.requests.last(cpu).map_or(Wake::Unknown, Wake::Request),
            WakeSource::Thread | WakeSource::User(_) => {
                let trace = cpu.trace;
                let waker = origin.waker(waking);
                waker.map_or(Wake::Unknown, |tid| {
                    Wake::Thread(self.actor(ThreadKey { trace, tid }))
                })
            }
        }
    }
}
