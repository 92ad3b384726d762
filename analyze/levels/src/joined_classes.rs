//! The event classes of the sources, changed for a super-trace: the context of the stream becomes part
//! of their own, and bytes that are copied have no alignment.

use std::sync::Arc;

use tracebraid_ctf::schema::{
    EventClass, FieldClass, FieldLocation, IntClass, Member, OptionalClass, Scope, StructClass,
    VariantClass, VariantOption,
};

use crate::catalogue::Copying;

/// Without alignment of the scopes, if the records are copied as bytes.
pub(crate) fn packed(class: EventClass, copying: &Copying) -> EventClass {
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
pub(crate) fn joined(common: Option<&FieldClass>, class: &EventClass) -> Option<EventClass> {
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

/// Limit of the nesting of fields, since classes are copied recursively.
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
        // The clocks of the sources do not exist in the super-trace.
        FieldClass::Int(own) if own.clock.is_some() => FieldClass::Int(Arc::new(IntClass {
            clock: None,
            ..(**own).clone()
        })),
        other => other.clone(),
    })
}
