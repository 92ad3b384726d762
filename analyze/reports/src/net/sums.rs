//! What adds up in any order.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use crate::net::connections::{Connections, Sum};
use crate::net::interface::{Interface, InterfaceKey, Passed};
use tracebraid_follow::{Table, ThreadKey};

/// Ports of a socket: its own and the other side's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Ports {
    pub(super) trace: u32,
    pub(super) own: u16,
    pub(super) other: u16,
}

/// What happened to TCP sockets with those ports.
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

/// What adds up in any order. Its size depends on the number of interfaces, threads and
/// connections, but for the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) interfaces: Vec<Interface>,
    pub(super) threads: Table<Vec<(InterfaceKey, Sum)>>,
    pub(super) softirqs: Vec<(InterfaceKey, Sum)>,
    pub(super) connections: Connections,
    /// In the order of ports.
    pub(super) ports: Vec<(Ports, PortCounts)>,
    pub(super) log: Vec<Passed>,
    /// Where the last sender is among the threads.
    #[serde(skip)]
    near: usize,
    /// The interface that was asked for last: most often the next event is about the same.
    #[serde(skip)]
    last: usize,
    /// The same of the one that was met last, and its name as the event has it.
    #[serde(skip)]
    met: Option<(InterfaceKey, InterfaceKey)>,
}

fn sum_of(sums: &mut Vec<(InterfaceKey, Sum)>, key: InterfaceKey) -> &mut Sum {
    // There are few.
    let at = sums.iter().position(|sum| sum.0 == key).unwrap_or_else(|| {
        sums.push((key, Sum::default()));
        sums.len() - 1
    });
    &mut sums[at].1
}

impl Sums {
    /// The interface of that name, which may have something after its terminating null.
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

    /// What is known of an interface.
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
        // There are few.
        let at = self
            .interfaces
            .iter()
            .position(|interface| interface.key == key);
        at.unwrap_or_else(|| {
            self.interfaces.push(Interface::new(key));
            self.interfaces.len() - 1
        })
    }

    /// What that thread sends, or softirqs, by that interface.
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

    /// Adds other sums, of which so many packets at most are listed by interface.
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
