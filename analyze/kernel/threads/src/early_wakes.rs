//! Wake-ups of a running thread, which may be about to leave its CPU.

use serde::{Deserialize, Serialize};

use crate::thread_cell::Wakeup;

/// The wake-ups that may apply once the thread leaves its CPU. Wake-ups before the thread's last
/// entry or exit of a system call belong to a wait that never happened.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct EarlyWakes<C> {
    /// The last wake-up that names the waker.
    waking: Option<Wakeup<C>>,
    /// The last wake-up that shows that the thread is ready.
    ready: Option<Wakeup<C>>,
}

impl<C> Default for EarlyWakes<C> {
    fn default() -> Self {
        EarlyWakes {
            waking: None,
            ready: None,
        }
    }
}

impl<C: Copy> EarlyWakes<C> {
    pub(crate) fn map_causes(&mut self, map: impl Fn(C) -> C) {
        for wakeup in [&mut self.waking, &mut self.ready].into_iter().flatten() {
            wakeup.cause = map(wakeup.cause);
        }
    }

    pub(crate) fn add(&mut self, wakeup: Wakeup<C>) {
        match wakeup.is_ready {
            true => self.ready = Some(wakeup),
            false => self.waking = Some(wakeup),
        }
    }

    /// The wake-up after `time` that applies. The event with the waker is recorded first, then the
    /// event that the thread is ready.
    pub(crate) fn after(&self, time: i64) -> Option<Wakeup<C>> {
        let is_after = |wakeup: &Wakeup<C>| wakeup.time > time;
        self.waking.filter(is_after).or(self.ready.filter(is_after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_context::WakeSource;

    #[test]
    fn who_wakes_counts_more_than_that_the_thread_is_ready() {
        let wakeup = |time, is_ready| Wakeup {
            time,
            source: WakeSource::Timer,
            waking: None,
            is_ready,
            is_whole: true,
            cause: (),
        };
        let mut early = EarlyWakes::default();
        early.add(wakeup(10, false));
        early.add(wakeup(20, true));
        let found = |early: &EarlyWakes<()>, time| early.after(time).map(|wakeup| wakeup.time);
        assert_eq!(found(&early, 5), Some(10));
        assert_eq!(found(&early, 10), Some(20));
        assert_eq!(found(&early, 20), None);
        early.add(wakeup(30, false));
        assert_eq!(found(&early, 5), Some(30));
    }
}
