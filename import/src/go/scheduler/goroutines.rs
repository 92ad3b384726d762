//! Events of goroutines.

use super::{
    Advance, GOROUTINE, Goroutine, GoroutineStatus, NO_THREAD, Ordered, PROCESSOR, Place,
    ProcessorStatus, Scheduler, Thread, lacks,
};
use crate::go::event_kind::{Kind, MOST_ARGUMENTS};
use crate::go::frontier::Event;

/// Values of `tracev2.GoStatus`.
fn status_of(number: u64) -> Option<GoroutineStatus> {
    Some(match number {
        1 => GoroutineStatus::Runnable,
        2 => GoroutineStatus::Running,
        3 => GoroutineStatus::Syscall,
        4 => GoroutineStatus::Waiting,
        _ => return None,
    })
}

const NOT_RUNNING: Advance = Advance::Broken("an event of a goroutine that does not run");
const NO_CALL: Advance = Advance::Broken("a system call ends that has not begun");

impl Scheduler {
    pub(super) fn goroutine_status(&mut self, place: Place, event: &Event) -> Advance {
        let [id, thread, status, _] = event.arguments;
        let Some(status) = status_of(status) else {
            return Advance::Broken("a goroutine in an unknown state");
        };
        let known = self.goroutines.get(&id).copied();
        match known {
            Some(known) if known.status != status => {
                return Advance::Broken("a goroutine in another state than before");
            }
            None if !self.is_first() => {
                return Advance::Broken("a goroutine that was not created");
            }
            _ => {}
        }
        let mut of = place;
        match status {
            GoroutineStatus::Running => self.place(place.thread, place.processor, Some(id)),
            GoroutineStatus::Syscall if thread == NO_THREAD => {
                return Advance::Broken("a system call without a thread");
            }
            GoroutineStatus::Syscall if thread == place.thread => {
                if !self.is_first() && place.goroutine != Some(id) {
                    return Advance::Broken("a system call of another goroutine");
                }
                self.place(thread, place.processor, Some(id));
            }
            GoroutineStatus::Syscall => {
                // The thread has been in the system call for the whole generation.
                let state = self.threads.entry(thread).or_insert(Thread {
                    processor: None,
                    goroutine: Some(id),
                });
                if state.goroutine != Some(id) {
                    return Advance::Broken("a system call of another goroutine");
                }
                of.thread = thread;
            }
            _ => {}
        }
        let sequence = self.sequence(0);
        self.goroutines.insert(id, Goroutine { status, sequence });
        self.push_noted(of, event, |ordered| Ordered {
            is_first: known.is_none(),
            ..ordered
        });
        Advance::Done
    }

    /// The state of the running goroutine, if it has this status.
    fn current(&mut self, place: Place, status: GoroutineStatus) -> Option<&mut Goroutine> {
        let current = self.goroutines.get_mut(&place.goroutine?)?;
        (current.status == status).then_some(current)
    }

    fn add(&mut self, id: u64, status: GoroutineStatus) -> Result<(), Advance> {
        let sequence = self.sequence(0);
        let added = Goroutine { status, sequence };
        match self.goroutines.insert(id, added) {
            None => Ok(()),
            Some(_) => Err(Advance::Broken("a goroutine is created that exists")),
        }
    }

    pub(super) fn goroutine_is_created(&mut self, place: Place, event: &Event) -> Advance {
        if let Some(broken) = lacks(place, PROCESSOR) {
            return broken;
        }
        let status = match event.kind {
            Kind::GoCreateBlocked => GoroutineStatus::Waiting,
            _ => GoroutineStatus::Runnable,
        };
        if let Err(broken) = self.add(event.arguments[0], status) {
            return broken;
        }
        self.push(place, event);
        Advance::Done
    }

    /// A thread that Go did not create calls Go.
    pub(super) fn goroutine_is_created_in_call(&mut self, place: Place, event: &Event) -> Advance {
        let id = event.arguments[0];
        if place.thread == NO_THREAD || place.goroutine.is_some() {
            return Advance::Broken("a callback on a thread that runs a goroutine");
        }
        if let Err(broken) = self.add(id, GoroutineStatus::Syscall) {
            return broken;
        }
        self.place(place.thread, place.processor, Some(id));
        self.push(place, event);
        Advance::Done
    }

    pub(super) fn goroutine_starts(&mut self, place: Place, event: &Event) -> Advance {
        let id = event.arguments[0];
        let sequence = self.sequence(event.arguments[1]);
        let Some(goroutine) = self.goroutines.get_mut(&id) else {
            return Advance::Later;
        };
        let is_runnable = goroutine.status == GoroutineStatus::Runnable;
        if !is_runnable || !sequence.succeeds(goroutine.sequence) {
            return Advance::Later;
        }
        if let Some(broken) = lacks(place, PROCESSOR) {
            return broken;
        }
        if place.goroutine.is_some() {
            return Advance::Broken("a goroutine starts on a thread that runs another");
        }
        let status = GoroutineStatus::Running;
        *goroutine = Goroutine { status, sequence };
        self.place(place.thread, place.processor, Some(id));
        self.push(place, event);
        Advance::Done
    }

    /// The goroutine ends, blocks or yields.
    pub(super) fn goroutine_stops(&mut self, place: Place, event: &Event) -> Advance {
        if let Some(broken) = lacks(place, GOROUTINE) {
            return broken;
        }
        let Some(current) = self.current(place, GoroutineStatus::Running) else {
            return NOT_RUNNING;
        };
        match event.kind {
            Kind::GoStop => current.status = GoroutineStatus::Runnable,
            Kind::GoBlock => current.status = GoroutineStatus::Waiting,
            _ => self.remove(place),
        }
        self.place(place.thread, place.processor, None);
        self.push(place, event);
        Advance::Done
    }

