//! What scanning gives.

/// A chosen event record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Clock value in cycles.
    pub clock: u64,
    /// Packet-relative position in bits: of its body in a fast scan, else of its start.
    pub(super) start: u64,
    /// Its id in a fast scan, else its class index.
    pub(super) key: u32,
    pub(super) general: bool,
}

/// How far a scan got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more in this packet.
    More,
    /// The packet has been scanned.
    PacketEnd,
}

/// What counting gives for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Event records.
    pub events: u64,
    /// Clock value of the first, in cycles.
    pub first: u64,
    /// Clock value of the last.
    pub last: u64,
    /// True if none is left in the packet.
    pub ended: bool,
    /// Clock value of the next event record, if it is outside of the selected range.
    pub refused: Option<u64>,
}
