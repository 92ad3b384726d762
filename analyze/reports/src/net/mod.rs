//! Network interfaces: packets sent and received, time from the queue to the driver, senders, and
//! TCP connections.
//!
//! Most packets reach the driver soon, on the CPU that queued them. These are paired on that CPU;
//! only the others are played in the order of time.
//!
//! `docs/reference/net.md` defines each number.

mod connections;
mod context;
mod interface;
mod options;
mod passing;
mod report;
mod sums;

pub use options::{GROUPINGS, NetOptions};
use serde::{Deserialize, Serialize};
use tracebraid_engine::{Composition, Slice};
use tracebraid_kernel_model::events::irq::SoftirqStep;
use tracebraid_kernel_model::events::network::{self, PacketFree, PacketStep, Tcp, TcpStep};
use tracebraid_kernel_model::{Body, KernelEvent};
use tracebraid_threads::CpuActivity;

use connections::Sum;
use context::{NetStep, Queued};
use interface::{Begun, End, Fate, InterfaceKey, Passed};
use passing::Passing;
use sums::{PortCounts, Ports, Sums};
use tracebraid_follow::{
    ByCpu, CpuKey, Event, Input, InterruptStep, Items, Lane, Packet, PairSlice, Pairs, People,
    PerCpu, Rules, Selection, ThreadKey, learn, learn_switch,
};
use tracebraid_tables::{Report, View};

/// Analyses network traffic.
pub type NetAnalysis = PerCpu<NetRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct NetRules {
    selection: Selection,
    options: NetOptions,
    /// Bounds of durations, for a second pass.
    ranges: Option<Vec<(InterfaceKey, (u64, u64))>>,
}

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of CPUs, interfaces,
/// threads, connections, and packets between queue and driver; with `--view log` also by that of
/// packets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NetPartial {
    people: People,
    lanes: ByCpu<Lane<CpuActivity, NetStep>>,
    /// The last queued packet of each CPU.
    queued: ByCpu<Lane<Option<(u64, Begun)>, Passing>>,
    items: Items<Passing>,
    /// By trace and address of the buffer: queued packets that another packet followed on their
    /// CPU.
    packets: Pairs<(u32, u64), Begun>,
    sums: Sums,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Index in `people` of the last thread that was switched to.
    #[serde(skip)]
    near: usize,
}

impl Rules for NetRules {
    type Partial = NetPartial;
    type Report = Report;

    type Options = NetOptions;

