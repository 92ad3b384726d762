//! Options of a recording.

use crate::chosen::ChosenEvents;
use crate::chunks::Rotation;
use crate::conditions::{Conditions, Undecided};
use crate::contexts::Context;
use crate::groups::Group;
use crate::plan::Syscalls;
use crate::stacks::Stacks;
use crate::triggers::Triggering;

/// Selection of events, and limits of memory and disk space.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kernel events of the whole machine.
    pub groups: Vec<Group>,
    /// System calls to record.
    pub syscalls: Syscalls,
    /// Records system calls and page faults only of these processes and their descendants; `None`
    /// for all. The ids are those of this process's PID namespace.
    pub processes: Option<Vec<u32>>,
    /// Also record the existing descendants of `processes` whose parents still run.
    pub descendants: bool,
    /// A process whose descendants are followed although events of all processes are recorded; see
    /// [`crate::Recording::processes`].
    pub command: Option<u32>,
    /// Events chosen by name, of the same processes as system calls.
    pub events: ChosenEvents,
    /// System calls and page faults that do not fulfil these conditions are left out.
    pub conditions: Conditions,
    /// Contexts added to each event record.
    pub contexts: Vec<Context>,
    /// Call stacks; `None` for none.
    pub stacks: Option<Stacks>,
    /// Without privileges: records only stacks, by perf events, of this process and of processes
    /// that it starts. The process must not have started any yet.
    pub unprivileged: Option<u32>,
    /// Size of the ring of each CPU in bytes: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Maximum size of a packet in bytes.
    pub packet_bytes: u32,
    /// Keep only the newest events, this number of bytes, in memory until the recording ends or a
    /// snapshot is requested.
    pub keep: Option<u64>,
    /// Conditions under which [`crate::Recording::held`] requests a snapshot.
    pub triggering: Triggering,
    /// End the recording before the files of the trace exceed this number of bytes. Events in
    /// memory have their own limit.
    pub limit: Option<u64>,
    /// Write the trace as chunks: directories below the given one, each with a complete trace in
    /// `kernel`.
    pub rotation: Option<Rotation>,
    /// Nanoseconds from the Epoch to the zero of CLOCK_MONOTONIC, if it must equal that of other
    /// traces; measured if `None`.
    pub clock_offset: Option<u64>,
    /// Write CTF 2 instead of 1.8.
    pub ctf2: bool,
    /// Name of the recording, for the trace's environment.
    pub name: String,
    /// Start time in ISO 8601, for the trace's environment.
    pub creation: String,
    /// Also record the processes, files, devices and interrupts that exist at the beginning.
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
    /// Processes that are followed together with their descendants.
    pub(crate) fn followed(&self) -> impl Iterator<Item = u32> {
        let processes = self.processes.iter().flatten().copied();
        processes.chain(self.command.filter(|_| self.processes.is_none()))
    }

    /// True if conditions are decided at the exits of calls.
    pub(crate) fn watches_calls(&self) -> bool {
        self.syscalls != Syscalls::None && self.conditions.has_outcome()
    }

    /// Treatment of undecided entries of calls.
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
