//! What happens on a CPU from when its thread comes to when it leaves.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{EndedCall, Exited, Interrupt, InterruptStep};
use tracebraid_threads::{
    BegunCall, CallClasses, ContextStep, CpuContext, DeviceClass, ThreadActs, WakeSource,
};

use crate::graph_step::{Segment, WakeOrigin};

/// What the thread has done since it came, and what interrupts it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CpuStretch {
    pub(crate) acts: ThreadActs,
    context: CpuContext,
    /// Since when the thread has been interrupted by what interrupts it now.
    interrupted_since: i64,
    /// What came in last by the network in this softirq.
    received: Option<Segment>,
    /// The connection by which it sent something last in its call.
    sent: Option<u64>,
    /// What came in last during its call.
    came: Option<Segment>,
}

impl CpuStretch {
    /// That thread comes, if it is known which.
    pub(crate) fn new(tid: Option<i32>) -> CpuStretch {
        CpuStretch {
            acts: ThreadActs::new(tid),
            ..CpuStretch::default()
        }
    }

    /// Another thread runs there than was thought; what interrupts it is the same.
    pub(crate) fn of_another(&self, tid: Option<i32>) -> CpuStretch {
        CpuStretch {
            context: self.context,
            interrupted_since: self.interrupted_since,
            received: self.received,
            ..CpuStretch::new(tid)
        }
    }

    /// A call begins; true if that is the first event of a call.
    #[inline(always)]
    pub(crate) fn enter(&mut self, begun: BegunCall) -> bool {
        self.clear();
        self.acts.enter(begun)
    }

    /// A call ends.
    #[inline(always)]
    pub(crate) fn exit(&mut self, exited: &Exited, classes: &CallClasses) -> EndedCall<BegunCall> {
        self.clear();
        self.acts.exit(exited, classes)
    }

    /// What was going on in a call is over, and nothing interrupts the thread.
    fn clear(&mut self) {
        self.context = CpuContext::default();
        self.interrupted_since = 0;
        (self.received, self.sent, self.came) = (None, None, None);
    }

    /// An interruption begins or ends; gives what interrupted the thread up to now, and since when,
    /// if that is another interrupt from now on, or none.
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

    /// A block request is completed.
    pub(crate) fn completes_request(&mut self) {
        self.context.step(ContextStep::Complete);
    }

    /// A segment is sent; gives the thread that sends it, if no interrupt does.
    pub(crate) fn sends(&mut self, segment: &Segment) -> Option<i32> {
        let worker = self.worker();
        if worker.is_some() {
            self.sent = Some(segment.connection);
        }
        worker
    }

    /// A segment has come in.
    pub(crate) fn receives(&mut self, segment: Segment) {
        self.received = Some(segment);
        self.came = Some(segment);
    }

    /// Where a wake-up comes from. What comes in for a socket while a thread is at work on it is
    /// taken in by that thread when it has done: then the network is it that wakes. It may have
    /// come in on another CPU.
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

    #[inline]
    fn origin_in_thread(&self) -> WakeOrigin {
        // A thread that dies closes its sockets, and then tells whoever waits for its end.
        let sent = self.sent.filter(|_| !self.acts.is_dying());
        match (sent, self.came) {
            (Some(sent), Some(came)) if came.answers(sent) => WakeOrigin::Network(came),
            (Some(sent), _) => WakeOrigin::Sender(sent, self.acts.waker()),
            (None, _) => WakeOrigin::Thread(self.acts.waker()),
        }
    }

    /// The thread, if it is at work itself.
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
