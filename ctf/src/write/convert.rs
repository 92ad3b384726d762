//! Converts a schema of CTF 1.8 to a schema of CTF 2 that describes the same bits.

use std::marker::PhantomData;
use std::sync::Arc;

use super::error::WriteError;
use crate::descent::{Descent, Visited, descend};
use crate::schema::{
    ByteOrder, ClockClass, CtfVersion, Encoding, EventClass, FieldClass, IntClass, Member,
    OptionalClass, Roles, StreamClass, StructClass, TraceClass, VariantClass, VariantOption,
};

fn refuse<T>(what: impl Into<String>) -> Result<T, WriteError> {
    Err(WriteError::inexpressible(CtfVersion::V2_0, what))
}

/// The same trace class in another version. A schema of CTF 1.8 is expressed in CTF 2 such that the
/// bits of the data streams stay the same.
///
/// # Errors
/// If the other version cannot express the class.
pub fn to_version(class: &TraceClass, version: CtfVersion) -> Result<TraceClass, WriteError> {
    match (class.version, version) {
        (from, to) if from == to => Ok(class.clone()),
        (_, CtfVersion::V1_8) => Err(WriteError::inexpressible(version, "a schema of CTF 2")),
        _ => to_v2(class),
    }
}

fn to_v2(class: &TraceClass) -> Result<TraceClass, WriteError> {
    let streams = class.streams.iter().map(stream);
    Ok(TraceClass {
        version: CtfVersion::V2_0,
        byte_order: ByteOrder::Little,
        packet_header: root(&class.packet_header)?,
        clocks: class.clocks.iter().map(clock).collect::<Result<_, _>>()?,
        streams: streams.collect::<Result<_, _>>()?,
        ..class.clone()
    })
}

/// Converts the offset to the form of CTF 2: less than a second of cycles.
fn clock(clock: &ClockClass) -> Result<ClockClass, WriteError> {
    let frequency = i128::from(clock.frequency.max(1));
    let cycles = i128::from(clock.offset_cycles);
    let seconds = i128::from(clock.offset_seconds) + cycles.div_euclid(frequency);
    let (Ok(offset_seconds), Ok(offset_cycles)) = (
        i64::try_from(seconds),
        i64::try_from(cycles.rem_euclid(frequency)),
    ) else {
        return refuse(format!("the offset of clock class `{}`", clock.id));
    };
    Ok(ClockClass {
        uuid: None,
        offset_seconds,
        offset_cycles,
        ..clock.clone()
    })
}

fn stream(stream: &StreamClass) -> Result<StreamClass, WriteError> {
    let events = stream.events.iter().map(event);
    Ok(StreamClass {
        packet_context: root(&stream.packet_context)?,
        event_header: root(&stream.event_header)?,
        common_context: root(&stream.common_context)?,
        events: events.collect::<Result<_, _>>()?,
        ..stream.clone()
    })
}

/// The event class in version `to`; `from` is the version of its trace class.
pub(super) fn event_to_version(
    class: &EventClass,
    from: CtfVersion,
    to: CtfVersion,
) -> Result<EventClass, WriteError> {
    if from == to {
        Ok(class.clone())
    } else {
        event(class)
    }
}

fn event(event: &EventClass) -> Result<EventClass, WriteError> {
    Ok(EventClass {
        specific_context: root(&event.specific_context)?,
        payload: root(&event.payload)?,
        ..event.clone()
    })
}

fn root(class: &Option<FieldClass>) -> Result<Option<FieldClass>, WriteError> {
    class
        .as_ref()
        .map(|class| descend(&mut Conversion(PhantomData), class))
        .transpose()
}

struct Conversion<'c>(PhantomData<&'c FieldClass>);

/// A class whose parts are being converted.
struct Open<'c> {
    class: &'c FieldClass,
    parts: crate::schema::Parts<'c>,
    made: Vec<FieldClass>,
}

impl<'c> Descent for Conversion<'c> {
    type Node = &'c FieldClass;
    type Open = Open<'c>;
    type Made = FieldClass;
    type Error = WriteError;

