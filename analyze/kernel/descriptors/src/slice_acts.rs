//! Acts of a slice that is played in parts: in parallel with other slices where possible, and in
//! time order where an act depends on the contents of tables.

use crate::ahead::{Ahead, ThreadAct};
use crate::contents::Held;
use crate::descriptors::Descriptors;

/// Acts of a slice in time order.
#[derive(Clone, Debug)]
pub struct SliceActs {
    acts: Vec<ThreadAct>,
    /// Number of acts in the parts that were returned as [`SlicePart::InOrder`].
    done: usize,
    /// The whole rest of the slice was returned as [`SlicePart::InOrder`].
    is_over: bool,
}

/// The next part of a slice.
#[derive(Debug)]
pub enum SlicePart {
    /// The rest of the slice, possibly empty, can be played in parallel with other slices.
    Ahead(Ahead),
    /// Items before this time (nanoseconds from the origin), or all items, must be played in time
    /// order before the next part is requested.
    InOrder(Option<i64>),
}

/// Minimum number of acts in a part that must be played in time order.
const LEAST: usize = 64;

impl SliceActs {
    /// Takes all acts of a slice.
    pub fn new(acts: Vec<ThreadAct>) -> SliceActs {
        SliceActs {
            acts,
            done: 0,
            is_over: false,
        }
    }

    /// Returns the whole rest of the slice as a part that must be played in time order.
    pub fn all_in_order<K: Held>(&mut self, descriptors: &mut Descriptors<K>) -> SlicePart {
        let rest = self.acts.get(self.done..).unwrap_or_default();
        if self.is_over {
            return SlicePart::Ahead(descriptors.nothing_ahead());
        }
        descriptors.touch_all(rest);
        (self.done, self.is_over) = (self.acts.len(), true);
        SlicePart::InOrder(None)
    }

    /// Returns the next part of the slice. `is_unclear`: an open call may decide the tables of
    /// threads.
    pub fn next<K: Held>(
        &mut self,
        descriptors: &mut Descriptors<K>,
        is_unclear: bool,
    ) -> SlicePart {
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
        // The number at least doubles each time, since looking ahead may fail again.
        let at = unclear
            .max(self.done.max(LEAST) - 1)
            .min(rest.len().saturating_sub(1));
        let until = rest.get(at).map(|(_, time, _)| time.saturating_add(1));
        let count = until.map_or(0, |until| {
            rest.partition_point(|(_, time, _)| *time < until)
        });
        descriptors.touch_all(rest.get(..count).unwrap_or_default());
        self.done += count;
        SlicePart::InOrder(until)
    }
}
