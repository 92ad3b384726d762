//! Sums that do not depend on order.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use crate::net::connections::{Connections, Sum};
use crate::net::interface::{Interface, InterfaceKey, Passed};
use tracebraid_follow::{Table, ThreadKey};

/// Ports of a socket: the local and the remote one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Ports {
    pub(super) trace: u32,
    pub(super) own: u16,
    pub(super) other: u16,
}

/// Numbers of events of TCP sockets with the same ports.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct PortCounts {
    pub(super) retransmissions: u64,
    pub(super) resets_sent: u64,
    pub(super) resets_received: u64,
}

impl PortCounts {
    fn merge(&mut self, other: &PortCounts) {
        self.retransmissions += other.retransmissions;
        self.resets_sent += other.resets_sent;
        self.resets_received += other.resets_received;
    }
}

/// Sums that do not depend on order. Apart from the log, their size is bounded by the number of
/// interfaces, threads and connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) interfaces: Vec<Interface>,
    pub(super) threads: Table<Vec<(InterfaceKey, Sum)>>,
    pub(super) softirqs: Vec<(InterfaceKey, Sum)>,
    pub(super) connections: Connections,
    /// Sorted by ports.
    pub(super) ports: Vec<(Ports, PortCounts)>,
    pub(super) log: Vec<Passed>,
    /// Index of the last sender in `threads`.
    #[serde(skip)]
    near: usize,
    /// Index of the last used interface: the next event most often has the same.
    #[serde(skip)]
    last: usize,
    /// The last interface name as in the event, and the key without bytes after the terminating
    /// null.
    #[serde(skip)]
    met: Option<(InterfaceKey, InterfaceKey)>,
}

fn sum_of(sums: &mut Vec<(InterfaceKey, Sum)>, key: InterfaceKey) -> &mut Sum {
    // Linear search: there are few interfaces.
    let at = sums.iter().position(|sum| sum.0 == key).unwrap_or_else(|| {
        sums.push((key, Sum::default()));
        sums.len() - 1
    });
    &mut sums[at].1
}

impl Sums {
    /// The interface of a name, which may have bytes after its terminating null.
    #[inline(always)]
    pub(super) fn met(&mut self, trace: u32, name: Comm) -> InterfaceKey {
        let raw = InterfaceKey { trace, name };
        match self.met {
            Some((last, key)) if last == raw => key,
            _ => {
                let key = InterfaceKey::new(trace, name);
                self.met = Some((raw, key));
                self.interface(key).key
            }
        }
    }

    /// The sums of an interface.
    #[inline(always)]
    pub(super) fn interface(&mut self, key: InterfaceKey) -> &mut Interface {
        if self
            .interfaces
            .get(self.last)
            .is_none_or(|last| last.key != key)
        {
            self.last = self.find(key);
        }
        &mut self.interfaces[self.last]
    }

    fn find(&mut self, key: InterfaceKey) -> usize {
        // Linear search: there are few interfaces.
        let at = self
            .interfaces
            .iter()
            .position(|interface| interface.key == key);
        at.unwrap_or_else(|| {
            self.interfaces.push(Interface::new(key));
            self.interfaces.len() - 1
        })
    }

    /// Packets that a thread, or without one softirqs, sent by an interface.
    #[inline]
    pub(super) fn sent_by(
        &mut self,
        thread: Option<ThreadKey>,
        interface: InterfaceKey,
    ) -> &mut Sum {
        let sums = match thread {
            Some(thread) => self.threads.get_near(thread, &mut self.near),
            None => &mut self.softirqs,
        };
        sum_of(sums, interface)
    }

    pub(super) fn ports(&mut self, ports: Ports) -> &mut PortCounts {
        let at = self.ports.binary_search_by_key(&ports, |known| known.0);
        let at = at.unwrap_or_else(|at| {
            self.ports.insert(at, (ports, PortCounts::default()));
            at
        });
        &mut self.ports[at].1
    }

    /// Adds other sums, keeping at most `top` packets by interface for the list.
    pub(super) fn merge(&mut self, other: Sums, top: usize) {
        for interface in other.interfaces {
            self.interface(interface.key).merge(interface, top);
        }
        let add = |own: &mut Vec<_>, sums: Vec<_>| {
            sums.into_iter()
                .for_each(|(key, sum)| sum_of(own, key).add(sum));
        };
        self.threads.merge_by(other.threads, add);
        add(&mut self.softirqs, other.softirqs);
        self.connections.merge(&other.connections);
        for (ports, counts) in &other.ports {
            self.ports(*ports).merge(counts);
        }
        self.log.extend(other.log);
    }
}
