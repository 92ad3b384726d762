//! Network: packets at devices, sockets, TCP.

use crate::drop_reason::DropReason;
use crate::field::{IntField, TextField};
use crate::finder::Finder;
use crate::headers::HeadersField;

/// Step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketStep {
    /// The packet is queued at a device for sending.
    Queue,
    /// The driver begins to send the packet.
    StartXmit,
    /// The driver has accepted the packet, or not.
    Xmit,
    /// The received packet goes up the network stack.
    Receive,
    /// The received packet is put into a queue.
    Rx,
    /// The packet is received on a path whose events contain only the buffer or device.
    ReceiveEntry,
}

/// A packet at a device.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Step of the packet.
    pub step: PacketStep,
    /// Address of the packet's buffer.
    pub buffer: IntField,
    /// Length in bytes.
    pub length: Option<IntField>,
    /// Name of the device.
    pub device: Option<TextField>,
    /// Result of the driver; 0 if it accepted the packet.
    pub result: Option<IntField>,
    /// Headers of the packet (lttng-modules since 2.8).
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

/// A packet's buffer is freed.
#[derive(Clone, Debug)]
pub struct PacketFree {
    /// True if the packet was dropped, false if it was consumed.
    pub dropped: bool,
    /// Address of the packet's buffer.
    pub buffer: IntField,
    /// Address of the code that frees the buffer.
    pub location: Option<IntField>,
    /// Reason of a drop. Absent on kernels before 5.17.
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

/// A device is polled for received packets.
#[derive(Clone, Debug)]
pub struct Napi {
    /// Name of the device.
    pub device: Option<TextField>,
    /// Number of processed packets. Absent on older kernels.
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

/// Step of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TcpStep {
    /// A segment is retransmitted.
    Retransmit,
    /// A SYN-ACK is retransmitted.
    RetransmitSynAck,
    /// A reset is sent.
    SendReset,
    /// A reset is received.
    ReceiveReset,
    /// The socket is destroyed.
    Destroy,
    /// A segment is received; the event contains the state of the connection.
    Probe,
    /// The receive buffer grows.
    ReceiveSpace,
    /// A segment with a wrong checksum is received.
    BadChecksum,
    /// The state of congestion control changes.
    CongestionState,
}

/// A step of a TCP connection.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Step of the connection.
    pub step: TcpStep,
    /// Address of the socket.
    pub socket: Option<IntField>,
    /// Local port.
    pub source_port: Option<IntField>,
    /// Remote port.
    pub destination_port: Option<IntField>,
    /// State of the connection; see [`crate::tcp_state_name`].
    pub state: Option<IntField>,
    /// Smoothed round-trip time in microseconds.
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

/// Step of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SocketStep {
    /// The state of the socket changes.
    State,
    /// A segment is received from the network.
    In,
    /// A segment is sent.
    Out,
    /// The socket is connected.
    Connect,
    /// The socket accepts a connection.
    Accept,
    /// The socket is created.
    Create,
    /// The socket is created for an accepted connection.
    Clone,
    /// The socket is deleted.
    Delete,
    /// The receive buffer is full: a packet is dropped.
    ReceiveFull,
    /// The socket would exceed its memory limit.
    ExceedsMemory,
}

/// A socket of the Internet families.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Step of the socket.
    pub step: SocketStep,
    /// Address of the socket.
    pub socket: Option<IntField>,
    /// Address of the packet's buffer.
    pub buffer: Option<IntField>,
    /// Address family.
    pub family: Option<IntField>,
    /// Protocol; 6 for TCP.
    pub protocol: Option<IntField>,
    /// Local port.
    pub source_port: Option<IntField>,
    /// Remote port.
    pub destination_port: Option<IntField>,
    /// Old state; see [`crate::tcp_state_name`].
    pub old_state: Option<IntField>,
    /// New state.
    pub new_state: Option<IntField>,
    /// Sequence number of the segment's first byte.
    pub sequence: Option<IntField>,
    /// Sequence number of the byte expected from the other side next.
    pub acknowledged: Option<IntField>,
    /// Flags of the segment.
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
