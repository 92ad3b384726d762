//! Network interfaces: what was sent and received, how long it took to the driver, by whom; TCP.
//!
//! `docs/reports-net.md` defines each number.

mod connections;
mod context;
mod interface;
mod passing;
mod report;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::irq::SoftirqStep;
use tracebraid_kernel_model::events::network::{self, PacketFree, PacketStep, Tcp, TcpStep};
use tracebraid_kernel_model::{Body, Comm, KernelEvent};
use tracebraid_threads::CpuActivity;

use crate::kernel::{
    ByCpu, CpuKey, Event, Input, InterruptStep, Items, Lane, Packet, Pairs, People, PerCpu, Rules, Selection,
    Table, ThreadKey, learn, learn_switch,
};
use crate::report::{Report, View};
use connections::{Connections, Sum};
use context::{Queued, Step};
use interface::{Begun, End, Fate, Interface, InterfaceId, InterfaceKey, Passed};
use passing::Passing;

/// The analysis.
pub type NetAnalysis = PerCpu<NetRules>;

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
    people: People,
    lanes: ByCpu<Lane<CpuActivity, Step>>,
    interfaces: Vec<Interface>,
    /// The packet that was queued last on each CPU.
    queued: ByCpu<Lane<Option<(u64, Begun)>, Passing>>,
    items: Items<Passing>,
    /// By trace and address of the buffer: those that other packets follow on their CPU.
    packets: Pairs<(u32, u64), Begun>,
    threads: Table<Vec<(InterfaceId, Sum)>>,
    softirqs: Vec<(InterfaceId, Sum)>,
    connections: Connections,
    /// In the order of ports.
    ports: Vec<(Ports, PortCounts)>,
    log: Vec<Passed>,
    /// Nothing came before.
    is_first: bool,
    /// Where the thread that was switched to last is among the people, and the last sender among the
    /// threads.
    #[serde(skip)]
    near: (usize, usize),
    /// The interface that was looked for last: most often the next event is about the same.
    #[serde(skip)]
    last: Option<(InterfaceKey, InterfaceId)>,
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

fn sum_of(sums: &mut Vec<(InterfaceId, Sum)>, id: InterfaceId) -> &mut Sum {
    let at = sums.iter().position(|sum| sum.0 == id).unwrap_or_else(|| {
        sums.push((id, Sum::default()));
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
            Packet(packet) => matches!(
                packet.step,
                PacketStep::Queue | PacketStep::Xmit | PacketStep::Receive
            ),
            PacketFree(_) | Tcp(_) => true,
            // Who sends is not on the page.
            _ if self.selection.is_summary => false,
            Softirq(softirq) => softirq.step != SoftirqStep::Raise,
            Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_) => true,
            _ => false,
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
            is_first: true,
            ..NetPartial::default()
        }
    }

    fn packet(&self, partial: &mut NetPartial, packet: &Packet) {
        if packet.lost_before && packet.tells_switches {
            let time = packet.begin.unwrap_or(i64::MIN);
            partial
                .lanes
                .get(packet.cpu)
                .goes_over(time, CpuActivity::default());
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut NetPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event { model, cpu, time, .. } = *event;
        match &model.event {
            KernelEvent::Packet(packet) => {
                self.at_device(partial, event, packet, body);
            }
            KernelEvent::PacketFree(free) => self.freed(partial, event, free, body),
            KernelEvent::Softirq(_) => {
                if let Some(step) = InterruptStep::of(&model.event, body) {
                    partial.step(cpu, time, Step::Softirq(step));
                }
            }
            KernelEvent::Tcp(tcp) => self.tcp(partial, event, tcp, body),
            KernelEvent::Switch(switch) => {
                let near = &mut partial.near.0;
                if let Some((_, next)) = learn_switch(&mut partial.people, near, event, switch, body) {
                    partial.lanes.get(cpu).goes_over(time, CpuActivity::of(next));
                }
            }
            other => {
                if let KernelEvent::Exec(exec) = other
                    && let Some(tid) = exec.tid.as_ref().and_then(|tid| tid.get(body))
                {
                    // It may take over the id of its process's first thread.
                    partial
                        .lanes
                        .get(cpu)
                        .goes_over(time, CpuActivity::of(tid as i32));
                }
                learn(&mut partial.people, model, cpu, time, body);
            }
        }
    }

    fn merge(&self, earlier: &mut NetPartial, mut later: NetPartial) {
        let interfaces = std::mem::take(&mut later.interfaces).into_iter();
        let places: Vec<InterfaceId> = interfaces
            .map(|interface| earlier.join(interface, self.selection.top()))
            .collect();
        later.moved(&places);
        earlier.people.merge(later.people);
        let begin = |earlier: &mut NetPartial, cpu, time, context| {
            earlier.lanes.get(cpu).goes_over(time, context);
        };
        later.lanes.join(earlier, NetPartial::step, begin);
        let pass = |earlier: &mut _, cpu, time, passing| self.passes(earlier, cpu, time, passing);
        let begin = |earlier: &mut NetPartial, cpu, time, queued| {
            earlier.queued.get(cpu).goes_over(time, queued);
        };
        later.queued.join(earlier, pass, begin);
        earlier.items.append(later.items);
        for (thread, sums) in later.threads.into_entries() {
            let own = earlier.threads.get(thread);
            sums.iter().for_each(|(key, sum)| sum_of(own, *key).add(*sum));
        }
        let softirqs = later.softirqs.iter();
        softirqs.for_each(|(key, sum)| sum_of(&mut earlier.softirqs, *key).add(*sum));
        earlier.connections.merge(&later.connections);
        later
            .ports
            .iter()
            .for_each(|(ports, counts)| earlier.ports(*ports).merge(counts));
        earlier.log.extend(later.log);
    }

    fn settle(&self, partial: &mut NetPartial, watermark: i64) {
        let until = Self::passed_until(partial, watermark);
        self.play(partial, Some(until));
    }

    fn finish(&self, input: &Input, mut partial: NetPartial) -> Report {
        self.play(&mut partial, None);
        report::report(self, input, &partial)
    }
}

