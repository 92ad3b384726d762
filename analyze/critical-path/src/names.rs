//! What interrupts, disks and connections are called.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::state::{StateDevice, StateInterrupt};
use tracebraid_kernel_model::{Body, Device, Headers, TextField, Transport};

use crate::sorted::Sorted;
use crate::step::Segment;

/// Names that were met.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) irqs: Sorted<(u32, u16), String>,
    pub(crate) disks: Sorted<(u32, Device), String>,
    pub(crate) connections: Sorted<u64, (SocketAddr, SocketAddr)>,
    /// Queues of work by a hash of their names.
    pub(crate) queues: Sorted<u32, String>,
}

impl Names {
    pub(crate) fn merge(&mut self, later: Names) {
        self.irqs.merge(later.irqs);
        self.disks.merge(later.disks);
        self.connections.merge(later.connections);
        self.queues.merge(later.queues);
    }

    /// The handler of an interrupt begins.
    #[inline]
    pub(crate) fn irq(&mut self, trace: u32, number: u16, name: Option<&TextField>, body: &mut Body<'_, '_>) {
        self.irqs.add((trace, number), || text(name?, body));
    }

    pub(crate) fn interrupt(&mut self, trace: u32, state: &StateInterrupt, body: &mut Body<'_, '_>) {
        if let Some(number) = state.irq.get(body).and_then(|irq| u16::try_from(irq).ok()) {
            self.irq(trace, number, state.handler.as_ref(), body);
        }
    }

    pub(crate) fn disk(&mut self, trace: u32, state: &StateDevice, body: &mut Body<'_, '_>) {
        if let Some(device) = state.device(body) {
            self.disks.add((trace, device), || text(&state.name, body));
        }
    }

    /// The number of a queue of work, by its name.
    pub(crate) fn queue(&mut self, name: &TextField, body: &mut Body<'_, '_>) -> Option<u32> {
        let name = name.bytes(body).filter(|name| !name.is_empty())?;
        let mut hasher = std::hash::DefaultHasher::new();
        name.hash(&mut hasher);
        let number = hasher.finish() as u32;
        self.queues
            .add(number, || Some(String::from_utf8_lossy(name).into_owned()));
        Some(number)
    }

    /// The TCP segment with those headers, if they are of one.
    pub(crate) fn segment(&mut self, headers: &Headers) -> Option<Segment> {
        let Transport::Tcp(tcp) = headers.transport else {
            return None;
        };
        let ends = (
            SocketAddr::new(headers.source, tcp.source),
            SocketAddr::new(headers.destination, tcp.destination),
        );
        let connection = hash(ends);
        self.connections.add(connection, || Some(ends));
        Some(Segment {
            connection,
            sequence: tcp.sequence,
            length: u32::from(headers.length),
            acknowledged: tcp.acknowledged,
        })
    }
}

/// A hash of both ends of a connection; that of the other direction differs in the lowest bit.
fn hash((from, to): (SocketAddr, SocketAddr)) -> u64 {
    // Without a seed: the same for every part of a trace.
    let mut hasher = std::hash::DefaultHasher::new();
    (from.min(to), from.max(to)).hash(&mut hasher);
    hasher.finish() & !1 | u64::from(from < to)
}

fn text(field: &TextField, body: &mut Body<'_, '_>) -> Option<String> {
    let bytes = field.bytes(body).filter(|bytes| !bytes.is_empty())?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}
