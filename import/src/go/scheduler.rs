//! The state of Go's scheduler, by which event records of all threads are put in order.
//!
//! Times alone do not suffice: a goroutine may start on one thread at the very time at which another
//! thread made it ready. Sequence numbers of goroutines and processors, and the states in which an
//! event is possible, show whether an event record is next ([`Advance::Done`]) or must wait for one
//! of another thread ([`Advance::Later`]).
//!
//! In Go's terms, an M is a thread, a P a processor (the right to run Go code; there are GOMAXPROCS
//! of them), and a G a goroutine.
//!
//! Source: the rules of `internal/trace/order.go` of Go 1.26. Rules that only detect errors of the
//! runtime, without influence on the order, are left out.

mod goroutines;
mod processors;

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::event_kind::{Kind, MOST_ARGUMENTS};
use super::frontier::Event;

/// Stands for the runtime when it has no thread of its own, such as while all threads are stopped.
pub(super) const NO_THREAD: u64 = u64::MAX;

/// Where an event happened: the state before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) thread: u64,
    pub(super) processor: Option<u64>,
    pub(super) goroutine: Option<u64>,
}

/// An event after the events that precede it. Some event records become several events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    pub(super) kind: Kind,
    /// Nanoseconds; not yet corrected to be later than the previous event.
    pub(super) time: u64,
    pub(super) arguments: [u64; MOST_ARGUMENTS],
    pub(super) place: Place,
    /// Whether a status is the first knowledge of its goroutine or processor.
    pub(super) is_first: bool,
    /// Whether a stolen processor belonged to a thread in a system call, as far as is known.
    pub(super) has_victim: bool,
}

