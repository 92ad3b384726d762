//! Network interfaces: what was sent and received, how long it took to the driver, by whom; TCP.
//!
//! `docs/reports-net.md` defines each number.

mod connections;
mod context;
mod interface;
mod report;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::irq::SoftirqStep;
use tracebraid_kernel_model::events::network::{self, PacketFree, PacketStep, Tcp, TcpStep};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::kernel::{
    CpuKey, Ended, Event, InOrder, Input, Packet, Pairs, Rules, Running, Selection, Tasks, ThreadKey, Told,
};
use crate::report::{Report, View};
use connections::{Connections, Sum};
use context::{Context, Contexts};
use interface::{Begun, End, Fate, Interface, InterfaceKey, Passed};

/// The analysis.
pub type NetAnalysis = InOrder<NetRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct NetRules {
    selection: Selection,
    /// For a second pass, the bounds of durations.
    ranges: Option<Vec<(InterfaceKey, (u64, u64))>>,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NetPartial {
    tasks: Tasks<Queued>,
    contexts: Contexts,
    /// What was queued in the context before the chunk, by whoever ran.
    before: Vec<QueuedBy>,
    interfaces: Vec<Interface>,
    /// By trace and address of the buffer.
    packets: Pairs<(u32, u64), Begun, End>,
    /// By place of the thread.
    threads: Vec<Vec<(InterfaceKey, Sum)>>,
    softirqs: Vec<(InterfaceKey, Sum)>,
    connections: Connections,
    /// In the order of ports.
    ports: Vec<(Ports, PortCounts)>,
    log: Vec<Passed>,
}

/// A packet is queued.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Queued {
    interface: InterfaceKey,
    bytes: u64,
    context: Context,
}

/// The same, by somebody.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct QueuedBy {
    cpu: CpuKey,
    time: i64,
    place: Option<usize>,
    item: Queued,
}

impl From<Told<Queued>> for QueuedBy {
    fn from(told: Told<Queued>) -> QueuedBy {
        QueuedBy {
            cpu: told.cpu,
            time: told.time,
            place: told.place,
            item: told.item,
        }
    }
}

/// Ports of a socket: its own and the other side's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Ports {
    trace: u32,
    own: u16,
    other: u16,
}

/// What happened to TCP sockets with those ports.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct PortCounts {
    retransmissions: u64,
    resets_sent: u64,
    resets_received: u64,
}

impl PortCounts {
    fn merge(&mut self, other: &PortCounts) {
        self.retransmissions += other.retransmissions;
        self.resets_sent += other.resets_sent;
        self.resets_received += other.resets_received;
    }
}

fn sum_of(sums: &mut Vec<(InterfaceKey, Sum)>, key: InterfaceKey) -> &mut Sum {
    let at = sums.iter().position(|sum| sum.0 == key).unwrap_or_else(|| {
        sums.push((key, Sum::default()));
        sums.len() - 1
    });
    &mut sums[at].1
}

impl Rules for NetRules {
    type Partial = NetPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        let of = |(name, range): (&String, &(u64, u64))| Some((InterfaceKey::from_name(name)?, *range));
        let ranges = selection.ranges.as_ref();
        NetRules {
            selection: selection.clone(),
            ranges: ranges.map(|ranges| ranges.iter().filter_map(of).collect()),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            Packet(_) | PacketFree(_) | Tcp(_) => true,
            Softirq(softirq) => softirq.step != SoftirqStep::Raise,
            event => Tasks::<Queued>::wants(event),
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let has = |wanted: PacketStep| {
            has(&|event| matches!(event, KernelEvent::Packet(packet) if packet.step == wanted))
        };
        match (has(PacketStep::Xmit), has(PacketStep::Receive)) {
            (true, true) if has(PacketStep::Queue) => None,
            (true, true) => Some("who sends, and how long that takes, is not known: enable net_dev_queue"),
            (true, false) => Some("what is received was not recorded: enable net_if_receive_skb"),
            (false, true) => Some("what is sent was not recorded: enable net_dev_queue and net_dev_xmit"),
            (false, false) => Some(
                "no packets were recorded: enable net_dev_queue, net_dev_xmit and net_if_receive_skb (lttng \
                 enable-event --kernel 'net_*'), and skb_kfree and tcp_* for drops and retransmissions",
            ),
        }
    }

