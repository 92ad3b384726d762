//! Parameters of a generated trace.

use crate::naming::Naming;

/// Parameters of a generated trace.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub cpus: u64,
    pub threads: u64,
    pub steps: u64,
    /// Events of a thousand that are lost without a word.
    pub silent_losses: u64,
    /// Packets of a thousand that are lost, and counted.
    pub lost_packets: u64,
    /// Packets of a thousand before which events are lost, and counted.
    pub counted_losses: u64,
    /// Bytes of a packet.
    pub packet: usize,
    /// Which tracer's names.
    pub naming: Naming,
    /// Exits tell what stands in memory: the two descriptors of a pipe, the peer of a connection.
    pub told_memory: bool,
    /// All that becomes of threads is told: each is made by a `clone` with its flags, none gets
    /// the id of another one.
    pub told_threads: bool,
    /// By a `clone3`, whose flags stand in memory. Then no thread gets descriptors for itself: what
    /// tells its process does not tell that.
    pub clone3: bool,
    /// Each event tells its thread.
    pub tid_context: bool,
    /// And its process, and both as numbered in a namespace.
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
