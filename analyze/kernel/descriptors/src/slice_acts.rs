//! Acts of a slice that is followed in parts: those beside others that can be, those that depend on what is in tables when that is
//! known.

use crate::ahead::{Ahead, ThreadAct};
use crate::contents::Held;
use crate::descriptors::Descriptors;

/// Acts of a slice, in the order of time.
#[derive(Clone, Debug)]
pub struct SliceActs {
    acts: Vec<ThreadAct>,
    /// How many of them were left to who does what happens in the order of time.
    done: usize,
    /// All of the slice was left to them.
    is_over: bool,
}

/// The next part of a slice.
#[derive(Debug)]
pub enum SlicePart {
    /// All that is left can be played beside others. It may be nothing.
    Ahead(Ahead),
    /// What happens before that time (nanoseconds from the origin), or all, is to be done in the order of time, before the next
    /// part is asked for.
    InOrder(Option<i64>),
}

/// So many acts at least are left to who does what happens in the order of time, if it must be.
const LEAST: usize = 64;

impl SliceActs {
    /// All acts of a slice.
    pub fn new(acts: Vec<ThreadAct>) -> SliceActs {
        SliceActs {
            acts,
            done: 0,
            is_over: false,
        }
    }

    /// All of the slice is to be done in the order of time.
    pub fn all_in_order<K: Held>(&mut self, descriptors: &mut Descriptors<K>) -> SlicePart {
        let rest = self.acts.get(self.done..).unwrap_or_default();
        if self.is_over {
            return SlicePart::Ahead(descriptors.nothing_ahead());
        }
        descriptors.touch_all(rest);
        (self.done, self.is_over) = (self.acts.len(), true);
        SlicePart::InOrder(None)
    }

    /// The next part of the slice. `is_unclear` says that a call which is open may decide which thread has which table.
    pub fn next<K: Held>(&mut self, descriptors: &mut Descriptors<K>, is_unclear: bool) -> SlicePart {
        let rest = self.acts.get(self.done..).unwrap_or_default();
        if rest.is_empty() && is_unclear {
            return self.all_in_order(descriptors);
        }
        let unclear = match is_unclear {
            true => 0,
            false => match descriptors.look_ahead(rest) {
                Ok(ahead) => return SlicePart::Ahead(ahead),
                Err(unclear) => unclear.0,
            },
        };
        // Twice as many each time: looking ahead may fail again.
        let at = unclear
            .max(self.done.max(LEAST) - 1)
            .min(rest.len().saturating_sub(1));
        let until = rest.get(at).map(|(_, time, _)| time.saturating_add(1));
        let count = until.map_or(0, |until| rest.partition_point(|(_, time, _)| *time < until));
        descriptors.touch_all(rest.get(..count).unwrap_or_default());
        self.done += count;
        SlicePart::InOrder(until)
    }
}