    fn first(&self) -> NetPartial {
        NetPartial {
            packets: Pairs::first(),
            ..NetPartial::default()
        }
    }

    fn packet(&self, partial: &mut NetPartial, packet: &Packet) {
        partial.tasks.packet(packet);
        if packet.lost_before {
            *partial.contexts.at(packet.cpu) = Context::Thread;
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut NetPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        match &event.model.event {
            KernelEvent::Packet(packet) => {
                self.at_device(partial, event, packet, body);
            }
            KernelEvent::PacketFree(free) => self.freed(partial, event, free, body),
            KernelEvent::Softirq(softirq) => {
                *partial.contexts.at(event.cpu) = match softirq.step {
                    SoftirqStep::Entry => Context::Softirq,
                    _ => Context::Thread,
                };
            }
            KernelEvent::Tcp(tcp) => self.tcp(partial, event, tcp, body),
            _ => {
                partial.tasks.event(event, body);
            }
        }
    }

    fn merge(&self, earlier: &mut NetPartial, mut later: NetPartial) {
        for (cpu, item) in later.tasks.waiting() {
            earlier.contexts.tell(cpu, &mut item.context);
        }
        let joined = earlier.tasks.merge(later.tasks);
        let moved = |place: usize| joined.places.get(place).copied();
        for told in joined.told {
            self.queued(earlier, told.into());
        }
        for told in later.before {
            let mut told = QueuedBy {
                place: told.place.and_then(moved),
                ..told
            };
            earlier.contexts.tell(told.cpu, &mut told.item.context);
            self.queued(earlier, told);
        }
        earlier.contexts.merge(later.contexts);
        for interface in later.interfaces {
            earlier
                .interface(interface.key)
                .merge(interface, self.selection.top());
        }
        for (sums, &place) in later.threads.iter().zip(&joined.places) {
            sums.iter()
                .for_each(|(key, sum)| sum_of(earlier.thread(place), *key).add(*sum));
        }
        let softirqs = later.softirqs.iter();
        softirqs.for_each(|(key, sum)| sum_of(&mut earlier.softirqs, *key).add(*sum));
        let mut packets = std::mem::take(&mut earlier.packets);
        packets.merge(later.packets, |(_, buffer), begun, end| {
            self.ended(earlier, buffer, begun, end);
        });
        earlier.packets = packets;
        earlier.connections.merge(&later.connections);
        later
            .ports
            .iter()
            .for_each(|(ports, counts)| earlier.ports(*ports).merge(counts));
        earlier.log.extend(later.log);
    }

    fn finish(&self, input: &Input, mut partial: NetPartial) -> Report {
        for told in partial.tasks.untold() {
            self.queued(&mut partial, told.into());
        }
        for told in std::mem::take(&mut partial.before) {
            let item = Queued {
                context: Context::Thread,
                ..told.item
            };
            self.queued(&mut partial, QueuedBy { item, ..told });
        }
        report::report(self, input, &partial)
    }
}

impl NetPartial {
    fn interface(&mut self, key: InterfaceKey) -> &mut Interface {
        // There are few.
        let at = self.interfaces.iter().position(|interface| interface.key == key);
        let at = at.unwrap_or_else(|| {
            self.interfaces.push(Interface::new(key));
            self.interfaces.len() - 1
        });
        &mut self.interfaces[at]
    }

    fn thread(&mut self, place: usize) -> &mut Vec<(InterfaceKey, Sum)> {
        if place >= self.threads.len() {
            self.threads.resize_with(place + 1, Vec::new);
        }
        &mut self.threads[place]
    }

