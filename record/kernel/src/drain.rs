//! Empties the rings and passes their records to the queues of the CPUs.

mod dumping;
mod finishing;
mod room;
mod rotating;
mod writing;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use libbpf_rs::MapHandle;

use crate::conditions::Undecided;
use crate::contexts::{ContextLayout, OwnContext};
use crate::encoder::Encoder;
use crate::error::RecordError;
use crate::lane::{CpuQueue, Origin};
use crate::machine::now;
use crate::options::Options;
use crate::output::Output;
use crate::process_numbers::Processes;
use crate::raw::{DECISION, Decision, Head};
use crate::recorder::{Counters, Order, SnapshotOrder};
use crate::reserve::Reserve;
use crate::ring::{Damaged, Ring};
use crate::stacks::{Meanings, PerfStacks};
use crate::triggers::{Held, Triggers};

use dumping::Found;
use rotating::Rotations;

/// Pause between two rounds: under low load, and under high load.
const IDLE: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_millis(5);
/// Number of events in a round from which the load counts as high.
const MANY: usize = 2000;
/// Maximum number of events taken from one ring before the next ring is read.
const AT_ONCE: usize = 1 << 16;

/// Arguments of [`Drain::new`].
pub(crate) struct Setup<'d> {
    /// By CPU.
    pub(crate) rings: Vec<Ring>,
    pub(crate) encoder: &'d Encoder,
    pub(crate) contexts: &'d ContextLayout,
    /// By CPU.
    pub(crate) lanes: &'d [RefCell<CpuQueue>],
    pub(crate) output: Output,
    pub(crate) meanings: Option<&'d Meanings>,
    /// The map in which BPF programs look up Python interpreters.
    pub(crate) pythons: Option<MapHandle>,
    /// Stacks of a command that is recorded without privileges.
    pub(crate) samples: Option<PerfStacks>,
    pub(crate) options: &'d Options,
    pub(crate) processes: Processes,
    pub(crate) reserve: Reserve,
    pub(crate) triggers: Option<Triggers>,
    pub(crate) held: &'d Mutex<Vec<Held>>,
    /// Begin of the trace, in nanoseconds of CLOCK_MONOTONIC.
    pub(crate) begin: u64,
    pub(crate) own_context: OwnContext,
}

/// Empties the rings.
pub(crate) struct Drain<'d> {
    /// By CPU.
    rings: Vec<Ring>,
    encoder: &'d Encoder,
    contexts: &'d ContextLayout,
    lanes: &'d [RefCell<CpuQueue>],
    output: Output,
    /// Events before this time are assumed to be complete: no earlier event is still expected.
    settled: u64,
    /// Receives the events of the state dump in progress.
    dump: Option<Receiver<Found>>,
    /// Snapshots that wait for the next state dump to complete.
    snapshots: VecDeque<SnapshotOrder>,
    meanings: Option<&'d Meanings>,
    /// The map in which BPF programs look up Python interpreters.
    pythons: Option<MapHandle>,
    /// Stacks of a command that is recorded without privileges.
    samples: Option<PerfStacks>,
    options: &'d Options,
    processes: Processes,
    /// Time of the first event for which there was no space.
    full_since: Option<u64>,
    /// Disk space for the end of the trace.
    reserve: Reserve,
    triggers: Option<Triggers>,
    held: &'d Mutex<Vec<Held>>,
    /// When new chunks begin.
    rotations: Rotations,
    /// All events before this time have been written.
    written_until: u64,
    /// By CPU, the number of events before the end that did not fit on a full disk.
    unwritten: Vec<u64>,
    /// The context of the recorder's own events.
    own_context: OwnContext,
    undecided: Undecided,
    /// Decisions on entries of calls that have not been read yet.
    decisions: Vec<Decision>,
}

