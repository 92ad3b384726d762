//! TCP connections, from the headers of packets.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Headers, TcpHeader, Transport};

use tracebraid_follow::{KeyHasher, NumberIndex};

/// One endpoint of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Side {
    is_ipv6: bool,
    address: u128,
    port: u16,
}

impl Side {
    fn new(address: IpAddr, port: u16) -> Side {
        let (is_ipv6, address) = match address {
            IpAddr::V4(address) => (false, u128::from(u32::from(address))),
            IpAddr::V6(address) => (true, u128::from(address)),
        };
        Side {
            is_ipv6,
            address,
            port,
        }
    }

    /// Address and port as text.
    pub(super) fn text(self) -> String {
        if self.is_ipv6 {
            return format!("[{}]:{}", Ipv6Addr::from(self.address), self.port);
        }
        format!("{}:{}", Ipv4Addr::from(self.address as u32), self.port)
    }
}

/// The endpoints of a connection, the lesser first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ConnectionKey {
    pub(super) trace: u32,
    pub(super) a: Side,
    pub(super) b: Side,
}

impl Hash for ConnectionKey {
    /// Most connections differ by ports or by an address, so one write suffices.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ports = u64::from(self.a.port) << 16 | u64::from(self.b.port);
        let addresses = (self.a.address ^ self.b.address.rotate_left(1)) as u64;
        state.write_u64(ports << 32 ^ addresses ^ u64::from(self.trace));
    }
}

/// Number of packets, and their bytes from the network header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Sum {
    pub(super) fn add(&mut self, other: Sum) {
        self.packets += other.packets;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Way {
    sent: Sum,
    received: Sum,
}

impl Way {
    /// Packets within the host are both sent and received; they count once.
    pub(super) fn sum(&self) -> Sum {
        match self.sent.packets {
            0 => self.received,
            _ => self.sent,
        }
    }
}

/// Sums of a connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Connection {
    /// From the first endpoint to the second, and back.
    pub(super) ways: [Way; 2],
    /// Numbers of reset packets, sent and received.
    resets: [u64; 2],
}

impl Connection {
    /// Number of reset packets.
    pub(super) fn resets(&self) -> u64 {
        let [sent, received] = self.resets;
        sent.max(received)
    }

    fn merge(&mut self, other: &Connection) {
        for (own, other) in self.ways.iter_mut().zip(&other.ways) {
            own.sent.add(other.sent);
            own.received.add(other.received);
        }
        let resets = self.resets.iter_mut().zip(other.resets);
        resets.for_each(|(own, other)| *own += other);
    }
}

/// All connections, in the order of their first packets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Connections {
    entries: Vec<(ConnectionKey, Connection)>,
    #[serde(skip)]
    index: NumberIndex,
    /// The last used directions: a packet often follows one of the same connection, and a packet
    /// within the host is both sent and received.
    #[serde(skip)]
    recent: [Option<Recent>; 2],
}

/// One direction of a connection: trace, sender, receiver, and index.
type Recent = (u32, (IpAddr, u16), (IpAddr, u16), ConnectionSide);

/// Index of a connection, and of the direction.
type ConnectionSide = (usize, usize);

const RESET: u16 = 4;
const IPV6_HEADER: u64 = 40;

impl Connections {
    /// The index of a connection; adds it if it is new.
    fn find(&mut self, key: ConnectionKey) -> usize {
        if self.index.count() != self.entries.len() {
            self.index_all();
        }
        let hash = KeyHasher::hash_of(&key);
        let is_key = |at: u32| {
            self.entries
                .get(at as usize)
                .is_some_and(|entry| entry.0 == key)
        };
        match self.index.find(hash, is_key) {
            Some(at) => at as usize,
            None => {
                let at = self.entries.len();
                self.index.insert(hash, at as u32);
                self.entries.push((key, Connection::default()));
                at
            }
        }
    }

    /// Rebuilds the index, which is not serialized.
    #[cold]
    fn index_all(&mut self) {
        self.index.clear();
        for ((key, _), at) in self.entries.iter().zip(0..) {
            self.index.insert(KeyHasher::hash_of(key), at);
        }
    }

    /// Counts a TCP packet; `length` is its size if the header does not contain one.
    pub(super) fn add(&mut self, trace: u32, headers: &Headers, length: u64, is_sent: bool) {
        let Transport::Tcp(TcpHeader {
            source,
            destination,
            flags,
            ..
        }) = headers.transport
        else {
            return;
        };
        let bytes = match (u64::from(headers.length), headers.source) {
            (0, _) => length,
            (length, IpAddr::V4(_)) => length,
            (length, IpAddr::V6(_)) => length + IPV6_HEADER,
        };
        let from = (headers.source, source);
        let (at, way) = self.place(trace, from, (headers.destination, destination));
        let connection = &mut self.entries[at].1;
        let way = &mut connection.ways[way];
        let sum = if is_sent {
            &mut way.sent
        } else {
            &mut way.received
        };
        sum.add(Sum { packets: 1, bytes });
        connection.resets[usize::from(!is_sent)] += u64::from(flags & RESET != 0);
    }

    /// The connection from one endpoint to another, and the direction.
    #[inline]
    fn place(&mut self, trace: u32, from: (IpAddr, u16), to: (IpAddr, u16)) -> ConnectionSide {
        let is_it = |recent: &&Recent| (recent.1, recent.2, recent.0) == (from, to, trace);
        if let Some(recent) = self.recent.iter().flatten().find(is_it) {
            return recent.3;
        }
        let (side, other) = (Side::new(from.0, from.1), Side::new(to.0, to.1));
        let (a, b) = (side.min(other), side.max(other));
        let place = (
            self.find(ConnectionKey { trace, a, b }),
            usize::from(side != a),
        );
        self.recent = [Some((trace, from, to, place)), self.recent[0]];
        place
    }

    pub(super) fn merge(&mut self, later: &Connections) {
        for (key, connection) in &later.entries {
            let at = self.find(*key);
            self.entries[at].1.merge(connection);
        }
    }

    pub(super) fn entries(&self) -> &[(ConnectionKey, Connection)] {
        &self.entries
    }
}