    fn ports(&mut self, ports: Ports) -> &mut PortCounts {
        let at = self.ports.binary_search_by_key(&ports, |known| known.0);
        let at = at.unwrap_or_else(|at| {
            self.ports.insert(at, (ports, PortCounts::default()));
            at
        });
        &mut self.ports[at].1
    }
}

impl NetRules {
    /// A packet is at a device; `None` if the event does not tell which.
    fn at_device(
        &self,
        partial: &mut NetPartial,
        event: &Event<'_>,
        packet: &network::Packet,
        body: &mut Body<'_, '_>,
    ) -> Option<()> {
        let Event { cpu, time, .. } = *event;
        let name = packet.device.as_ref()?.comm(body)?;
        let interface = InterfaceKey::new(cpu.trace, name);
        let buffer = packet.buffer.get(body)? as u64;
        let bytes = packet.length.as_ref().and_then(|length| length.get(body));
        let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        let is_sent = match packet.step {
            PacketStep::Queue => true,
            PacketStep::Receive => false,
            PacketStep::Xmit => {
                let result = packet.result.as_ref().and_then(|result| result.get(body));
                self.xmit(
                    partial,
                    event,
                    (interface, buffer, bytes),
                    result.unwrap_or(TAKEN),
                );
                return Some(());
            }
            _ => return None,
        };
        let begun = Begun {
            time,
            interface,
            is_sent,
        };
        partial.packets.begin((cpu.trace, buffer), begun);
        if is_sent {
            self.queue(partial, event, interface, bytes, body);
        }
        if !self.selection.counts(time, cpu.cpu) {
            return None;
        }
        if !is_sent {
            partial.interface(interface).received.add(bytes);
        }
        if self.ranges.is_none()
            && let Some(headers) = packet.headers.as_ref().and_then(|headers| headers.get(body))
        {
            partial.connections.add(cpu.trace, &headers, bytes, is_sent);
        }
        Some(())
    }

    fn queue(
        &self,
        partial: &mut NetPartial,
        event: &Event<'_>,
        interface: InterfaceKey,
        bytes: u64,
        body: &mut Body<'_, '_>,
    ) {
        let Event { cpu, time, .. } = *event;
        let context = *partial.contexts.at(cpu);
        let item = Queued {
            interface,
            bytes,
            context,
        };
        let place = match partial.tasks.actor(event, body) {
            Running::Before => {
                partial.tasks.wait(cpu, time, item);
                return;
            }
            Running::Unknown => None,
            Running::Thread(place) => Some(place),
        };
        self.queued(
            partial,
            QueuedBy {
                cpu,
                time,
                place,
                item,
            },
        );
    }

    /// Who queued it, and in which context.
    fn queued(&self, partial: &mut NetPartial, told: QueuedBy) {
        let QueuedBy { cpu, place, item, .. } = told;
        if !self.selection.counts(told.time, cpu.cpu) {
            return;
        }
        let sums = match item.context {
            Context::Before => return partial.before.push(told),
            Context::Softirq => &mut partial.softirqs,
            Context::Thread => {
                let place = place.unwrap_or_else(|| partial.tasks.place(cpu.trace, ThreadKey::UNKNOWN));
                partial.thread(place)
            }
        };
        sum_of(sums, item.interface).add(Sum {
            packets: 1,
            bytes: item.bytes,
        });
    }

    /// The driver took a packet, or not.
    fn xmit(
        &self,
        partial: &mut NetPartial,
        event: &Event<'_>,
        (interface, buffer, bytes): (InterfaceKey, u64, u64),
        result: i64,
    ) {
        let counts = u64::from(self.selection.counts(event.time, event.cpu.cpu));
        match result {
            TAKEN => {
                if counts > 0 {
                    partial.interface(interface).sent.add(bytes);
                }
                self.end(partial, event, buffer, Fate::Sent { interface, bytes });
            }
            // It will be tried again.
            BUSY => partial.interface(interface).busy += counts,
            _ => {
                partial.interface(interface).errors += counts;
                self.end(
                    partial,
                    event,
                    buffer,
                    Fate::Freed {
                        dropped: false,
                        is_told: false,
                    },
                );
            }
        }
    }

