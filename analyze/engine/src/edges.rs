//! Checks the first packet after a range of time in each file with an index.
//!
//! A fold skips packets by their times, which may come from a wrong index. If the index entry of
//! the first packet after the range is right, all later packets are outside of the range too: an
//! index is sorted by time, or every entry was compared when the trace was opened. Packets before
//! the range need no check, since each extends at least to the beginning of the next packet:
//! comparing the first packet that is read is enough.

use std::collections::BTreeMap;

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::scan::Scanner;
use tracebraid_ctf::trace::TraceSet;

use crate::chunk::{Begins, Cut, DUSK, StreamRef};
use crate::feed::Tables;

/// Damage of the first packet after `cut`, for each file with an index.
pub(crate) fn damage(
    set: &TraceSet,
    groups: &[Vec<StreamRef>],
    cut: Cut,
    tables: &Tables,
) -> Vec<Damage> {
    if cut.until == DUSK {
        return Vec::new();
    }
    let streams = groups.iter().flatten();
    let damage = streams.filter_map(|&stream_ref| of_stream(set, stream_ref, cut, tables));
    damage.flatten().collect()
}

fn of_stream(
    set: &TraceSet,
    stream_ref: StreamRef,
    cut: Cut,
    tables: &Tables,
) -> Option<Vec<Damage>> {
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
