//! What is to be recorded.

use crate::chosen::ChosenEvents;
use crate::chunks::Rotation;
use crate::conditions::{Conditions, Undecided};
use crate::contexts::Context;
use crate::groups::Group;
use crate::plan::Syscalls;
use crate::stacks::Stacks;
use crate::triggers::Triggering;

/// What is to be recorded, and with how much memory.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kernel events, of the whole machine.
    pub groups: Vec<Group>,
    /// System calls.
    pub syscalls: Syscalls,
    /// Only the system calls and page faults of these processes, and of their descendants; of all
    /// if `None`. The numbers are those of the PID namespace of this process.
    pub processes: Option<Vec<u32>>,
    /// Also record the existing descendants of `processes` whose parents still run.
    pub descendants: bool,
    /// A process whose descendants are followed though events of all processes are recorded; see
    /// [`crate::Recording::processes`].
    pub command: Option<u32>,
    /// Events chosen by name, of the same processes as system calls.
    pub events: ChosenEvents,
    /// System calls and page faults for which these do not hold are left out.
    pub conditions: Conditions,
    /// Contexts that are added to each event record.
    pub contexts: Vec<Context>,
    /// Call stacks, if any.
    pub stacks: Option<Stacks>,
    /// Without privileges: nothing but the stacks of this process and of those that it makes, by
    /// perf events. The process must not have begun anything yet.
    pub unprivileged: Option<u32>,
    /// Bytes of the ring of each CPU: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Bytes of a packet at most.
    pub packet_bytes: u32,
    /// Keep only the newest so many bytes, in memory, until the recording ends or a snapshot is
    /// asked for.
    pub keep: Option<u64>,
    /// Conditions under which [`crate::Recording::held`] asks for a snapshot of what is kept.
    pub triggering: Triggering,
    /// End by itself before the files of the trace have more than so many bytes. What is kept in
    /// memory only has its own limit.
    pub limit: Option<u64>,
    /// Write the trace as chunks: directories below the one that is given, each with a complete
    /// trace in `kernel`.
    pub rotation: Option<Rotation>,
    /// Nanoseconds from the Epoch to the zero of CLOCK_MONOTONIC, where other traces shall have the
    /// same; measured if `None`.
    pub clock_offset: Option<u64>,
    /// CTF 2 instead of 1.8.
    pub ctf2: bool,
    /// Name of the recording, for the trace's environment.
    pub name: String,
    /// When it was begun: ISO 8601, for the trace's environment.
    pub creation: String,
    /// Processes, files, devices and interrupts that are there at the beginning are recorded too.
    pub state_dump: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            groups: crate::groups::USUAL.to_vec(),
            syscalls: Syscalls::None,
            processes: None,
            descendants: false,
            command: None,
            events: ChosenEvents::default(),
            conditions: Conditions::default(),
            contexts: Vec::new(),
            stacks: None,
            unprivileged: None,
            ring_bytes: 8 << 20,
            packet_bytes: 256 << 10,
            keep: None,
            triggering: Triggering::default(),
            limit: None,
            rotation: None,
            clock_offset: None,
            ctf2: false,
            name: String::new(),
            creation: String::new(),
            state_dump: true,
        }
    }
}

impl Options {
    /// Processes that are followed, with their descendants.
    pub(crate) fn followed(&self) -> impl Iterator<Item = u32> {
        let processes = self.processes.iter().flatten().copied();
        processes.chain(self.command.filter(|_| self.processes.is_none()))
    }

    /// Conditions are decided at the exits of calls.
    pub(crate) fn watches_calls(&self) -> bool {
        self.syscalls != Syscalls::None && self.conditions.has_outcome()
    }

    /// How undecided entries of calls are treated.
    pub(crate) fn undecided(&self) -> Undecided {
        match self.watches_calls() {
            true => self.conditions.undecided(),
            false => Undecided::default(),
        }
    }

    pub(crate) fn follows(&self) -> bool {
        self.processes.is_some() || self.command.is_some()
    }
}
