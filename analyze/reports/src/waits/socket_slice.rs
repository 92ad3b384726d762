//! Plays sockets in a slice of time without those that were open before.
//!
//! The socket of a descriptor at the start of the slice is a symbol. Its sums are by symbol until
//! the descriptor is closed or becomes another socket. If a kept step
//! ([`WaitStep`](crate::waits::wait_slice::WaitStep)) may change sockets of a process in an unknown
//! manner, their descriptors get new symbols from then on. Composing resolves the symbols in the
//! order in which they were replaced.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use tracebraid_threads::CallClass;

use crate::waits::ended_call::{EndedCall, Owner};
use crate::waits::keyed::Keyed;
use crate::waits::socket::{
    End, IN_PROGRESS, MEASURES, Measure, Socket, SocketKey, SocketSums, Sockets, UNIX,
};
use tracebraid_follow::{KeyHasher, ThreadKey};
use tracebraid_statistics::Distribution;

/// The sockets of a slice. Its size depends on the number of descriptors that are read and written,
/// and of the threads that do so.
#[derive(Clone, Debug, Default)]
pub(super) struct SocketSlice {
    open: Keyed<SocketKey, SliceSocket>,
    /// By symbol: its descriptor.
    symbols: Vec<SocketKey>,
    /// By owner: number of the last step that may have changed the owner's sockets.
    barriers: HashMap<Owner, u32, BuildHasherDefault<KeyHasher>>,
    last_barrier: u32,
    flushed: Vec<Flushed>,
    /// Sums by thread, symbol and measure. With `true` the symbol is an open socket; with `false`
    /// the sums count only if it is.
    sums: Keyed<(ThreadKey, u32, Measure, bool), Distribution>,
}

/// The state of a socket before a step.
#[derive(Clone, Copy, Debug)]
struct Flushed {
    step: u32,
    key: SocketKey,
    socket: SliceSocket,
}

/// A slice's knowledge of a socket.
#[derive(Clone, Copy, Debug, Default)]
struct SliceSocket {
    /// Number of steps at its last use.
    touched: u32,
    /// The symbol plus one; 0 if it was not used yet.
    symbol: u32,
    base: Base,
    sent: Sent,
    response: Option<Response>,
    /// By measure: the last thread, and the index of its sums.
    near: [Option<(i32, u32)>; MEASURES],
}

/// The socket of a descriptor.
#[derive(Clone, Copy, Debug, Default)]
enum Base {
    /// As at the start of the symbol.
    #[default]
    Symbol,
    /// As at the start of the symbol, and an open socket.
    Open,
    Known {
        is_open: bool,
        is_local: Local,
        end: End,
    },
}

/// Whether a socket is of the family AF_UNIX.
#[derive(Clone, Copy, Debug)]
enum Local {
    Known(bool),
    /// True if the symbol is an open socket of that family.
    Of(u32),
}

/// End of the last call that sent, if none has received since.
#[derive(Clone, Copy, Debug, Default)]
enum Sent {
    /// As at the start of the symbol.
    #[default]
    Symbol,
    Nothing,
    At(i64),
    /// At the given time, if the symbol is an open socket.
    Perhaps(i64),
}

/// The first receipt, which ends the response to a send before the symbol's start.
#[derive(Clone, Copy, Debug)]
struct Response {
    thread: ThreadKey,
    time: i64,
}

impl SocketSlice {
    fn is_stale(&self, (owner, _): SocketKey, touched: u32) -> bool {
        touched < self.last_barrier
            && self
                .barriers
                .get(&owner)
                .is_some_and(|barrier| touched < *barrier)
    }

    /// The socket with a descriptor, after `steps` steps.
    #[inline]
    fn touch(&mut self, key: SocketKey, steps: u32) -> &mut SliceSocket {
        let last_barrier = self.last_barrier;
        let socket = self.open.get(key);
        if socket.symbol == 0 || socket.touched < last_barrier {
            self.look_at(key);
        }
        let socket = self.open.get(key);
        socket.touched = steps;
        socket
    }

    #[cold]
    fn look_at(&mut self, key: SocketKey) {
        let socket = *self.open.get(key);
        if socket.symbol == 0 || self.is_stale(key, socket.touched) {
            self.begin(key, socket);
        }
    }

    /// The socket of the descriptor is unknown from now on: begins a new symbol.
    #[cold]
    fn begin(&mut self, key: SocketKey, socket: SliceSocket) {
        if socket.symbol > 0 {
            self.flushed.push(Flushed {
                step: socket.touched,
                key,
                socket,
            });
        }
        self.symbols.push(key);
        *self.open.get(key) = SliceSocket {
            symbol: self.symbols.len() as u32,
            touched: socket.touched,
            ..SliceSocket::default()
        };
    }

    /// The next step, which is kept, may change sockets of the owner.
    pub(super) fn bar(&mut self, owner: Owner, steps: u32) {
        self.last_barrier = steps;
        self.barriers.insert(owner, steps);
    }

