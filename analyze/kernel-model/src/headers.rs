//! Headers of packets, as lttng-modules records them.
//!
//! Behind the name of the device stand a byte that tells the network header (0 none, 1 IPv4,
//! 2 IPv6), that header as on the wire (without IPv4's options), a byte that tells the transport
//! header (0 none, 1 TCP, 2 UDP, 3 ICMP), and that header as on the wire (20 or 8 bytes).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;

/// The headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Sender.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// Number of the protocol above: 6 TCP, 17 UDP.
    pub protocol: u8,
    /// Length of the packet in bytes; for IPv6 without its header.
    pub length: u16,
    /// The header above.
    pub transport: Transport,
}

/// The header above that of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp(TcpHeader),
    /// UDP.
    Udp {
        /// Sender's port.
        source: u16,
        /// Receiver's port.
        destination: u16,
        /// Length in bytes, with the header.
        length: u16,
    },
    /// ICMP.
    Icmp {
        /// What it is.
        kind: u8,
        /// Of which kind.
        code: u8,
    },
    /// Not recorded.
    Unknown,
}

/// The header of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Sender's port.
    pub source: u16,
    /// Receiver's port.
    pub destination: u16,
    /// Number of its first byte.
    pub sequence: u32,
    /// Number of the byte that the sender waits for.
    pub acknowledged: u32,
    /// Its nine flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, ...
    pub flags: u16,
    /// Bytes that the sender can take.
    pub window: u16,
}

/// Where the headers stand in an event class.
#[derive(Clone, Debug)]
pub struct HeadersField {
    /// Text before them, and the byte where it begins.
    name: TextField,
    name_at: usize,
    kind: IntField,
}

/// What stands in network_header_type and transport_header_type.
const IPV4: i64 = 1;
const IPV6: i64 = 2;

impl HeadersField {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<HeadersField> {
        let members = finder.members();
        let at = members.iter().position(|name| *name == "network_header_type")?;
        let before = at.checked_sub(1).and_then(|before| members.get(before))?;
        let after = members.get(at + 1)?;
        if *before != "name" || *after != "network_header" {
            return None;
        }
        let (name, offset) = finder.text_at("name")?;
        Some(HeadersField {
            name,
            name_at: usize::try_from(offset).ok().filter(|offset| offset % 8 == 0)? / 8,
            kind: finder.int(&["network_header_type"])?,
        })
    }

    /// The headers; `None` if the packet is of another protocol, or the record is too short.
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<Headers> {
        let kind = self.kind.get(body)?;
        // A null, and the byte with the kind.
        let from = self.name_at + self.name.bytes(body)?.len() + 2;
        let bytes = body.bytes().get(from..)?;
        match kind {
            IPV4 => ipv4(bytes),
            IPV6 => ipv6(bytes),
            _ => None,
        }
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn ipv4(bytes: &[u8]) -> Option<Headers> {
    let address = |at| Some(IpAddr::V4(Ipv4Addr::from(long(bytes, at)?)));
    Some(Headers {
        source: address(12)?,
        destination: address(16)?,
        protocol: *bytes.get(9)?,
        length: short(bytes, 2)?,
        transport: transport(bytes.get(20..)?),
    })
}

fn ipv6(bytes: &[u8]) -> Option<Headers> {
    let address = |at: usize| {
        let bytes: &[u8; 16] = bytes.get(at..)?.first_chunk()?;
        Some(IpAddr::V6(Ipv6Addr::from(*bytes)))
    };
    Some(Headers {
        source: address(8)?,
        destination: address(24)?,
        protocol: *bytes.get(6)?,
        length: short(bytes, 4)?,
        transport: transport(bytes.get(40..)?),
    })
}

fn transport(bytes: &[u8]) -> Transport {
    let Some((kind, bytes)) = bytes.split_first() else {
        return Transport::Unknown;
    };
    let header = match kind {
        1 => tcp(bytes).map(Transport::Tcp),
        2 => udp(bytes),
        3 => bytes.first_chunk().map(|[kind, code]| Transport::Icmp {
            kind: *kind,
            code: *code,
        }),
        _ => None,
    };
    header.unwrap_or(Transport::Unknown)
}

fn udp(bytes: &[u8]) -> Option<Transport> {
    Some(Transport::Udp {
        source: short(bytes, 0)?,
        destination: short(bytes, 2)?,
        length: short(bytes, 4)?,
    })
}

fn tcp(bytes: &[u8]) -> Option<TcpHeader> {
    Some(TcpHeader {
        source: short(bytes, 0)?,
        destination: short(bytes, 2)?,
        sequence: long(bytes, 4)?,
        acknowledged: long(bytes, 8)?,
        flags: short(bytes, 12)? & 0x1ff,
        window: short(bytes, 14)?,
    })
}
