//! Whom a socket is connected to, as `connect` and `accept` tell it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::{Body, IntField};
use crate::finder::Finder;

/// The other side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Peer {
    /// Its address family; see [`crate::family_name`].
    pub family: u16,
    /// Its address, of families that have one of IP.
    pub address: Option<IpAddr>,
    /// Its port; 0 where there is none.
    pub port: u16,
}

/// The fields that LTTng makes of a `struct sockaddr`: the family, the port, and the bytes of an
/// address of IPv4 or else of IPv6, behind the length of each.
#[derive(Clone, Debug)]
pub struct PeerField {
    family: IntField,
    port: IntField,
    /// Elements of the address of IPv4.
    length: IntField,
    /// Where they are, in bytes behind the header.
    at: usize,
}

/// Bytes of the length of an address, which lies before it.
const LENGTH: usize = 4;
const IPV6: u16 = 10;

impl PeerField {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<PeerField> {
        // LTTng's length of `v4addr`.
        let length = "_v4addr_length";
        Some(PeerField {
            family: finder.int(&["family"])?,
            port: finder.int(&["dport", "sport"])?,
            length: finder.int(&[length])?,
            at: finder.byte_of(length)? + LENGTH,
        })
    }

    /// The peer. Tracers leave out addresses that they cannot read: then the family is 0.
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<Peer> {
        let family = u16::try_from(self.family.get(body)?).ok()?;
        if family == 0 {
            return None;
        }
        let behind = body.bytes().get(self.at..).unwrap_or_default();
        let address = match self.length.get(body) {
            Some(4) => behind
                .first_chunk()
                .map(|bytes: &[u8; 4]| Ipv4Addr::from(*bytes).into()),
            Some(0) if family == IPV6 => behind.get(LENGTH..).and_then(ipv6),
            _ => None,
        };
        let port = u16::try_from(self.port.get(body)?).ok()?;
        Some(Peer {
            family,
            address,
            port,
        })
    }
}

fn ipv6(bytes: &[u8]) -> Option<IpAddr> {
    let bytes: &[u8; 16] = bytes.first_chunk()?;
    Some(Ipv6Addr::from(*bytes).into())
}
