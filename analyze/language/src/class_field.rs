//! Values of a field in the event records of one class.

use tracebraid_ctf::layout::node::{NodeId, NodeKind};
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::Trace;

use crate::ast::{Field, Where};
use crate::compile::{At, Compiler, Subject, header_member, packet_member, whole};
use crate::datum::Datum;

/// A field's values in event records of one class.
#[derive(Clone, Debug)]
pub struct ClassField(Getter);

/// Source of the value.
#[derive(Clone, Debug)]
enum Getter {
    Const(Datum),
    Time,
    Cpu,
    Packet(NodeId),
    Integer(Box<FieldRef>, bool),
    /// Ranges of an enumeration, with their labels.
    Label(Box<FieldRef>, bool, Vec<(i128, i128, Datum)>),
    Float(Box<FieldRef>),
    Bytes(Box<FieldRef>),
}

impl ClassField {
    /// The field in the event class with index `event` of a stream class. `None` if the class has
    /// no such field, or the field is an array, a structure or another compound.
    pub fn new(
        field: &Field,
        trace: &Trace,
        stream: &StreamLayout,
        event: usize,
    ) -> Option<ClassField> {
        let compiler = Compiler {
            trace,
            stream,
            event,
        };
        let found = match field {
            Field::Name => {
                return Some(ClassField(Getter::Const(Datum::text(
                    compiler.name().as_bytes(),
                ))));
            }
            Field::Time => return stream.clock.map(|_| ClassField(Getter::Time)),
            Field::Environment(name) => {
                let datum = match trace.layout.class.env(name)? {
                    EnvValue::Str(text) => Datum::text(text.as_bytes()),
                    EnvValue::Int(number) => Datum::Integer(*number),
                };
                return Some(ClassField(Getter::Const(datum)));
            }
            Field::Path(place, path) => match compiler.find(*place, path) {
                Some(found) => found,
                None => {
                    if let Some(number) = header_member(stream, event, *place, path) {
                        return Some(ClassField(Getter::Const(Datum::Integer(number))));
                    }
                    let node = packet_member(stream, *place, path)?;
                    return Some(ClassField(Getter::Packet(node)));
                }
            },
            field => match (compiler.context(field), field) {
                (Some(found), _) => found,
                (None, Field::Cpu) => return Some(ClassField(Getter::Cpu)),
                // A packet may belong to one thread.
                (None, Field::Tid | Field::OwnTid) => {
                    let node = packet_member(stream, Where::Packet, &["tid".to_owned()])?;
                    return Some(ClassField(Getter::Packet(node)));
                }
                _ => return None,
            },
        };
        Getter::of(found).map(ClassField)
    }

    /// A field that no event record has; the caller finds its value elsewhere.
    pub fn missing() -> ClassField {
        ClassField(Getter::Const(Datum::Missing))
    }

    /// Whether this is [`ClassField::missing`].
    pub fn is_missing(&self) -> bool {
        matches!(self.0, Getter::Const(Datum::Missing))
    }

    /// Whether some values are labels instead of numbers: an enumeration that is
    /// [`ClassField::labelled`].
    pub fn has_labels(&self) -> bool {
        matches!(self.0, Getter::Label(..))
    }

    /// The same field with labels: a number that an enumeration maps to labels becomes the first
    /// one.
    pub fn labelled(self) -> ClassField {
        let Getter::Integer(field, signed) = self.0 else {
            return self;
        };
        let mappings = match field.kind() {
            NodeKind::Int(_, class) | NodeKind::VarInt(class) => &class.mappings[..],
            _ => &[],
        };
        let ranges = mappings.iter().flat_map(|mapping| {
            let label = Datum::text(mapping.label.as_bytes());
            let ranges = mapping.ranges.iter();
            ranges.map(move |range| (range.lower, range.upper, label.clone()))
        });
        let ranges: Vec<_> = ranges.collect();
        ClassField(match ranges.is_empty() {
            true => Getter::Integer(field, signed),
            false => Getter::Label(field, signed, ranges),
        })
    }

    /// The field's value in an event record.
    #[inline]
    pub fn get(&self, event: &mut At<'_, '_>, subject: &Subject<'_>) -> Datum {
        self.0.get(event, subject).unwrap_or_default()
    }
}

impl Getter {
    fn of(field: FieldRef) -> Option<Getter> {
        let getter: fn(Box<FieldRef>) -> Getter = match field.kind() {
            NodeKind::Int(_, class) | NodeKind::VarInt(class) => {
                let signed = class.signed;
                return Some(Getter::Integer(Box::new(field), signed));
            }
            NodeKind::Bool(_) | NodeKind::BitArray(..) | NodeKind::BitMap(..) => {
                |field| Getter::Integer(field, false)
            }
            NodeKind::Float(_) => Getter::Float,
            NodeKind::Str(_) | NodeKind::SizedStr(..) => Getter::Bytes,
            _ => return None,
        };
        Some(getter(Box::new(field)))
    }

    fn get(&self, event: &mut At<'_, '_>, subject: &Subject<'_>) -> Option<Datum> {
        Some(match self {
            Getter::Const(datum) => datum.clone(),
            Getter::Time => Datum::Integer(subject.time.into()),
            Getter::Cpu => Datum::Integer(subject.cpu?.into()),
            Getter::Packet(node) => {
                let found = subject.packet.iter().find(|(id, _)| id == node)?;
                Datum::Integer(found.1.into())
            }
            Getter::Integer(field, signed) => {
                Datum::Integer(whole(field.integer(event.body, event.slots).ok()?, *signed))
            }
            Getter::Label(field, signed, ranges) => {
                let number = whole(field.integer(event.body, event.slots).ok()?, *signed);
                let mut labels = ranges
                    .iter()
                    .filter(|range| range.0 <= number && number <= range.1);
                labels
                    .next()
                    .map_or(Datum::Integer(number), |range| range.2.clone())
            }
            Getter::Float(field) => Datum::float(field.float(event.body, event.slots).ok()?),
            Getter::Bytes(field) => Datum::text(field.bytes(event.body, event.slots).ok()?),
        })
    }
}
