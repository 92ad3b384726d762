//! Headers of packets, as lttng-modules records them.
//!
//! The name of the device is followed by a byte with the type of the network header (0 none, 1
//! IPv4, 2 IPv6), that header as on the wire (without IPv4 options), a byte with the type of the
//! transport header (0 none, 1 TCP, 2 UDP, 3 ICMP), and that header as on the wire (20 or 8 bytes).
//!
//! Programs that rewrite traces, such as babeltrace2 for CTF 2, may write these numbers in another
//! byte order, which their fields declare.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::{Body, TextField};
use crate::finder::Finder;

/// The headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number of the transport: 6 TCP, 17 UDP.
    pub protocol: u8,
    /// Length of the packet in bytes; for IPv6 without the IPv6 header.
    pub length: u16,
    /// Header of the transport protocol.
    pub transport: Transport,
}

/// Header of the transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp(TcpHeader),
    /// UDP.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Length in bytes, including the header.
        length: u16,
    },
    /// ICMP.
    Icmp {
        /// Type of the message.
        kind: u8,
        /// Code within the type.
        code: u8,
    },
    /// The header was not recorded.
    Unknown,
}

/// The header of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number of the segment's first byte.
    pub sequence: u32,
    /// Sequence number of the byte expected next.
    pub acknowledged: u32,
    /// Nine flag bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, ...
    pub flags: u16,
    /// Receive window in bytes.
    pub window: u16,
}

/// Position of the headers in an event class.
#[derive(Clone, Debug)]
pub struct HeadersField {
    /// Text before the headers, and the offset of its first byte.
    name: TextField,
    name_at: usize,
    /// True if numbers are in network byte order.
    is_big_endian: bool,
}

/// Values of network_header_type.
const IPV4: u8 = 1;
const IPV6: u8 = 2;

impl HeadersField {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<HeadersField> {
        let members = finder.members();
        let at = members
            .iter()
            .position(|name| *name == "network_header_type")?;
        let before = at.checked_sub(1).and_then(|before| members.get(before))?;
        let after = members.get(at + 1)?;
        if *before != "name" || *after != "network_header" {
            return None;
        }
        let (name, offset) = finder.text_at("name")?;
        Some(HeadersField {
            name,
            name_at: usize::try_from(offset)
                .ok()
                .filter(|offset| offset % 8 == 0)?
                / 8,
            is_big_endian: finder.is_big_endian(&["tot_len", "payload_len"])?,
        })
    }

    /// The headers; `None` if the packet is of another protocol, or the record is too short.
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<Headers> {
        // After the terminating null.
        let at = self.name_at + self.name.bytes(body)?.len() + 1;
        let (kind, bytes) = body.bytes().get(at..)?.split_first()?;
        let header = Bytes {
            bytes,
            is_big_endian: self.is_big_endian,
        };
        match *kind {
            IPV4 => header.ipv4(),
            IPV6 => header.ipv6(),
            _ => None,
        }
    }
}

/// Bytes of a header, with their byte order.
#[derive(Clone, Copy)]
struct Bytes<'b> {
    bytes: &'b [u8],
    is_big_endian: bool,
}

impl Bytes<'_> {
    fn at<const LENGTH: usize>(self, at: usize) -> Option<[u8; LENGTH]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }

    fn from(self, at: usize) -> Option<Self> {
        let bytes = self.bytes.get(at..)?;
        Some(Bytes { bytes, ..self })
    }

    fn short(self, at: usize) -> Option<u16> {
        let bytes = self.at(at)?;
        Some(match self.is_big_endian {
            true => u16::from_be_bytes(bytes),
            false => u16::from_le_bytes(bytes),
        })
    }

    fn long(self, at: usize) -> Option<u32> {
        let bytes = self.at(at)?;
        Some(match self.is_big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        })
    }

    /// Addresses are arrays of bytes in either byte order.
    fn ipv4(self) -> Option<Headers> {
        let address = |at| Some(IpAddr::V4(Ipv4Addr::from(self.at::<4>(at)?)));
        Some(Headers {
            source: address(12)?,
            destination: address(16)?,
            protocol: *self.bytes.get(9)?,
            length: self.short(2)?,
            transport: self.from(20)?.transport(),
        })
    }

    fn ipv6(self) -> Option<Headers> {
        let address = |at| Some(IpAddr::V6(Ipv6Addr::from(self.at::<16>(at)?)));
        Some(Headers {
            source: address(8)?,
            destination: address(24)?,
            protocol: *self.bytes.get(6)?,
            length: self.short(4)?,
            transport: self.from(40)?.transport(),
        })
    }

    fn transport(self) -> Transport {
        let header = self.from(1);
        let header = header.and_then(|header| match self.bytes.first()? {
            1 => header.tcp().map(Transport::Tcp),
            2 => header.udp(),
            3 => header
                .at(0)
                .map(|[kind, code]| Transport::Icmp { kind, code }),
            _ => None,
        });
        header.unwrap_or(Transport::Unknown)
    }

    fn udp(self) -> Option<Transport> {
        Some(Transport::Udp {
            source: self.short(0)?,
            destination: self.short(2)?,
            length: self.short(4)?,
        })
    }

    fn tcp(self) -> Option<TcpHeader> {
        // The flags follow 4 bits of offset and 3 reserved bits. In little-endian bit order they
        // are above these bits.
        let flags = self.short(12)?;
        Some(TcpHeader {
            source: self.short(0)?,
            destination: self.short(2)?,
            sequence: self.long(4)?,
            acknowledged: self.long(8)?,
            flags: if self.is_big_endian {
                flags & 0x1ff
            } else {
                flags >> 7
            },
            window: self.short(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment as on the wire, and the same with its numbers in little-endian byte and bit order.
    #[test]
    fn both_byte_orders_give_the_same() {
        let wire = [
            0x45, 0, 0x02, 0x01, 0xb5, 0x79, 0x40, 0, 64, 6, 0x87, 0x40, 127, 0, 0, 1, 10, 0, 0, 2,
            1, 0x1b, 0x59, 0xa4, 0xdc, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x12, 0xff, 0xd7, 0, 0, 0, 0,
        ];
        let mut other = wire;
        for (from, length) in [(2, 2), (4, 2), (21, 2), (23, 2), (25, 4), (29, 4), (35, 2)] {
            other[from..from + length].reverse();
        }
        // Offset 5, flags 0x12.
        other[33..35].copy_from_slice(&(5u16 | 0x12 << 7).to_le_bytes());
        let read = |bytes: &[u8], is_big_endian| {
            Bytes {
                bytes,
                is_big_endian,
            }
            .ipv4()
        };
        let expected = Headers {
            source: IpAddr::from([127, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 0, 2]),
            protocol: 6,
            length: 0x0201,
            transport: Transport::Tcp(TcpHeader {
                source: 7001,
                destination: 42204,
                sequence: 0x0102_0304,
                acknowledged: 0x0506_0708,
                flags: 0x12,
                window: 0xffd7,
            }),
        };
        assert_eq!(read(&wire, true), Some(expected));
        assert_eq!(read(&other, false), Some(expected));
        assert_eq!(read(&wire[..19], true), None);
    }
}
