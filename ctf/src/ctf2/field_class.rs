//! Field classes from JSON, before their field locations are resolved.
//!
//! An alias stands for a [`RawClass`], which may be used several times, and the same field location
//! may lead to a different field at each use. So this module only reads and checks the properties
//! of the field class itself; [`super::resolve`] converts the result to field classes of the
//! schema.

use std::collections::HashMap;
use std::sync::Arc;

use super::compound::{Partial, dynamic_array, optional, static_array, structure, variant};
use super::fault::{Fault, Result};
use super::json::{JsonContent, Value};
use super::location::read_location;
use super::object::{Object, properties_of, range_set, shown, string_of, uint_of};
use super::raw::{RawClass, RawKind, too_deep};
use super::roles;
use crate::descent::{Descent, Visited, descend};
use crate::schema::{
    ByteOrder, DisplayBase, Encoding, FieldClass, IntClass, MOST_LEVELS, Mapping, Roles,
};

/// The field class aliases that have been defined so far.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    classes: HashMap<String, Arc<RawClass>>,
}

/// Properties of every field class.
pub(super) const COMMON: &[&str] = &["type", "attributes", "extensions"];
const BITS: &[&str] = &["length", "byte-order", "bit-order", "alignment"];
const INTEGER: &[&str] = &["preferred-display-base", "mappings"];

/// A field class after its own properties have been read.
pub(super) enum Read<'v> {
    Whole(RawClass),
    /// The parts follow.
    Open(Partial<'v>),
}

type Reader = for<'v> fn(Object<'v>) -> Result<Read<'v>>;

/// Every type, with its name in messages and its reader.
const TYPES: &[(&str, (&str, Reader))] = &[
    (
        "dynamic-length-array",
        ("dynamic-length array field class", dynamic_array),
    ),
    (
        "dynamic-length-blob",
        ("dynamic-length BLOB field class", dynamic_blob),
    ),
    (
        "dynamic-length-string",
        ("dynamic-length string field class", dynamic_string),
    ),
    (
        "fixed-length-bit-array",
        ("fixed-length bit array field class", bit_array),
    ),
    (
        "fixed-length-bit-map",
        ("fixed-length bit map field class", bit_map),
    ),
    (
        "fixed-length-boolean",
        ("fixed-length boolean field class", boolean),
    ),
    (
        "fixed-length-floating-point-number",
        ("fixed-length floating-point number field class", float),
    ),
    (
        "fixed-length-signed-integer",
        ("fixed-length signed integer field class", fixed_signed),
    ),
    (
        "fixed-length-unsigned-integer",
        ("fixed-length unsigned integer field class", fixed_unsigned),
    ),
    (
        "null-terminated-string",
        ("null-terminated string field class", null_terminated_string),
    ),
    ("optional", ("optional field class", optional)),
    (
        "static-length-array",
        ("static-length array field class", static_array),
    ),
    (
        "static-length-blob",
        ("static-length BLOB field class", static_blob),
    ),
    (
        "static-length-string",
        ("static-length string field class", static_string),
    ),
    ("structure", ("structure field class", structure)),
    (
        "variable-length-signed-integer",
        ("variable-length signed integer field class", var_signed),
    ),
    (
        "variable-length-unsigned-integer",
        ("variable-length unsigned integer field class", var_unsigned),
    ),
    ("variant", ("variant field class", variant)),
];

impl Aliases {
    /// Defines an alias.
    pub(super) fn define(&mut self, name: &Value, class: Arc<RawClass>) -> Result<()> {
        let text = string_of(name, "name")?;
        if self.classes.contains_key(text) {
            let message = format!("duplicate field class alias `{}`", shown(text));
            return Err(Fault::new(name.at, message));
        }
        self.classes.insert(text.to_owned(), class);
        Ok(())
    }

    /// Reads a field class, or looks up the alias that the value names.
    pub(super) fn read(&self, value: &Value) -> Result<Arc<RawClass>> {
        let mut reading = Reading {
            aliases: self,
            depth: 0,
        };
        descend(&mut reading, value)
    }

    fn named(&self, name: &str, at: usize) -> Result<Arc<RawClass>> {
        self.classes.get(name).cloned().ok_or_else(|| {
            let message = format!(
                "no field class alias `{}` is defined before its use",
                shown(name)
            );
            Fault::new(at, message)
        })
    }
}

/// Reads nested field classes.
struct Reading<'a> {
    aliases: &'a Aliases,
    /// Number of open field classes.
    depth: u32,
}

impl<'a> Descent for Reading<'a> {
    type Node = &'a Value;
    type Open = Partial<'a>;
    type Made = Arc<RawClass>;
    type Error = Fault;

