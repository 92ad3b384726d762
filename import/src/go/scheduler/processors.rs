//! Events of processors (Ps).

use super::{Advance, NO_THREAD, PROCESSOR, Place, Processor, ProcessorStatus, Scheduler, lacks};
use crate::go::frontier::Event;

/// Values of `tracev2.ProcStatus`.
fn status_of(number: u64) -> Option<ProcessorStatus> {
    Some(match number {
        1 => ProcessorStatus::Running,
        2 => ProcessorStatus::Idle,
        3 => ProcessorStatus::Syscall,
        4 => ProcessorStatus::SyscallAbandoned,
        _ => return None,
    })
}

impl Scheduler {
    pub(super) fn processor_status(&mut self, place: Place, event: &Event) -> Advance {
        use ProcessorStatus::*;
        let id = event.arguments[0];
        let Some(status) = status_of(event.arguments[1]) else {
            return Advance::Broken("a processor in an unknown state");
        };
        let sequence = self.sequence(0);
        let mut of = place;
        let known = self.processors.get(&id).copied();
        match known {
            Some(known) if status == SyscallAbandoned && known.status == Syscall => {
                // It will be stolen soon, and its thread is known after all.
                let mut threads = self.threads.iter();
                let thread = threads.find(|(_, state)| state.processor == Some(id));
                let Some((&thread, state)) = thread else {
                    return Advance::Broken("a processor in a system call without a thread");
                };
                of = Place {
                    thread,
                    processor: Some(id),
                    goroutine: state.goroutine,
                };
            }
            Some(known) if known.status != status => {
                return Advance::Broken("a processor in another state than before");
            }
            _ => {}
        }
        let status = known.map_or(status, |known| known.status);
        self.processors.insert(id, Processor { status, sequence });
        // An abandoned processor belongs to no thread, or to another one.
        if matches!(event.arguments[1], 1 | 3) {
            self.place(place.thread, Some(id), place.goroutine);
        }
        self.push_noted(of, event, |ordered| super::Ordered {
            is_first: known.is_none(),
            ..ordered
        });
        Advance::Done
    }

    pub(super) fn processor_starts(&mut self, place: Place, event: &Event) -> Advance {
        let id = event.arguments[0];
        let sequence = self.sequence(event.arguments[1]);
        let Some(processor) = self.processors.get_mut(&id) else {
            return Advance::Later;
        };
        let is_idle = processor.status == ProcessorStatus::Idle;
        // A thread that has a processor is in a system call, and has yet to lose it.
        if !is_idle || !sequence.succeeds(processor.sequence) || place.processor.is_some() {
            return Advance::Later;
        }
        if place.thread == NO_THREAD {
            return Advance::Broken("a processor starts without a thread");
        }
        let status = ProcessorStatus::Running;
        *processor = Processor { status, sequence };
        self.place(place.thread, Some(id), place.goroutine);
        self.push(place, event);
        Advance::Done
    }

    pub(super) fn processor_stops(&mut self, place: Place, event: &Event) -> Advance {
        if let Some(broken) = lacks(place, PROCESSOR) {
            return broken;
        }
        let processor = place.processor.and_then(|id| self.processors.get_mut(&id));
        let is_held =
            |status| matches!(status, ProcessorStatus::Running | ProcessorStatus::Syscall);
        let Some(processor) = processor.filter(|processor| is_held(processor.status)) else {
            return Advance::Broken("a processor stops that does not run");
        };
        processor.status = ProcessorStatus::Idle;
        self.place(place.thread, None, place.goroutine);
        self.push(place, event);
        Advance::Done
    }

    pub(super) fn processor_is_stolen(&mut self, place: Place, event: &Event) -> Advance {
        use ProcessorStatus::*;
        let [id, number, victim, _] = event.arguments;
        let sequence = self.sequence(number);
        let Some(processor) = self.processors.get_mut(&id) else {
            return Advance::Later;
        };
        let before = processor.status;
        let is_in_call = matches!(before, Syscall | SyscallAbandoned);
        if !is_in_call || !sequence.succeeds(processor.sequence) {
            return Advance::Later;
        }
        if place.thread == NO_THREAD {
            return Advance::Broken("a processor is stolen without a thread");
        }
        let status = Idle;
        *processor = Processor { status, sequence };
        if before == Syscall {
            let state = self.threads.get_mut(&victim);
            let Some(state) = state.filter(|state| state.processor == Some(id)) else {
                return Advance::Broken(
                    "a processor is stolen from a thread that does not have it",
                );
            };
            state.processor = None;
        }
        self.push_noted(place, event, |ordered| super::Ordered {
            has_victim: before == Syscall,
            ..ordered
        });
        Advance::Done
    }
}
