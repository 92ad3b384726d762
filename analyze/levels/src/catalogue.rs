//! The event classes of a super-trace: those of all traces, with the new common context, and the
//! derived ones.
//!
//! Contexts of a stream's event records become part of the specific context of each of its classes:
//! their bytes stay where they are, so that a record is copied as it is if no field depends on its
//! position.

use std::collections::HashMap;
use std::sync::Arc;

use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::layout::node::NodeKind;
use tracebraid_ctf::schema::build::{Align, Fields};
use tracebraid_ctf::schema::{ByteOrder, EventClass, FieldClass, Name, Scope};
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::write::{DeferredEventPlan, EventPlan, StreamPlan};
use tracebraid_kernel_model::EventModel;

use crate::changed_fields::{Added, Replaced, changes, with_added};
use crate::derived_classes::{DerivedPlans, VIOLATION, derived_classes};
use crate::joined_classes::{joined, packed};
use crate::sources::{Source, Sources};

/// Stream classes of a super-trace.
pub(crate) const OF_CPUS: usize = 0;
pub(crate) const WITHOUT_CPU: usize = 1;

/// Bytes of the common context: `tid`, `lwp`, `ult`.
pub(crate) const CONTEXT_BYTES: usize = 16;

/// How the records of a class are written.
#[derive(Clone, Debug)]
pub(crate) enum Copying {
    /// The bytes after the header are copied, after padding to this alignment in bits.
    Bytes(u32),
    /// Field by field: their positions depend on alignment.
    Fields,
}

/// An event class of a source in the super-trace.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) copying: Copying,
    pub(crate) replaced: Vec<Replaced>,
    pub(crate) added: Added,
    /// Trace, stream class and event class in the source.
    pub(crate) origin: (u32, usize, usize),
    /// In streams of CPUs, and in streams without.
    pub(crate) plans: [Option<Arc<DeferredEventPlan>>; 2],
}

/// A class of a source and its number in the super-trace.
pub(crate) struct Chosen {
    /// Index in [`Catalogue::copied`]; `None` if the class cannot be written.
    pub(crate) by_class: Vec<Option<u32>>,
}

/// The event classes of a super-trace before they are compiled.
#[derive(Default)]
pub(crate) struct Catalogue {
    classes: Vec<EventClass>,
    /// Of `classes`, how each is copied.
    copied: Vec<Copied>,
    /// By class: whether streams without CPUs have it too.
    is_user: Vec<bool>,
    numbers: HashMap<(Name, bool), Vec<u32>>,
    /// By trace and stream class.
    pub(crate) chosen: HashMap<(u32, usize), Chosen>,
    /// Classes that cannot be written.
    pub(crate) refused: Vec<String>,
    /// Number of the first derived class.
    first_derived: usize,
}

/// A compiled catalogue.
pub(crate) struct Plans {
    pub(crate) streams: [Arc<StreamPlan>; 2],
    pub(crate) copied: Vec<Copied>,
    pub(crate) derived: DerivedPlans,
    /// In streams without CPUs.
    pub(crate) violation: Arc<EventPlan>,
}

/// The common context of all event records.
pub(crate) fn common_context() -> FieldClass {
    let fields = Fields::new(Scope::CommonContext, ByteOrder::Little, Align::Bytes);
    fields.int("tid", 32).int("lwp", 32).uint("ult", 64).build()
}

