//! Completions that are recorded before their commands are known.
//!
//! THAPI sets the callback of an event before it records the event that times the command of an open
//! call, and a driver may call it at once. So a completion whose event has no open command belongs to
//! the next command with this event, if that command's call had begun.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::item::{Completed, Handle, Times};

/// Which completions may come early.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MayBeEarly(bool);

impl MayBeEarly {
    /// `has_thapi`: traces have commands of OpenCL by THAPI.
    pub(crate) fn new(has_thapi: bool) -> MayBeEarly {
        MayBeEarly(has_thapi)
    }

    /// True if completions may come early.
    pub(crate) fn is_ever(self) -> bool {
        self.0
    }

    /// Those of other APIs come late.
    pub(crate) fn is_possible(self, completed: &Completed) -> bool {
        self.0 && completed.kind == Times::Device
    }
}

/// Nanoseconds after which no call takes a completion any more: calls that enqueue return sooner.
const LONGEST: i64 = 10_000_000_000;

/// Completions without a command, of all slices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Early(BTreeMap<Handle, (i64, Completed)>);

impl Early {
    /// Keeps a completion. Returns when another was recorded that belongs to no command.
    pub(crate) fn keep(&mut self, event: Handle, at: i64, completed: Completed) -> Option<i64> {
        self.0.insert(event, (at, completed)).map(|(at, _)| at)
    }

    /// Events of the completions.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Handle> {
        self.0.keys()
    }

    /// When the completion of an event was recorded that belongs to no command.
    pub(crate) fn remove(&mut self, event: Handle) -> Option<i64> {
        self.0.remove(&event).map(|(at, _)| at)
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
