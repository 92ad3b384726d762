//! Segments that were sent, and those of them that ended somebody's wait.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::cause::ActorId;
use crate::graph::Packet;
use crate::graph_step::Segment;
use crate::hashed::Hashed;
use crate::kept::Kept;

/// A segment goes to a device.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sent {
    segment: Segment,
    time: i64,
    by: Option<ActorId>,
}

/// What is known of a connection, in one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Flow {
    /// The thread that sent something last: what interrupts send later, when the other side has room, is its.
    owner: Option<ActorId>,
    /// The last that were sent.
    sent: VecDeque<Sent>,
    /// Those that ended waits and have not been sent yet: clocks of two hosts never agree to the end.
    pending: VecDeque<(Segment, u32)>,
}

/// How many segments of a connection are remembered: those on their way, more than windows hold.
const MOST_SENT: usize = 1024;
/// How many wait for their senders.
const MOST_PENDING: usize = 64;

/// So many that do not matter are kept, so that they are not looked for all the time.
const MOST_FORGOTTEN: usize = 4096;

/// The segments of all connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Packets {
    flows: Hashed<Flow>,
    pub(crate) packets: Kept<Packet>,
}

/// How well a segment that was sent is one that came in. Lengths count options, and may be those of
/// several segments that were joined, or cut, on the way.
fn likeness(sent: &Segment, received: &Segment) -> u8 {
    let offset = received.sequence.wrapping_sub(sent.sequence);
    match offset {
        0 if (sent.length, sent.acknowledged) == (received.length, received.acknowledged) => 3,
        0 => 2,
        _ if offset < sent.length => 1,
        _ => 0,
    }
}

impl Packets {
    /// A segment is sent.
    pub(crate) fn sends(&mut self, segment: Segment, time: i64, by: Option<ActorId>) {
        let flow = self.flows.get(segment.connection, Flow::default);
        flow.owner = by.or(flow.owner);
        let by = flow.owner;
        let packets = &mut self.packets;
        flow.pending.retain(|(received, place)| {
            if likeness(&segment, received) < 3 {
                return true;
            }
            if let Some(packet) = packets.get_mut(*place as usize) {
                (packet.sent, packet.by) = (Some(time), by);
            }
            false
        });
        if flow.sent.len() >= MOST_SENT {
            flow.sent.pop_front();
        }
        flow.sent.push_back(Sent { segment, time, by });
    }

    /// What came in last by the other direction of a connection ends a wait that began then, if anything was sent since:
    /// gives its place.
    pub(crate) fn answers(&mut self, connection: u64, since: i64) -> Option<u32> {
        let connection = connection ^ 1;
        let flow = self.flows.find(connection)?;
        let sent = flow.sent.back().filter(|sent| sent.time > since)?;
        Some(self.packets.push(Packet {
            connection,
            sent: Some(sent.time),
            by: sent.by,
        }))
    }

    /// True if a segment that was sent later may turn out to be the one at that place.
    pub(crate) fn is_pending(&self, connection: u64, place: u32) -> bool {
        let flow = self.flows.find(connection);
        flow.is_some_and(|flow| flow.pending.iter().any(|pending| pending.1 == place))
    }

    /// Waits that have ended do not matter.
    pub(crate) fn forget(&mut self) {
        if self.packets.len() > MOST_FORGOTTEN {
            self.packets = Kept::default();
            // Their places are others' from now on.
            self.flows.values().for_each(|flow| flow.pending.clear());
        }
    }

    /// One that came in ends a wait: gives its place.
    pub(crate) fn wakes(&mut self, segment: Segment) -> u32 {
        let flow = self.flows.get(segment.connection, Flow::default);
        let mut best: Option<(u8, &Sent)> = None;
        for sent in flow.sent.iter().rev() {
            let likeness = likeness(&sent.segment, &segment);
            if likeness > best.map_or(0, |best| best.0) {
                best = Some((likeness, sent));
            }
            if likeness == 3 {
                break;
            }
        }
        let place = self.packets.push(Packet {
            connection: segment.connection,
            sent: best.map(|(_, sent)| sent.time),
            by: best.and_then(|(_, sent)| sent.by),
        });
        if best.is_none_or(|best| best.0 < 3) {
            if flow.pending.len() >= MOST_PENDING {
                flow.pending.pop_front();
            }
            flow.pending.push_back((segment, place));
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: Segment = Segment {
        connection: 5,
        sequence: u32::MAX - 9,
        length: 100,
        acknowledged: 7,
    };

    fn of(packets: &Packets, place: u32) -> (Option<i64>, Option<u32>) {
        let packet = packets.packets[place as usize];
        (packet.sent, packet.by.map(|by| by.0))
    }

    #[test]
    fn segments_lead_to_their_senders() {
        let mut packets = Packets::default();
        packets.sends(SEGMENT, 10, Some(ActorId(1)));
        // Sent by an interrupt.
        let acknowledges = Segment {
            length: 52,
            ..SEGMENT
        };
        packets.sends(acknowledges, 20, None);
        let place = packets.wakes(SEGMENT);
        assert_eq!(of(&packets, place), (Some(10), Some(1)));
        let place = packets.wakes(acknowledges);
        assert_eq!(of(&packets, place), (Some(20), Some(1)));
        // A part of it, behind the end of the numbers.
        let part = Segment {
            sequence: 60,
            length: 20,
            ..SEGMENT
        };
        let place = packets.wakes(part);
        assert_eq!(of(&packets, place), (Some(10), Some(1)));
    }

    #[test]
    fn a_sender_may_be_told_later() {
        let mut packets = Packets::default();
        let place = packets.wakes(SEGMENT);
        assert_eq!(of(&packets, place), (None, None));
        packets.sends(SEGMENT, 10, Some(ActorId(1)));
        packets.sends(SEGMENT, 20, Some(ActorId(2)));
        assert_eq!(of(&packets, place), (Some(10), Some(1)));
    }
}
