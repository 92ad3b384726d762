//! The event classes of a super-trace: those of all traces, with the new common context, and the
//! derived ones.
//!
//! Contexts of a stream's event records become part of the specific context of each of its classes:
//! their bytes stay where they are, so that a record is copied as it is if no field depends on its
//! position.

use std::collections::HashMap;
use std::sync::Arc;

use tracebraid_ctf::layout::node::{Length, NodeKind};
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::build::{Align, Fields, int_class};
use tracebraid_ctf::schema::{
    ByteOrder, EventClass, FieldClass, FieldLocation, IntClass, Member, Name, OptionalClass, Scope,
    StructClass, VariantClass, VariantOption,
};
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::write::{DeferredEventPlan, EventPlan, StreamPlan};
use tracebraid_kernel_model::{EventModel, KernelEvent};

use crate::derived_classes::{DerivedPlans, VIOLATION, derived_classes};
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

/// A field whose value the levels replace.
#[derive(Clone, Debug)]
pub(crate) struct Replaced {
    pub(crate) what: Whose,
    /// Name of the thread instead of its id.
    pub(crate) is_name: bool,
    pub(crate) field: String,
    /// Offset in bytes after the header, and size in bytes.
    pub(crate) place: (usize, usize),
    pub(crate) is_big: bool,
}

/// The thread that a replaced field is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The thread that leaves the CPU, or that runs.
    Running,
    /// The thread that gets the CPU.
    Next,
    /// Another thread: woken, migrated.
    Other,
}

/// Fields that are added to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    Nothing,
    /// `level`.
    Level,
    /// `level` and `reason`.
    LevelAndReason,
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

/// Size of a text of fixed length.
fn text_bytes(field: &FieldRef) -> Option<u64> {
    match (field.kind(), field.element()) {
        (NodeKind::SizedStr(Length::Static(bytes), _), _) => Some(*bytes),
        (NodeKind::Array(Length::Static(bytes)), Some(NodeKind::Int(read, _)))
            if read.length == 8 =>
        {
            Some(*bytes)
        }
        _ => None,
    }
}

/// Without alignment of the scopes, if the records are copied as bytes.
fn packed(class: EventClass, copying: &Copying) -> EventClass {
    let Copying::Bytes(9..) = copying else {
        return class;
    };
    let loosen = |scope: &Option<FieldClass>| match scope {
        Some(FieldClass::Struct(own)) => Some(FieldClass::Struct(Arc::new(StructClass {
            min_align: 1,
            members: own.members.clone(),
        }))),
        scope => scope.clone(),
    };
    EventClass {
        specific_context: loosen(&class.specific_context),
        payload: loosen(&class.payload),
        ..class
    }
}

/// The class with the stream's context at the beginning of its own.
/// `None` if fields are nested too deeply.
fn joined(common: Option<&FieldClass>, class: &EventClass) -> Option<EventClass> {
    let members = |scope: Option<&FieldClass>| match scope {
        Some(FieldClass::Struct(own)) => (own.members.clone(), own.min_align),
        _ => (Vec::new(), 1),
    };
    let (mut all, first_align) = members(common);
    let shift = all.len() as u32;
    let (own, own_align) = members(class.specific_context.as_ref());
    let moved = |location: &FieldLocation| match location.scope {
        Scope::CommonContext => FieldLocation {
            scope: Scope::SpecificContext,
            ..location.clone()
        },
        Scope::SpecificContext => FieldLocation {
            scope: Scope::SpecificContext,
            paths: location
                .paths
                .iter()
                .map(|path| {
                    let mut path = path.clone();
                    if let Some(first) = path.first_mut() {
                        *first += shift;
                    }
                    path
                })
                .collect(),
        },
        _ => location.clone(),
    };
    for member in own {
        let is_taken = all.iter().any(|other| other.name == member.name);
        let name = if is_taken {
            format!("{}_2", member.name).as_str().into()
        } else {
            member.name
        };
        all.push(Member {
            name,
            class: member.class,
        });
    }
    for member in &mut all {
        // The name of the LWP, not of the user-level thread.
        if *member.name == *"procname" {
            member.name = "lwp_procname".into();
        }
        member.class = relocated(&member.class, &moved, MOST_DEPTH)?;
    }
    let is_empty = all.is_empty();
    let context = FieldClass::Struct(Arc::new(StructClass {
        min_align: first_align.max(own_align),
        members: all,
    }));
    let payload = match &class.payload {
        Some(payload) => Some(relocated(payload, &moved, MOST_DEPTH)?),
        None => None,
    };
    Some(EventClass {
        specific_context: (!is_empty).then_some(context),
        payload,
        namespace: None,
        uid: None,
        ..class.clone()
    })
}

/// Deepest nesting of fields: a copy of a class is made recursively.
const MOST_DEPTH: u32 = 64;

