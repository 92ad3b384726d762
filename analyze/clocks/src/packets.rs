//! The TCP packets that each machine sent and received, with times.
//!
//! A packet is identified by a 64-bit hash of its addresses, ports, sequence number,
//! acknowledgement number and flags; where a tracer records no addresses (`inet_sock_local_*`), of
//! the last three. Memory is bounded: when the limit is reached, only hashes that begin with a zero
//! bit are kept, then with two zero bits, and so on. Sender and receiver thus sample the same
//! packets, and the remaining sightings can still be matched.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{
    Event, Head, Input, KernelReport, NoOptions, Packet, PerCpu, Rules, Selection,
};
use tracebraid_kernel_model::events::network::{PacketStep, Socket, SocketStep};
use tracebraid_kernel_model::{Body, Headers, IntField, KernelEvent, Transport};

/// The analysis that finds packets between machines.
pub type PacketAnalysis = PerCpu<PacketRules>;

/// A packet that a machine sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sighting {
    /// Hash of the fields that identify the packet.
    pub key: u64,
    /// Index of the trace.
    pub trace: u32,
    /// True if the packet was received, false if it was sent.
    pub is_received: bool,
    /// Time in nanoseconds from the origin: of the first transmission, or of the last reception.
    pub time: i64,
    /// Number of times the packet was seen in this direction.
    pub times: u32,
}

/// Maximum number of sightings in memory.
const MOST: usize = 1 << 21;

/// The packets of part of the traces, at most a constant number: beyond it, a sample.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Gathered {
    sightings: Vec<Sighting>,
    /// Number of zero bits with which the kept hashes begin.
    zeros: u32,
}

impl Gathered {
    #[inline]
    fn add(&mut self, sighting: Sighting) {
        if sighting.key.leading_zeros() < self.zeros {
            return;
        }
        self.sightings.push(sighting);
        if self.sightings.len() > 2 * MOST {
            self.tidy(MOST);
        }
    }

    fn merge(&mut self, later: Gathered) {
        let zeros = self.zeros.max(later.zeros);
        self.keep(zeros);
        let keeps = |sighting: &Sighting| sighting.key.leading_zeros() >= zeros;
        self.sightings
            .extend(later.sightings.into_iter().filter(keeps));
        if self.sightings.len() > 2 * MOST {
            self.tidy(MOST);
        }
    }

    fn keep(&mut self, zeros: u32) {
        if zeros > self.zeros {
            self.zeros = zeros;
            self.sightings
                .retain(|sighting| sighting.key.leading_zeros() >= zeros);
        }
    }

    /// Merges repeated sightings of a packet, then samples down to at most `most` sightings. The
    /// result does not depend on how often this runs in between: a longer part never needs fewer
    /// zero bits.
    fn tidy(&mut self, most: usize) {
        self.sightings.sort_unstable();
        self.sightings.dedup_by(|later, first| {
            let place = |of: &Sighting| (of.key, of.trace, of.is_received);
            let is_same = place(later) == place(first);
            if is_same {
                first.times = first.times.saturating_add(later.times);
                if first.is_received {
                    first.time = first.time.max(later.time);
                }
            }
            is_same
        });
        while self.sightings.len() > most {
            self.keep(self.zeros + 1);
        }
    }
}

/// Identifies packets in the event records of a kernel trace.
#[derive(Debug)]
pub struct PacketRules {
    selection: Selection,
}

impl Rules for PacketRules {
    type Partial = Gathered;
    type Report = Packets;

    type Options = NoOptions;

