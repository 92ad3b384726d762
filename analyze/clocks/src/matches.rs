//! Messages between machines: packets that one machine sent and another received.

use std::collections::BTreeMap;

use crate::machines::Machines;
use crate::packets::{Packets, Sighting};
use crate::timeline::Timeline;

/// A message. Times are nanoseconds from the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// Time by the sender's clock.
    pub sent: i64,
    /// Time by the receiver's clock.
    pub received: i64,
}

/// All messages, by the indices of sender and receiver.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    messages: BTreeMap<(usize, usize), Vec<Message>>,
    /// Packets that a machine sent or received more than once, mostly retransmissions.
    pub repeated: u64,
}

/// Times at which a machine sent and received one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sent: Option<i64>,
    received: Option<i64>,
}

impl Matches {
    /// Matches sightings of the same packet. Packets that a machine sent or received more than once
    /// are ignored, and so are packets that returned to their sender.
    pub fn of(packets: &Packets, machines: &Machines) -> Matches {
        let mut matches = Matches::default();
        let same = |a: &Sighting, b: &Sighting| a.key == b.key;
        for packet in packets.sightings.chunk_by(same) {
            if packet.iter().any(|sighting| sighting.times > 1) {
                matches.repeated += 1;
                continue;
            }
            matches.packet(packet, machines);
        }
        matches
    }

    fn packet(&mut self, sightings: &[Sighting], machines: &Machines) {
        // Most packets are seen by two machines.
        let mut seen: Vec<(usize, Seen)> = Vec::with_capacity(2);
        for sighting in sightings {
            let Some(machine) = machines.of_trace(sighting.trace as usize) else {
                continue;
            };
            let at = seen.iter().position(|(of, _)| *of == machine);
            let at = at.unwrap_or_else(|| {
                seen.push((machine, Seen::default()));
                seen.len() - 1
            });
            if let Some((_, seen)) = seen.get_mut(at) {
                let side = match sighting.is_received {
                    true => &mut seen.received,
                    false => &mut seen.sent,
                };
                *side = Some(sighting.time);
            }
        }
        for (from, sender) in &seen {
            for (to, receiver) in &seen {
                // If both machines forwarded the packet, the order of the hops is unknown.
                let is_clear = sender.received.is_none() || receiver.sent.is_none();
                if let (Some(sent), Some(received)) = (sender.sent, receiver.received)
                    && from != to
                    && is_clear
                {
                    let messages = self.messages.entry((*from, *to)).or_default();
                    messages.push(Message { sent, received });
                }
            }
        }
    }

    /// Adds a message between two machines.
    pub fn add(&mut self, from: usize, to: usize, message: Message) {
        self.messages.entry((from, to)).or_default().push(message);
    }

    /// The messages from one machine to another.
    pub fn between(&self, from: usize, to: usize) -> &[Message] {
        self.messages
            .get(&(from, to))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The timeline of messages between two machines, by the clock of the first.
    pub fn timeline(&self, one: usize, other: usize) -> Timeline {
        let mut line = Timeline::default();
        for message in self.between(other, one) {
            line.receives(message.received, message.sent);
        }
        for message in self.between(one, other) {
            line.sends(message.sent, message.received);
        }
        line
    }
}
