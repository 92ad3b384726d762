//! Empties the rings, and gives what was in them to the lanes.

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
use crate::lane::{Lane, Origin};
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

/// How long the rings are left alone: with little to do, and with much.
const IDLE: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_millis(5);
/// Events of a round from which on there is much to do.
const MANY: usize = 2000;
/// Events of one ring that are taken before others have their turn.
const AT_ONCE: usize = 1 << 16;

/// What a drain begins with.
pub(crate) struct Setup<'d> {
    /// By CPU.
    pub(crate) rings: Vec<Ring>,
    pub(crate) encoder: &'d Encoder,
    pub(crate) contexts: &'d ContextLayout,
    /// By CPU.
    pub(crate) lanes: &'d [RefCell<Lane>],
    pub(crate) output: Output,
    pub(crate) meanings: Option<&'d Meanings>,
    /// Where BPF programs look up interpreters of Python.
    pub(crate) pythons: Option<MapHandle>,
    /// Stacks of a command that is recorded without privileges.
    pub(crate) samples: Option<PerfStacks>,
    pub(crate) options: &'d Options,
    pub(crate) processes: Processes,
    pub(crate) reserve: Reserve,
    pub(crate) triggers: Option<Triggers>,
    pub(crate) held: &'d Mutex<Vec<Held>>,
    /// When the trace begins.
    pub(crate) begin: u64,
    pub(crate) own_context: OwnContext,
}

/// Empties the rings.
pub(crate) struct Drain<'d> {
    /// By CPU.
    rings: Vec<Ring>,
    encoder: &'d Encoder,
    contexts: &'d ContextLayout,
    lanes: &'d [RefCell<Lane>],
    output: Output,
    /// What came before can hardly be overtaken any more.
    settled: u64,
    /// What is being told of what is there.
    dump: Option<Receiver<Found>>,
    /// Orders that wait until that has been told once more.
    snapshots: VecDeque<SnapshotOrder>,
    meanings: Option<&'d Meanings>,
    /// Where BPF programs look up interpreters of Python.
    pythons: Option<MapHandle>,
    /// Stacks of a command that is recorded without privileges.
    samples: Option<PerfStacks>,
    options: &'d Options,
    processes: Processes,
    /// When what happened had no room any more.
    full_since: Option<u64>,
    /// For the end, if the disk is full before.
    reserve: Reserve,
    triggers: Option<Triggers>,
    held: &'d Mutex<Vec<Held>>,
    /// When new chunks begin.
    rotations: Rotations,
    /// Up to when everything has been written.
    written_until: u64,
    /// By CPU, events before the end that a full disk had no room for.
    unwritten: Vec<u64>,
    /// The context of the recorder's own events.
    own_context: OwnContext,
    undecided: Undecided,
    /// Decisions about entries of calls that have not come yet.
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

/// After that long, what has been recorded is written even if it is little: it shall survive this process.
const LONGEST: Duration = Duration::from_secs(1);

impl Drain<'_> {
    /// Goes on until it is told to stop, and what is there has been told of.
    pub(crate) fn run(&mut self, orders: &Receiver<Order>, counters: &Counters) -> Result<(), RecordError> {
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
                // Nobody can say anything any more, which takes no time.
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

    /// Takes what is in the rings, and writes what is settled; gives how many events the fullest ring had.
    fn round(&mut self) -> Result<usize, RecordError> {
        if let (Some(meanings), Some(lane)) = (self.meanings, self.lanes.first()) {
            meanings.mappings(&mut lane.borrow_mut(), |number| self.processes.initial(number));
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
        // Going over all that waits takes its time.
        if until >= self.written_until + self.undecided.delay_ns / 8 || self.undecided.delay_ns == 0 {
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

    /// Takes what is in the rings, in turn; gives how many events the fullest one had.
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

    /// Does what was decided about entries of calls. A decision comes by another ring than its entry if the thread has moved
    /// to another CPU, so it may be met first.
    fn decide(&mut self) {
        let lanes = self.lanes;
        let oldest = self.settled.saturating_sub(2 * self.undecided.delay_ns);
        self.decisions.retain(|decision| {
            let lane = lanes.get(decision.cpu as usize);
            let is_done =
                lane.is_none_or(|lane| lane.borrow_mut().decide(decision.entered, decision.is_wanted));
            !is_done && decision.entered >= oldest
        });
    }

    /// Until when events can be written if those before a time have come.
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
    lane: &mut Lane,
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
