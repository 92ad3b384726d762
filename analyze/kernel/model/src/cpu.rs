//! The CPU of an event, from the location where the tracer records it.
//!
//! | tracer | where |
//! |---|---|
//! | lttng-modules, lttng-ust, perf's converter since 4.1, DPDK | `cpu_id` of the packet context |
//! | lttng-ust, barectf as configured | a context of each event: `cpu_id`, `cpu` |
//! | perf's first converter, tools that convert one stream of perf's samples | `perf_cpu` of the payload |
//! | ftrace, trace-cmd as converted | `common_cpu` of the payload |
//! | converters of other formats | a payload field that `sched_switch` also has |
//!
//! If packets contain the CPU, it holds for all of their events. An event's own fields may be about
//! another CPU (`cpu_id` of `power_cpu_frequency`), so a payload field counts only if its name is
//! not used by any kernel event, or if `sched_switch` has it: the kernel's `sched_switch` has no
//! CPU field, so such a field comes from a converter, which adds it to every event.

use tracebraid_ctf::bits::Cursor;
use tracebraid_ctf::layout::node::{NodeId, NodeKind};
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::packet::PacketHead;
use tracebraid_ctf::schema::{Scope, TraceClass};
use tracebraid_ctf::trace::Trace;

const OF_PACKETS: [&str; 4] = ["cpu_id", "cpu", "CPU", "processor_id"];
const OF_CONTEXTS: [&str; 5] = ["cpu_id", "cpu", "perf_cpu", "CPU", "processor_id"];
const OF_PAYLOADS: [&str; 2] = ["common_cpu", "perf_cpu"];
/// Payload fields that count if `sched_switch` has them.
const OF_SWITCHES: [&str; 4] = ["cpu", "cpu_id", "CPU", "processor_id"];

/// More CPUs than Linux supports.
pub const MOST_CPUS: u32 = 1 << 14;

/// Number of a CPU in a trace. Numbers beyond those of any machine are mapped to the same CPU.
pub(crate) fn sound(cpu: i64) -> u32 {
    let cpu = u32::try_from(cpu).ok();
    cpu.filter(|&cpu| cpu < MOST_CPUS).unwrap_or(MOST_CPUS)
}

/// The member of packet contexts that contains the CPU of all their events.
pub fn packet_cpu(layout: &StreamLayout) -> Option<NodeId> {
    OF_PACKETS
        .iter()
        .find_map(|name| layout.packet_context_member(name))
}

/// The CPU of a packet, if packets contain it.
pub fn head_cpu(layout: &StreamLayout, head: &PacketHead) -> Option<u64> {
    let node = packet_cpu(layout)?;
    let found = head.values.iter().find(|(of, _)| *of == node);
    found.map(|(_, cpu)| *cpu)
}

/// The field of an event class that contains the CPU of its events.
pub fn event_cpu(class: &TraceClass, layout: &StreamLayout, event: usize) -> Option<FieldRef> {
    let find = |scope, names: &[&str]| {
        names
            .iter()
            .find_map(|name| integer(layout, event, scope, name))
    };
    let contexts = [Scope::CommonContext, Scope::SpecificContext];
    let found = contexts
        .into_iter()
        .find_map(|scope| find(scope, &OF_CONTEXTS));
    // A user program's payload may use any name.
    let is_kernel = class
        .env_str("domain")
        .is_none_or(|domain| domain == "kernel");
    let of_switches = || {
        let mut names = OF_SWITCHES.iter();
        names.find_map(|name| {
            integer(layout, event, Scope::Payload, name).filter(|_| switches_have(layout, name))
        })
    };
    let in_payload = || find(Scope::Payload, &OF_PAYLOADS).or_else(of_switches);
    found.or_else(|| is_kernel.then(in_payload).flatten())
}

/// The integer field `name` in a scope of an event class.
fn integer(layout: &StreamLayout, event: usize, scope: Scope, name: &str) -> Option<FieldRef> {
    let field = |name: &str| layout.field(event, scope, &[name]);
    let found = field(name).or_else(|| field(&format!("_{name}")));
    found.filter(|field| matches!(field.kind(), NodeKind::Int(..) | NodeKind::VarInt(_)))
}

/// True if the payload of `sched_switch` has this integer (see the module's head).
fn switches_have(layout: &StreamLayout, name: &str) -> bool {
    let is_switch = |name: &str| name == "sched_switch" || name == "sched:sched_switch";
    let switch = layout
        .events
        .iter()
        .position(|event| is_switch(&event.name));
    switch.is_some_and(|switch| integer(layout, switch, Scope::Payload, name).is_some())
}

/// Location of the CPU of a trace's events, by stream class.
#[derive(Clone, Debug, Default)]
pub struct Cpus(Vec<CpuPlace>);

#[derive(Clone, Debug)]
enum CpuPlace {
    Packets(NodeId),
    /// By event class; at least one class has a field.
    Events(Vec<Option<FieldRef>>),
    Nowhere,
}

impl Cpus {
    /// Finds the locations in a trace.
    pub fn new(trace: &Trace) -> Cpus {
        let layout = &trace.layout;
        let place = |stream: &StreamLayout| {
            if let Some(node) = packet_cpu(stream) {
                return CpuPlace::Packets(node);
            }
            let events = 0..stream.events.len();
            let fields: Vec<_> = events
                .map(|event| event_cpu(&layout.class, stream, event))
                .collect();
            match fields.iter().any(Option::is_some) {
                true => CpuPlace::Events(fields),
                false => CpuPlace::Nowhere,
            }
        };
        Cpus(layout.streams.iter().map(place).collect())
    }

    /// The member of the packet context that contains the CPU, in streams of this class.
    pub fn packet_member(&self, class: usize) -> Option<NodeId> {
        match self.0.get(class) {
            Some(CpuPlace::Packets(cpu)) => Some(*cpu),
            _ => None,
        }
    }

    /// The CPU of a packet of a stream of this class.
    pub fn of_packet(&self, class: usize, head: &PacketHead) -> Option<u64> {
        let Some(CpuPlace::Packets(cpu)) = self.0.get(class) else {
            return None;
        };
        let found = head.values.iter().find(|(node, _)| node == cpu);
        found.map(|(_, value)| *value)
    }

    /// True if a stream of this class may contain events of several CPUs, each with a field for its
    /// CPU.
    pub fn are_mixed(&self, class: usize) -> bool {
        matches!(self.0.get(class), Some(CpuPlace::Events(_)))
    }

    /// True if records of this event class have a field for their CPU.
    #[inline]
    pub fn has_field(&self, class: usize, event: usize) -> bool {
        self.field(class, event).is_some()
    }

    fn field(&self, class: usize, event: usize) -> Option<&FieldRef> {
        match self.0.get(class)? {
            CpuPlace::Events(fields) => fields.get(event)?.as_ref(),
            _ => None,
        }
    }

    /// The CPU of an event record of this class, if it has a field for the CPU.
    #[inline]
    pub fn of_event(
        &self,
        (class, event): (usize, usize),
        body: Cursor<'_>,
        slots: &mut [u64],
    ) -> Option<u64> {
        let cpu = self.field(class, event)?.integer(body, slots).ok()?;
        Some(sound(cpu as i64).into())
    }
}
