//! The activity of a CPU between two switches.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{EndedCall, Exited, Interrupt, InterruptStep};
use tracebraid_threads::{
    BegunCall, CallClasses, ContextStep, CpuContext, DeviceClass, ThreadActs, WakeEvent, WakeSource,
};

use crate::graph_step::{Segment, WakeOrigin};

/// State of a CPU since its current thread was switched to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CpuStretch {
    pub(crate) acts: ThreadActs,
    context: CpuContext,
    /// When the current interrupt began to interrupt the thread.
    interrupted_since: i64,
    /// Last segment received in the current softirq.
    received: Option<Segment>,
    /// Connection of the last segment that the thread sent in its call.
    sent: Option<u64>,
    /// Last segment received during the call.
    came: Option<Segment>,
}

impl CpuStretch {
    /// Begins a stretch of a thread; `None` if the thread is unknown.
    pub(crate) fn new(tid: Option<i32>) -> CpuStretch {
        CpuStretch {
            acts: ThreadActs::new(tid),
            ..CpuStretch::default()
        }
    }

    /// The stretch of another thread than was assumed, in the same interrupt context.
    pub(crate) fn of_another(&self, tid: Option<i32>) -> CpuStretch {
        CpuStretch {
            context: self.context,
            interrupted_since: self.interrupted_since,
            received: self.received,
            ..CpuStretch::new(tid)
        }
    }

    /// Begins a call; true for the first event of a call in the stretch.
    #[inline(always)]
    pub(crate) fn enter(&mut self, begun: BegunCall) -> bool {
        self.clear();
        self.acts.enter(begun)
    }

    #[inline(always)]
    pub(crate) fn exit(&mut self, exited: &Exited, classes: &CallClasses) -> EndedCall<BegunCall> {
        self.clear();
        self.acts.exit(exited, classes)
    }

    /// Forgets the state of a call; no interrupt is in progress at its start and end.
    fn clear(&mut self) {
        self.context = CpuContext::default();
        self.interrupted_since = 0;
        (self.received, self.sent, self.came) = (None, None, None);
    }

    /// Begins or ends an interrupt. Returns the interrupt that the thread was in until now and its
    /// begin, if a different one, or none, is in progress from now on.
    #[inline]
    pub(crate) fn interrupt(
        &mut self,
        time: i64,
        step: InterruptStep,
        device: DeviceClass,
    ) -> Option<(i64, Interrupt)> {
        let before = self.context.interrupt();
        self.context.step(ContextStep::Interrupt(step, device));
        if let InterruptStep::Softirq(_) | InterruptStep::SoftirqEnd = step {
            self.received = None;
        }
        if self.context.interrupt() == before {
            return None;
        }
        let since = std::mem::replace(&mut self.interrupted_since, time);
        before.map(|before| (since, before))
    }

    pub(crate) fn completes_request(&mut self) {
        self.context.step(ContextStep::Complete);
    }

    /// Records that a segment is sent. Returns the sending thread; `None` if an interrupt sends it.
    pub(crate) fn sends(&mut self, segment: &Segment) -> Option<i32> {
        let worker = self.worker();
        if worker.is_some() {
            self.sent = Some(segment.connection);
        }
        worker
    }

    pub(crate) fn receives(&mut self, segment: Segment) {
        self.received = Some(segment);
        self.came = Some(segment);
    }

    /// The origin of a wake-up. A segment that arrives for a socket while a thread works on that
    /// socket is taken in by that thread afterwards; the network is then the origin. The segment
    /// may have arrived on another CPU.
    #[inline]
    pub(crate) fn origin(&self) -> WakeOrigin {
        let source = self.context.source();
        match (source, self.received) {
            (WakeSource::Interrupt(Interrupt::Softirq(_), _), Some(segment)) => {
                WakeOrigin::Network(segment)
            }
            (WakeSource::Thread, _) => self.origin_in_thread(),
            _ => WakeOrigin::Interrupt(source),
        }
    }

    /// The origin of a wake-up that happens now.
    #[inline]
    pub(crate) fn origin_of(&self, wake: &WakeEvent) -> WakeOrigin {
        match wake.user {
            Some(by) => WakeOrigin::User(by, self.acts.waker()),
            None => self.origin(),
        }
    }

    #[inline]
    fn origin_in_thread(&self) -> WakeOrigin {
        // A dying thread closes its sockets, then wakes the threads that wait for its end.
        let sent = self.sent.filter(|_| !self.acts.is_dying());
        match (sent, self.came) {
            (Some(sent), Some(came)) if came.answers(sent) => WakeOrigin::Network(came),
            (Some(sent), _) => WakeOrigin::Sender(sent, self.acts.waker()),
            (None, _) => WakeOrigin::Thread(self.acts.waker()),
        }
    }

    /// The thread, unless an interrupt is in progress.
    pub(crate) fn worker(&self) -> Option<i32> {
        let is_interrupted = self.context.interrupt().is_some();
        self.acts.calls.caller().filter(|_| !is_interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracebraid_follow::TimerKind;
    use tracebraid_threads::WakerFacts;

    const SEGMENT: Segment = Segment {
        connection: 1,
        sequence: 2,
        length: 3,
        acknowledged: 4,
    };

    fn step(active: &mut CpuStretch, time: i64, step: InterruptStep) -> Option<(i64, Interrupt)> {
        active.interrupt(time, step, DeviceClass::Other)
    }

    #[test]
    fn segments_are_of_their_softirq() {
        let mut active = CpuStretch::default();
        let plain = |active: &CpuStretch| WakeOrigin::Interrupt(active.context.source());
        step(&mut active, 10, InterruptStep::Softirq(3));
        assert_eq!(active.origin(), plain(&active));
        active.receives(SEGMENT);
        assert_eq!(active.origin(), WakeOrigin::Network(SEGMENT));
        step(&mut active, 20, InterruptStep::Hard(Interrupt::Irq(37)));
        assert_eq!(active.origin(), plain(&active));
        step(&mut active, 30, InterruptStep::HardEnd);
        assert_eq!(active.origin(), WakeOrigin::Network(SEGMENT));
        active.completes_request();
        assert_eq!(
            active.origin(),
            WakeOrigin::Interrupt(WakeSource::BlockDevice)
        );
        step(&mut active, 40, InterruptStep::Timer(TimerKind::Wheel));
        assert_eq!(active.origin(), WakeOrigin::Interrupt(WakeSource::Timer));
        step(&mut active, 50, InterruptStep::SoftirqEnd);
        assert_eq!(active.origin(), WakeOrigin::Thread(WakerFacts::Nobody));
    }

    #[test]
    fn interruptions_have_beginnings_and_ends() {
        let mut active = CpuStretch::default();
        let irq = Interrupt::Irq(37);
        assert_eq!(step(&mut active, 10, InterruptStep::Softirq(1)), None);
        let softirq = Some((10, Interrupt::Softirq(1)));
        assert_eq!(step(&mut active, 15, InterruptStep::Hard(irq)), softirq);
        assert_eq!(
            step(&mut active, 17, InterruptStep::Timer(TimerKind::High)),
            None
        );
        assert_eq!(
            step(&mut active, 20, InterruptStep::HardEnd),
            Some((15, irq))
        );
        let softirq = Some((20, Interrupt::Softirq(1)));
        assert_eq!(step(&mut active, 30, InterruptStep::SoftirqEnd), softirq);
        assert_eq!(active.worker(), None);
    }
}