impl NetPartial {
    /// The place of the interface of that name, which may have something behind its terminating null.
    #[inline(always)]
    fn place(&mut self, trace: u32, name: Comm) -> InterfaceId {
        let key = InterfaceKey { trace, name };
        match self.last {
            Some((last, id)) if last == key => id,
            _ => {
                let id = self.find(InterfaceKey::new(trace, name));
                self.last = Some((key, id));
                id
            }
        }
    }

    fn find(&mut self, key: InterfaceKey) -> InterfaceId {
        // There are few.
        let at = self.interfaces.iter().position(|interface| interface.key == key);
        InterfaceId(at.unwrap_or_else(|| {
            self.interfaces.push(Interface::new(key));
            self.interfaces.len() - 1
        }) as u32)
    }

    /// What is known of an interface that was met.
    #[inline(always)]
    fn interface(&mut self, id: InterfaceId) -> &mut Interface {
        &mut self.interfaces[id.0 as usize]
    }

    /// Adds what is known of an interface later; gives its place.
    fn join(&mut self, later: Interface, top: usize) -> InterfaceId {
        let id = self.find(later.key);
        self.interface(id).merge(later, top);
        id
    }

    /// Interfaces have other places.
    fn moved(&mut self, places: &[InterfaceId]) {
        for (_, lane) in self.lanes.iter_mut() {
            for step in lane.parts().0 {
                if let Step::Queue(queued) = step {
                    queued.interface.moved(places);
                }
            }
        }
        for (_, lane) in self.queued.iter_mut() {
            let (passing, queued) = lane.parts();
            passing.for_each(|passing| passing.moved(places));
            if let Some((_, begun)) = queued.and_then(Option::as_mut) {
                begun.interface.moved(places);
            }
        }
        self.items.iter_mut().for_each(|passing| passing.moved(places));
        let sums = self.threads.values().chain([&mut self.softirqs]).flatten();
        sums.for_each(|(id, _)| id.moved(places));
    }

