//! Peers of sockets, as recorded by `connect` and `accept`.

use std::net::{IpAddr, SocketAddr};

use crate::field::{Body, BytesField, IntField};
use crate::finder::Finder;

/// The remote end of a connection.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Peer {
    /// Address family; see [`crate::family_name`].
    pub family: u16,
    /// IP address, for families with IP addresses.
    pub address: Option<IpAddr>,
    /// Port; 0 without a port.
    pub port: u16,
}

impl Peer {
    /// IP address and port, for families with IP addresses.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.address?, self.port))
    }
}

/// The fields that LTTng makes of a `struct sockaddr`: the family, the port, and the bytes of an
/// IPv4 and of an IPv6 address, both empty for other families.
#[derive(Clone, Debug)]
pub struct PeerField {
    family: IntField,
    port: IntField,
    v4: Option<BytesField>,
    v6: Option<BytesField>,
}

const IPV4: u16 = 2;
const IPV6: u16 = 10;

impl PeerField {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<PeerField> {
        Some(PeerField {
            family: finder.int(&["family"])?,
            port: finder.int(&["dport", "sport"])?,
            v4: finder.bytes("v4addr"),
            v6: finder.bytes("v6addr"),
        })
    }

    /// The peer. Tracers omit addresses that they cannot read, and record the family 0.
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<Peer> {
        let family = u16::try_from(self.family.get(body)?).ok()?;
        if family == 0 {
            return None;
        }
        let bytes = |field: &Option<BytesField>, body: &mut _| field.as_ref()?.bytes(body);
        let address = match family {
            IPV4 => bytes(&self.v4, body)
                .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from)),
            IPV6 => bytes(&self.v6, body)
                .and_then(|bytes| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)),
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