    fn new(selection: &Selection, options: &NetOptions) -> Self {
        let of =
            |(name, range): (&String, &(u64, u64))| Some((InterfaceKey::from_name(name)?, *range));
        let ranges = options.views.ranges.as_ref();
        NetRules {
            selection: selection.clone(),
            options: options.clone(),
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
            // The overview does not show senders.
            _ if self.options.is_summary => false,
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
            (true, true) => Some("senders and queueing times are unknown: enable net_dev_queue"),
            (true, false) => Some("received packets were not recorded: enable net_if_receive_skb"),
            (false, true) => {
                Some("sent packets were not recorded: enable net_dev_queue and net_dev_xmit")
            }
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
        let Event {
            model, cpu, time, ..
        } = *event;
        match &model.event {
            KernelEvent::Packet(packet) => {
                self.at_device(partial, event, packet, body);
            }
            KernelEvent::PacketFree(free) => self.freed(partial, event, free, body),
            KernelEvent::Softirq(_) => {
                if let Some(step) = InterruptStep::of(&model.event, body) {
                    partial.step(cpu, time, NetStep::Softirq(step));
                }
            }
            KernelEvent::Tcp(tcp) => self.tcp(partial, event, tcp, body),
            KernelEvent::Switch(switch) => {
                let near = &mut partial.near;
                if let Some((_, next)) =
                    learn_switch(&mut partial.people, near, event, switch, body)
                {
                    partial
                        .lanes
                        .get(cpu)
                        .goes_over(time, CpuActivity::of(next));
                }
            }
            other => {
                if let KernelEvent::Exec(exec) = other
                    && let Some(tid) = exec.tid.as_ref().and_then(|tid| tid.get(body))
                {
                    // The thread may take over the id of its process's first thread.
                    partial
                        .lanes
                        .get(cpu)
                        .goes_over(time, CpuActivity::of(tid as i32));
                }
                learn(&mut partial.people, model, cpu, time, body);
            }
        }
    }

    fn exchange(&self, partial: &mut NetPartial, resident: &mut NetPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut NetPartial, later: NetPartial) {
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
        earlier.sums.merge(later.sums, self.options.views.top());
    }

    fn slices<'a>(
        &'a self,
        partial: &mut NetPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, NetPartial>> {
        let until = Self::passed_until(partial, watermark);
        let items = partial.items.cut(until);
        match items.is_empty() {
            true => Vec::new(),
            false => vec![Box::new(|resident| {
                self.play_slice(items, &mut resident.sums)
            })],
        }
    }

    fn finish(&self, input: &Input, mut partial: NetPartial) -> Report {
        let mut items = std::mem::take(&mut partial.items);
        let resident = &mut NetPartial::default();
        self.play_slice(std::mem::take(&mut items), &mut resident.sums)(&mut partial);
        partial
            .sums
            .merge(std::mem::take(&mut resident.sums), self.options.views.top());
        report::report(self, input, &partial)
    }
}

impl NetPartial {
    /// A packet is queued, or a softirq begins or ends.
    #[inline(always)]
    fn step(&mut self, cpu: CpuKey, time: i64, step: NetStep) {
        let lane = self.lanes.get(cpu);
        let Some(activity) = lane.now_or_first(self.is_first, time) else {
            return lane.wait(time, step);
        };
        let queued = match step {
            NetStep::Softirq(step) => return activity.interrupt(step),
            NetStep::Queue(queued) => queued,
        };
        let sender = (!activity.is_interrupted()).then(|| {
            let tid = queued.tid.or(activity.tid).unwrap_or(ThreadKey::UNKNOWN);
            let trace = cpu.trace;
            ThreadKey { trace, tid }
        });
        let sum = Sum {
            packets: 1,
            bytes: queued.bytes,
        };
        self.sums.sent_by(sender, queued.interface).add(sum);
    }
}

impl NetRules {
    /// A packet is at a device; `None` if the event does not contain the device.
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
        let interface = partial.sums.met(cpu.trace, name);
        let bytes = packet.length.as_ref().and_then(|length| length.get(body));
        let bytes = bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(0);
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
        if !self.selection.counts(time, cpu.cpu) || self.options.is_summary {
            return None;
        }
        if is_sent {
            let tid = event.model.tid(body);
            let queued = Queued {
                interface,
                bytes,
                tid,
            };
            partial.step(cpu, time, NetStep::Queue(queued));
        }
        if !is_sent {
            partial.sums.interface(interface).received.add(bytes);
        }
        if self.ranges.is_none()
            && let Some(headers) = packet
                .headers
                .as_ref()
                .and_then(|headers| headers.get(body))
        {
            partial
                .sums
                .connections
                .add(cpu.trace, &headers, bytes, is_sent);
        }
        Some(())
    }

