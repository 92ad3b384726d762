//! State of a user analysis after some chunks.

use serde::{Deserialize, Serialize};
use tracebraid_engine::{Record, StreamPlace};
use tracebraid_follow::{Candidates, Packets};

use crate::piece::Pieces;
use crate::slices::Slices;
use crate::user::{Plan, UserMachine};

/// The state; later chunks only contain the event records that rules need.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partial {
    candidates: Candidates,
    machine: UserMachine,
    /// Changes by the event records played so far.
    pub(crate) pieces: Pieces,
    /// Number of checkpoints made.
    pub(crate) checkpoints: usize,
    #[serde(skip)]
    packets: Packets,
}

impl Partial {
    /// The state before the first chunk that is read, after the kept part of a history.
    pub(crate) fn behind(machine: UserMachine) -> Partial {
        Partial {
            machine,
            ..Partial::default()
        }
    }

    /// The state after the event records played so far.
    pub(crate) fn machine(&self) -> &UserMachine {
        &self.machine
    }

    /// Begins or continues a packet.
    pub(crate) fn packet(&mut self, plan: &Plan, packet: &StreamPlace<'_>) {
        plan.subjects.packet(&mut self.packets, packet);
    }

    /// Takes an event record.
    pub(crate) fn event(&mut self, plan: &Plan, record: &mut Record<'_>) {
        plan.see(&mut self.candidates, &self.packets, record);
    }

    /// Another thread runs on a CPU (of a trace) from the time of an event record of a stream on.
    pub(crate) fn switch(&mut self, plan: &Plan, record: (i64, u32), cpu: (u32, u32), next: i64) {
        plan.switch(&mut self.candidates, record, cpu, next);
    }

    /// Ends the chunk.
    pub(crate) fn end(&mut self) {
        self.packets = Packets::default();
    }

    /// Adds later chunks.
    pub(crate) fn merge(&mut self, later: Partial) {
        self.candidates.append(later.candidates);
    }

    /// Plays the event records before a time, or all.
    pub(crate) fn play(&mut self, plan: &Plan, slices: &Slices, until: Option<i64>) {
        let taken = self.candidates.take_before(until);
        self.machine.play(plan, slices, &mut self.pieces, &taken);
    }

    /// The state at the end.
    pub(crate) fn into_machine(self) -> UserMachine {
        self.machine
    }
}
