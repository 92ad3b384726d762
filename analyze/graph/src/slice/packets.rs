//! Segments that are sent and come in within a slice of time.
//!
//! A connection needs the state of earlier slices in three cases, which composing resolves: a
//! segment sent earlier arrives in the slice; a segment that arrived earlier is sent in the slice,
//! where the clocks of two hosts differ; an interrupt sends for a thread that has sent nothing
//! itself in the slice.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use tracebraid_follow::KeyHasher;

use crate::cause::ActorId;
use crate::graph::Packet;
use crate::graph_step::Segment;
use crate::packets::{
    Flow, MOST_PENDING, MOST_SENT, Packets, Pending, Sent, SentPart, likeness, likest,
};
use crate::slice::places::{Places, SlicePlaces};

/// Local thread numbers from here on stand for the last sender of a flow before the slice.
const OWNERS: u32 = 1 << 31;

/// A received segment that may have been sent before the slice.
#[derive(Clone, Copy, Debug)]
struct Unresolved {
    segment: Segment,
    /// Index among the packets of the slice.
    place: u32,
    /// Likeness to the best match in the slice, see [`likeness`].
    likeness: u8,
    /// Number of earlier segments that would still be remembered.
    room: usize,
    /// True if a segment sent later in the slice is equal.
    is_sent_later: bool,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct SliceFlow {
    owner: Option<ActorId>,
    /// All sent segments.
    sent: Vec<Sent>,
    pending: Vec<Pending>,
    received: u64,
    unresolved: Vec<Unresolved>,
}

/// The segments of a slice.
#[derive(Debug, Default)]
pub(crate) struct SlicePackets {
    places: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    flows: Vec<(u64, SliceFlow)>,
    packets: Vec<Packet>,
    /// Earlier segments that are no longer needed.
    over: Vec<SentPart>,
}

impl SliceFlow {
    fn last_sent(&self) -> impl Iterator<Item = Sent> {
        self.sent.iter().rev().take(MOST_SENT).copied()
    }

    fn counts_received(&mut self) {
        self.received += 1;
        let over = self
            .pending
            .partition_point(|pending| pending.is_over(self.received));
        self.pending.drain(..over);
    }
}

impl SlicePackets {
    fn flow(&mut self, connection: u64) -> (u32, &mut SliceFlow, &mut Vec<Packet>) {
        let new = self.flows.len() as u32;
        let place = *self.places.entry(connection).or_insert(new);
        if place == new {
            self.flows.push((connection, SliceFlow::default()));
        }
        (place, &mut self.flows[place as usize].1, &mut self.packets)
    }

    /// See [`Packets::sends`].
    pub(crate) fn sends(&mut self, segment: Segment, time: i64, by: Option<ActorId>) {
        let (place, flow, packets) = self.flow(segment.connection);
        flow.owner = by.or(flow.owner);
        let by = flow.owner.or(Some(ActorId(OWNERS + place)));
        let sent = Sent {
            segment,
            time,
            by,
            received: flow.received,
        };
        let unresolved = &mut flow.unresolved;
        flow.pending.retain(|pending| {
            if likeness(&segment, &pending.segment) < 3 {
                return true;
            }
            packets[pending.place as usize] = sent.packet(segment.connection);
            let mut unresolved = unresolved.iter_mut().rev();
            if let Some(of) = unresolved.find(|of| of.place == pending.place) {
                of.is_sent_later = true;
            }
            false
        });
        flow.sent.push(sent);
    }

    /// See [`Packets::wakes`].
    pub(crate) fn wakes(&mut self, segment: Segment) -> u32 {
        let (_, flow, packets) = self.flow(segment.connection);
        let best = likest(flow.last_sent(), &segment, 0);
        let place = packets.len() as u32;
        packets.push(Packet {
            connection: segment.connection,
            sent: best.map(|(_, sent)| sent.time),
            by: best.and_then(|(_, sent)| sent.by),
        });
        let likeness = best.map_or(0, |best| best.0);
        if likeness < 3 {
            flow.pending.push(Pending {
                segment,
                place,
                number: flow.received,
            });
            flow.unresolved.push(Unresolved {
                segment,
                place,
                likeness,
                room: MOST_SENT.saturating_sub(flow.sent.len()),
                is_sent_later: false,
            });
        }
        flow.counts_received();
        place
    }

    /// See [`Packets::passes`].
    pub(crate) fn passes(&mut self, connection: u64) {
        self.flow(connection).1.counts_received();
    }

    /// See [`Packets::answers`], for a wait that began in the slice.
    pub(crate) fn answers(&mut self, connection: u64, since: i64) -> Option<u32> {
        let connection = connection ^ 1;
        let sent = self
            .last_sent(connection)
            .filter(|sent| sent.time > since)?;
        self.packets.push(sent.packet(connection));
        Some(self.packets.len() as u32 - 1)
    }

