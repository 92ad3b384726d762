//! Stream and event classes, compiled before the first event is written.

use std::sync::{Arc, OnceLock};

use super::error::WriteError;
use super::event_header::{EventHeader, Lead};
use super::head::Head;
use crate::layout::TraceLayout;
use crate::layout::node::{Node, NodeKind};
use crate::layout::skip::SkipProgram;
use crate::layout::tree::Part;
use crate::schema::{EventClass, FieldClass, Name, Scope, StreamClass, TraceClass};

/// A compiled stream class.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// The trace class with only this stream class, without event classes.
    class: TraceClass,
    pub(super) head: Head,
    pub(super) header: EventHeader,
    pub(super) id: u64,
}

/// A compiled event class of a stream class. Threads may share it.
#[derive(Clone, Debug)]
pub struct EventPlan {
    pub(super) stream: Arc<StreamPlan>,
    pub(super) name: Name,
    pub(super) lead: Lead,
    /// Layout with only this event class.
    layout: TraceLayout,
    /// Largest alignment in the body, in bits.
    align: u32,
    /// Size of the body in bytes, if it is the same in all event records.
    pub(super) body_bytes: Option<usize>,
    /// Number of registers that writing needs.
    pub(super) slots: usize,
    /// The fields in order, if there are only plain fields and structures.
    pub(super) flat: Option<Box<[Leaf]>>,
}

/// A field without parts.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Alignment before the field, including that of structures that begin there.
    pub(super) align: u32,
    pub(super) node: Node,
}

