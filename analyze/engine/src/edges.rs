//! The packets after those that are read for a range of time.
//!
//! Which packets are left out is decided by their times, which may come from an index. Where the index has the
//! right times of the first packet that begins after the range, and its times are in order (those of others
//! were compared when the trace was opened), the packets after it are out of the range as well: no other one
//! has to be read. Packets before the range reach at least to the beginning of the next one, so the first
//! packet that is read shows whether that was right.

use std::collections::BTreeMap;

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::scan::Scanner;
use tracebraid_ctf::trace::TraceSet;

use crate::chunk::{Begins, Cut, DUSK, StreamRef};
use crate::feed::Tables;

/// Damage of the packets next to those that `cut` leaves over.
pub(crate) fn damage(set: &TraceSet, groups: &[Vec<StreamRef>], cut: Cut, tables: &Tables) -> Vec<Damage> {
    if cut.until == DUSK {
        return Vec::new();
    }
    let streams = groups.iter().flatten();
    let damage = streams.filter_map(|&stream_ref| of_stream(set, stream_ref, cut, tables));
    damage.flatten().collect()
}

fn of_stream(set: &TraceSet, stream_ref: StreamRef, cut: Cut, tables: &Tables) -> Option<Vec<Damage>> {
    let (trace, stream) = stream_ref.of(set)?;
    let table = tables.of(stream_ref.trace, stream.class)?;
    let begins = Begins::new(trace, stream);
    // Each file has an index of its own.
    let mut next = BTreeMap::new();
    for (index, packet) in stream.packets.iter().enumerate() {
        let file = stream.files.get(packet.file as usize)?;
        if file.indexed && begins.at(index) >= cut.until {
            next.entry(packet.file).or_insert(index);
        }
    }
    let mut damage = Vec::new();
    for packet in next.into_values() {
        let mut scanner = Scanner::new(trace, stream, table.clone(), packet..packet + 1)?;
        scanner.next_packet();
        damage.extend(scanner.take_damage());
    }
    Some(damage)
}
