//! Which TCP packets each machine sent and received, and when.
//!
//! A packet is known again by addresses, ports, sequence number, acknowledged number and flags;
//! where a tracer does not tell the addresses (`inet_sock_local_*`) by the other three. Of all
//! that, 64 mixed bits are kept. What is kept is bounded: when there is too much, only packets
//! whose bits begin with a zero are kept, then with two, and so on. As sender and receiver keep the
//! same packets so, the rest can still be matched.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{
    Event, Head, Input, KernelReport, NoOptions, Packet, PerCpu, Rules, Selection,
};
use tracebraid_kernel_model::events::network::{PacketStep, Socket, SocketStep};
use tracebraid_kernel_model::{Body, Headers, IntField, KernelEvent, Transport};

/// Finds the packets that machines sent to each other.
pub type PacketAnalysis = PerCpu<PacketRules>;

/// A packet was sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sighting {
    /// A hash of the fields that differ between packets.
    pub key: u64,
    /// Index of the trace.
    pub trace: u32,
    /// True if it was received, false if it was sent.
    pub is_received: bool,
    /// When, in nanoseconds from the origin: the first time it was sent, the last time it was
    /// received.
    pub time: i64,
    /// How often.
    pub times: u32,
}

/// Sightings that are kept at most.
const MOST: usize = 1 << 21;

/// The packets of a part of the traces.
///
/// Bounded by a constant: beyond that number of packets a sample is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Gathered {
    sightings: Vec<Sighting>,
    /// Zeros with which the keys of those that are kept begin.
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

    /// One sighting for what was seen several times; then no more than that many. However often
    /// this is done in between, the same are left in the end: fewer zeros never suffice for more
    /// packets.
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

/// Which packets there are.
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
            "nothing tells which packets were sent and received: record net_dev_queue and net_if_receive_skb \
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
    /// Sorted; one for each packet, trace and direction.
    pub sightings: Vec<Sighting>,
    /// Of so many to the power of two packets one was kept.
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

/// Packets between machines have different addresses: others stay on one.
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

/// Its flags are those 16 bits of the header in which the flags are.
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

/// Mixes numbers so that each bit depends on all of theirs (the finalizer of SplitMix64, after
/// each).
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
