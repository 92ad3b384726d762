//! Packets with a UUID other than that of the metadata.

use crate::packet::PacketHead;
use crate::schema::Uuid;
use crate::tsdl::uuid_text;

/// Packets with a UUID other than that of the metadata.
#[derive(Default)]
pub(super) struct Foreign {
    pub(super) count: u64,
    /// Offset and UUID of the first such packet.
    pub(super) first: Option<(u64, Uuid)>,
    uuids: Vec<Uuid>,
}

/// Maximum number of foreign UUIDs of a file that are remembered.
const MOST_UUIDS: usize = 16;

impl Foreign {
    /// True if an earlier packet has the same UUID.
    pub(super) fn has(&self, head: &PacketHead) -> bool {
        head.uuid.is_some_and(|uuid| self.uuids.contains(&uuid))
    }

    pub(super) fn add(&mut self, offset: u64, head: &PacketHead) {
        let Some(uuid) = head.uuid else { return };
        self.count += 1;
        self.first.get_or_insert((offset, uuid));
        if self.uuids.len() < MOST_UUIDS && !self.has(head) {
            self.uuids.push(uuid);
        }
    }
}

/// Message for packets with a UUID other than that of the metadata; `count` is `None` if they were
/// not counted.
pub(super) fn foreign_uuid(count: Option<u64>, found: Uuid, expected: Option<Uuid>) -> String {
    let (found, expected) = (uuid_text(&found), uuid_text(&expected.unwrap_or_default()));
    match count {
        Some(1) => format!(
            "the packet's UUID ({found}) is not the metadata's ({expected}): the packet is read, but may belong to \
             another trace"
        ),
        count => {
            let count = count.map_or_else(String::new, |count| format!("{count} "));
            format!(
                "the UUIDs of {count}packets ({found} here) are not the metadata's ({expected}): the packets are read, \
                 but may belong to another trace"
            )
        }
    }
}
