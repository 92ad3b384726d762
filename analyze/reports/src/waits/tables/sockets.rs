//! Sockets by peer.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tracebraid_kernel_model::{Peer, family_name};

use crate::waits::report::Who;
use crate::waits::socket::{End, Measure, SocketSums};
use crate::waits::tables::PROCESS;
use tracebraid_follow::{Process, Thread};
use tracebraid_statistics::Distribution;
use tracebraid_tables::{Column, Section, Unit, Value, distribution_columns, distribution_values};

type Key = (End, Measure);

pub(crate) fn of_sockets(who: &Who<'_>, sockets: &SocketSums) -> Section {
    let parts = sockets.entries().iter();
    let parts = parts.filter_map(|((thread, end, measure), sums)| {
        Some((who.shown(*thread)?, ((*end, *measure), sums)))
    });
    let add = |sums: &mut BTreeMap<Key, Distribution>, (key, part): (Key, &Distribution)| {
        sums.entry(key).or_default().merge(part);
    };
    let sums: Vec<(Process, BTreeMap<Key, Distribution>)> = who.people.processes(parts, add);
    let rows = sums.into_iter().flat_map(|(process, sums)| {
        let thread = Thread::from(&process);
        sums.into_iter()
            .map(move |(key, sums)| (thread.clone(), key, sums))
    });
    let mut rows: Vec<(Thread, Key, Distribution)> = rows.collect();
    rows.sort_by_key(|(process, key, sums)| {
        let total = sums.summary().sum();
        (
            Reverse(total),
            process.trace,
            process.pid,
            process.tid,
            *key,
        )
    });
    let columns = [
        PROCESS,
        Column::new("side", "Side", Unit::Text),
        Column::new("peer", "Peer", Unit::Text).optional(),
        Column::new("measure", "What", Unit::Text),
    ];
    let columns = columns.into_iter().chain(distribution_columns()).collect();
    let row = |(process, (end, measure), sums): &(Thread, Key, Distribution)| {
        let own = [
            process.clone().into(),
            end.side.name().into(),
            end.peer.map(|peer| Value::Text(text(peer))).into(),
            measure.name().into(),
        ];
        own.into_iter().chain(distribution_values(sums)).collect()
    };
    Section::new(
        "sockets",
        "Sockets",
        columns,
        rows.iter().map(row).collect(),
    )
}

/// Formats a peer. The peer of a server has no port.
fn text(peer: Peer) -> String {
    match (peer.address, peer.port) {
        (Some(IpAddr::V6(address)), 0) => format!("[{address}]"),
        (Some(address), 0) => address.to_string(),
        (Some(address), port) => SocketAddr::new(address, port).to_string(),
        (None, _) => {
            family_name(peer.family.into()).map_or_else(|| peer.family.to_string(), str::to_owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_written_as_usual() {
        let text = |family, address: Option<&str>, port| {
            let address = address.map(|address| address.parse().unwrap());
            text(Peer {
                family,
                address,
                port,
            })
        };
        assert_eq!(text(2, Some("10.0.0.1"), 80), "10.0.0.1:80");
        assert_eq!(text(2, Some("10.0.0.1"), 0), "10.0.0.1");
        assert_eq!(text(10, Some("::1"), 80), "[::1]:80");
        assert_eq!(text(10, Some("::1"), 0), "[::1]");
        assert_eq!(text(1, None, 0), "AF_UNIX");
        assert_eq!(text(99, None, 0), "99");
    }
}
