//! Wake-ups within a slice of time.

use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_kernel_model::{Syscall, UserWake};
use tracebraid_threads::{ThreadState, WakeEvent, WakeSource, WakerFacts, Wakeup, WakingThread};

use crate::cause::Wake;
use crate::graph::{Queue, State};
use crate::graph_step::{GraphItem, WakeOrigin};
use crate::packets::Sent;
use crate::slice::{GraphSlice, GraphStep};
use crate::thread_life::TimeLine;
use crate::works::Queued;

/// A wake-up that composing replays.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptWake {
    pub(super) at: (CpuKey, i64),
    pub(super) event: WakeEvent,
    pub(super) origin: WakeOrigin,
    pub(super) cause: KeptCause,
}

/// Cause of a kept wake-up. Places are local to the slice.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeptCause {
    /// Determined by the graph.
    OfGraph,
    /// The packet at that index.
    Packet(u32),
    /// The packet at that index, if it answers the last segment that the connection sent (`None`:
    /// sent before the slice).
    Answer(u32, u64, Option<Sent>),
    /// The request at that index.
    Request(u32),
}

impl GraphSlice<'_> {
    /// The waking thread, if any; `None` if a fact about it that matters is unknown.
    #[inline]
    fn waking(&mut self, trace: u32, origin: WakeOrigin) -> Option<Option<WakingThread>> {
        let waking = match origin.by() {
            WakerFacts::Nobody => return Some(None),
            WakerFacts::Caller { call, lingers, .. } => WakingThread::caller(call, lingers),
            WakerFacts::Other { tid, requested } => {
                let (waker, _) = self.unmet(ThreadKey { trace, tid });
                waker.cell.waking(requested)?
            }
        };
        Some(Some(origin.describes(waking)))
    }

    /// Cause of the end of a wait since `since`, in a call or not (`None`: unknown); `None` if the
    /// cause is unknown.
    fn cause(
        &mut self,
        cpu: CpuKey,
        (origin, waking): (WakeOrigin, Option<Option<WakingThread>>),
        (is_in_call, since): (Option<bool>, i64),
    ) -> Option<Wake> {
        match origin {
            WakeOrigin::Network(segment) => {
                return Some(Wake::Packet(self.output.packets.wakes(segment)));
            }
            WakeOrigin::Sender(connection, _) => {
                if is_in_call? && let Some(place) = self.output.packets.answers(connection, since) {
                    return Some(Wake::Packet(place));
                }
            }
            _ => {}
        }
        match origin.source() {
            WakeSource::Command => Some(Wake::Unknown),
            WakeSource::Timer | WakeSource::User(UserWake::Timer) => Some(Wake::Timer),
            WakeSource::Interrupt(interrupt, _) => Some(Wake::Interrupt(interrupt)),
            WakeSource::BlockDevice => self.output.requests.last(cpu).map(Wake::Request),
            WakeSource::Thread | WakeSource::User(_) => {
                let trace = cpu.trace;
                let waker = origin.waker(waking?);
                let waker = waker.map(|tid| Wake::Thread(self.actor(ThreadKey { trace, tid })));
                Some(waker.unwrap_or(Wake::Unknown))
            }
        }
    }

    #[inline]
    pub(super) fn wakes(&mut self, at: (CpuKey, i64), event: WakeEvent, origin: WakeOrigin) {
        let (cpu, time) = at;
        let trace = cpu.trace;
        let woken = ThreadKey {
            trace,
            tid: event.woken,
        };
        let waking = self.waking(trace, origin);
        let (thread, _) = self.unmet(woken);
        if !thread.cell.knows_state() {
            return self.keeps_wake(at, event, (origin, None));
        }
        let mut cause = Wake::Unknown;
        if thread.cell.state() == ThreadState::Blocked
            && !thread.cell.only_gets_ready(event.is_ready)
        {
            let (since, open) = (thread.cell.since(), thread.cell.call());
            let is_in_call = open.map(|open| open.is_some_and(|open| open.call != Syscall::OTHER));
            match self.cause(cpu, (origin, waking), (is_in_call, since)) {
                Some(known) => cause = known,
                None => return self.keeps_wake(at, event, (origin, None)),
            }
        } else if let WakeOrigin::Network(segment) = origin {
            self.output.packets.passes(segment.connection);
        }
        let wakeup = Wakeup {
            time,
            source: origin.source(),
            waking: waking.flatten(),
            is_ready: event.is_ready,
            is_whole: true,
            cause,
        };
        let (_, thread, losses) = self.thread(woken);
        if !thread.cell.knows_wake(&wakeup, waking.is_some()) {
            return self.keeps_wake(at, event, (origin, Some(cause)));
        }
        let target = event.target.unwrap_or(ThreadState::NO_CPU);
        let effect = thread.cell.wake(wakeup, (cpu, target), losses);
        thread
            .line
            .is_woken(time, State::woken(wakeup.source, target), &effect);
    }

    /// Keeps a wake-up for composing; its cause may already be known.
    #[cold]
    fn keeps_wake(
        &mut self,
        at: (CpuKey, i64),
        event: WakeEvent,
        (origin, cause): (WakeOrigin, Option<Wake>),
    ) {
        let (cpu, time) = at;
        let key = |tid: i32| ThreadKey {
            trace: cpu.trace,
            tid,
        };
        match origin.by() {
            WakerFacts::Other { tid, .. } => self.tell(key(tid)),
            // The waker must have a number in the graph.
            WakerFacts::Caller { tid, .. } if self.unmet(key(tid)).0.born.is_some() => {
                self.tell(key(tid))
            }
            _ => {}
        }
        let cause = self.kept_cause(cpu, origin, cause);
        let kept = KeptWake {
            at,
            event,
            origin,
            cause,
        };
        let woken = key(event.woken);
        self.keep_step(woken, GraphStep::Wakes(Box::new(kept)));
        let target = event.target.unwrap_or(ThreadState::NO_CPU);
        let (thread, losses) = self.unmet(woken);
        let waited = thread.cell.knows_state() && thread.cell.state() == ThreadState::Blocked;
        let wakeup = Wakeup {
            time,
            source: origin.source(),
            waking: None,
            is_ready: event.is_ready,
            is_whole: true,
            cause: Wake::Unknown,
        };
        thread.cell.wake_kept(&wakeup, (cpu, target), losses);
        let woken = State::woken(wakeup.source, target);
        thread.goes_on(time, waited.then_some(woken));
    }

    fn kept_cause(&mut self, cpu: CpuKey, origin: WakeOrigin, cause: Option<Wake>) -> KeptCause {
        match (cause, origin) {
            (Some(Wake::Packet(place)), _) => KeptCause::Packet(place),
            (None, WakeOrigin::Network(segment)) => {
                KeptCause::Packet(self.output.packets.wakes(segment))
            }
            (None, WakeOrigin::Sender(connection, _)) => {
                let connection = connection ^ 1;
                let sent = self.output.packets.last_sent(connection);
                KeptCause::Answer(self.output.packets.reserve(connection), connection, sent)
            }
            (None | Some(Wake::Request(_)), WakeOrigin::Interrupt(WakeSource::BlockDevice)) => {
                let last = self.output.requests.last(cpu);
                last.map_or(KeptCause::OfGraph, KeptCause::Request)
            }
            _ => KeptCause::OfGraph,
        }
    }

    /// Queues work.
    pub(super) fn queues(
        &mut self,
        at: (CpuKey, i64),
        work: i64,
        (queue, origin): (u32, WakeOrigin),
    ) {
        let (cpu, time) = at;
        let trace = cpu.trace;
        let waking = self.waking(trace, origin);
        match self.cause(cpu, (origin, waking), (Some(false), time)) {
            Some(cause) => {
                let queue = Queue::Kernel(queue);
                self.output
                    .works
                    .queues((trace, work), Queued { time, cause, queue });
            }
            None => {
                if let Some(tid) = origin.by().tid() {
                    self.tell(ThreadKey { trace, tid });
                }
                let item = GraphItem::Queue {
                    work,
                    queue,
                    origin,
                };
                self.output.steps.push(GraphStep::Item(cpu, time, item));
                self.output.works.is_composed((trace, work));
            }
        }
    }
}