    /// Whether a descriptor is a socket of the family AF_UNIX. If unknown, the next step is kept,
    /// and the state of the socket is flushed for it.
    pub(super) fn is_local(&mut self, key: SocketKey, steps: u32) -> Option<bool> {
        let socket = *self.open.find(key)?;
        if socket.symbol == 0 || self.is_stale(key, socket.touched) {
            return None;
        }
        match socket.base {
            Base::Symbol | Base::Open => None,
            Base::Known { is_open: false, .. } => Some(false),
            Base::Known {
                is_local: Local::Known(is_local),
                ..
            } => Some(is_local),
            Base::Known { .. } => {
                let touched = steps;
                self.begin(key, SliceSocket { touched, ..socket });
                None
            }
        }
    }

    fn local(&mut self, key: SocketKey, steps: u32) -> Local {
        let socket = self.touch(key, steps);
        match socket.base {
            Base::Symbol | Base::Open => Local::Of(socket.symbol - 1),
            Base::Known { is_open: false, .. } => Local::Known(false),
            Base::Known { is_local, .. } => is_local,
        }
    }

    /// Processes a call that has ended, after `steps` steps.
    pub(super) fn done(&mut self, sums: &mut SocketSums, done: &EndedCall, steps: u32) {
        let descriptor = done.begun.argument;
        let key = (done.owner, descriptor);
        let peer = done.peer;
        match done.begun.class {
            CallClass::Socket if done.result >= 0 => {
                let is_local = Local::Known(descriptor == UNIX);
                self.make((done.owner, done.result), End::default(), is_local, steps);
            }
            CallClass::Connect if done.result >= 0 || done.result == IN_PROGRESS => {
                let is_local = self.local(key, steps);
                self.make(key, End::client(peer), is_local, steps);
                self.add(sums, done, key, (Measure::Connect, done.begun.time));
            }
            CallClass::Accept if done.result >= 0 => {
                let is_local = self.local(key, steps);
                let key = (done.owner, done.result);
                self.make(key, End::server(peer), is_local, steps);
                self.add(sums, done, key, (Measure::Accept, done.begun.time));
            }
            CallClass::Send | CallClass::Write | CallClass::Copy if done.result > 0 => {
                self.sends(sums, done, key, steps);
            }
            CallClass::Receive | CallClass::Read if done.result > 0 => {
                self.receives(sums, done, key, steps)
            }
            CallClass::Close => {
                let socket = self.touch(key, steps);
                socket.base = Base::Known {
                    is_open: false,
                    is_local: Local::Known(false),
                    end: End::default(),
                };
                socket.sent = Sent::Nothing;
            }
            _ => {}
        }
    }

    fn make(&mut self, key: SocketKey, end: End, is_local: Local, steps: u32) {
        let is_told = end.peer.is_some_and(|peer| i64::from(peer.family) == UNIX);
        let socket = self.touch(key, steps);
        socket.base = Base::Known {
            is_open: true,
            is_local: match is_told {
                true => Local::Known(true),
                false => is_local,
            },
            end,
        };
        socket.sent = Sent::Nothing;
        socket.near = Default::default();
    }

    /// The socket with that descriptor; `None` if it is not a socket. A call that only sockets
    /// support opens an unknown descriptor as a socket.
    fn used(&mut self, done: &EndedCall, key: SocketKey, steps: u32) -> Option<&mut SliceSocket> {
        let is_sure = matches!(done.begun.class, CallClass::Send | CallClass::Receive);
        let socket = self.touch(key, steps);
        match &mut socket.base {
            Base::Symbol if is_sure => {
                socket.base = Base::Open;
                socket.near = Default::default();
            }
            Base::Known { is_open, .. } if !*is_open => {
                if !is_sure {
                    return None;
                }
                *is_open = true;
                socket.near = Default::default();
            }
            _ => {}
        }
        Some(socket)
    }

    fn sends(&mut self, sums: &mut SocketSums, done: &EndedCall, key: SocketKey, steps: u32) {
        let Some(socket) = self.used(done, key, steps) else {
            return;
        };
        socket.sent = match socket.base {
            Base::Symbol => Sent::Perhaps(done.time),
            _ => Sent::At(done.time),
        };
        self.add(sums, done, key, (Measure::Send, done.begun.time));
    }

    fn receives(&mut self, sums: &mut SocketSums, done: &EndedCall, key: SocketKey, steps: u32) {
        let Some(socket) = self.used(done, key, steps) else {
            return;
        };
        let symbol = socket.symbol - 1;
        match std::mem::replace(&mut socket.sent, Sent::Nothing) {
            Sent::Nothing => {}
            Sent::At(sent) => self.add(sums, done, key, (Measure::Response, sent)),
            Sent::Symbol => {
                socket.response = done.counts.then_some(Response {
                    thread: done.thread,
                    time: done.time,
                });
            }
            Sent::Perhaps(sent) if done.counts => {
                let sums = self
                    .sums
                    .get((done.thread, symbol, Measure::Response, false));
                sums.add(sent.abs_diff(done.time));
            }
            Sent::Perhaps(_) => {}
        }
        self.add(sums, done, key, (Measure::Receive, done.begun.time));
    }

