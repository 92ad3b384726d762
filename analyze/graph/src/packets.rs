//! Sent segments, and those that ended a wait.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::cause::ActorId;
use crate::graph::Packet;
use crate::graph_step::Segment;
use crate::hashed::Hashed;
use crate::kept::Kept;
use crate::slice::{SlicePlaces, sender};

/// A segment that was passed to a network device.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) segment: Segment,
    pub(crate) time: i64,
    pub(crate) by: Option<ActorId>,
    /// In a slice of time: number of the connection's segments that arrived earlier.
    pub(crate) received: u64,
}

/// Segments that were sent one after the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SentPart {
    pub(crate) sent: Vec<Sent>,
    /// For segments of a slice: the map of the slice's thread numbers, and the last sender before
    /// the slice.
    pub(crate) of_slice: Option<(SlicePlaces, Option<ActorId>)>,
}

/// A segment that ended a wait and whose sender may appear later: the clocks of two hosts never
/// agree exactly.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) segment: Segment,
    /// Index among the packets.
    pub(crate) place: u32,
    /// Number of segments that arrived earlier.
    pub(crate) number: u64,
}

/// State of one direction of a connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// The thread that sent the last segment: segments that interrupts send later, when the other
    /// side has room, belong to that thread.
    pub(crate) owner: Option<ActorId>,
    /// The last sent segments: at least [`MOST_SENT`], if there were that many.
    parts: VecDeque<SentPart>,
    /// Number of segments in `parts`.
    count: usize,
    /// Segments that ended waits before their sending was seen.
    pub(crate) pending: VecDeque<Pending>,
    /// Number of segments that arrived and woke a thread.
    pub(crate) received: u64,
}

/// Number of remembered segments per connection: those in flight, more than windows hold. Small in
/// tests, so that short tests reach it.
pub(crate) const MOST_SENT: usize = if cfg!(test) { 6 } else { 1024 };
/// Number of later arrivals after which a segment no longer waits for its sender.
pub(crate) const MOST_PENDING: u64 = if cfg!(test) { 4 } else { 64 };

/// The segments of all connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Packets {
    flows: Hashed<Flow>,
    pub(crate) packets: Kept<Packet>,
    /// Indexes of the packets to which no wait refers, ascending.
    pub(crate) unused: Vec<u32>,
}

/// Similarity of a sent and a received segment: 3 if equal, 0 if different. Lengths include
/// options, and segments may be joined or split in transit.
pub(crate) fn likeness(sent: &Segment, received: &Segment) -> u8 {
    let offset = received.sequence.wrapping_sub(sent.sequence);
    match offset {
        0 if (sent.length, sent.acknowledged) == (received.length, received.acknowledged) => 3,
        0 => 2,
        _ if offset < sent.length => 1,
        _ => 0,
    }
}

/// The sent segment that is most similar to a received one, if the similarity exceeds `least`; the
/// last one of equals, since `sent` begins with the last.
pub(crate) fn likest(
    sent: impl Iterator<Item = Sent>,
    segment: &Segment,
    least: u8,
) -> Option<(u8, Sent)> {
    let mut best = None;
    let mut least = least;
    for sent in sent {
        let likeness = likeness(&sent.segment, segment);
        if likeness > least {
            (best, least) = (Some((likeness, sent)), likeness);
        }
        if likeness == 3 {
            break;
        }
    }
    best
}

impl Pending {
    /// True if too many segments have arrived since.
    pub(crate) fn is_over(&self, received: u64) -> bool {
        self.number + MOST_PENDING <= received
    }
}

impl Flow {
    /// Counts an arrival.
    pub(crate) fn counts_received(&mut self) {
        self.received += 1;
        while self
            .pending
            .front()
            .is_some_and(|first| first.is_over(self.received))
        {
            self.pending.pop_front();
        }
    }

    /// Appends a sent segment.
    fn adds(&mut self, sent: Sent) {
        let is_open = |part: &SentPart| part.of_slice.is_none() && part.sent.len() < MOST_SENT / 4;
        if !self.parts.back().is_some_and(is_open) {
            self.parts.push_back(SentPart::default());
        }
        if let Some(part) = self.parts.back_mut() {
            part.sent.push(sent);
            self.count += 1;
        }
        while self.forgets().is_some() {}
    }

    /// Appends sent segments. The parts that are dropped for them are moved to `over`.
    pub(crate) fn adds_part(&mut self, part: SentPart, over: &mut Vec<SentPart>) {
        self.count += part.sent.len();
        self.parts.push_back(part);
        while let Some(part) = self.forgets() {
            over.push(part);
        }
    }

