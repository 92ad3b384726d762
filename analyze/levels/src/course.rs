//! The state of a user-level thread after each window, from its latest moments in each.

use crate::survey::Moment;
use crate::ult_facts::{Marks, NEVER};

/// State of a user-level thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UltState {
    /// Not ready: index of the reason.
    pub(crate) blocked: Option<u16>,
    /// Left its LWP blocked, and has not run since: index of the reason.
    pub(crate) waits: Option<u16>,
    pub(crate) has_ended: bool,
}

/// States and late blocks of a user-level thread, at the end of the lists of its shard.
pub(crate) struct Course<'a> {
    /// State after each window in which it changed.
    states: &'a mut Vec<(u32, UltState)>,
    /// A window at whose end the thread had left its LWP as ready, and the reason of the block that
    /// is its next record.
    late: &'a mut Vec<(u32, u16)>,
    /// Index of the first state of the thread.
    from: usize,
}

impl<'a> Course<'a> {
    pub(crate) fn new(
        states: &'a mut Vec<(u32, UltState)>,
        late: &'a mut Vec<(u32, u16)>,
    ) -> Course<'a> {
        let from = states.len();
        Course { states, late, from }
    }

    fn last(&self) -> UltState {
        let own = self.states.get(self.from..).unwrap_or_default();
        own.last().map_or_else(UltState::default, |(_, last)| *last)
    }

    /// Follows the marks of the thread, which are ordered by window.
    pub(crate) fn run(self, marks: &[Marks]) {
        let mut all: Option<Marks> = None;
        let mut late = NEVER;
        // The window in which the last record was the switch from the thread.
        let mut left: Option<u32> = None;
        for same in marks.chunk_by(|own, next| own.window == next.window) {
            let Some((mut own, others)) = same.split_first().map(|(own, others)| (*own, others))
            else {
                continue;
            };
            others.iter().for_each(|other| own.join(other));
            if let (Some(left), Some(reason)) = (left, reason_of(own.first_reason)) {
                self.late.push((left, reason));
                late = own.first;
                // The second pass begins the wait where the thread left its LWP.
                let waits = Some(reason);
                let last = self.last();
                self.states.push((left, UltState { waits, ..last }));
            }
            let now = all.get_or_insert(own);
            now.join(&own);
            let is_between = own.switch_out < own.ready && own.ready < own.block;
            let is_out = now.switch_out > now.switch_in && !is_between;
            if own.switch_out != NEVER && own.block > own.switch_out && is_out {
                late = own.block;
            }
            let others = now.ready.max(now.switch_in).max(now.end).max(now.block);
            left = (now.switch_out > others).then_some(own.window);
            let state = state(now, late);
            if self.last() != state {
                self.states.push((own.window, state));
            }
        }
    }
}

fn reason_of(number: u32) -> Option<u16> {
    u16::try_from(number).ok()
}

/// State after these marks. `late` is the last block after the switch from the thread.
fn state(marks: &Marks, late: Moment) -> UltState {
    let alive = marks.switch_in.max(marks.ready);
    let has_ended = marks.end != NEVER && marks.end > alive;
    let mut state = UltState {
        has_ended,
        ..UltState::default()
    };
    let block = marks.block;
    // An earlier thread with this id may have blocked.
    if block == NEVER || has_ended || block < marks.switch_in || block < marks.end {
        return state;
    }
    let reason = reason_of(marks.reason);
    if block > marks.ready {
        state.blocked = reason;
    }
    // Woken between the block and the switch: it never waited.
    let was_ready = block < marks.ready && marks.ready < marks.switch_out;
    if block < marks.switch_out && !was_ready || block == late {
        state.waits = reason;
    }
    state
}
