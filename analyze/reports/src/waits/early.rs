//! Wake-ups of a thread that runs: it may be about to leave its CPU.

use serde::{Deserialize, Serialize};

use crate::waits::life::Wakeup;

/// The wake-ups that may count once it is known when the thread last entered or left a call: those before
/// were of a wait that never was.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Early {
    /// The last that tells who wakes.
    waking: Option<Wakeup>,
    /// The last that tells that the thread is ready.
    ready: Option<Wakeup>,
}

impl Early {
    /// It is woken.
    pub(super) fn add(&mut self, wakeup: Wakeup) {
        match wakeup.is_ready {
            true => self.ready = Some(wakeup),
            false => self.waking = Some(wakeup),
        }
    }

    /// What woke it after that time, at last. Who wakes is told first; then that the thread is ready.
    pub(super) fn after(&self, time: i64) -> Option<Wakeup> {
        let is_after = |wakeup: &Wakeup| wakeup.time > time;
        self.waking.filter(is_after).or(self.ready.filter(is_after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::sums::Waker;

    #[test]
    fn who_wakes_counts_more_than_that_the_thread_is_ready() {
        let wakeup = |time, is_ready| Wakeup {
            time,
            waker: Waker::NOBODY,
            waking: None,
            is_ready,
            tells_sleep: false,
            is_whole: true,
        };
        let mut early = Early::default();
        early.add(wakeup(10, false));
        early.add(wakeup(20, true));
        let found = |early: &Early, time| early.after(time).map(|wakeup| wakeup.time);
        assert_eq!(found(&early, 5), Some(10));
        assert_eq!(found(&early, 10), Some(20));
        assert_eq!(found(&early, 20), None);
        early.add(wakeup(30, false));
        assert_eq!(found(&early, 5), Some(30));
    }
}
