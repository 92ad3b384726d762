//! A piece of time of a device, swept from its begin to its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::placed::Placed;
use super::run::Stretch;
use super::sums::{Gap, LineSums};

/// All commands of a piece of time.
#[derive(Debug)]
pub(crate) struct Piece {
    from: u64,
    until: u64,
    /// Commands of earlier pieces that reach into this one.
    carry: Vec<Placed>,
    stretches: Vec<Stretch>,
}

/// A swept piece.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) sums: LineSums,
    pub(crate) ends: Ends,
    /// The commands of the piece that were not carried into it, if they are kept.
    pub(crate) kept: Vec<Placed>,
}

/// First and last time at which a device is busy.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ends {
    first: Option<(u64, Placed)>,
    last: u64,
}

impl Ends {
    /// The idle time between two pieces.
    pub(crate) fn gap_before(&self, next: &Ends) -> Option<Gap> {
        let (start, command) = next.first?;
        let is_idle = self.first.is_some() && start > self.last;
        is_idle.then(|| Gap {
            length: start - self.last,
            begin: self.last,
            command,
        })
    }

    pub(crate) fn extend(&mut self, next: Ends) {
        if next.first.is_some() {
            self.first = self.first.or(next.first);
            self.last = self.last.max(next.last);
        }
    }
}

/// Change of the state of a command. Of one time, ends come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    End,
    Queued,
    Start,
}

/// A change of the state of a command, as a number whose order is that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change(u128);

impl Change {
    fn new(time: u64, edge: Edge, command: u32) -> Change {
        let number = (edge as u64) << 32 | u64::from(command);
        Change(u128::from(time) << 64 | u128::from(number))
    }

    fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn edge(self) -> Edge {
        match (self.0 >> 32) as u32 {
            0 => Edge::End,
            1 => Edge::Queued,
            _ => Edge::Start,
        }
    }

    fn command(self, commands: &[Placed]) -> Option<&Placed> {
        commands.get(self.0 as u32 as usize)
    }

    /// True if both are changes of one kind at one time.
    fn is_alike(self, other: Change) -> bool {
        self.0 >> 32 == other.0 >> 32
    }
}

impl Piece {
    pub(crate) fn new(from: u64, until: u64, carry: Vec<Placed>) -> Piece {
        Piece {
            from,
            until,
            carry,
            stretches: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, stretch: Stretch) {
        self.stretches.push(stretch);
    }

    /// Commands that end after the piece.
    pub(crate) fn reach_beyond(&self) -> Vec<Placed> {
        let carried = self.carry.iter().filter(|of| of.end > self.until);
        let mut beyond: Vec<Placed> = carried.copied().collect();
        for stretch in &self.stretches {
            beyond.extend(&stretch.beyond);
        }
        beyond
    }

    /// Sweeps the piece.
    pub(crate) fn play(self, keeps: bool) -> Part {
        let mut commands = self.carry;
        let carried = commands.len();
        commands.reserve(self.stretches.iter().map(Stretch::len).sum());
        for stretch in &self.stretches {
            stretch.read(&mut commands);
        }
        let own = commands.get(carried..).filter(|_| keeps);
        let kept = own.unwrap_or_default().to_vec();
        commands.retain(Placed::is_work);
        let mut changes = Vec::with_capacity(3 * commands.len());
        for (number, command) in (0_u32..).zip(&commands) {
            let mut add = |time: u64, edge| {
                if time < self.until {
                    changes.push(Change::new(time.max(self.from), edge, number));
                }
            };
            add(command.queued, Edge::Queued);
            add(command.start, Edge::Start);
            // An end at the border belongs to the piece before: nothing of the command is left.
            if command.end > self.from {
                add(command.end, Edge::End);
            }
        }
        changes.sort_unstable();
        let mut sweep = Sweep::default();
        for alike in changes.chunk_by_mut(|one, next| one.is_alike(*next)) {
            // Of commands that start at one time, the first one ends an idle time.
            alike.sort_unstable_by_key(|change| change.command(&commands));
            for change in alike {
                sweep.advance(change.time());
                if let Some(command) = change.command(&commands) {
                    sweep.edge(change.edge(), change.time(), command);
                }
            }
        }
        // Commands that execute at the end of the piece are in the next one, too.
        if self.until < u64::MAX {
            sweep.advance(self.until);
        }
        sweep.end(kept)
    }
}

/// Commands of a process at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    queued: u32,
    executing: u32,
}

/// The state at a time.
#[derive(Debug, Default)]
struct Sweep {
    time: u64,
    kernels: u32,
    transfers: u32,
    processes: BTreeMap<u32, Process>,
    sums: LineSums,
    ends: Ends,
}

impl Sweep {
    fn is_busy(&self) -> bool {
        self.kernels + self.transfers > 0
    }

    /// Adds the time since the last edge.
    fn advance(&mut self, time: u64) {
        let since = time - std::mem::replace(&mut self.time, time);
        if since == 0 || !self.is_busy() {
            return;
        }
        let sums = &mut self.sums;
        sums.busy += since;
        let add = |sum: &mut u64, is_so: bool| *sum += if is_so { since } else { 0 };
        add(&mut sums.kernels, self.kernels > 0);
        add(&mut sums.several_kernels, self.kernels > 1);
        add(&mut sums.transfers, self.transfers > 0);
        add(&mut sums.overlap, self.kernels > 0 && self.transfers > 0);
        for (of, process) in &self.processes {
            if process.executing > 0 {
                *sums.processes.entry(*of).or_default() += since;
            } else if process.queued > 0 {
                let others = self.processes.iter();
                for (other, _) in others.filter(|(_, other)| other.executing > 0) {
                    *sums.shared.entry((*of, *other)).or_default() += since;
                }
            }
        }
        self.ends.last = time;
    }

    fn edge(&mut self, edge: Edge, time: u64, command: &Placed) {
        let process = self.processes.entry(command.process).or_default();
        match edge {
            Edge::Queued => process.queued += 1,
            Edge::Start => {
                process.queued -= 1;
                process.executing += 1;
                self.start(time, command);
            }
            Edge::End => {
                process.executing -= 1;
                match command.kind.is_transfer() {
                    true => self.transfers -= 1,
                    false => self.kernels -= 1,
                }
            }
        }
    }

    fn start(&mut self, time: u64, command: &Placed) {
        let next = Ends {
            first: Some((time, *command)),
            last: time,
        };
        if !self.is_busy() {
            if let Some(gap) = self.ends.gap_before(&next) {
                self.sums.gap(gap);
            }
            self.ends.extend(next);
        }
        match command.kind.is_transfer() {
            true => self.transfers += 1,
            false => self.kernels += 1,
        }
        let (begin, end) = self.sums.extent.unwrap_or((time, time));
        self.sums.extent = Some((begin, end.max(command.end)));
    }

    fn end(self, kept: Vec<Placed>) -> Part {
        Part {
            sums: self.sums,
            ends: self.ends,
            kept,
        }
    }
}