/// A copy of a class with other locations of lengths and selectors; `None` if it is too deep.
fn relocated(
    class: &FieldClass,
    moved: &dyn Fn(&FieldLocation) -> FieldLocation,
    depth: u32,
) -> Option<FieldClass> {
    let depth = depth.checked_sub(1)?;
    let inner = |class: &FieldClass| relocated(class, moved, depth);
    let at = |location: &FieldLocation| Arc::new(moved(location));
    let member = |member: &Member| {
        Some(Member {
            name: member.name.clone(),
            class: inner(&member.class)?,
        })
    };
    let option = |option: &VariantOption| {
        let (name, ranges) = (option.name.clone(), option.ranges.clone());
        Some(VariantOption {
            name,
            ranges,
            class: inner(&option.class)?,
        })
    };
    Some(match class {
        FieldClass::DynStr { length, encoding } => FieldClass::DynStr {
            length: at(length),
            encoding: *encoding,
        },
        FieldClass::DynBlob { length, media_type } => FieldClass::DynBlob {
            length: at(length),
            media_type: media_type.clone(),
        },
        FieldClass::Array {
            element,
            length,
            min_align,
            roles,
        } => FieldClass::Array {
            element: Arc::new(inner(element)?),
            length: *length,
            min_align: *min_align,
            roles: *roles,
        },
        FieldClass::Sequence {
            element,
            length,
            min_align,
        } => FieldClass::Sequence {
            element: Arc::new(inner(element)?),
            length: at(length),
            min_align: *min_align,
        },
        FieldClass::Struct(own) => FieldClass::Struct(Arc::new(StructClass {
            min_align: own.min_align,
            members: own.members.iter().map(member).collect::<Option<_>>()?,
        })),
        FieldClass::Variant(own) => FieldClass::Variant(Arc::new(VariantClass {
            selector: at(&own.selector),
            options: own.options.iter().map(option).collect::<Option<_>>()?,
        })),
        FieldClass::Optional(own) => FieldClass::Optional(Arc::new(OptionalClass {
            selector: at(&own.selector),
            ranges: own.ranges.clone(),
            element: inner(&own.element)?,
        })),
        // A clock of the old trace.
        FieldClass::Int(own) if own.clock.is_some() => FieldClass::Int(Arc::new(IntClass {
            clock: None,
            ..(**own).clone()
        })),
        other => other.clone(),
    })
}

/// Fields of a kernel class that are replaced, and fields that are added.
fn changes(layout: &StreamLayout, class: usize, event: &KernelEvent) -> (Vec<Replaced>, Added) {
    let mut replaced = Vec::new();
    let mut add = |what: Whose, ids: &[&str], name: &str| {
        let id = ids
            .iter()
            .find_map(|id| replaced_field(layout, class, what, id, false));
        let Some(id) = id else { return };
        replaced.push(id);
        replaced.extend(replaced_field(layout, class, what, name, true));
    };
    let added = match event {
        KernelEvent::Switch(_) => {
            add(Whose::Running, &["prev_tid", "prev_pid"], "prev_comm");
            add(Whose::Next, &["next_tid", "next_pid"], "next_comm");
            Added::Level
        }
        KernelEvent::Wakeup(_) => {
            add(Whose::Other, &["tid", "pid"], "comm");
            Added::LevelAndReason
        }
        KernelEvent::Migrate(_) | KernelEvent::SchedStat(_) | KernelEvent::Inherit(_) => {
            add(Whose::Other, &["tid", "pid"], "comm");
            Added::Level
        }
        KernelEvent::Fork(_) => {
            let is_lttng = field_at(layout, class, "child_tid").is_some();
            let parent = if is_lttng { "parent_tid" } else { "parent_pid" };
            add(Whose::Running, &[parent], "parent_comm");
            Added::Level
        }
        KernelEvent::ThreadExit(_) => Added::Level,
        _ => Added::Nothing,
    };
    (replaced, added)
}

fn field_at(layout: &StreamLayout, class: usize, name: &str) -> Option<FieldRef> {
    let find = |name: &str| layout.field(class, Scope::Payload, &[name]);
    find(name).or_else(|| find(&format!("_{name}")))
}

fn replaced_field(
    layout: &StreamLayout,
    class: usize,
    what: Whose,
    name: &str,
    is_name: bool,
) -> Option<Replaced> {
    let field = field_at(layout, class, name)?;
    let mut place = (0, 0);
    let mut is_big = false;
    if is_name {
        let offset = field.offset().filter(|at| at % 8 == 0);
        // Names are 16 characters; a string of any length is left as it is.
        let bytes = text_bytes(&field)?;
        if let Some(at) = offset {
            place = ((at / 8) as usize, bytes as usize);
        }
    } else if let Some((at, read)) = field.constant()
        && at % 8 == 0
        && read.length % 8 == 0
        && !read.reversed
    {
        place = ((at / 8) as usize, usize::from(read.length / 8));
        is_big = read.big;
    }
    let field = name.to_owned();
    Some(Replaced {
        what,
        is_name,
        field,
        place,
        is_big,
    })
}

/// The class with the added fields.
fn with_added(class: EventClass, added: Added) -> EventClass {
    let Some(FieldClass::Struct(payload)) = &class.payload else {
        return class;
    };
    if added == Added::Nothing {
        return class;
    }
    let mut members = payload.members.clone();
    let level = FieldClass::Int(Arc::new(int_class(8, ByteOrder::Little, Align::Bytes)));
    members.push(Member {
        name: "level".into(),
        class: level,
    });
    if added == Added::LevelAndReason {
        let reason = FieldClass::Str {
            encoding: tracebraid_ctf::schema::Encoding::Utf8,
        };
        members.push(Member {
            name: "reason".into(),
            class: reason,
        });
    }
    let payload = StructClass {
        min_align: payload.min_align,
        members,
    };
    EventClass {
        payload: Some(FieldClass::Struct(Arc::new(payload))),
        ..class
    }
}