    /// Somebody sends, or a softirq begins or ends.
    #[inline(always)]
    fn step(&mut self, cpu: CpuKey, time: i64, step: Step) {
        let lane = self.lanes.get(cpu);
        let Some(activity) = lane.now_or_first(self.is_first, time) else {
            return lane.wait(time, step);
        };
        let queued = match step {
            Step::Softirq(step) => return activity.interrupt(step),
            Step::Queue(queued) => queued,
        };
        let sums = if activity.is_interrupted() {
            &mut self.softirqs
        } else {
            let tid = queued.tid.or(activity.tid).unwrap_or(ThreadKey::UNKNOWN);
            let trace = cpu.trace;
            self.threads.get_near(ThreadKey { trace, tid }, &mut self.near.1)
        };
        sum_of(sums, queued.interface).add(Sum {
            packets: 1,
            bytes: queued.bytes,
        });
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
        let buffer = packet.buffer.get(body)? as u64;
        let interface = partial.place(cpu.trace, name);
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
        self.passes(partial, cpu, time, Passing::Begin(buffer, begun));
        if !self.selection.counts(time, cpu.cpu) || self.selection.is_summary {
            return None;
        }
        if is_sent {
            let tid = event.model.tid(body);
            let queued = Queued {
                interface,
                bytes,
                tid,
            };
            partial.step(cpu, time, Step::Queue(queued));
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

    /// The driver took a packet, or not.
    fn xmit(
        &self,
        partial: &mut NetPartial,
        event: &Event<'_>,
        (interface, buffer, bytes): (InterfaceId, u64, u64),
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
        self.passes(partial, event.cpu, event.time, Passing::End(buffer, end));
    }

    /// A packet is handed on. Most are given to the driver by the CPU that queued them, before it has
    /// to do with others: those are paired here.
    #[inline(always)]
    fn passes(&self, partial: &mut NetPartial, cpu: CpuKey, time: i64, passing: Passing) {
        let lane = partial.queued.get(cpu);
        let Some(queued) = lane.now() else {
            if !partial.is_first {
                // The chunks before know whether it is that which was queued last; what is queued from
                // now on is known here.
                lane.wait(time, passing);
            }
            lane.goes_over(time, passing.queues());
            if partial.is_first && passing.queues().is_none() {
                partial.items.push(cpu, time, passing);
            }
            return;
        };
        let last = std::mem::replace(queued, passing.queues());
        if let (Some((buffer, begun)), Passing::End(ended, end)) = (last, passing)
            && ended == buffer
            && end.time.abs_diff(begun.time) <= SOON
        {
            return self.ended(partial, buffer, begun, end);
        }
        if let Some((buffer, begun)) = last {
            partial.items.push(cpu, begun.time, Passing::Begin(buffer, begun));
        }
        if passing.queues().is_none() {
            partial.items.push(cpu, time, passing);
        }
    }

    /// Up to when all CPUs' packets are known: one that was queued last may still be given to the driver
    /// by its CPU, but only soon.
    fn passed_until(partial: &mut NetPartial, watermark: i64) -> i64 {
        let mut until = watermark;
        for (cpu, lane) in partial.queued.iter_mut() {
            let Some(queued) = lane.now() else { continue };
            match *queued {
                Some((buffer, begun)) if begun.time.saturating_add_unsigned(SOON) < watermark => {
                    *queued = None;
                    let passing = Passing::Begin(buffer, begun);
                    partial.items.push(cpu, begun.time, passing);
                }
                Some((_, begun)) => until = until.min(begun.time),
                None => {}
            }
        }
        until
    }

    /// Pairs those that other packets followed on their CPU.
    fn play(&self, partial: &mut NetPartial, until: Option<i64>) {
        let mut items = std::mem::take(&mut partial.items);
        items.play(until, |cpu, _, passing| match passing {
            Passing::Begin(buffer, begun) => {
                partial.packets.begin((cpu.trace, buffer), begun);
            }
            Passing::End(buffer, end) => {
                if let Some(begun) = partial.packets.end((cpu.trace, buffer)) {
                    self.ended(partial, buffer, begun, end);
                }
            }
        });
        partial.items = items;
    }

    fn ended(&self, partial: &mut NetPartial, buffer: u64, begun: Begun, end: End) {
        if !self.selection.counts(end.time, end.cpu) {
            return;
        }
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
                let duration = begun.time.abs_diff(end.time);
                let fits = begun.is_sent && begun.interface == interface;
                if fits && self.selection.limits.contain(duration) {
                    let passed = Passed {
                        duration,
                        queued: begun.time,
                        interface: partial.interface(interface).key,
                        buffer,
                        bytes,
                    };
                    self.passed(partial, interface, passed);
                }
            }
        }
    }

    fn passed(&self, partial: &mut NetPartial, interface: InterfaceId, passed: Passed) {
        let interface = partial.interface(interface);
        if let Some(ranges) = &self.ranges {
            if let Some((_, range)) = ranges.iter().find(|(of, _)| *of == passed.interface) {
                interface.bins.add(*range, passed.duration);
            }
            return;
        }
        if !self.selection.is_summary {
            interface.durations.add(passed.duration);
        }
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

/// Nanoseconds from being queued to the driver within which packets are paired on their CPU. It bounds
/// how long others wait for them.
const SOON: u64 = 10_000_000;

/// The driver took the packet.
const TAKEN: i64 = 0;
/// The driver has no room now.
const BUSY: i64 = 0x10;
