//! Results of scanning.

/// A chosen event record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Clock value in cycles.
    pub clock: u64,
    /// Packet-relative position in bits: of the body on the fast path, else of the start.
    pub(super) start: u64,
    /// The id on the fast path, else the class index.
    pub(super) key: u32,
    pub(super) general: bool,
}

/// Progress of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The packet contains more.
    More,
    /// The packet has been scanned.
    PacketEnd,
}

/// Result of counting in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of event records.
    pub events: u64,
    /// Clock value of the first event record, in cycles.
    pub first: u64,
    /// Clock value of the last event record, in cycles.
    pub last: u64,
    /// True if no event records are left in the packet.
    pub ended: bool,
    /// Clock value of the next event record, if it is outside the selected range.
    pub refused: Option<u64>,
}
