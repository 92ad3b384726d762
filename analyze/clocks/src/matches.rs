//! Messages between machines: packets that one sent and another received.

use std::collections::BTreeMap;

use crate::machines::Machines;
use crate::packets::{Packets, Sighting};
use crate::timeline::Timeline;

/// A message, with its times in nanoseconds from the origin, each by the clock of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// By the sender's.
    pub sent: i64,
    /// By the receiver's.
    pub received: i64,
}

/// All messages, by the indices of sender and receiver.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    messages: BTreeMap<(usize, usize), Vec<Message>>,
    /// Packets that a machine sent or received several times: retransmissions, mostly.
    pub repeated: u64,
}

/// When a machine sent and received one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sent: Option<i64>,
    received: Option<i64>,
}

impl Matches {
    /// The messages among these packets. Packets that a machine sent or received several times are
    /// left out, and those that came back to it.
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
        // Most are seen twice.
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
                // Of two that pass it on nobody knows which was first.
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

    /// What they tell of how the time of one machine becomes that of another.
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
