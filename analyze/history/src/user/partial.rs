//! What is known of a user's analysis after some chunks.

use serde::{Deserialize, Serialize};
use tracebraid_engine::{Record, StreamPlace};
use tracebraid_follow::{Candidates, Packets};

use crate::piece::Pieces;
use crate::slices::Slices;
use crate::user::{Plan, UserMachine};

/// What is known. Of later chunks that is only which event records matter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partial {
    candidates: Candidates,
    machine: UserMachine,
    /// What they change, as far as they have been played.
    pub(crate) pieces: Pieces,
    /// How many checkpoints have been made.
    pub(crate) checkpoints: usize,
    #[serde(skip)]
    packets: Packets,
}

impl Partial {
    /// Behind what a history knows already.
    pub(crate) fn behind(machine: UserMachine) -> Partial {
        Partial {
            machine,
            ..Partial::default()
        }
    }

    /// What is known of what has been played.
    pub(crate) fn machine(&self) -> &UserMachine {
        &self.machine
    }

    /// A packet begins, or goes on.
    pub(crate) fn packet(&mut self, plan: &Plan, packet: &StreamPlace<'_>) {
        plan.subjects.packet(&mut self.packets, packet);
    }

    /// An event record.
    pub(crate) fn event(&mut self, plan: &Plan, record: &mut Record<'_>) {
        plan.see(&mut self.candidates, &self.packets, record);
    }

    /// Another thread runs on a CPU (of a trace) from the time of an event record of a stream on.
    pub(crate) fn switch(&mut self, plan: &Plan, record: (i64, u32), cpu: (u32, u32), next: i64) {
        plan.switch(&mut self.candidates, record, cpu, next);
    }

    /// The chunk ends.
    pub(crate) fn end(&mut self) {
        self.packets = Packets::default();
    }

    /// Adds what later chunks tell.
    pub(crate) fn merge(&mut self, later: Partial) {
        self.candidates.append(later.candidates);
    }

    /// Plays what is before a time; without one, everything.
    pub(crate) fn play(&mut self, plan: &Plan, slices: &Slices, until: Option<i64>) {
        let taken = self.candidates.take_before(until);
        self.machine.play(plan, slices, &mut self.pieces, &taken);
    }

    /// What is known at the end.
    pub(crate) fn into_machine(self) -> UserMachine {
        self.machine
    }
}
