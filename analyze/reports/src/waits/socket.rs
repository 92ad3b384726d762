//! Sockets: duration of calls and time to a response, by peer.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Peer;
use tracebraid_threads::CallClass;

use crate::waits::ended_call::{EndedCall, Owner};
use crate::waits::keyed::Keyed;
use tracebraid_follow::ThreadKey;
use tracebraid_statistics::Distribution;

/// The role of a process in a connection.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub(super) enum Side {
    /// The process connected.
    Client,
    /// The process accepted.
    Server,
    /// Neither was seen.
    #[default]
    Unknown,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
            Side::Unknown => "unknown",
        }
    }
}

/// A measured interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Measure {
    Connect,
    Accept,
    Send,
    Receive,
    /// From the end of the last call that sent to the end of the next one that received.
    Response,
}

/// Number of measures.
pub(super) const MEASURES: usize = 5;

impl Measure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::Connect => "connect",
            Measure::Accept => "accept",
            Measure::Send => "send",
            Measure::Receive => "receive",
            Measure::Response => "response",
        }
    }
}

/// A socket of a process.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Socket {
    pub(super) is_open: bool,
    /// True for a socket of the family AF_UNIX.
    pub(super) is_local: bool,
    pub(super) end: End,
    /// End of the last call that sent, if none has received since.
    pub(super) sent: Option<i64>,
}

/// Role and peer of a socket. For a server, the peer's port is arbitrary and is set to 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub(super) struct End {
    pub(super) side: Side,
    pub(super) peer: Option<Peer>,
}

impl End {
    pub(super) fn client(peer: Option<Peer>) -> End {
        let side = Side::Client;
        End { side, peer }
    }

    pub(super) fn server(peer: Option<Peer>) -> End {
        let side = Side::Server;
        let peer = peer.map(|peer| Peer { port: 0, ..peer });
        End { side, peer }
    }
}

/// `EINPROGRESS`: the connection is established in the background.
pub(super) const IN_PROGRESS: i64 = -115;

/// AF_UNIX.
pub(super) const UNIX: i64 = 1;

/// Owner and descriptor of a socket.
pub(super) type SocketKey = (Owner, i64);

/// The open sockets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sockets {
    open: Keyed<SocketKey, Socket>,
}

/// Sums by thread, role and peer, and measure.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SocketSums(Keyed<(ThreadKey, End, Measure), Distribution>);

impl SocketSums {
    /// The index of the sums of a key. The index never changes.
    pub(super) fn place(&mut self, key: (ThreadKey, End, Measure)) -> usize {
        self.0.place(key)
    }

    /// The sums at an index.
    pub(super) fn at(&mut self, place: usize) -> Option<&mut Distribution> {
        self.0.at(place)
    }

    /// The sums of a key.
    pub(super) fn get(&mut self, key: (ThreadKey, End, Measure)) -> &mut Distribution {
        self.0.get(key)
    }

    pub(super) fn merge(&mut self, later: SocketSums) {
        self.0.merge(later.0, |own, later| own.merge(&later));
    }

    /// The sums with their keys.
    pub(super) fn entries(&self) -> &[((ThreadKey, End, Measure), Distribution)] {
        self.0.entries()
    }
}

impl Sockets {
    /// Processes a call that has ended.
    pub(super) fn done(&mut self, sums: &mut SocketSums, done: &EndedCall) {
        let descriptor = done.begun.argument;
        let peer = done.peer;
        match done.begun.class {
            CallClass::Socket if done.result >= 0 => {
                // The argument is the address family.
                self.make(done.owner, done.result, End::default(), descriptor == UNIX);
            }
            CallClass::Connect if done.result >= 0 || done.result == IN_PROGRESS => {
                let is_local = self.is_local(done.owner, descriptor);
                self.make(done.owner, descriptor, End::client(peer), is_local);
                self.add(sums, done, descriptor, Measure::Connect, done.begun.time);
            }
            CallClass::Accept if done.result >= 0 => {
                // The listening socket has the same family.
                let is_local = self.is_local(done.owner, descriptor);
                self.make(done.owner, done.result, End::server(peer), is_local);
                self.add(sums, done, done.result, Measure::Accept, done.begun.time);
            }
            CallClass::Send | CallClass::Write | CallClass::Copy if done.result > 0 => {
                self.sends(sums, done, descriptor)
            }
            CallClass::Receive | CallClass::Read if done.result > 0 => {
                self.receives(sums, done, descriptor)
            }
            CallClass::Close => {
                if let Some(socket) = self.open.find((done.owner, descriptor)) {
                    *socket = Socket::default();
                }
            }
            _ => {}
        }
    }

    /// True for a descriptor that is known to be a socket of the family AF_UNIX.
    pub(super) fn is_local(&mut self, owner: Owner, descriptor: i64) -> bool {
        let socket = self.open.find((owner, descriptor));
        socket.is_some_and(|socket| socket.is_open && socket.is_local)
    }

    fn make(&mut self, owner: Owner, descriptor: i64, end: End, is_local: bool) {
        let is_told = end.peer.is_some_and(|peer| i64::from(peer.family) == UNIX);
        *self.open.get((owner, descriptor)) = Socket {
            is_open: true,
            is_local: is_local || is_told,
            end,
            ..Socket::default()
        };
    }

    /// The socket with that descriptor. A call that only sockets support opens an unknown
    /// descriptor as a socket.
    fn socket(&mut self, done: &EndedCall, descriptor: i64) -> Option<&mut Socket> {
        let key = (done.owner, descriptor);
        if matches!(done.begun.class, CallClass::Send | CallClass::Receive) {
            let socket = self.open.get(key);
            socket.is_open = true;
            return Some(socket);
        }
        self.open.find(key).filter(|socket| socket.is_open)
    }

    fn sends(&mut self, sums: &mut SocketSums, done: &EndedCall, descriptor: i64) {
        let Some(socket) = self.socket(done, descriptor) else {
            return;
        };
        socket.sent = Some(done.time);
        self.add(sums, done, descriptor, Measure::Send, done.begun.time);
    }

    fn receives(&mut self, sums: &mut SocketSums, done: &EndedCall, descriptor: i64) {
        let Some(socket) = self.socket(done, descriptor) else {
            return;
        };
        let sent = socket.sent.take();
        self.add(sums, done, descriptor, Measure::Receive, done.begun.time);
        if let Some(sent) = sent {
            self.add(sums, done, descriptor, Measure::Response, sent);
        }
    }

    /// Adds an interval for the socket that has the descriptor now.
    fn add(
        &mut self,
        sums: &mut SocketSums,
        done: &EndedCall,
        descriptor: i64,
        measure: Measure,
        begin: i64,
    ) {
        if done.counts {
            let end = self.open.get((done.owner, descriptor)).end;
            let sums = sums.get((done.thread, end, measure));
            sums.add(begin.abs_diff(done.time));
        }
    }

    /// The socket with a key, or a closed one.
    pub(super) fn find(&mut self, key: SocketKey) -> Socket {
        self.open
            .find(key)
            .map(|socket| *socket)
            .unwrap_or_default()
    }

    /// Sets a socket; closed ones that were never open are not stored.
    pub(super) fn set(&mut self, key: SocketKey, socket: Socket) {
        match self.open.find(key) {
            Some(own) => *own = socket,
            None if socket.is_open => *self.open.get(key) = socket,
            None => {}
        }
    }
}
