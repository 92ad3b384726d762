//! Completions that are recorded before their commands are known.
//!
//! THAPI sets the callback of an event before it records the event that times the command of an open
//! call, and a driver may call it at once. So a completion whose event has no open command belongs to
//! the next command with this event, if that command's call had begun.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::item::{Completed, Fact, Handle, Item};
use crate::matching::Map;

/// What a slice knows of an event.
#[derive(Debug)]
enum Known {
    /// No command with it is open.
    Closed,
    /// The same, and this completion came since.
    Early(Item),
    /// A completion at this time, or one of an earlier slice, is of a command of an earlier slice, or of
    /// the next one.
    Unsure(i64),
}

/// Completions of a slice whose commands are not known yet. Nothing is known of events at its begin.
#[derive(Debug, Default)]
pub(crate) struct EarlyOfSlice {
    /// False where no completion can come early.
    is_possible: bool,
    /// Time of the first fact.
    begin: i64,
    events: Map<Handle, Known>,
}

/// What was known of the event of a new command.
#[derive(Debug)]
pub(crate) enum Taken {
    Nothing,
    /// A completion of no command, before the call.
    Earlier(Item),
    /// The completion of the command, at a time.
    Own(i64, Completed),
    /// Only the state of earlier slices shows whose completion came.
    Unsure,
}

impl EarlyOfSlice {
    pub(crate) fn new(is_possible: bool) -> EarlyOfSlice {
        EarlyOfSlice {
            is_possible,
            ..EarlyOfSlice::default()
        }
    }

    /// The slice begins at a time.
    pub(crate) fn begin(&mut self, time: i64) {
        self.begin = time;
    }

    /// The command with an event is complete.
    pub(crate) fn close(&mut self, event: Handle) {
        if self.is_possible {
            self.events.insert(event, Known::Closed);
        }
    }

    /// Keeps the completion of an event without a command, or returns one to be joined to earlier
    /// slices.
    pub(crate) fn keep(&mut self, event: Handle, item: Item) -> Option<Item> {
        if !self.is_possible {
            return Some(item);
        }
        let time = item.time;
        match self.events.remove(&event) {
            Some(Known::Closed) => {
                self.events.insert(event, Known::Early(item));
                None
            }
            Some(Known::Early(before)) => {
                self.events.insert(event, Known::Early(item));
                Some(before)
            }
            None | Some(Known::Unsure(_)) => {
                self.events.insert(event, Known::Unsure(time));
                Some(item)
            }
        }
    }

    /// A call of an earlier slice enqueued a command with an event. Returns a completion to be joined.
    pub(crate) fn forget(&mut self, event: Handle) -> Option<Item> {
        match self.events.remove(&event) {
            Some(Known::Early(item)) => Some(item),
            _ => None,
        }
    }

    /// A call that began at `begin` enqueued a command with an event.
    pub(crate) fn take(&mut self, event: Handle, begin: i64) -> Taken {
        if !self.is_possible {
            return Taken::Nothing;
        }
        match self.events.remove(&event) {
            Some(Known::Unsure(time)) if time >= begin => {
                self.events.insert(event, Known::Unsure(time));
                Taken::Unsure
            }
            Some(Known::Early(item)) => match item.fact {
                Fact::Completed(_, completed) if item.time >= begin => {
                    self.events.insert(event, Known::Closed);
                    Taken::Own(item.time, completed)
                }
                _ => Taken::Earlier(item),
            },
            None if begin < self.begin => {
                self.events.insert(event, Known::Unsure(self.begin));
                Taken::Unsure
            }
            _ => Taken::Nothing,
        }
    }

    /// Adds the completions that are left to those that are joined to earlier slices. Returns true
    /// if those may not be in the order of time.
    pub(crate) fn end(&mut self, later: &mut Vec<Item>) -> bool {
        let left = self.events.drain().filter_map(|(_, known)| match known {
            Known::Early(item) => Some(item),
            Known::Closed | Known::Unsure(_) => None,
        });
        later.extend(left);
        self.is_possible
    }
}

/// Nanoseconds after which no call takes a completion any more: calls that enqueue do not last.
const LONGEST: i64 = 10_000_000_000;

/// Completions without a command, of all slices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Early(BTreeMap<Handle, (i64, Completed)>);

impl Early {
    /// Keeps a completion. Returns when another was recorded that belongs to no command.
    pub(crate) fn keep(&mut self, event: Handle, at: i64, completed: Completed) -> Option<i64> {
        self.0.insert(event, (at, completed)).map(|(at, _)| at)
    }

    /// The completion of a command whose call began at `begin`, or when one was recorded that belongs
    /// to no command.
    pub(crate) fn take(
        &mut self,
        event: Handle,
        begin: i64,
    ) -> Result<(i64, Completed), Option<i64>> {
        match self.0.remove(&event) {
            Some(found) if found.0 >= begin => Ok(found),
            found => Err(found.map(|(at, _)| at)),
        }
    }

    /// Drops what no call takes that ends after a time. Returns when these were recorded.
    pub(crate) fn drop_before(&mut self, until: i64) -> Vec<i64> {
        let first = until.saturating_sub(LONGEST);
        let mut old = Vec::new();
        self.0.retain(|_, (at, _)| {
            let is_old = *at < first;
            old.extend(is_old.then_some(*at));
            !is_old
        });
        old
    }

    /// When the completions were recorded.
    pub(crate) fn times(&self) -> impl Iterator<Item = i64> {
        self.0.values().map(|(at, _)| *at)
    }
}
