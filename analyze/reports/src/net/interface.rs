//! Sums of a network interface.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use tracebraid_statistics::{Bins, Distribution, Summary, Top};

/// A network interface of one of the traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct InterfaceKey {
    pub(super) trace: u32,
    pub(super) name: Comm,
}

impl InterfaceKey {
    /// Removes bytes after the name's terminating null, which a tracer may have left.
    pub(super) fn new(trace: u32, name: Comm) -> InterfaceKey {
        let name = Comm::terminated(name.0);
        InterfaceKey { trace, name }
    }

    /// Key for bounds that the second pass receives.
    pub(super) fn to_name(self) -> String {
        format!("{}/{}", self.trace, self.name.text())
    }

    pub(super) fn from_name(name: &str) -> Option<InterfaceKey> {
        let (trace, name) = name.split_once('/')?;
        Some(InterfaceKey {
            trace: trace.parse().ok()?,
            name: Comm::new(name.as_bytes()),
        })
    }
}

/// A packet is queued for an interface, or received from it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) time: i64,
    pub(super) interface: InterfaceKey,
    pub(super) is_sent: bool,
}

/// The end of a packet's path.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Fate {
    /// The driver took the packet.
    Sent { interface: InterfaceKey, bytes: u64 },
    /// The packet's buffer is released: the packet was dropped or consumed. For a drop, the kernel
    /// may record the reason.
    Freed { dropped: bool, is_told: bool },
}

/// Time and CPU of the end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) time: i64,
    pub(super) cpu: u32,
    pub(super) fate: Fate,
}

/// A packet from the queue to the driver. The order is by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Passed {
    pub(super) duration: u64,
    pub(super) queued: i64,
    pub(super) interface: InterfaceKey,
    pub(super) buffer: u64,
    pub(super) bytes: u64,
}

impl Passed {
    pub(super) fn end(&self) -> i64 {
        self.queued.saturating_add_unsigned(self.duration)
    }
}

/// Sums of an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Interface {
    pub(super) key: InterfaceKey,
    /// Lengths of sent packets.
    pub(super) sent: Summary,
    /// Lengths of received packets.
    pub(super) received: Summary,
    /// Packets that the driver deferred.
    pub(super) busy: u64,
    /// Packets that the driver rejected.
    pub(super) errors: u64,
    /// Packets dropped between queue and driver.
    pub(super) sent_drops: u64,
    /// Received packets that were dropped.
    pub(super) received_drops: u64,
    /// Drops in both directions with a recorded reason.
    pub(super) reason_drops: u64,
    /// Time from the queue to the driver.
    pub(super) durations: Distribution,
    pub(super) top: Top<Passed>,
    /// Histogram of the durations, in a second pass.
    pub(super) bins: Bins,
}

impl Interface {
    pub(super) fn new(key: InterfaceKey) -> Interface {
        Interface {
            key,
            sent: Summary::default(),
            received: Summary::default(),
            busy: 0,
            errors: 0,
            sent_drops: 0,
            received_drops: 0,
            reason_drops: 0,
            durations: Distribution::default(),
            top: Top::default(),
            bins: Bins::default(),
        }
    }

    /// Adds later sums.
    pub(super) fn merge(&mut self, later: Interface, top: usize) {
        self.sent.merge(&later.sent);
        self.received.merge(&later.received);
        self.busy += later.busy;
        self.errors += later.errors;
        self.sent_drops += later.sent_drops;
        self.received_drops += later.received_drops;
        self.reason_drops += later.reason_drops;
        self.durations.merge(&later.durations);
        self.top.merge(later.top, top, |_| {});
        self.bins.merge(&later.bins);
    }
}