impl Catalogue {
    /// The classes of all sources, then the derived ones.
    pub(crate) fn new(sources: &Sources, reasons: &[String]) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for stream in sources.group() {
            let number = sources.number(stream);
            let Some((trace, content)) = stream.of(&sources.set) else {
                continue;
            };
            let key = (stream.trace, content.class);
            if catalogue.chosen.contains_key(&key) {
                continue;
            }
            let is_user = matches!(sources.source(number), Some(Source::User(_)));
            let chosen = catalogue.stream(sources, trace, key, is_user);
            catalogue.chosen.insert(key, chosen);
        }
        catalogue.first_derived = catalogue.classes.len();
        let derived = derived_classes(catalogue.classes.len() as u64, reasons);
        catalogue
            .is_user
            .extend((0..derived.len()).map(|place| place == VIOLATION));
        catalogue.classes.extend(derived);
        catalogue
    }

    fn stream(
        &mut self,
        sources: &Sources,
        trace: &Trace,
        key: (u32, usize),
        is_user: bool,
    ) -> Chosen {
        let (Some(layout), Some(schema)) = (
            trace.layout.streams.get(key.1),
            trace.layout.class.streams.get(key.1),
        ) else {
            return Chosen {
                by_class: Vec::new(),
            };
        };
        let of_trace = sources.model.traces.get(key.0 as usize);
        let model = of_trace.and_then(|trace| trace.streams.get(key.1));
        let mut by_class = Vec::with_capacity(schema.events.len());
        for (index, class) in schema.events.iter().enumerate() {
            let model = model
                .and_then(|model| model.event(index))
                .filter(|_| !is_user);
            let wide = widest(layout, index);
            let Some(joined) = joined(schema.common_context.as_ref(), class) else {
                self.refused
                    .push(format!("{}: fields nested too deeply", class.name));
                by_class.push(None);
                continue;
            };
            let copying = copying(layout, index, wide);
            let origin = (key.0, key.1, index);
            by_class.push(self.add((joined, copying), layout, origin, model, is_user));
        }
        Chosen { by_class }
    }

    fn add(
        &mut self,
        (class, copying): (EventClass, Copying),
        layout: &StreamLayout,
        origin: (u32, usize, usize),
        model: Option<&EventModel>,
        is_user: bool,
    ) -> Option<u32> {
        let (replaced, added) = model.map_or((Vec::new(), Added::Nothing), |model| {
            changes(layout, origin.2, &model.event)
        });
        let is_placed = replaced.iter().all(|field| field.place.1 > 0);
        let copying = if is_placed { copying } else { Copying::Fields };
        let class = with_added(packed(class, &copying), added);
        let same = self
            .numbers
            .entry((class.name.clone(), is_user))
            .or_default();
        let known = same.iter().find(|&&number| {
            let own = self.classes.get(number as usize);
            own.is_some_and(|own| {
                EventClass {
                    id: own.id,
                    ..class.clone()
                } == *own
            })
        });
        // The same class of another process: a copy by bytes may need another alignment.
        if let Some(&known) = known
            && replaced.is_empty()
            && self
                .copied
                .get(known as usize)
                .is_some_and(|own| own.copying.is(&copying))
        {
            return Some(known);
        }
        let number = self.classes.len() as u32;
        same.push(number);
        self.classes.push(EventClass {
            id: u64::from(number),
            ..class
        });
        self.is_user.push(is_user);
        self.copied.push(Copied {
            copying,
            replaced,
            added,
            origin,
            plans: [None, None],
        });
        Some(number)
    }

    /// Event classes of a stream class, as they are written into the metadata.
    pub(crate) fn classes(&self, stream: usize) -> Vec<EventClass> {
        let all = self.classes.iter().enumerate();
        let has = |number: usize| match stream {
            OF_CPUS => true,
            _ => self.is_user.get(number).copied().unwrap_or(false),
        };
        all.filter(|(number, _)| has(*number))
            .map(|(_, class)| class.clone())
            .collect()
    }

    /// Leaves out classes that the writer refuses, and compiles all others.
    pub(crate) fn compile(mut self, streams: [Arc<StreamPlan>; 2]) -> Option<(Catalogue, Plans)> {
        let mut refused = Vec::new();
        for (number, copied) in self.copied.iter_mut().enumerate() {
            let Some(class) = self.classes.get(number) else {
                continue;
            };
            copied.plans[OF_CPUS] = match DeferredEventPlan::new(&streams[OF_CPUS], class) {
                Ok(plan) => Some(Arc::new(plan)),
                Err(error) => {
                    refused.push((number, error.to_string()));
                    None
                }
            };
            if copied.plans[OF_CPUS].is_some() && self.is_user.get(number) == Some(&true) {
                let plan = DeferredEventPlan::new(&streams[WITHOUT_CPU], class).ok();
                copied.plans[WITHOUT_CPU] = plan.map(Arc::new);
            }
        }
        let plans =
            |class: &EventClass| EventPlan::new(&streams[OF_CPUS], class).ok().map(Arc::new);
        let derived: Vec<Arc<EventPlan>> = self
            .classes
            .get(self.first_derived..)?
            .iter()
            .map(plans)
            .collect::<Option<_>>()?;
        let derived = DerivedPlans::of(derived)?;
        let violation = self.classes.get(self.first_derived + VIOLATION)?;
        let violation = Arc::new(EventPlan::new(&streams[WITHOUT_CPU], violation).ok()?);
        let copied = std::mem::take(&mut self.copied);
        for (number, reason) in refused.iter().rev() {
            let name = self
                .classes
                .get(*number)
                .map(|class| class.name.to_string());
            self.refused
                .push(format!("{}: {reason}", name.unwrap_or_default()));
        }
        let is_refused = |number: usize| refused.iter().any(|(of, _)| *of == number);
        let mut number = 0..;
        let mut kept = self
            .is_user
            .iter()
            .map(|_| !is_refused(number.next().unwrap_or(0)));
        self.classes.retain(|_| kept.next().unwrap_or(true));
        let mut number = 0..;
        self.is_user
            .retain(|_| !is_refused(number.next().unwrap_or(0)));
        Some((
            self,
            Plans {
                streams,
                copied,
                derived,
                violation,
            },
        ))
    }
}