    fn new(selection: &Selection, _: &NoOptions) -> Self {
        PacketRules {
            selection: selection.clone(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        match event {
            KernelEvent::Packet(packet) => {
                matches!(packet.step, PacketStep::Queue | PacketStep::Receive)
                    && packet.headers.is_some()
            }
            KernelEvent::Socket(socket) => {
                matches!(socket.step, SocketStep::In | SocketStep::Out) && socket.sequence.is_some()
            }
            _ => false,
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let is_there = has(&|event| self.wants(event));
        (!is_there).then_some(
            "the trace does not identify TCP packets: record net_dev_queue and net_if_receive_skb \
             with lttng-modules 2.9 or later",
        )
    }

    fn packet(&self, _: &mut Gathered, _: &Packet) {}

    fn event(&self, partial: &mut Gathered, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let seen = match &event.model.event {
            KernelEvent::Packet(packet) => {
                let headers = packet
                    .headers
                    .as_ref()
                    .and_then(|headers| headers.get(body));
                let key = headers.as_ref().and_then(key_of_headers);
                key.map(|key| (key, packet.step == PacketStep::Receive))
            }
            KernelEvent::Socket(socket) => {
                key_of_socket(socket, body).map(|key| (key, socket.step == SocketStep::In))
            }
            _ => None,
        };
        let Some((key, is_received)) = seen else {
            return;
        };
        if self.selection.counts(event.time, event.cpu.cpu) {
            partial.add(Sighting {
                key,
                trace: event.cpu.trace,
                is_received,
                time: event.time,
                times: 1,
            });
        }
    }

    fn merge(&self, earlier: &mut Gathered, later: Gathered) {
        earlier.merge(later);
    }

    fn finish(&self, input: &Input, mut partial: Gathered) -> Packets {
        partial.tidy(MOST);
        Packets {
            head: input.head(),
            sightings: partial.sightings,
            zeros: partial.zeros,
        }
    }
}

/// All packets that were sent or received.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Packets {
    #[serde(flatten)]
    head: Head,
    /// Sorted; one sighting for each packet, trace and direction.
    pub sightings: Vec<Sighting>,
    /// The sample contains one in 2^`zeros` packets.
    pub zeros: u32,
}

impl KernelReport for Packets {
    fn head(&self) -> &Head {
        &self.head
    }

    fn is_empty(&self) -> bool {
        self.sightings.is_empty()
    }

    fn truncate(&mut self, _: usize) {}
}

/// Skips packets with equal addresses, which stay on one machine.
fn key_of_headers(headers: &Headers) -> Option<u64> {
    let Transport::Tcp(tcp) = headers.transport else {
        return None;
    };
    if headers.source == headers.destination || headers.source.is_loopback() {
        return None;
    }
    let ports =
        u64::from(tcp.source) << 32 | u64::from(tcp.destination) << 16 | u64::from(tcp.flags);
    let numbers = u64::from(tcp.sequence) << 32 | u64::from(tcp.acknowledged);
    let [source, destination] = [headers.source, headers.destination].map(address);
    Some(mixed(&[
        source.0,
        source.1,
        destination.0,
        destination.1,
        ports,
        numbers,
    ]))
}

/// The flags are the 16 bits of the TCP header that contain them.
fn key_of_socket(socket: &Socket, body: &mut Body<'_, '_>) -> Option<u64> {
    let mut get = |field: &Option<IntField>| field.as_ref()?.get(body);
    let sequence = get(&socket.sequence)? as u64 & 0xffff_ffff;
    let acknowledged = get(&socket.acknowledged)? as u64 & 0xffff_ffff;
    let flags = get(&socket.flags)? as u64 & 0xffff;
    Some(mixed(&[1 << 32 | flags, sequence << 32 | acknowledged]))
}

fn address(of: IpAddr) -> (u64, u64) {
    let bits = match of {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    ((bits >> 64) as u64, bits as u64)
}

/// Mixes numbers so that each bit of the result depends on all bits (the finalizer of SplitMix64,
/// after each number).
fn mixed(words: &[u64]) -> u64 {
    words.iter().fold(words.len() as u64, |state, word| {
        let mut bits = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sightings() -> impl Strategy<Value = Vec<Sighting>> {
        let one = (0u64..60, 0u32..2, any::<bool>(), 0i64..9);
        let one = one.prop_map(|(number, trace, is_received, time)| Sighting {
            key: mixed(&[number]),
            trace,
            is_received,
            time,
            times: 1,
        });
        prop::collection::vec(one, 0..200)
    }

    proptest! {
        #[test]
        fn the_same_are_left_however_often_they_are_tidied(all in sightings(), every in 1usize..40) {
            let mut whole = Gathered { sightings: all.clone(), zeros: 0 };
            whole.tidy(20);
            let mut parts = Gathered::default();
            for some in all.chunks(every) {
                let mut part = Gathered { sightings: some.to_vec(), zeros: 0 };
                part.tidy(20);
                parts.merge(part);
                parts.tidy(20);
            }
            prop_assert_eq!((parts.sightings, parts.zeros), (whole.sightings.clone(), whole.zeros));
            prop_assert!(whole.sightings.len() <= 20);
            let sent = |of: &Sighting| !of.is_received;
            for kept in whole.sightings.iter().filter(|kept| sent(kept)) {
                let same = all.iter().filter(|of| of.key == kept.key && of.trace == kept.trace && sent(of));
                prop_assert_eq!(same.map(|of| of.time).min(), Some(kept.time));
            }
        }
    }
}