    /// Adds an interval for the socket that has the descriptor now.
    fn add(
        &mut self,
        sums: &mut SocketSums,
        done: &EndedCall,
        key: SocketKey,
        (measure, begin): (Measure, i64),
    ) {
        if !done.counts {
            return;
        }
        let duration = begin.abs_diff(done.time);
        let socket = self.open.get(key);
        let (near, symbol) = (socket.near[measure as usize], socket.symbol - 1);
        let found = near.filter(|near| near.0 == done.thread.tid);
        let place = match (found, socket.base) {
            (Some((_, place)), _) => place as usize,
            (None, Base::Known { end, .. }) => sums.place((done.thread, end, measure)),
            (None, base) => {
                let is_sure = matches!(base, Base::Open);
                self.sums.place((done.thread, symbol, measure, is_sure))
            }
        };
        socket.near[measure as usize] = Some((done.thread.tid, place as u32));
        let sums = match socket.base {
            Base::Known { .. } => sums.at(place),
            _ => self.sums.at(place),
        };
        if let Some(sums) = sums {
            sums.add(duration);
        }
    }

    /// Ends the slice.
    pub(super) fn end(self) -> EndedSockets {
        let mut flushed = self.flushed;
        let used = self.open.into_entries().into_iter();
        let used = used.filter(|(_, socket)| socket.symbol > 0);
        flushed.extend(used.map(|(key, socket)| Flushed {
            step: socket.touched,
            key,
            socket,
        }));
        flushed.sort_by_key(|flushed| flushed.step);
        EndedSockets {
            resolved: vec![None; self.symbols.len()],
            symbols: self.symbols,
            next: 0,
            flushed,
            sums: self.sums.into_entries(),
        }
    }
}

/// The sockets of a played slice, while it is appended to the state before it.
#[derive(Debug)]
pub(super) struct EndedSockets {
    symbols: Vec<SocketKey>,
    /// By symbol: the socket, once the symbol has been replaced.
    resolved: Vec<Option<Socket>>,
    flushed: Vec<Flushed>,
    next: usize,
    sums: Vec<((ThreadKey, u32, Measure, bool), Distribution)>,
}

impl EndedSockets {
    /// Number of additional symbols of the same sockets, and number of sums.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u32, u32) {
        let mut keys = self.symbols.clone();
        keys.sort_unstable();
        keys.dedup();
        (
            (self.symbols.len() - keys.len()) as u32,
            self.sums.len() as u32,
        )
    }

    /// Flushes the sockets up to a step.
    pub(super) fn go_on(&mut self, step: u32, sockets: &mut Sockets, sums: &mut SocketSums) {
        while let Some(&flushed) = self
            .flushed
            .get(self.next)
            .filter(|flushed| flushed.step <= step)
        {
            self.next += 1;
            self.flush(flushed, sockets, sums);
        }
    }

    /// The socket of a symbol.
    fn resolve(&self, symbol: u32, sockets: &mut Sockets) -> Socket {
        let symbol = symbol as usize;
        let resolved = self.resolved.get(symbol).copied().flatten();
        resolved.unwrap_or_else(|| {
            let key = self.symbols.get(symbol);
            key.map(|key| sockets.find(*key)).unwrap_or_default()
        })
    }

    fn flush(
        &mut self,
        Flushed { key, socket, .. }: Flushed,
        sockets: &mut Sockets,
        sums: &mut SocketSums,
    ) {
        let was = sockets.find(key);
        let sent = match socket.sent {
            Sent::Symbol => was.sent,
            Sent::Nothing => None,
            Sent::At(time) => Some(time),
            Sent::Perhaps(time) => was.is_open.then_some(time),
        };
        let becomes = match socket.base {
            Base::Symbol => Socket { sent, ..was },
            Base::Open => Socket {
                is_open: true,
                sent,
                ..was
            },
            Base::Known {
                is_open,
                is_local,
                end,
            } => Socket {
                is_open,
                is_local: match is_local {
                    Local::Known(is_local) => is_local,
                    Local::Of(symbol) => {
                        let of = self.resolve(symbol, sockets);
                        of.is_open && of.is_local
                    }
                },
                end,
                sent,
            },
        };
        if let (Some(response), Some(sent)) = (socket.response, was.sent) {
            let sums = sums.get((response.thread, was.end, Measure::Response));
            sums.add(sent.abs_diff(response.time));
        }
        if let Some(resolved) = self.resolved.get_mut(socket.symbol as usize - 1) {
            *resolved = Some(was);
        }
        sockets.set(key, becomes);
    }

    /// Flushes the rest, and adds the sums of symbols.
    pub(super) fn end(mut self, sockets: &mut Sockets, sums: &mut SocketSums) {
        self.go_on(u32::MAX, sockets, sums);
        for ((thread, symbol, measure, is_sure), of_symbol) in std::mem::take(&mut self.sums) {
            let socket = self.resolve(symbol, sockets);
            if is_sure || socket.is_open {
                sums.get((thread, socket.end, measure)).merge(&of_symbol);
            }
        }
    }
}