impl Copying {
    fn is(&self, other: &Copying) -> bool {
        match (self, other) {
            (Copying::Bytes(own), Copying::Bytes(other)) => own == other,
            (Copying::Fields, Copying::Fields) => true,
            _ => false,
        }
    }
}

/// Largest alignment of the roots of the scopes after the header, and of the fields within them.
fn widest(layout: &StreamLayout, class: usize) -> Option<(u32, u32)> {
    let event = layout.events.get(class)?;
    let trees = [
        &layout.common_context,
        &event.specific_context,
        &event.payload,
    ];
    let roots = trees
        .iter()
        .filter_map(|tree| tree.root())
        .map(|root| root.align)
        .max();
    let inner = trees
        .iter()
        .filter_map(|tree| tree.root())
        .flat_map(|root| root.inside());
    Some((
        roots.unwrap_or(1),
        inner.map(|node| node.align).max().unwrap_or(1),
    ))
}

/// How records of a class are copied: as bytes, if only the beginning of the first scope is aligned
/// to more than a byte.
fn copying(layout: &StreamLayout, class: usize, widest: Option<(u32, u32)>) -> Copying {
    let Some((roots, inner)) = widest else {
        return Copying::Fields;
    };
    let Some(event) = layout.events.get(class) else {
        return Copying::Fields;
    };
    let trees = [
        &layout.common_context,
        &event.specific_context,
        &event.payload,
    ];
    let scopes = trees.iter().filter(|tree| tree.root().is_some()).count();
    // Fields of bits would make the end of a record fall within a byte.
    let has_bits = trees
        .iter()
        .flat_map(|tree| tree.all())
        .any(|part| !is_of_bytes(&part.kind));
    match (scopes, roots, inner) {
        _ if has_bits => Copying::Fields,
        (_, ..=8, ..=8) => Copying::Bytes(8),
        (1, _, ..=8) => Copying::Bytes(roots),
        _ => Copying::Fields,
    }
}

/// Whether a field ends at a byte boundary if it begins at one.
fn is_of_bytes(kind: &NodeKind) -> bool {
    match kind {
        NodeKind::Int(read, _)
        | NodeKind::Bool(read)
        | NodeKind::BitArray(read, _)
        | NodeKind::BitMap(read, _) => read.length % 8 == 0,
        NodeKind::WideInt(class) => class.length % 8 == 0,
        _ => true,
    }
}