    fn enter(&mut self, value: &'a Value) -> Result<Visited<Partial<'a>, Arc<RawClass>>> {
        match &value.kind {
            JsonContent::Str(name) => self.aliases.named(name, value.at).map(Visited::Made),
            JsonContent::Object(_) => {
                let object = Object::of(value, "field class")?;
                object.need("type")?;
                let Some((noun, reader)) = object.one_of("type", TYPES)? else {
                    return Err(Fault::new(
                        value.at,
                        "missing property `type` of a field class",
                    ));
                };
                match reader(object.called(noun))? {
                    Read::Whole(class) => Ok(Visited::Made(Arc::new(class))),
                    Read::Open(_) if self.depth >= MOST_LEVELS => Err(too_deep(value.at)),
                    Read::Open(partial) => {
                        self.depth += 1;
                        Ok(Visited::Open(partial))
                    }
                }
            }
            _ => {
                let message =
                    "expecting a field class (an object) or the name of a field class alias";
                Err(Fault::new(value.at, message))
            }
        }
    }

    fn next(&mut self, partial: &mut Partial<'a>) -> Result<Option<&'a Value>> {
        partial.next()
    }

    fn add(&mut self, partial: &mut Partial<'a>, class: Arc<RawClass>) -> Result<()> {
        partial.add(class);
        Ok(())
    }

    fn leave(&mut self, partial: Partial<'a>) -> Result<Arc<RawClass>> {
        self.depth = self.depth.saturating_sub(1);
        partial.finish().map(Arc::new)
    }
}

/// Reads the properties that all fixed-length classes share; sign, base, roles and mappings keep
/// their defaults.
fn bits(object: Object<'_>, min: u64, max: u64) -> Result<IntClass> {
    let length = object.need_uint("length", min, max)?;
    object.need("byte-order")?;
    let orders = [
        ("big-endian", ByteOrder::Big),
        ("little-endian", ByteOrder::Little),
    ];
    let byte_order = object
        .one_of("byte-order", &orders)?
        .unwrap_or(ByteOrder::Little);
    let first_to_last = object.one_of(
        "bit-order",
        &[("first-to-last", true), ("last-to-first", false)],
    )?;
    let default_first_to_last = byte_order == ByteOrder::Little;
    Ok(IntClass {
        length: length as u32,
        align: object.alignment("alignment")?,
        byte_order,
        reversed_bits: first_to_last.is_some_and(|order| order != default_first_to_last),
        ..blank_int()
    })
}

fn blank_int() -> IntClass {
    IntClass {
        length: 64,
        align: 8,
        byte_order: ByteOrder::Little,
        reversed_bits: false,
        signed: false,
        base: DisplayBase::Decimal,
        encoding: None,
        clock: None,
        roles: Roles::NONE,
        is_enum: false,
        mappings: Arc::new([]),
    }
}

fn plain<'v>(object: Object<'v>, class: FieldClass) -> Result<Read<'v>> {
    RawClass::new(object.at, RawKind::Plain(class), None).map(Read::Whole)
}

fn bit_array<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, BITS])?;
    plain(object, FieldClass::BitArray(Arc::new(bits(object, 1, 64)?)))
}

fn boolean<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, BITS])?;
    plain(object, FieldClass::Bool(Arc::new(bits(object, 1, 64)?)))
}

fn bit_map<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, BITS, &["flags"]])?;
    let mut int = bits(object, 1, 64)?;
    let flags = object.need("flags")?;
    int.mappings = mappings(flags, "flags", 0, i128::from(int.length) - 1)?;
    if int.mappings.is_empty() {
        return Err(Fault::new(flags.at, "`flags`: expecting at least one flag"));
    }
    plain(object, FieldClass::BitMap(Arc::new(int)))
}

fn float<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, BITS])?;
    let int = bits(object, 1, u64::from(u32::MAX))?;
    if !matches!(int.length, 16 | 32 | 64 | 128) {
        let at = object.need("length")?.at;
        let message = match int.length {
            length if length > 128 && length % 32 == 0 => {
                format!(
                    "`length` {length}: floating-point numbers of more than 128 bits are not supported"
                )
            }
            length => format!("unexpected `length` {length}: expecting 16, 32, 64, or 128"),
        };
        return Err(Fault::new(at, message));
    }
    let class = FieldClass::Float {
        length: int.length,
        align: int.align,
        byte_order: int.byte_order,
        reversed_bits: int.reversed_bits,
    };
    plain(object, class)
}