    fn enter(
        &mut self,
        class: &'c FieldClass,
    ) -> Result<Visited<Open<'c>, FieldClass>, WriteError> {
        let made = match class {
            FieldClass::Int(int) => FieldClass::Int(Arc::new(integer(int)?)),
            FieldClass::Array {
                element,
                length,
                roles,
                ..
            } if roles.contains(Roles::METADATA_UUID) && is_bytes(element) => {
                FieldClass::StaticBlob {
                    length: *length,
                    media_type: None,
                    roles: *roles,
                }
            }
            FieldClass::Array {
                element, length, ..
            } if is_text(element) => FieldClass::StaticStr {
                length: *length,
                encoding: Encoding::Utf8,
            },
            FieldClass::Sequence {
                element, length, ..
            } if is_text(element) => FieldClass::DynStr {
                length: length.clone(),
                encoding: Encoding::Utf8,
            },
            FieldClass::Struct(_)
            | FieldClass::Variant(_)
            | FieldClass::Optional(_)
            | FieldClass::Array { .. }
            | FieldClass::Sequence { .. } => {
                return Ok(Visited::Open(Open {
                    class,
                    parts: class.parts(),
                    made: Vec::new(),
                }));
            }
            class => class.clone(),
        };
        Ok(Visited::Made(made))
    }

    fn next(&mut self, open: &mut Open<'c>) -> Result<Option<&'c FieldClass>, WriteError> {
        Ok(open.parts.next().map(|(_, part)| part))
    }

    fn add(&mut self, open: &mut Open<'c>, made: FieldClass) -> Result<(), WriteError> {
        open.made.push(made);
        Ok(())
    }

    fn leave(&mut self, open: Open<'c>) -> Result<FieldClass, WriteError> {
        with_parts(open.class, open.made)
    }
}

/// The class with its parts replaced.
fn with_parts(class: &FieldClass, made: Vec<FieldClass>) -> Result<FieldClass, WriteError> {
    let mut made = made.into_iter();
    Ok(match class {
        FieldClass::Struct(class) => {
            let members = class.members.iter().zip(made);
            let member = |(member, class): (&Member, _)| Member {
                name: member.name.clone(),
                class,
            };
            FieldClass::Struct(Arc::new(StructClass {
                min_align: class.min_align,
                members: members.map(member).collect(),
            }))
        }
        FieldClass::Variant(class) => {
            if class.options.iter().any(|option| option.ranges.is_empty()) {
                return refuse("an option of a variant that no selector value selects");
            }
            let options = class.options.iter().zip(made);
            let option = |(option, class): (&VariantOption, _)| VariantOption {
                name: option.name.clone(),
                ranges: option.ranges.clone(),
                class,
            };
            FieldClass::Variant(Arc::new(VariantClass {
                selector: class.selector.clone(),
                options: options.map(option).collect(),
            }))
        }
        class => {
            let Some(part) = made.next() else {
                return Ok(class.clone());
            };
            with_element(class, part)
        }
    })
}

fn with_element(class: &FieldClass, part: FieldClass) -> FieldClass {
    match class {
        FieldClass::Optional(class) => FieldClass::Optional(Arc::new(OptionalClass {
            selector: class.selector.clone(),
            ranges: class.ranges.clone(),
            element: part,
        })),
        FieldClass::Array {
            length, min_align, ..
        } => FieldClass::Array {
            element: Arc::new(part),
            length: *length,
            min_align: *min_align,
            roles: Roles::NONE,
        },
        FieldClass::Sequence {
            length, min_align, ..
        } => FieldClass::Sequence {
            element: Arc::new(part),
            length: length.clone(),
            min_align: *min_align,
        },
        class => class.clone(),
    }
}

/// Replaces the clock mapping of CTF 1.8, for which CTF 2 uses roles, and the encoding, since
/// strings of CTF 2 are not arrays.
fn integer(class: &IntClass) -> Result<IntClass, WriteError> {
    if class.length > 64 {
        return refuse(format!("an integer of {} bits", class.length));
    }
    Ok(IntClass {
        clock: None,
        encoding: None,
        is_enum: !class.mappings.is_empty(),
        ..class.clone()
    })
}

/// True if the element is a byte, as in BLOBs.
fn is_bytes(element: &FieldClass) -> bool {
    matches!(element, FieldClass::Int(int) if int.length == 8 && int.align == 8)
}

/// True if the element is a character that readers treat as text.
fn is_text(element: &FieldClass) -> bool {
    is_bytes(element) && matches!(element, FieldClass::Int(int) if int.encoding.is_some())
}