impl<'d> Drain<'d> {
    pub(crate) fn new(setup: Setup<'d>) -> Drain<'d> {
        Drain {
            rings: setup.rings,
            encoder: setup.encoder,
            contexts: setup.contexts,
            lanes: setup.lanes,
            output: setup.output,
            settled: 0,
            dump: None,
            snapshots: VecDeque::new(),
            meanings: setup.meanings,
            pythons: setup.pythons,
            samples: setup.samples,
            options: setup.options,
            processes: setup.processes,
            full_since: None,
            reserve: setup.reserve,
            triggers: setup.triggers,
            held: setup.held,
            rotations: Rotations::new(setup.options, setup.begin),
            written_until: setup.begin,
            unwritten: vec![0; setup.lanes.len()],
            own_context: setup.own_context,
            undecided: setup.options.undecided(),
            decisions: Vec::new(),
        }
    }
}

/// Maximum time until recorded events are written, which limits the loss if this process is killed.
const LONGEST: Duration = Duration::from_secs(1);

impl Drain<'_> {
    /// Runs until the senders of `orders` are gone and the state dump is complete, or until there
    /// is no space left.
    pub(crate) fn run(
        &mut self,
        orders: &Receiver<Order>,
        counters: &Counters,
    ) -> Result<(), RecordError> {
        let mut pause = BUSY;
        let mut is_stopped = false;
        let mut flushed = Instant::now();
        loop {
            match orders.recv_timeout(pause) {
                Ok(order) => self.order(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_stopped = true,
            }
            if is_stopped {
                // Without senders `recv_timeout` returns at once.
                std::thread::sleep(BUSY);
            }
            pause = match self.round()? {
                AT_ONCE.. => Duration::ZERO,
                MANY.. => BUSY,
                // Rings of samples are small.
                _ if self.samples.is_some() => BUSY,
                _ => IDLE,
            };
            if flushed.elapsed() >= LONGEST {
                self.flush()?;
                flushed = Instant::now();
            }
            counters.set(self.output.progress());
            if self.full_since.is_some() {
                return Ok(());
            }
            if self.dump.is_none() {
                self.snapshot()?;
                if is_stopped {
                    return self.last_dump(counters);
                }
            }
        }
    }

    /// Empties the rings and writes the settled events; returns the number of events of the fullest
    /// ring.
    fn round(&mut self) -> Result<usize, RecordError> {
        if let (Some(meanings), Some(lane)) = (self.meanings, self.lanes.first()) {
            meanings.mappings(&mut lane.borrow_mut(), |number| {
                self.processes.initial(number)
            });
        }
        let before = now();
        let most = self.take_all()?;
        if most < AT_ONCE {
            self.rotations.emptied = before;
        }
        self.take_samples();
        self.take_found();
        let newest = self
            .lanes
            .iter()
            .map(|lane| lane.borrow().newest())
            .max()
            .unwrap_or(0);
        let until = self.decided_until(self.settled);
        // Each write visits all events that are held back, so it is done a few times per delay.
        if until >= self.written_until + self.undecided.delay_ns / 8 || self.undecided.delay_ns == 0
        {
            self.write(Some(until))?;
        }
        self.settled = newest;
        Ok(most)
    }

    /// Stacks of a command that is recorded without privileges.
    pub(crate) fn samples(&self) -> Option<&PerfStacks> {
        self.samples.as_ref()
    }

    fn take_samples(&mut self) {
        if let (Some(samples), Some(lane)) = (&mut self.samples, self.lanes.first()) {
            samples.take(&mut lane.borrow_mut());
        }
    }

    /// Empties the rings one after another; returns the number of events of the fullest ring.
    pub(super) fn take_all(&mut self) -> Result<usize, Damaged> {
        let mut most = 0;
        for (ring, lane) in self.rings.iter_mut().zip(self.lanes) {
            let mut lane = lane.borrow_mut();
            let taken = ring.consume(AT_ONCE, |record| {
                take(
                    record,
                    &mut lane,
                    self.encoder,
                    self.contexts,
                    self.meanings,
                    &mut self.decisions,
                );
            })?;
            most = most.max(taken);
        }
        self.decide();
        Ok(most)
    }

    /// Applies decisions to entries of calls. If the thread has moved to another CPU, the decision
    /// is in another ring than the entry and may be read first.
    fn decide(&mut self) {
        let lanes = self.lanes;
        let oldest = self.settled.saturating_sub(2 * self.undecided.delay_ns);
        self.decisions.retain(|decision| {
            let lane = lanes.get(decision.cpu as usize);
            let is_done = lane.is_none_or(|lane| {
                lane.borrow_mut()
                    .decide(decision.entered, decision.is_wanted)
            });
            !is_done && decision.entered >= oldest
        });
    }

    /// Time up to which events can be written if all events before `until` have been read.
    fn decided_until(&self, until: u64) -> u64 {
        let Undecided {
            hold_ns,
            is_kept,
            delay_ns,
        } = self.undecided;
        if hold_ns > 0 && !is_kept {
            let end = until.saturating_sub(hold_ns);
            self.lanes
                .iter()
                .for_each(|lane| lane.borrow_mut().leave_out(0, end));
        }
        until.saturating_sub(delay_ns)
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Snapshot(order) => self.snapshots.push_back(order),
            Order::Rotate(reply) if self.output.chunk().is_none() => {
                let _ = reply.send(Err(RecordError::NoChunks));
                return;
            }
            Order::Rotate(reply) => {
                self.rotations.asked.get_or_insert_with(now);
                self.rotations.callers.push(reply);
                return;
            }
        }
        if self.output.keeps() && self.dump.is_none() {
            self.dump_again();
        }
    }
}

fn take(
    record: &[u8],
    lane: &mut CpuQueue,
    encoder: &Encoder,
    contexts: &ContextLayout,
    meanings: Option<&Meanings>,
    decisions: &mut Vec<Decision>,
) {
    let Some((context, record)) = record.split_at_checked(contexts.padded_bytes()) else {
        return;
    };
    let Some((head, rest)) = Head::split(record) else {
        return;
    };
    let context = context.get(..contexts.bytes()).unwrap_or_default();
    if let Some(meanings) = meanings {
        meanings.symbols(&head, rest, lane);
    }
    if head.kind == DECISION {
        decisions.extend(Decision::new(rest));
        return;
    }
    let origin = match head.is_undecided() {
        true => Origin::Undecided,
        false => Origin::Kernel,
    };
    lane.add_with_context(head.time, Some(head.lost), context, origin, |to| {
        encoder.encode(&head, rest, to)
    });
}