    /// The last segment sent by a connection in the slice.
    pub(crate) fn last_sent(&self, connection: u64) -> Option<Sent> {
        let place = *self.places.get(&connection)?;
        let (_, flow) = self.flows.get(place as usize)?;
        flow.sent.last().copied()
    }

    /// Reserves a place for a packet that composing resolves.
    pub(crate) fn reserve(&mut self, connection: u64) -> u32 {
        self.packets.push(Packet {
            connection,
            sent: None,
            by: None,
        });
        self.packets.len() as u32 - 1
    }

    /// Adds the slice to the graph's packets. `found`: packets that composing resolved, by index in
    /// the slice; `None` for a packet that ended no wait.
    pub(crate) fn compose(
        &mut self,
        all: &mut Packets,
        slice_places: &SlicePlaces,
        found: Vec<(u32, Option<Packet>)>,
    ) {
        let Some(places) = slice_places.get() else {
            return;
        };
        for packet in &mut self.packets {
            let connection = |flow: u32| self.flows.get(flow as usize).map(|of| of.0);
            let owner = |flow: u32| connection(flow).and_then(|connection| all.owner(connection));
            packet.by = packet.by.and_then(|by| sender(by, places, owner));
        }
        let mut unused = Vec::new();
        for (place, found) in found {
            match found {
                Some(packet) => self.packets[place as usize] = packet,
                None => unused.push(place),
            }
        }
        let mut patches = Vec::new();
        for (connection, flow) in &mut self.flows {
            let (before, _) = all.flow(*connection);
            if !unused.is_empty() {
                flow.pending
                    .retain(|pending| !unused.contains(&pending.place));
            }
            flow.resolve(before, &mut self.packets);
            flow.sends_pending(before, (*connection, places), &mut patches);
            flow.follow(before, slice_places, &mut self.over);
        }
        for (place, packet) in patches {
            if let Some(of) = all.packets.get_mut(place as usize) {
                *of = packet;
            }
        }
        all.unused
            .extend(unused.iter().map(|place| places.packets + place));
        all.packets.extend(self.packets.drain(..));
    }
}

/// The sender in the graph; `owner` gives the last sender of a flow before the slice.
pub(crate) fn sender(
    by: ActorId,
    places: &Places,
    owner: impl FnOnce(u32) -> Option<ActorId>,
) -> Option<ActorId> {
    match by.0.checked_sub(OWNERS) {
        Some(flow) => owner(flow),
        None => Some(places.actor(by)),
    }
}

impl SliceFlow {
    /// Looks for the senders of received segments among earlier segments.
    fn resolve(&mut self, before: &Flow, packets: &mut [Packet]) {
        for of in &self.unresolved {
            let sent = before.last_sent(of.room);
            let Some((likeness, sent)) = likest(sent, &of.segment, of.likeness) else {
                continue;
            };
            if likeness == 3 || !of.is_sent_later {
                let packet = &mut packets[of.place as usize];
                (packet.sent, packet.by) = (Some(sent.time), sent.by);
            }
            if likeness == 3 {
                self.pending.retain(|pending| pending.place != of.place);
            }
        }
    }

    /// Looks for earlier received segments among those sent in the slice.
    fn sends_pending(
        &self,
        before: &mut Flow,
        (connection, places): (u64, &Places),
        found: &mut Vec<(u32, Packet)>,
    ) {
        let (received, owner) = (before.received, before.owner);
        before.pending.retain(|pending| {
            let in_time = |sent: &&Sent| !pending.is_over(received + sent.received);
            let mut sent = self.sent.iter().take_while(in_time);
            let Some(sent) = sent.find(|sent| likeness(&sent.segment, &pending.segment) == 3)
            else {
                return true;
            };
            let by = sent.by.and_then(|by| sender(by, places, |_| owner));
            found.push((pending.place, Sent { by, ..*sent }.packet(connection)));
            false
        });
    }

    /// Appends the slice to the earlier state of the flow.
    fn follow(&mut self, before: &mut Flow, places: &SlicePlaces, over: &mut Vec<SentPart>) {
        let first = places.get().map_or(0, |places| places.packets);
        let received = before.received;
        before.received += self.received;
        let now = before.received;
        before.pending.retain(|pending| !pending.is_over(now));
        before
            .pending
            .extend(self.pending.iter().map(|pending| Pending {
                place: first + pending.place,
                number: received + pending.number,
                ..*pending
            }));
        debug_assert!(before.pending.len() as u64 <= MOST_PENDING);
        let owner = before.owner;
        let new = places.get().zip(self.owner);
        before.owner = new.map(|(places, owner)| places.actor(owner)).or(owner);
        if !self.sent.is_empty() {
            let part = SentPart {
                sent: std::mem::take(&mut self.sent),
                of_slice: Some((places.clone(), owner)),
            };
            before.adds_part(part, over);
        }
    }
}
