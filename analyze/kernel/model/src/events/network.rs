//! Network: packets at devices, sockets, TCP.

use crate::drop_reason::DropReason;
use crate::field::{IntField, TextField};
use crate::finder::Finder;
use crate::headers::HeadersField;

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketStep {
    /// It is handed to a device for sending.
    Queue,
    /// The driver begins to send it.
    StartXmit,
    /// The driver took it, or not.
    Xmit,
    /// It has come in and goes up the stack.
    Receive,
    /// It has come in and is put into a queue.
    Rx,
    /// It comes in by a way whose events only name the buffer or device.
    ReceiveEntry,
}

/// A packet at a device.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Where it is.
    pub step: PacketStep,
    /// Address of its buffer.
    pub buffer: IntField,
    /// Its length in bytes.
    pub length: Option<IntField>,
    /// Name of the device.
    pub device: Option<TextField>,
    /// What the driver says: 0 for taken.
    pub result: Option<IntField>,
    /// Its headers (lttng-modules since 2.8).
    pub headers: Option<HeadersField>,
}

impl Packet {
    pub(crate) fn find(finder: &Finder<'_>, step: PacketStep) -> Option<Box<Packet>> {
        Some(Box::new(Packet {
            step,
            buffer: finder.int(&["skbaddr"])?,
            length: finder.int(&["len"]),
            device: finder.text(&["name", "dev_name", "dev"]),
            result: finder.int(&["rc"]),
            headers: HeadersField::find(finder),
        }))
    }
}

/// The end of a packet's buffer.
#[derive(Clone, Debug)]
pub struct PacketFree {
    /// True if the packet was dropped, false if it was used up.
    pub dropped: bool,
    /// Address of its buffer.
    pub buffer: IntField,
    /// Address of the code that frees it.
    pub location: Option<IntField>,
    /// Why it was dropped. Not with kernels before 5.17.
    pub reason: Option<DropReason>,
}

impl PacketFree {
    pub(crate) fn find(finder: &Finder<'_>, dropped: bool, unspecified: i64) -> Option<PacketFree> {
        Some(PacketFree {
            dropped,
            buffer: finder.int(&["skbaddr"])?,
            location: finder.int(&["location"]),
            reason: finder.drop_reason(unspecified),
        })
    }
}

/// A device is asked for what has come in.
#[derive(Clone, Debug)]
pub struct Napi {
    /// Name of the device.
    pub device: Option<TextField>,
    /// Packets that were taken. Not with older kernels.
    pub work: Option<IntField>,
}

impl Napi {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Napi> {
        Some(Napi {
            device: finder.text(&["dev_name"]),
            work: finder.int(&["work"]),
        })
    }
}

/// What happens to a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TcpStep {
    /// A segment is sent again.
    Retransmit,
    /// An answer to a new connection is sent again.
    RetransmitSynAck,
    /// A reset is sent.
    SendReset,
    /// A reset has come in.
    ReceiveReset,
    /// The socket ends.
    Destroy,
    /// A segment has come in: the state of the connection.
    Probe,
    /// The buffer for what comes in grows.
    ReceiveSpace,
    /// A segment came with a wrong checksum.
    BadChecksum,
    /// The way of controlling congestion changes its state.
    CongestionState,
}

/// Something happens to a TCP connection.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// What.
    pub step: TcpStep,
    /// Address of the socket.
    pub socket: Option<IntField>,
    /// Port on this side.
    pub source_port: Option<IntField>,
    /// Port on the other side.
    pub destination_port: Option<IntField>,
    /// State of the connection; see [`crate::tcp_state_name`].
    pub state: Option<IntField>,
    /// Smoothed time of a round trip, in microseconds.
    pub round_trip: Option<IntField>,
    /// Congestion window, in segments.
    pub congestion_window: Option<IntField>,
    /// Length of the segment in bytes.
    pub length: Option<IntField>,
}

impl Tcp {
    pub(crate) fn find(finder: &Finder<'_>, step: TcpStep) -> Option<Box<Tcp>> {
        let tcp = Tcp {
            step,
            socket: finder.int(&["skaddr", "sk"]),
            source_port: finder.int(&["sport"]),
            destination_port: finder.int(&["dport"]),
            state: finder.int(&["state", "cong_state"]),
            round_trip: finder.int(&["srtt"]),
            congestion_window: finder.int(&["snd_cwnd"]),
            length: finder.int(&["data_len", "length"]),
        };
        let known = tcp.socket.is_some() || tcp.source_port.is_some();
        known.then(|| Box::new(tcp))
    }
}

/// What happens to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SocketStep {
    /// Its state changes.
    State,
    /// A segment goes into it (from the network).
    In,
    /// A segment goes out of it.
    Out,
    /// It is connected.
    Connect,
    /// It takes a connection.
    Accept,
    /// It is made.
    Create,
    /// It is made for a connection that is taken.
    Clone,
    /// It ends.
    Delete,
    /// Its buffer for what comes in is full: a packet is dropped.
    ReceiveFull,
    /// It would take more memory than it may.
    ExceedsMemory,
}

/// A socket of the Internet families.
#[derive(Clone, Debug)]
pub struct Socket {
    /// What happens to it.
    pub step: SocketStep,
    /// Its address.
    pub socket: Option<IntField>,
    /// Address of the packet's buffer.
    pub buffer: Option<IntField>,
    /// Its family.
    pub family: Option<IntField>,
    /// Its protocol: 6 for TCP.
    pub protocol: Option<IntField>,
    /// Port on this side.
    pub source_port: Option<IntField>,
    /// Port on the other side.
    pub destination_port: Option<IntField>,
    /// State before; see [`crate::tcp_state_name`].
    pub old_state: Option<IntField>,
    /// State after.
    pub new_state: Option<IntField>,
    /// Number of the segment's first byte.
    pub sequence: Option<IntField>,
    /// Number of the byte that the other side is to send next.
    pub acknowledged: Option<IntField>,
    /// The segment's flags.
    pub flags: Option<IntField>,
}

impl Socket {
    pub(crate) fn find(finder: &Finder<'_>, step: SocketStep) -> Option<Box<Socket>> {
        Some(Box::new(Socket {
            step,
            socket: finder.int(&["skaddr", "sk"]),
            buffer: finder.int(&["skbaddr", "skb"]),
            family: finder.int(&["family"]),
            protocol: finder.int(&["protocol"]),
            source_port: finder.int(&["sport", "source_port", "source"]),
            destination_port: finder.int(&["dport", "dest_port", "dest"]),
            old_state: finder.int(&["oldstate"]),
            new_state: finder.int(&["newstate"]),
            sequence: finder.int(&["seq"]),
            acknowledged: finder.int(&["ack_seq"]),
            flags: finder.int(&["flags"]),
        }))
    }
}