fn fixed_unsigned<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, BITS, INTEGER, &["roles"]])?;
    integer(object, bits(object, 1, 64)?, FieldClass::Int)
}

fn fixed_signed<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, BITS, INTEGER])?;
    let int = IntClass {
        signed: true,
        ..bits(object, 1, 64)?
    };
    integer(object, int, FieldClass::Int)
}

fn var_unsigned<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, INTEGER, &["roles"]])?;
    integer(object, blank_int(), FieldClass::VarInt)
}

fn var_signed<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, INTEGER])?;
    let int = IntClass {
        signed: true,
        ..blank_int()
    };
    integer(object, int, FieldClass::VarInt)
}

fn integer<'v>(
    object: Object<'v>,
    mut int: IntClass,
    class: fn(Arc<IntClass>) -> FieldClass,
) -> Result<Read<'v>> {
    if let Some(base) = object.get("preferred-display-base") {
        int.base = match uint_of(base, "preferred-display-base", 0, u64::MAX)? {
            2 => DisplayBase::Binary,
            8 => DisplayBase::Octal,
            10 => DisplayBase::Decimal,
            16 => DisplayBase::Hexadecimal,
            other => {
                let message = format!(
                    "unexpected `preferred-display-base` {other}: expecting 2, 8, 10, or 16"
                );
                return Err(Fault::new(base.at, message));
            }
        };
    }
    if let Some(value) = object.get("mappings") {
        let (min, max) = if int.signed {
            (i128::from(i64::MIN), i128::from(i64::MAX))
        } else {
            (0, i128::from(u64::MAX))
        };
        int.mappings = mappings(value, "mappings", min, max)?;
        int.is_enum = !int.mappings.is_empty();
    }
    let roles = object.get("roles");
    int.roles = roles::int_roles(roles)?;
    let placed = roles.map(|value| (int.roles, value.at));
    RawClass::new(object.at, RawKind::Plain(class(Arc::new(int))), placed).map(Read::Whole)
}

fn mappings(value: &Value, key: &str, min: i128, max: i128) -> Result<Arc<[Mapping]>> {
    properties_of(value, key)?
        .iter()
        .map(|property| {
            let ranges = range_set(&property.value, key, min, max)?;
            Ok(Mapping {
                label: property.key.clone(),
                ranges,
            })
        })
        .collect()
}

fn encoding(object: Object<'_>) -> Result<Encoding> {
    let encodings = [
        ("utf-16be", Encoding::Utf16Be),
        ("utf-16le", Encoding::Utf16Le),
        ("utf-32be", Encoding::Utf32Be),
        ("utf-32le", Encoding::Utf32Le),
        ("utf-8", Encoding::Utf8),
    ];
    Ok(object.one_of("encoding", &encodings)?.unwrap_or_default())
}

fn null_terminated_string<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, &["encoding"]])?;
    plain(
        object,
        FieldClass::Str {
            encoding: encoding(object)?,
        },
    )
}

fn static_string<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, &["encoding", "length"]])?;
    let length = object.need_uint("length", 0, u64::MAX)?;
    plain(
        object,
        FieldClass::StaticStr {
            length,
            encoding: encoding(object)?,
        },
    )
}

fn dynamic_string<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, &["encoding", "length-field-location"]])?;
    let length = read_location(object.need("length-field-location")?)?;
    let kind = RawKind::DynStr {
        length,
        encoding: encoding(object)?,
    };
    RawClass::new(object.at, kind, None).map(Read::Whole)
}

fn static_blob<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, &["length", "media-type", "roles"]])?;
    let length = object.need_uint("length", 0, u64::MAX)?;
    let roles_value = object.get("roles");
    let roles = roles::blob_roles(roles_value)?;
    if roles.contains(Roles::METADATA_UUID) && length != 16 {
        let message =
            format!("`length` {length}: the role `metadata-stream-uuid` needs a length of 16");
        return Err(Fault::new(object.need("length")?.at, message));
    }
    let media_type = object.name("media-type")?;
    let kind = RawKind::Plain(FieldClass::StaticBlob {
        length,
        media_type,
        roles,
    });
    RawClass::new(object.at, kind, roles_value.map(|value| (roles, value.at))).map(Read::Whole)
}

fn dynamic_blob<'v>(object: Object<'v>) -> Result<Read<'v>> {
    object.only(&[COMMON, &["length-field-location", "media-type"]])?;
    let length = read_location(object.need("length-field-location")?)?;
    let kind = RawKind::DynBlob {
        length,
        media_type: object.name("media-type")?,
    };
    RawClass::new(object.at, kind, None).map(Read::Whole)
}
