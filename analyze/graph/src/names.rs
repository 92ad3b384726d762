//! Names of interrupts, disks, queues, connections and user-level threads.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::state::{StateDevice, StateInterrupt};
use tracebraid_kernel_model::events::user_level::{UserLevel, UserLevelStep};
use tracebraid_kernel_model::{Body, Comm, Device, Headers, TextField, Transport};

use crate::graph_step::Segment;
use crate::hashed::Hashed;
use crate::sorted::Sorted;

/// A name found in the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    /// The handler of the hard interrupt of that number.
    Irq(u16, String),
    Disk(Device, String),
    /// A work queue, by a hash of its name.
    Queue(u32, String),
    /// A user-level thread by its id.
    Thread(i32, String),
}

/// Names found so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) irqs: Sorted<(u32, u16), String>,
    pub(crate) disks: Sorted<(u32, Device), String>,
    pub(crate) connections: Hashed<(SocketAddr, SocketAddr)>,
    /// Work queues by a hash of their names.
    pub(crate) queues: Sorted<u32, String>,
    /// User-level threads whose names are longer than those of the kernel's threads can be.
    pub(crate) threads: Sorted<(u32, i32), String>,
}

impl Names {
    pub(crate) fn merge(&mut self, later: Names) {
        self.irqs.merge(later.irqs);
        self.disks.merge(later.disks);
        self.connections.merge(later.connections);
        self.queues.merge(later.queues);
        self.threads.merge(later.threads);
    }

    /// Adds a name; the first one found takes precedence.
    pub(crate) fn learn(&mut self, trace: u32, told: Told) {
        match told {
            Told::Irq(number, name) => _ = self.irqs.add((trace, number), || Some(name)),
            Told::Disk(device, name) => _ = self.disks.add((trace, device), || Some(name)),
            Told::Queue(number, name) => _ = self.queues.add(number, || Some(name)),
            Told::Thread(tid, name) => _ = self.threads.add((trace, tid), || Some(name)),
        }
    }

    /// Adds the name of an interrupt's handler. Like the functions below, returns the name if it is
    /// new.
    #[inline]
    pub(crate) fn irq(
        &mut self,
        trace: u32,
        number: u16,
        name: Option<&TextField>,
        body: &mut Body<'_, '_>,
    ) -> Option<Told> {
        let name = self.irqs.add((trace, number), || text(name?, body))?;
        Some(Told::Irq(number, name.clone()))
    }

    pub(crate) fn interrupt(
        &mut self,
        trace: u32,
        state: &StateInterrupt,
        body: &mut Body<'_, '_>,
    ) -> Option<Told> {
        let number = u16::try_from(state.irq.get(body)?).ok()?;
        self.irq(trace, number, state.handler.as_ref(), body)
    }

    pub(crate) fn disk(
        &mut self,
        trace: u32,
        state: &StateDevice,
        body: &mut Body<'_, '_>,
    ) -> Option<Told> {
        let device = state.device(body)?;
        let name = self
            .disks
            .add((trace, device), || text(&state.name, body))?;
        Some(Told::Disk(device, name.clone()))
    }

    /// The number of a work queue, by its name.
    pub(crate) fn queue(
        &mut self,
        name: &TextField,
        body: &mut Body<'_, '_>,
    ) -> Option<(u32, Option<Told>)> {
        let name = name.bytes(body).filter(|name| !name.is_empty())?;
        let mut hasher = std::hash::DefaultHasher::new();
        name.hash(&mut hasher);
        let number = hasher.finish() as u32;
        let new = self
            .queues
            .add(number, || Some(String::from_utf8_lossy(name).into_owned()));
        Some((number, new.map(|name| Told::Queue(number, name.clone()))))
    }

    /// The name of a user-level thread, unless switches contain it in full.
    pub(crate) fn user_thread(
        &mut self,
        trace: u32,
        step: &UserLevel,
        body: &mut Body<'_, '_>,
    ) -> Option<Told> {
        let thread = step.thread(body)?;
        if step.step != UserLevelStep::Thread || thread.name.len() <= Comm::MOST_BYTES {
            return None;
        }
        let name = self
            .threads
            .add((trace, thread.tid), || Some(thread.name))?;
        Some(Told::Thread(thread.tid, name.clone()))
    }

    /// The TCP segment with these headers; `None` for other protocols.
    pub(crate) fn segment(&mut self, headers: &Headers) -> Option<Segment> {
        let Transport::Tcp(tcp) = headers.transport else {
            return None;
        };
        let ends = (
            SocketAddr::new(headers.source, tcp.source),
            SocketAddr::new(headers.destination, tcp.destination),
        );
        let connection = hash(ends);
        self.connections.add(connection, || ends);
        Some(Segment {
            connection,
            sequence: tcp.sequence,
            length: u32::from(headers.length),
            acknowledged: tcp.acknowledged,
        })
    }
}

/// A hash of both ends of a connection; the hashes of both directions differ in the lowest bit.
/// Computed for each packet, so it must be fast, and equal in every part of a trace, so it has no
/// random seed.
fn hash((from, to): (SocketAddr, SocketAddr)) -> u64 {
    let [from, to] = [from, to].map(end);
    mixed(from ^ to, from.wrapping_add(to)) & !1 | u64::from(from < to)
}

/// A hash of one end.
fn end(of: SocketAddr) -> u64 {
    let address = match of.ip() {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    mixed(
        mixed(address as u64, u64::from(of.port())),
        (address >> 64) as u64,
    )
}

/// Folds both halves of the product.
fn mixed(one: u64, other: u64) -> u64 {
    // Digits of pi, as an arbitrary constant without a pattern.
    let product =
        u128::from(one ^ 0x243f_6a88_85a3_08d3) * u128::from(other ^ 0x1319_8a2e_0370_7344);
    product as u64 ^ (product >> 64) as u64
}

fn text(field: &TextField, body: &mut Body<'_, '_>) -> Option<String> {
    let bytes = field.bytes(body).filter(|bytes| !bytes.is_empty())?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn connections_have_numbers_of_their_own() {
        let mut found = BTreeSet::new();
        let mut ends: Vec<SocketAddr> = Vec::new();
        for port in (1..400u16).chain([8080, 65535]) {
            for address in [
                "10.0.0.1",
                "10.0.0.2",
                "127.0.0.1",
                "::1",
                "fe80::1",
                "fe80::1:0:0:1",
            ] {
                ends.push(SocketAddr::new(address.parse().unwrap(), port));
            }
        }
        let servers = [ends[0], ends[3], ends[1000]];
        for server in servers {
            for client in ends.iter().filter(|client| !servers.contains(client)) {
                let (there, back) = (hash((*client, server)), hash((server, *client)));
                assert_eq!(there ^ back, 1);
                assert!(found.insert(there & !1), "{client} {server}");
            }
        }
    }
}
