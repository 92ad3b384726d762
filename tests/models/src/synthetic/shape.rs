//! Parameters of a generated trace.

use crate::naming::Naming;

/// Parameters of a generated trace.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub cpus: u64,
    pub threads: u64,
    pub steps: u64,
    /// Share of events that are lost and not counted, in thousandths.
    pub silent_losses: u64,
    /// Share of packets that are lost and counted, in thousandths.
    pub lost_packets: u64,
    /// Share of packets with counted losses of events before them, in thousandths.
    pub counted_losses: u64,
    /// Size of a packet in bytes.
    pub packet: usize,
    /// The tracer whose names the events have.
    pub naming: Naming,
    /// Exits record values in memory: the two descriptors of a pipe, the peer of a connection.
    pub told_memory: bool,
    /// The life of every thread is recorded: each is created by a `clone` with its flags, and ids
    /// are not reused.
    pub told_threads: bool,
    /// Threads are created by `clone3`, whose flags are in memory and not recorded. No thread then
    /// gets a descriptor table of its own, since nothing in the trace would show it.
    pub clone3: bool,
    /// Each event has the context `tid`.
    pub tid_context: bool,
    /// Each event also has the contexts `pid`, `vpid` and `vtid`.
    pub pid_context: bool,
    /// System calls have streams of their own.
    pub two_streams: bool,
    /// Events may have equal times.
    pub ties: bool,
}

impl Shape {
    /// No losses, LTTng's names, only the necessary fields; tests set what differs.
    pub const PLAIN: Shape = Shape {
        cpus: 3,
        threads: 9,
        steps: 12_000,
        silent_losses: 0,
        lost_packets: 0,
        counted_losses: 0,
        packet: 900,
        naming: Naming::Lttng,
        told_memory: true,
        told_threads: false,
        clone3: false,
        tid_context: false,
        pid_context: false,
        two_streams: false,
        ties: false,
    };
}