    fn remove(&mut self, place: Place) {
        if let Some(id) = place.goroutine {
            self.goroutines.remove(&id);
        }
    }

    pub(super) fn goroutine_is_unblocked(&mut self, place: Place, event: &Event) -> Advance {
        let sequence = self.sequence(event.arguments[1]);
        let Some(goroutine) = self.goroutines.get_mut(&event.arguments[0]) else {
            return Advance::Later;
        };
        let is_waiting = goroutine.status == GoroutineStatus::Waiting;
        if !is_waiting || !sequence.succeeds(goroutine.sequence) {
            return Advance::Later;
        }
        let status = GoroutineStatus::Runnable;
        *goroutine = Goroutine { status, sequence };
        self.push(place, event);
        Advance::Done
    }

    /// A coroutine wakes another, blocks or ends, and its thread goes on with the other: three
    /// events.
    pub(super) fn goroutines_switch(&mut self, place: Place, event: &Event) -> Advance {
        if let Some(broken) = lacks(place, GOROUTINE) {
            return broken;
        }
        if self.current(place, GoroutineStatus::Running).is_none() {
            return NOT_RUNNING;
        }
        let id = event.arguments[0];
        let sequence = self.sequence(event.arguments[1]);
        let Some(next) = self.goroutines.get_mut(&id) else {
            return Advance::Later;
        };
        let is_waiting = next.status == GoroutineStatus::Waiting;
        if !is_waiting || !sequence.succeeds(next.sequence) {
            return Advance::Later;
        }
        let status = GoroutineStatus::Running;
        *next = Goroutine { status, sequence };
        let ends = event.kind == Kind::GoSwitchDestroy;
        match self.current(place, GoroutineStatus::Running) {
            Some(current) if !ends => current.status = GoroutineStatus::Waiting,
            _ => self.remove(place),
        }
        let unblock = Kind::GoUnblock;
        let leave = if ends { Kind::GoDestroy } else { Kind::GoBlock };
        let between = Place {
            goroutine: None,
            ..place
        };
        let of_next = [id, event.arguments[1], 0, 0];
        for (kind, place, arguments) in [
            (unblock, place, of_next),
            (leave, place, [0; MOST_ARGUMENTS]),
            (Kind::GoStart, between, of_next),
        ] {
            let time = event.time;
            let event = Event {
                kind,
                time,
                arguments,
            };
            self.push(place, &event);
        }
        self.place(place.thread, place.processor, Some(id));
        Advance::Done
    }

    pub(super) fn call_begins(&mut self, place: Place, event: &Event) -> Advance {
        if let Some(broken) = lacks(place, GOROUTINE) {
            return broken;
        }
        let sequence = self.sequence(event.arguments[0]);
        let Some(current) = self.current(place, GoroutineStatus::Running) else {
            return NOT_RUNNING;
        };
        current.status = GoroutineStatus::Syscall;
        let processor = place.processor.and_then(|id| self.processors.get_mut(&id));
        let Some(processor) = processor.filter(|of| sequence.succeeds(of.sequence)) else {
            return Advance::Broken("a system call with another number than the next");
        };
        processor.status = ProcessorStatus::Syscall;
        processor.sequence = sequence;
        self.push(place, event);
        Advance::Done
    }

    pub(super) fn call_ends(&mut self, place: Place, event: &Event) -> Advance {
        if let Some(broken) = lacks(place, GOROUTINE) {
            return broken;
        }
        let Some(current) = self.current(place, GoroutineStatus::Syscall) else {
            return NO_CALL;
        };
        current.status = GoroutineStatus::Running;
        let is_in_call = |status| status == ProcessorStatus::Syscall;
        let processor = place.processor.and_then(|id| self.processors.get_mut(&id));
        let Some(processor) = processor.filter(|of| is_in_call(of.status)) else {
            return NO_CALL;
        };
        processor.status = ProcessorStatus::Running;
        self.push(place, event);
        Advance::Done
    }

    /// A system call ends during which the thread lost its processor.
    pub(super) fn blocked_call_ends(&mut self, place: Place, event: &Event) -> Advance {
        let processor = place.processor.and_then(|id| self.processors.get(&id));
        if processor.is_some_and(|of| of.status == ProcessorStatus::Syscall) {
            // Another thread has yet to take the processor.
            return Advance::Later;
        }
        let Some(current) = self.current(place, GoroutineStatus::Syscall) else {
            return NO_CALL;
        };
        current.status = GoroutineStatus::Runnable;
        self.place(place.thread, place.processor, None);
        self.push(place, event);
        Advance::Done
    }

    /// A thread that Go did not create returns from Go.
    pub(super) fn goroutine_ends_in_call(&mut self, place: Place, event: &Event) -> Advance {
        if self.current(place, GoroutineStatus::Syscall).is_none() {
            return NO_CALL;
        }
        self.remove(place);
        if let Some(id) = place.processor {
            let processor = self.processors.get_mut(&id);
            let is_in_call = |status| status == ProcessorStatus::Syscall;
            let Some(processor) = processor.filter(|of| is_in_call(of.status)) else {
                return Advance::Broken("a callback returns with a processor that runs");
            };
            // The thread may end, and another get its id: the processor is no longer bound to it.
            processor.status = ProcessorStatus::SyscallAbandoned;
            let steal = Event {
                kind: Kind::ProcSteal,
                time: event.time,
                arguments: [id, 0, place.thread, 0],
            };
            self.push_noted(place, &steal, |ordered| Ordered {
                has_victim: true,
                ..ordered
            });
        }
        self.place(place.thread, None, None);
        self.push(place, event);
        Advance::Done
    }
}