/// The fields of these scopes in order, if they are the same in all event records.
fn flat(roots: [Option<Part<'_>>; 3]) -> Option<Box<[Leaf]>> {
    let mut leaves = Vec::new();
    let mut pending = 1;
    for root in roots.into_iter().flatten() {
        for node in std::iter::once(root.node()).chain(root.inside()) {
            pending = node.align.max(pending);
            match node.kind {
                NodeKind::Struct(_) => {}
                NodeKind::Array(_) | NodeKind::Variant(_) | NodeKind::Optional(_) => return None,
                _ => leaves.push(Leaf {
                    align: std::mem::replace(&mut pending, 1),
                    node: node.clone(),
                }),
            }
        }
    }
    // There must be no alignment after the last field.
    (pending == 1).then(|| leaves.into())
}

impl StreamPlan {
    /// Compiles the stream class with this index, without its event classes.
    ///
    /// # Errors
    /// If the stream class does not exist, or if packets of such a stream cannot be written: heads
    /// must consist of fixed-length integers, including the packet's size and content size and, if
    /// there is a clock, its times in 64 bits; event headers must be integers, or those of LTTng.
    pub fn new(class: &TraceClass, index: usize) -> Result<Arc<StreamPlan>, WriteError> {
        let Some(stream) = class.streams.get(index) else {
            return Err(WriteError::Misuse(format!(
                "there is no stream class at index {index}"
            )));
        };
        let stream = without_events(stream);
        let alone = TraceClass {
            streams: vec![stream],
            clocks: class.clocks.clone(),
            environment: Vec::new(),
            namespace: None,
            name: None,
            uid: None,
            packet_header: class.packet_header.clone(),
            ..*class
        };
        let layout = TraceLayout::new(Arc::new(alone.clone()));
        let head = Head::new(&layout)?;
        let Some(stream) = layout.streams.first() else {
            return Err(WriteError::Misuse("there is no stream class".into()));
        };
        Ok(Arc::new(StreamPlan {
            class: alone,
            head,
            header: EventHeader::new(&stream.event_header)?,
            id: stream.id,
        }))
    }

    /// Names of the fields of packet heads whose values the caller must set.
    pub fn context_names(&self) -> impl Iterator<Item = &Name> {
        self.head.names()
    }
}

fn without_events(class: &StreamClass) -> StreamClass {
    StreamClass {
        id: class.id,
        namespace: None,
        name: None,
        uid: None,
        default_clock: class.default_clock,
        packet_context: class.packet_context.clone(),
        event_header: class.event_header.clone(),
        common_context: class.common_context.clone(),
        events: Vec::new(),
    }
}

/// An event class that is compiled when its first event record is written: of the classes of a
/// kernel's tracer, most traces contain few. Threads may share it.
#[derive(Debug)]
pub struct DeferredEventPlan {
    stream: Arc<StreamPlan>,
    class: EventClass,
    lead: Lead,
    plan: OnceLock<EventPlan>,
}

impl DeferredEventPlan {
    /// An event class of this stream class.
    ///
    /// # Errors
    /// As for [`EventPlan::new`].
    pub fn new(
        stream: &Arc<StreamPlan>,
        class: &EventClass,
    ) -> Result<DeferredEventPlan, WriteError> {
        Ok(DeferredEventPlan {
            stream: stream.clone(),
            class: class.clone(),
            lead: EventPlan::check(stream, class)?,
            plan: OnceLock::new(),
        })
    }

    /// The compiled class.
    #[inline]
    pub fn get(&self) -> &EventPlan {
        let compile = || EventPlan::compile(&self.stream, &self.class, self.lead);
        self.plan.get_or_init(compile)
    }
}

/// The event classes of a stream class, compiled when they are asked for.
#[derive(Clone, Debug)]
pub(super) struct EventPlans {
    classes: Vec<(Arc<StreamPlan>, EventClass, Lead)>,
    compiled: OnceLock<Vec<Arc<EventPlan>>>,
}

impl EventPlans {
    pub(super) fn new(
        stream: &Arc<StreamPlan>,
        classes: &[EventClass],
    ) -> Result<EventPlans, WriteError> {
        let class = |class: &EventClass| {
            let lead = EventPlan::check(stream, class)?;
            Ok((stream.clone(), class.clone(), lead))
        };
        Ok(EventPlans {
            classes: classes.iter().map(class).collect::<Result<_, _>>()?,
            compiled: OnceLock::new(),
        })
    }

    /// The compiled classes, in order.
    pub(super) fn all(&self) -> &[Arc<EventPlan>] {
        self.compiled.get_or_init(|| {
            let classes = self.classes.iter();
            classes
                .map(|(stream, class, lead)| Arc::new(EventPlan::compile(stream, class, *lead)))
                .collect()
        })
    }

    pub(super) fn push(&mut self, plan: Arc<EventPlan>) {
        self.all();
        if let Some(compiled) = self.compiled.get_mut() {
            compiled.push(plan);
        }
    }
}

impl EventPlan {
    /// Compiles an event class of this stream class.
    ///
    /// # Errors
    /// If its id does not fit the event header, or its fields take lengths or selectors from the
    /// heads of packets or event records.
    pub fn new(stream: &Arc<StreamPlan>, class: &EventClass) -> Result<EventPlan, WriteError> {
        let lead = EventPlan::check(stream, class)?;
        Ok(EventPlan::compile(stream, class, lead))
    }

    /// The fields after the header, in any order.
    fn fields<'c>(
        of_stream: &'c StreamClass,
        class: &'c EventClass,
    ) -> impl Iterator<Item = &'c FieldClass> {
        let scopes = [
            &of_stream.common_context,
            &class.specific_context,
            &class.payload,
        ];
        scopes.into_iter().flatten().flat_map(FieldClass::all)
    }

    /// Whether the class can be written; returns its id in headers. Takes a small part of the time
    /// of compiling.
    fn check(stream: &StreamPlan, class: &EventClass) -> Result<Lead, WriteError> {
        let Some(of_stream) = stream.class.streams.first() else {
            return Err(WriteError::Misuse("there is no stream class".into()));
        };
        let fields = EventPlan::fields(of_stream, class);
        let locations = fields.filter_map(FieldClass::location);
        if locations
            .into_iter()
            .any(|location| location.scope <= Scope::EventHeader)
        {
            let what = format!("event `{}`, whose fields depend on headers", class.name);
            return Err(WriteError::unsupported(what));
        }
        let lead = if stream.header.has_id() || class.id == 0 {
            stream.header.lead(class.id)
        } else {
            None
        };
        let Some(lead) = lead else {
            let what = format!(
                "event `{}`: its id {} does not fit the event header",
                class.name, class.id
            );
            return Err(WriteError::unsupported(what));
        };
        Ok(lead)
    }

    fn compile(stream: &Arc<StreamPlan>, class: &EventClass, lead: Lead) -> EventPlan {
        let of_stream = stream.class.streams.first();
        let fields = of_stream.map(|of_stream| EventPlan::fields(of_stream, class));
        let align = fields.and_then(|fields| fields.map(FieldClass::own_align).max());
        let streams = of_stream.map(|of_stream| StreamClass {
            events: vec![class.clone()],
            ..without_events(of_stream)
        });
        let alone = TraceClass {
            streams: streams.into_iter().collect(),
            ..stream.class.clone()
        };
        let layout = TraceLayout::new(Arc::new(alone));
        let mut plan = EventPlan {
            stream: stream.clone(),
            slots: layout.registers().len(),
            name: class.name.clone(),
            lead,
            align: align.unwrap_or(1),
            layout,
            body_bytes: None,
            flat: None,
        };
        plan.flat = flat(plan.roots());
        let bits = plan.body().and_then(SkipProgram::constant);
        plan.body_bytes = bits
            .filter(|bits| bits % 8 == 0)
            .map(|bits| (bits / 8) as usize);
        plan
    }

    /// The roots of the scopes after the header, in order.
    #[inline(always)]
    pub(super) fn roots(&self) -> [Option<Part<'_>>; 3] {
        let stream = self.layout.streams.first();
        let event = stream.and_then(|stream| stream.events.first());
        [
            stream.and_then(|stream| stream.common_context.root()),
            event.and_then(|event| event.specific_context.root()),
            event.and_then(|event| event.payload.root()),
        ]
    }

    /// Skips the scopes after the header.
    pub(super) fn body(&self) -> Option<&SkipProgram> {
        let stream = self.layout.streams.first();
        stream
            .and_then(|stream| stream.events.first())
            .map(|event| &event.body)
    }

    /// True if the fields may begin at any byte, so that their bytes do not depend on the position.
    pub(super) fn is_packed(&self) -> bool {
        self.align <= 8
    }
}
