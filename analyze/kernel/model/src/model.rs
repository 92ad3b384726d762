//! Typed events of event classes, with the positions of their fields.

use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::packet::PacketHead;
use tracebraid_ctf::schema::TraceClass;
use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::comm::Comm;
use crate::context::Context;
use crate::cpu::{event_cpu, head_cpu, packet_cpu, sound};
use crate::event::KernelEvent;
use crate::events::user_level::SUPER_TRACE;
use crate::field::{Body, IntField};
use crate::finder::Finder;
use crate::names::{is_of_program, meanings};
use crate::trace_numbers::TraceNumbers;

/// Typed kernel events of a trace set.
#[derive(Clone, Debug, Default)]
pub struct KernelModel {
    /// By trace.
    pub traces: Vec<TraceModel>,
}

/// Typed kernel events of a trace.
#[derive(Clone, Debug, Default)]
pub struct TraceModel {
    /// By stream class.
    pub streams: Vec<StreamModel>,
}

/// Typed kernel events of a stream class.
#[derive(Clone, Debug, Default)]
pub struct StreamModel {
    /// By event class: index among the models plus one; 0 if the class is not modelled. Few of a
    /// trace's thousand classes occur often, so their models are stored together.
    places: Vec<u16>,
    models: Vec<EventModel>,
}

/// A modelled event class.
#[derive(Clone, Debug)]
pub struct EventModel {
    /// The typed event.
    pub event: KernelEvent,
    /// Context fields, if any.
    pub context: Option<Box<Context>>,
}

impl EventModel {
    fn context(
        &self,
        of: impl Fn(&Context) -> &Option<IntField>,
        body: &mut Body<'_, '_>,
    ) -> Option<i64> {
        of(self.context.as_ref()?).as_ref()?.get(body)
    }

    /// The CPU in the context; 0 without a context. Numbers beyond those of any machine are mapped
    /// to the same CPU.
    pub fn cpu(&self, body: &mut Body<'_, '_>) -> u32 {
        let cpu = self.context(|context| &context.cpu, body).unwrap_or(0);
        sound(cpu)
    }

    /// Id of the thread in the context.
    #[inline(always)]
    pub fn tid(&self, body: &mut Body<'_, '_>) -> Option<i32> {
        self.context(|context| &context.tid, body)
            .map(|tid| tid as i32)
    }

    /// Id of the thread in the kernel, in the context of traces of several levels.
    #[inline(always)]
    pub fn lwp(&self, body: &mut Body<'_, '_>) -> Option<i32> {
        let lwp = self.context(|context| &context.lwp, body)?;
        (lwp >= 0).then_some(lwp as i32)
    }

    /// Id of the process in the context. perf records -1 for threads that no longer exist, and ids
    /// of its own namespace when it runs in one: neither is returned.
    #[inline(always)]
    pub fn pid(&self, body: &mut Body<'_, '_>) -> Option<i32> {
        let pid = self.context(|context| &context.pid, body)?;
        if let Some(seen) = self.context.as_ref()?.pid_goes_with.as_ref()
            && seen.get(body).map(|seen| seen as i32) != self.tid(body)
        {
            return None;
        }
        (pid >= 0).then_some(pid as i32)
    }

    /// Name of the thread in the context.
    pub fn name(&self, body: &mut Body<'_, '_>) -> Option<Comm> {
        self.context.as_ref()?.name.as_ref()?.comm(body)
    }

    /// True if the context contains the thread.
    pub fn tells_thread(&self) -> bool {
        self.context
            .as_ref()
            .is_some_and(|context| context.tid.is_some())
    }
}

/// Location of the CPU of a stream's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    /// All events are of this CPU.
    Packet(u32),
    /// Each event has a field for its CPU.
    Event,
    /// The CPU is not recorded.
    Unknown,
}

impl KernelModel {
    /// Resolves all event classes of a trace set.
    pub fn new(set: &TraceSet) -> KernelModel {
        let traces = set.traces.iter().map(TraceModel::new);
        KernelModel {
            traces: traces.collect(),
        }
    }
}

impl TraceModel {
    fn new(trace: &Trace) -> TraceModel {
        // A user-space tracepoint may have any name.
        let domain = trace.layout.class.env_str("domain");
        if domain.is_some_and(|domain| domain != "kernel") {
            return TraceModel::default();
        }
        let numbers = TraceNumbers::new(trace);
        let streams = trace.layout.streams.iter();
        let streams = streams
            .map(|layout| StreamModel::new(&trace.layout.class, layout, &numbers))
            .collect();
        TraceModel { streams }
    }
}

impl StreamModel {
    fn new(class: &TraceClass, layout: &StreamLayout, numbers: &TraceNumbers) -> StreamModel {
        let meanings = meanings(layout.events.iter().map(|event| &*event.name));
        let mut stream = StreamModel {
            places: vec![0; meanings.len()],
            models: Vec::new(),
        };
        let is_of_packets = packet_cpu(layout).is_some();
        let has_levels = class.env(SUPER_TRACE).is_some();
        for ((event, meaning), place) in meanings.into_iter().enumerate().zip(&mut stream.places) {
            let finder = Finder { layout, event };
            let known = meaning.and_then(|meaning| finder.event(meaning, numbers));
            let name = layout.events.get(event).map_or("", |event| &event.name);
            let is_probe = has_levels && is_of_program(name);
            let Some(known) = known.or(is_probe.then_some(KernelEvent::Probe)) else {
                continue;
            };
            let cpu = (!is_of_packets)
                .then(|| event_cpu(class, layout, event))
                .flatten();
            let cpu = cpu.and_then(IntField::new);
            let context = Some(Context::find(&finder, cpu))
                .filter(|context| !context.is_empty())
                .map(Box::new);
            stream.models.push(EventModel {
                event: known,
                context,
            });
            // No kernel has more classes than fit.
            *place = u16::try_from(stream.models.len()).unwrap_or(0);
        }
        stream
    }

    /// The event class with this index, if it is modelled.
    #[inline(always)]
    pub fn event(&self, class: usize) -> Option<&EventModel> {
        let place = usize::from(*self.places.get(class)?);
        self.models.get(place.wrapping_sub(1))
    }

    /// Number of event classes, modelled or not.
    pub fn classes(&self) -> usize {
        self.places.len()
    }

    /// All modelled event classes.
    pub fn events(&self) -> &[EventModel] {
        &self.models
    }

    /// Location of the CPU of events in a stream of this class; `head` is the head of its first
    /// packet.
    pub fn cpu_source(&self, layout: &StreamLayout, head: &PacketHead) -> CpuSource {
        if let Some(cpu) = head_cpu(layout, head).and_then(|cpu| u32::try_from(cpu).ok()) {
            return CpuSource::Packet(cpu);
        }
        let told = |event: &EventModel| {
            event
                .context
                .as_ref()
                .is_some_and(|context| context.cpu.is_some())
        };
        match !self.models.is_empty() && self.models.iter().all(told) {
            true => CpuSource::Event,
            false => CpuSource::Unknown,
        }
    }
}