    /// Takes out the first part if at least `MOST_SENT` segments remain.
    fn forgets(&mut self) -> Option<SentPart> {
        let first = self.parts.front()?.sent.len();
        if self.count - first < MOST_SENT {
            return None;
        }
        self.count -= first;
        self.parts.pop_front()
    }

    /// The sent segments, the last first, at most `most`.
    pub(crate) fn last_sent(&self, most: usize) -> impl Iterator<Item = Sent> {
        let parts = self.parts.iter().rev();
        let sent = parts.flat_map(|part| part.sent.iter().rev().map(|sent| part.resolve(*sent)));
        sent.take(most)
    }
}

impl SentPart {
    /// Replaces the thread number of a slice by that of the graph.
    fn resolve(&self, sent: Sent) -> Sent {
        let by = match &self.of_slice {
            Some((places, owner)) => places
                .get()
                .and_then(|places| sender(sent.by?, places, |_| *owner)),
            None => sent.by,
        };
        Sent { by, ..sent }
    }
}

impl Packets {
    /// Records that a segment is sent.
    pub(crate) fn sends(&mut self, segment: Segment, time: i64, by: Option<ActorId>) {
        let flow = self.flows.get(segment.connection, Flow::default);
        flow.owner = by.or(flow.owner);
        let by = flow.owner;
        let packets = &mut self.packets;
        flow.pending.retain(|received| {
            if likeness(&segment, &received.segment) < 3 {
                return true;
            }
            if let Some(packet) = packets.get_mut(received.place as usize) {
                (packet.sent, packet.by) = (Some(time), by);
            }
            false
        });
        flow.adds(Sent {
            segment,
            time,
            by,
            received: 0,
        });
    }

    /// One direction of a connection.
    pub(crate) fn flow(&mut self, connection: u64) -> (&mut Flow, &mut Kept<Packet>) {
        (self.flows.get(connection, Flow::default), &mut self.packets)
    }

    /// Takes all connections.
    pub(crate) fn take_flows(&mut self) -> Vec<(u64, Flow)> {
        std::mem::take(&mut self.flows).into()
    }

    /// The thread that last sent a segment by a connection.
    pub(crate) fn owner(&self, connection: u64) -> Option<ActorId> {
        self.flows.find(connection)?.owner
    }

    /// The last segment that was sent by a connection.
    pub(crate) fn last_sent(&self, connection: u64) -> Option<Sent> {
        self.flows.find(connection)?.last_sent(1).next()
    }

    /// Ends a wait that began at `since` by the last segment that arrived from the other direction
    /// of a connection, if one was sent since. Returns the index of the packet.
    pub(crate) fn answers(&mut self, connection: u64, since: i64) -> Option<u32> {
        let connection = connection ^ 1;
        let sent = self
            .last_sent(connection)
            .filter(|sent| sent.time > since)?;
        Some(self.packets.push(sent.packet(connection)))
    }

    /// True if a segment that is sent later may still be the packet at that index.
    pub(crate) fn is_pending(&self, connection: u64, place: u32) -> bool {
        let flow = self.flows.find(connection);
        flow.is_some_and(|flow| flow.pending.iter().any(|pending| pending.place == place))
    }

    /// Records an arrival that ended no wait.
    pub(crate) fn passes(&mut self, connection: u64) {
        if let Some(flow) = self.flows.find_mut(connection) {
            flow.counts_received();
        }
    }

    /// Records an arrival that ended a wait. Returns the index of the packet.
    pub(crate) fn wakes(&mut self, segment: Segment) -> u32 {
        let flow = self.flows.get(segment.connection, Flow::default);
        let best = likest(flow.last_sent(MOST_SENT), &segment, 0);
        let place = self.packets.push(Packet {
            connection: segment.connection,
            sent: best.map(|(_, sent)| sent.time),
            by: best.and_then(|(_, sent)| sent.by),
        });
        if best.is_none_or(|best| best.0 < 3) {
            flow.pending.push_back(Pending {
                segment,
                place,
                number: flow.received,
            });
        }
        flow.counts_received();
        place
    }
}

impl Sent {
    /// The packet of this segment, which arrived by that connection and ended a wait.
    pub(crate) fn packet(&self, connection: u64) -> Packet {
        Packet {
            connection,
            sent: Some(self.time),
            by: self.by,
        }
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
        // A part of the segment, after the sequence numbers wrapped around.
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