    fn freed(&self, partial: &mut NetPartial, event: &Event<'_>, free: &PacketFree, body: &mut Body<'_, '_>) {
        if let Some(buffer) = free.buffer.get(body) {
            let dropped = free.dropped;
            let is_told = dropped && free.reason.as_ref().is_some_and(|reason| reason.is_told(body));
            self.end(partial, event, buffer as u64, Fate::Freed { dropped, is_told });
        }
    }

    fn end(&self, partial: &mut NetPartial, event: &Event<'_>, buffer: u64, fate: Fate) {
        let end = End {
            time: event.time,
            cpu: event.cpu.cpu,
            fate,
        };
        match partial.packets.end((event.cpu.trace, buffer), end) {
            Ended::Begun(begun) => self.ended(partial, buffer, Some(begun), end),
            Ended::Nothing | Ended::Waits => {}
        }
    }

    fn ended(&self, partial: &mut NetPartial, buffer: u64, begun: Option<Begun>, end: End) {
        let Some(begun) = begun.filter(|_| self.selection.counts(end.time, end.cpu)) else {
            return;
        };
        match end.fate {
            Fate::Freed { dropped, is_told } => {
                let interface = partial.interface(begun.interface);
                interface.reason_drops += u64::from(is_told);
                match begun.is_sent {
                    true => interface.sent_drops += u64::from(dropped),
                    false => interface.received_drops += u64::from(dropped),
                }
            }
            Fate::Sent { interface, bytes } => {
                let passed = Passed {
                    duration: begun.time.abs_diff(end.time),
                    queued: begun.time,
                    interface,
                    buffer,
                    bytes,
                };
                let fits = begun.is_sent && begun.interface == interface;
                if fits && self.selection.limits.contain(passed.duration) {
                    self.passed(partial, passed);
                }
            }
        }
    }

    fn passed(&self, partial: &mut NetPartial, passed: Passed) {
        let interface = partial.interface(passed.interface);
        if let Some(ranges) = &self.ranges {
            if let Some((_, range)) = ranges.iter().find(|(of, _)| *of == passed.interface) {
                interface.bins.add(*range, passed.duration);
            }
            return;
        }
        interface.durations.add(passed.duration);
        interface.top.add(passed, self.selection.top());
        if self.selection.shows(View::Log) {
            partial.log.push(passed);
        }
    }

    fn tcp(&self, partial: &mut NetPartial, event: &Event<'_>, tcp: &Tcp, body: &mut Body<'_, '_>) {
        let fields = (&tcp.source_port, &tcp.destination_port);
        let counts = self.ports_of(partial, event, fields, body);
        let Some(counts) = counts else { return };
        match tcp.step {
            TcpStep::Retransmit | TcpStep::RetransmitSynAck => counts.retransmissions += 1,
            TcpStep::SendReset => counts.resets_sent += 1,
            TcpStep::ReceiveReset => counts.resets_received += 1,
            _ => {}
        }
    }

    fn ports_of<'p>(
        &self,
        partial: &'p mut NetPartial,
        event: &Event<'_>,
        (own, other): (&Option<PortField>, &Option<PortField>),
        body: &mut Body<'_, '_>,
    ) -> Option<&'p mut PortCounts> {
        let mut port = |field: &Option<PortField>| {
            let port = field.as_ref().and_then(|field| field.get(body));
            port.map_or(0, |port| port as u16)
        };
        let ports = Ports {
            trace: event.cpu.trace,
            own: port(own),
            other: port(other),
        };
        let counts = self.selection.counts(event.time, event.cpu.cpu);
        counts.then(|| partial.ports(ports))
    }
}

type PortField = tracebraid_kernel_model::IntField;

/// The driver took the packet.
const TAKEN: i64 = 0;
/// The driver has no room now.
const BUSY: i64 = 0x10;