/// Result of an attempt to go on with an event record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    Done,
    /// Event records of other threads come first.
    Later,
    /// The event is impossible in the current state.
    Broken(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoroutineStatus {
    Runnable,
    Running,
    Syscall,
    Waiting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessorStatus {
    Running,
    Idle,
    Syscall,
    /// In a system call whose thread is unknown.
    SyscallAbandoned,
}

/// Number of the last event of a goroutine or processor that has a number, within a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    generation: u64,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
struct Goroutine {
    status: GoroutineStatus,
    sequence: Sequence,
}

#[derive(Clone, Copy, Debug)]
struct Processor {
    status: ProcessorStatus,
    sequence: Sequence,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    processor: Option<u64>,
    goroutine: Option<u64>,
}

/// The state of the scheduler.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    generation: u64,
    /// The first generation, in which states are learned.
    first: u64,
    goroutines: HashMap<u64, Goroutine>,
    processors: BTreeMap<u64, Processor>,
    threads: BTreeMap<u64, Thread>,
    /// Whether the garbage collector marks, if known.
    is_marking: Option<bool>,
    marking_sequence: u64,
    ordered: VecDeque<Ordered>,
}

/// Whether an event requires a processor, and a goroutine.
const GOROUTINE: (bool, bool) = (true, true);
const PROCESSOR: (bool, bool) = (true, false);

impl Sequence {
    fn succeeds(self, last: Sequence) -> bool {
        self.generation == last.generation && Some(self.number) == last.number.checked_add(1)
    }
}

impl Scheduler {
    /// Continues with a generation.
    pub(super) fn begin(&mut self, generation: u64) {
        self.generation = generation;
        if self.first == 0 {
            self.first = generation;
        }
    }

    /// Takes the next event in order.
    pub(super) fn take(&mut self) -> Option<Ordered> {
        self.ordered.pop_front()
    }

    fn is_first(&self) -> bool {
        self.generation == self.first
    }

    fn sequence(&self, number: u64) -> Sequence {
        let generation = self.generation;
        Sequence { generation, number }
    }

    /// Goes on with an event record of a thread, if it is next.
    pub(super) fn advance(&mut self, thread: u64, event: &Event) -> Advance {
        let state = match thread {
            NO_THREAD => Thread::default(),
            _ => *self.threads.entry(thread).or_default(),
        };
        let place = Place {
            thread,
            processor: state.processor,
            goroutine: state.goroutine,
        };
        use Kind::*;
        match event.kind {
            ProcStart => self.processor_starts(place, event),
            ProcStop => self.processor_stops(place, event),
            ProcSteal => self.processor_is_stolen(place, event),
            ProcStatus => self.processor_status(place, event),
            GoCreate | GoCreateBlocked => self.goroutine_is_created(place, event),
            GoCreateSyscall => self.goroutine_is_created_in_call(place, event),
            GoStart => self.goroutine_starts(place, event),
            GoDestroy | GoStop | GoBlock => self.goroutine_stops(place, event),
            GoDestroySyscall => self.goroutine_ends_in_call(place, event),
            GoUnblock => self.goroutine_is_unblocked(place, event),
            GoSyscallBegin => self.call_begins(place, event),
            GoSyscallEnd => self.call_ends(place, event),
            GoSyscallEndBlocked => self.blocked_call_ends(place, event),
            GoStatus | GoStatusStack => self.goroutine_status(place, event),
            GoSwitch | GoSwitchDestroy => self.goroutines_switch(place, event),
            GcActive | GcBegin | GcEnd => self.marking(place, event),
            GcSweepBegin | GcSweepEnd | HeapAlloc | HeapGoal => {
                self.plain(place, event, Some(PROCESSOR))
            }
            GcSweepActive | GcMarkAssistActive | Experimental => self.plain(place, event, None),
            ProcsChange | StwBegin | StwEnd | GcMarkAssistBegin | GcMarkAssistEnd | GoLabel
            | UserTaskBegin | UserTaskEnd | UserRegionBegin | UserRegionEnd | UserLog => {
                self.plain(place, event, Some(GOROUTINE))
            }
        }
    }

    fn push(&mut self, place: Place, event: &Event) {
        self.push_noted(place, event, |ordered| ordered);
    }

    fn push_noted(&mut self, place: Place, event: &Event, note: impl FnOnce(Ordered) -> Ordered) {
        self.ordered.push_back(note(Ordered {
            kind: event.kind,
            time: event.time,
            arguments: event.arguments,
            place,
            is_first: false,
            has_victim: false,
        }));
    }

    /// The processor and goroutine of the thread after an event.
    fn place(&mut self, thread: u64, processor: Option<u64>, goroutine: Option<u64>) {
        if thread != NO_THREAD {
            let state = Thread {
                processor,
                goroutine,
            };
            self.threads.insert(thread, state);
        }
    }

    /// An event that changes no state.
    fn plain(&mut self, place: Place, event: &Event, needs: Option<(bool, bool)>) -> Advance {
        if let Some(needs) = needs
            && let Some(broken) = lacks(place, needs)
        {
            return broken;
        }
        self.push(place, event);
        Advance::Done
    }

    /// The mark phase of the garbage collector, which may begin and end on different threads.
    fn marking(&mut self, place: Place, event: &Event) -> Advance {
        let sequence = event.arguments[0];
        let is_learned = match event.kind {
            Kind::GcActive => self.is_first(),
            Kind::GcBegin => self.is_marking.is_none(),
            _ => false,
        };
        if is_learned {
            self.marking_sequence = sequence;
            self.is_marking = Some(true);
            self.push(place, event);
            return Advance::Done;
        }
        if Some(sequence) != self.marking_sequence.checked_add(1) {
            return Advance::Later;
        }
        let was_marking = event.kind != Kind::GcBegin;
        if self.is_marking != Some(was_marking) {
            return Advance::Broken("the garbage collector begins or ends twice");
        }
        if let Some(broken) = lacks(place, GOROUTINE) {
            return broken;
        }
        self.marking_sequence = sequence;
        self.is_marking = Some(event.kind != Kind::GcEnd);
        self.push(place, event);
        Advance::Done
    }
}

/// The reason why an event cannot happen without a thread, processor or goroutine.
fn lacks(place: Place, (processor, goroutine): (bool, bool)) -> Option<Advance> {
    if place.thread == NO_THREAD {
        return Some(Advance::Broken("an event without a thread"));
    }
    if processor && place.processor.is_none() {
        return Some(Advance::Broken("an event without a processor"));
    }
    if goroutine && place.goroutine.is_none() {
        return Some(Advance::Broken("an event without a goroutine"));
    }
    None
}
