//! Events of a slice of time, by which commands and completions find each other.
//!
//! In the order of time, a completion belongs to the last command that was enqueued with its event,
//! or, if that is complete, to the next one whose call has begun (`early`). A slice does not know
//! which commands are open at its begin. Facts whose partner may be in an earlier slice are left to
//! the state of all earlier slices (`state`).

use crate::early::MayBeEarly;
use crate::item::{Completed, Enqueued, Fact, Handle, Item};
use crate::matching::{Map, Waiting};

/// A command of a slice.
type Open = Waiting<u32, ()>;

/// The command of an event.
#[derive(Debug)]
enum Known {
    Open(Open),
    /// No command is open.
    Closed,
    /// The same, and this completion came since.
    Early(Item),
    /// Facts until this time are left to the state of earlier slices.
    Left(i64),
}

#[derive(Debug)]
struct Event {
    known: Known,
    /// When the first command was enqueued, before all that is left to earlier slices.
    first: Option<i64>,
}

/// A completion.
#[derive(Debug)]
pub(crate) enum Completion {
    /// Of this command.
    Of(Box<Open>),
    /// Of no command of this slice.
    Left(Item),
    /// Of a command that follows, or of none.
    Kept,
}

/// A new command.
#[derive(Debug)]
pub(crate) enum New {
    Open,
    /// With the time and content of its completion.
    Complete(i64, Completed),
    /// Only the state of earlier slices shows whether it is complete.
    Left,
}

/// Events of a slice.
#[derive(Debug)]
pub(crate) struct Events {
    early: MayBeEarly,
    /// Time of the first fact.
    begin: i64,
    events: Map<Handle, Event>,
}

impl Events {
    pub(crate) fn new(early: MayBeEarly) -> Events {
        Events {
            early,
            begin: i64::MIN,
            events: Map::default(),
        }
    }

    /// The slice begins at a time.
    pub(crate) fn begin(&mut self, time: i64) {
        self.begin = time;
    }

    /// The command with an event is complete. `item` is the fact `completed`. Facts for earlier slices
    /// are added to `later`.
    pub(crate) fn complete(
        &mut self,
        event: Handle,
        completed: &Completed,
        item: Item,
        later: &mut Vec<Item>,
    ) -> Completion {
        let may_be_early = self.early.is_possible(completed);
        let time = item.time;
        let Some(Event { known, .. }) = self.events.get_mut(&event) else {
            if may_be_early {
                let known = Known::Left(time);
                let first = None;
                self.events.insert(event, Event { known, first });
            }
            return Completion::Left(item);
        };
        match std::mem::replace(known, Known::Closed) {
            Known::Open(open) => Completion::Of(Box::new(open)),
            Known::Closed if may_be_early => {
                *known = Known::Early(item);
                Completion::Kept
            }
            Known::Early(before) if may_be_early => {
                *known = Known::Early(item);
                later.extend([before, renewed(event, time)]);
                Completion::Kept
            }
            Known::Left(_) => {
                *known = Known::Left(time);
                Completion::Left(item)
            }
            other => {
                *known = other;
                Completion::Left(item)
            }
        }
    }

    /// A call that began at `begin` enqueued a command at a time. Facts for earlier slices are added
    /// to `later`.
    pub(crate) fn enqueue(
        &mut self,
        event: Handle,
        (begin, time): (i64, i64),
        later: &mut Vec<Item>,
    ) -> New {
        let Some(Event { known, .. }) = self.events.get_mut(&event) else {
            // Its completion may be in an earlier slice.
            let is_left = self.early.is_ever() && begin < self.begin;
            let known = match is_left {
                true => Known::Left(self.begin),
                false => Known::Closed,
            };
            let first = (!is_left).then_some(time);
            self.events.insert(event, Event { known, first });
            return if is_left { New::Left } else { New::Open };
        };
        match std::mem::replace(known, Known::Closed) {
            Known::Left(until) if until >= begin => {
                *known = Known::Left(until);
                New::Left
            }
            Known::Left(_) => {
                later.push(renewed(event, time));
                New::Open
            }
            Known::Early(item) => match item.fact {
                Fact::Completed(_, completed) if item.time >= begin => {
                    New::Complete(item.time, completed)
                }
                _ => {
                    later.extend([item, renewed(event, time)]);
                    New::Open
                }
            },
            Known::Open(_) | Known::Closed => New::Open,
        }
    }

    /// A command is enqueued at a time, whatever is left to earlier slices: lists are executed anew only
    /// when their commands are complete.
    pub(crate) fn renew(&mut self, event: Handle, time: i64, open: Open, later: &mut Vec<Item>) {
        let Some(of) = self.events.get_mut(&event) else {
            let known = Known::Open(open);
            let first = Some(time);
            self.events.insert(event, Event { known, first });
            return;
        };
        let before = std::mem::replace(&mut of.known, Known::Open(open));
        if let Known::Left(_) = before {
            later.push(renewed(event, time));
        }
    }

    /// Keeps a new command that is open.
    pub(crate) fn keep(&mut self, event: Handle, open: Open) {
        if let Some(of) = self.events.get_mut(&event) {
            of.known = Known::Open(open);
        }
    }

    /// A call that began in an earlier slice, if it is known there, enqueued a command at a time. Facts
    /// for earlier slices are added to `later`.
    pub(crate) fn leave(&mut self, event: Handle, time: i64, later: &mut Vec<Item>) {
        let known = Known::Left(time);
        let Some(of) = self.events.get_mut(&event) else {
            let first = None;
            self.events.insert(event, Event { known, first });
            return;
        };
        match std::mem::replace(&mut of.known, known) {
            Known::Open(open) => later.push(enqueued(event, open.enqueued)),
            Known::Early(item) => later.push(item),
            Known::Closed | Known::Left(_) => {}
        }
    }

    /// Ends the slice: the open commands, and when the first command with each event was enqueued.
    /// Adds completions of no command to `later`.
    pub(crate) fn end(self, later: &mut Vec<Item>) -> (Vec<(Handle, Open)>, Map<Handle, i64>) {
        let mut open = Vec::new();
        let mut firsts = Map::default();
        for (event, of) in self.events {
            firsts.extend(of.first.map(|first| (event, first)));
            match of.known {
                Known::Open(waiting) => open.push((event, waiting)),
                Known::Early(item) => later.push(item),
                Known::Closed | Known::Left(_) => {}
            }
        }
        (open, firsts)
    }
}

fn renewed(event: Handle, time: i64) -> Item {
    Item {
        time,
        stream: 0,
        fact: Fact::Renewed(event),
    }
}

/// A command as a fact.
fn enqueued(event: Handle, enqueued: Box<Enqueued>) -> Item {
    Item {
        time: enqueued.end,
        stream: 0,
        fact: Fact::Enqueued(event, enqueued),
    }
}