    /// The driver accepted, deferred or rejected a packet.
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
                    partial.sums.interface(interface).sent.add(bytes);
                }
                self.end(partial, event, buffer, Fate::Sent { interface, bytes });
            }
            // The kernel tries again.
            BUSY => partial.sums.interface(interface).busy += counts,
            _ => {
                partial.sums.interface(interface).errors += counts;
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

    fn freed(
        &self,
        partial: &mut NetPartial,
        event: &Event<'_>,
        free: &PacketFree,
        body: &mut Body<'_, '_>,
    ) {
        if let Some(buffer) = free.buffer.get(body) {
            let dropped = free.dropped;
            let is_told = dropped
                && free
                    .reason
                    .as_ref()
                    .is_some_and(|reason| reason.is_told(body));
            self.end(
                partial,
                event,
                buffer as u64,
                Fate::Freed { dropped, is_told },
            );
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

    /// Processes a packet event. Most packets reach the driver on the CPU that queued them, before
    /// that CPU handles another packet; these are paired here.
    #[inline(always)]
    fn passes(&self, partial: &mut NetPartial, cpu: CpuKey, time: i64, passing: Passing) {
        let lane = partial.queued.get(cpu);
        let Some(queued) = lane.now() else {
            if !partial.is_first {
                // Earlier chunks may contain the last queued packet; packets queued from now on are
                // known here.
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
            return self.ended(&mut partial.sums, buffer, begun, end);
        }
        if let Some((buffer, begun)) = last {
            partial
                .items
                .push(cpu, begun.time, Passing::Begin(buffer, begun));
        }
        if passing.queues().is_none() {
            partial.items.push(cpu, time, passing);
        }
    }

    /// Time up to which the packets of all CPUs are known: a CPU's last queued packet may still
    /// reach the driver there, but only soon.
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

    /// Pairs the packets that another packet followed on their CPU.
    fn play_slice<'a>(
        &'a self,
        mut items: Items<Passing>,
        sums: &mut Sums,
    ) -> Composition<'a, NetPartial> {
        let mut slice = PairSlice::default();
        items.play(None, |cpu, _, passing| match passing {
            Passing::Begin(buffer, begun) => drop(slice.begin((cpu.trace, buffer), begun)),
            Passing::End(buffer, end) => {
                if let Some((Some(begun), end)) = slice.end((cpu.trace, buffer), end) {
                    self.ended(sums, buffer, begun, end);
                }
            }
        });
        Box::new(move |partial| {
            let NetPartial { packets, sums, .. } = partial;
            let ended = |(_, buffer), begun: Option<Begun>, end| {
                if let Some(begun) = begun {
                    self.ended(sums, buffer, begun, end);
                }
            };
            slice.compose(packets, ended, |_| {});
        })
    }

    fn ended(&self, sums: &mut Sums, buffer: u64, begun: Begun, end: End) {
        if !self.selection.counts(end.time, end.cpu) {
            return;
        }
        match end.fate {
            Fate::Freed { dropped, is_told } => {
                let interface = sums.interface(begun.interface);
                interface.reason_drops += u64::from(is_told);
                match begun.is_sent {
                    true => interface.sent_drops += u64::from(dropped),
                    false => interface.received_drops += u64::from(dropped),
                }
            }
            Fate::Sent { interface, bytes } => {
                let duration = begun.time.abs_diff(end.time);
                let fits = begun.is_sent && begun.interface == interface;
                if fits && self.options.views.limits.contain(duration) {
                    let passed = Passed {
                        duration,
                        queued: begun.time,
                        interface,
                        buffer,
                        bytes,
                    };
                    self.passed(sums, passed);
                }
            }
        }
    }

    fn passed(&self, sums: &mut Sums, passed: Passed) {
        let interface = sums.interface(passed.interface);
        if let Some(ranges) = &self.ranges {
            if let Some((_, range)) = ranges.iter().find(|(of, _)| *of == passed.interface) {
                interface.bins.add(*range, passed.duration);
            }
            return;
        }
        if !self.options.is_summary {
            interface.durations.add(passed.duration);
        }
        interface.top.add(passed, self.options.views.top());
        if self.options.views.shows(View::Log) {
            sums.log.push(passed);
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
        counts.then(|| partial.sums.ports(ports))
    }
}

type PortField = tracebraid_kernel_model::IntField;

/// Maximum nanoseconds between queue and driver for pairing on the CPU. Bounds how long other items
/// wait.
const SOON: u64 = 10_000_000;

/// The driver took the packet.
const TAKEN: i64 = 0;
/// The driver has no room now.
const BUSY: i64 = 0x10;
