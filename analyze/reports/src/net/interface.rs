//! What is known of a network interface.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use tracebraid_statistics::{Bins, Distribution, Summary, Top};

/// An interface of one of the traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct InterfaceKey {
    pub(super) trace: u32,
    pub(super) name: Comm,
}

impl InterfaceKey {
    /// Without what a tracer may have left behind the name's terminating null.
    pub(super) fn new(trace: u32, name: Comm) -> InterfaceKey {
        let name = Comm::terminated(name.0);
        InterfaceKey { trace, name }
    }

    /// What it is called between two passes.
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

/// A packet is handed to an interface, or comes from it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) time: i64,
    pub(super) interface: InterfaceKey,
    pub(super) is_sent: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Fate {
    /// The driver took it.
    Sent { interface: InterfaceKey, bytes: u64 },
    /// Its buffer is given back: it was dropped, or used.
    /// Of what was dropped the kernel may tell why.
    Freed { dropped: bool, is_told: bool },
}

/// Where and when that was.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) time: i64,
    pub(super) cpu: u32,
    pub(super) fate: Fate,
}

/// A packet on its way from being queued to the driver; that which took longest is the greatest.
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

/// An interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Interface {
    pub(super) key: InterfaceKey,
    /// Lengths of what was sent.
    pub(super) sent: Summary,
    /// Lengths of what came in.
    pub(super) received: Summary,
    /// Packets that the driver did not take then.
    pub(super) busy: u64,
    /// Packets that the driver did not take for good.
    pub(super) errors: u64,
    /// Packets that were queued, and dropped before the driver took them.
    pub(super) sent_drops: u64,
    /// Packets that came in and were dropped.
    pub(super) received_drops: u64,
    /// Of both, those of which the kernel tells why.
    pub(super) reason_drops: u64,
    /// From being queued to the driver.
    pub(super) durations: Distribution,
    pub(super) top: Top<Passed>,
    /// The same, in a second pass.
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

    /// Joins what comes later to this.
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
