//! Field classes in the JSON of CTF 2.
//!
//! Open classes are kept in a list, so field classes may be nested to any depth.

use super::super::error::WriteError;
use super::locate::FieldScopes;
use crate::ctf2::{role_names, scope_name};
use crate::schema::{
    ByteOrder, CtfVersion, DisplayBase, Encoding, FieldClass, FieldLocation, IntClass, IntRange,
    Mapping, Parts, Roles, Scope,
};

pub(super) fn refuse<T>(what: impl Into<String>) -> Result<T, WriteError> {
    Err(WriteError::inexpressible(CtfVersion::V2_0, what))
}

/// A JSON string.
pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text of a JSON object that is being written.
#[derive(Debug, Default)]
pub(super) struct Object(String);

impl Object {
    /// An object with this `type`.
    pub(super) fn of(kind: &str) -> Self {
        let mut object = Object::default();
        object.put_text("type", Some(kind));
        object
    }

    /// Adds a property whose value is JSON text.
    pub(super) fn put(&mut self, key: &str, json: impl AsRef<str>) {
        self.key(key);
        self.0.push_str(json.as_ref());
    }

    fn key(&mut self, key: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&string(key));
        self.0.push(':');
    }

    pub(super) fn put_text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.put(key, string(text));
        }
    }

    pub(super) fn put_number(&mut self, key: &str, number: Option<impl ToString>) {
        if let Some(number) = number {
            self.put(key, number.to_string());
        }
    }

    pub(super) fn end(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// A field class whose parts are being written.
struct Open<'c> {
    parts: Parts<'c>,
    /// Remaining options of a variant, for their ranges.
    ranges: std::slice::Iter<'c, crate::schema::VariantOption>,
    is_first: bool,
    /// Parts are inside objects with names.
    is_named: bool,
}

struct Writer<'c> {
    text: String,
    place: FieldScopes<'c>,
    scope: Scope,
    open: Vec<Open<'c>>,
}

/// The JSON of a scope's root class.
pub(super) fn field_class(
    place: FieldScopes<'_>,
    scope: Scope,
    class: &FieldClass,
) -> Result<String, WriteError> {
    let mut writer = Writer {
        text: String::new(),
        place,
        scope,
        open: Vec::new(),
    };
    writer.begin(class)?;
    writer.rest()?;
    Ok(writer.text)
}

impl<'c> Writer<'c> {
    fn refuse<T>(&self, what: &str) -> Result<T, WriteError> {
        let event = match self.place.event {
            Some(event) => format!("event `{}`", event.name),
            None => "a trace or stream class".to_owned(),
        };
        refuse(format!("{event}: {:?}: {what}", self.scope))
    }

    fn rest(&mut self) -> Result<(), WriteError> {
        while let Some(open) = self.open.last_mut() {
            let Some((name, part)) = open.parts.next() else {
                self.text.push_str(if open.is_named { "]}" } else { "}" });
                self.open.pop();
                if self.open.last().is_some_and(|open| open.is_named) {
                    self.text.push('}');
                }
                continue;
            };
            if open.is_named {
                let separator = if std::mem::take(&mut open.is_first) {
                    ""
                } else {
                    ","
                };
                let mut object = Object::default();
                object.put_text("name", name.map(|name| name.as_str()));
                if let Some(option) = open.ranges.next() {
                    object.put("selector-field-ranges", ranges(&option.ranges));
                }
                object.key("field-class");
                self.text.push_str(separator);
                self.text.push_str(&object.0);
            }
            if self.begin(part)? && self.open.last().is_some_and(|open| open.is_named) {
                self.text.push('}');
            }
        }
        Ok(())
    }

    /// Writes a class, or the beginning of a class with parts; true if it is complete.
    fn begin(&mut self, class: &'c FieldClass) -> Result<bool, WriteError> {
        let mut object = match class {
            FieldClass::Struct(_)
            | FieldClass::Variant(_)
            | FieldClass::Optional(_)
            | FieldClass::Array { .. }
            | FieldClass::Sequence { .. } => {
                self.open(class)?;
                return Ok(false);
            }
            FieldClass::Int(int) => {
                let mut object = self.bits(
                    if int.signed {
                        "fixed-length-signed-integer"
                    } else {
                        "fixed-length-unsigned-integer"
                    },
                    int,
                )?;
                self.integer(&mut object, int)?;
                object
            }
            FieldClass::VarInt(int) => {
                let mut object = Object::of(if int.signed {
                    "variable-length-signed-integer"
                } else {
                    "variable-length-unsigned-integer"
                });
                self.integer(&mut object, int)?;
                object
            }
            FieldClass::Bool(int) => self.bits("fixed-length-boolean", int)?,
            FieldClass::BitArray(int) => self.bits("fixed-length-bit-array", int)?,
            FieldClass::BitMap(int) => {
                let mut object = self.bits("fixed-length-bit-map", int)?;
                object.put("flags", mappings(&int.mappings));
                object
            }
            class => self.other(class)?,
        };
        let text = std::mem::take(&mut object).end();
        self.text.push_str(&text);
        Ok(true)
    }

    /// Floating-point numbers, strings and BLOBs.
    fn other(&self, class: &FieldClass) -> Result<Object, WriteError> {
        let mut object;
        match class {
            FieldClass::Float {
                length,
                align,
                byte_order,
                reversed_bits,
            } => {
                object = Object::of("fixed-length-floating-point-number");
                put_bits(&mut object, *length, *align, *byte_order, *reversed_bits);
            }
            FieldClass::Str { encoding: of } => {
                object = Object::of("null-terminated-string");
                object.put_text("encoding", encoding(*of));
            }
            FieldClass::StaticStr {
                length,
                encoding: of,
            } => {
                object = Object::of("static-length-string");
                object.put("length", length.to_string());
                object.put_text("encoding", encoding(*of));
            }
            FieldClass::DynStr {
                length,
                encoding: of,
            } => {
                object = Object::of("dynamic-length-string");
                object.put("length-field-location", self.location(length)?);
                object.put_text("encoding", encoding(*of));
            }
            FieldClass::StaticBlob {
                length,
                media_type,
                roles: of,
            } => {
                object = Object::of("static-length-blob");
                object.put("length", length.to_string());
                object.put_text("media-type", media_type.as_deref());
                put_roles(&mut object, *of);
            }
            FieldClass::DynBlob { length, media_type } => {
                object = Object::of("dynamic-length-blob");
                object.put("length-field-location", self.location(length)?);
                object.put_text("media-type", media_type.as_deref());
            }
            _ => object = Object::default(),
        }
        Ok(object)
    }

    /// Writes a class with parts, up to its first part.
    fn open(&mut self, class: &'c FieldClass) -> Result<(), WriteError> {
        let mut options = [].iter();
        let (mut object, key) = match class {
            FieldClass::Struct(class) => {
                let mut object = Object::of("structure");
                put_align(&mut object, "minimum-alignment", class.min_align);
                (object, "member-classes")
            }
            FieldClass::Variant(class) => {
                let mut object = Object::of("variant");
                object.put("selector-field-location", self.location(&class.selector)?);
                options = class.options.iter();
                (object, "options")
            }
            FieldClass::Optional(class) => {
                let mut object = Object::of("optional");
                object.put("selector-field-location", self.location(&class.selector)?);
                if let Some(of) = &class.ranges {
                    object.put("selector-field-ranges", ranges(of));
                }
                (object, "field-class")
            }
            FieldClass::Array {
                length, min_align, ..
            } => {
                let mut object = Object::of("static-length-array");
                object.put("length", length.to_string());
                put_align(&mut object, "minimum-alignment", *min_align);
                (object, "element-field-class")
            }
            FieldClass::Sequence {
                length, min_align, ..
            } => {
                let mut object = Object::of("dynamic-length-array");
                object.put("length-field-location", self.location(length)?);
                put_align(&mut object, "minimum-alignment", *min_align);
                (object, "element-field-class")
            }
            _ => return Ok(()),
        };
        object.key(key);
        self.text.push_str(&object.0);
        let is_named = matches!(class, FieldClass::Struct(_) | FieldClass::Variant(_));
        if is_named {
            self.text.push('[');
        }
        self.open.push(Open {
            parts: class.parts(),
            ranges: options,
            is_first: true,
            is_named,
        });
        Ok(())
    }

    /// Properties of all fixed-length fields.
    fn bits(&self, kind: &str, class: &IntClass) -> Result<Object, WriteError> {
        if class.length > 64 {
            return self.refuse("an integer of more than 64 bits");
        }
        if class.clock.is_some() || class.encoding.is_some() {
            return self.refuse("an integer that is mapped to a clock, or has an encoding");
        }
        let mut object = Object::of(kind);
        put_bits(
            &mut object,
            class.length,
            class.align,
            class.byte_order,
            class.reversed_bits,
        );
        Ok(object)
    }

    /// Properties of all integers.
    fn integer(&self, object: &mut Object, class: &IntClass) -> Result<(), WriteError> {
        let base = match class.base {
            DisplayBase::Binary => Some(2),
            DisplayBase::Octal => Some(8),
            DisplayBase::Decimal => None,
            DisplayBase::Hexadecimal => Some(16),
        };
        object.put_number("preferred-display-base", base);
        put_roles(object, class.roles);
        if !class.mappings.is_empty() {
            object.put("mappings", mappings(&class.mappings));
        }
        Ok(())
    }

    /// The absolute location of a field. All paths of a location have the same names.
    fn location(&self, location: &FieldLocation) -> Result<String, WriteError> {
        let Some((_, names)) = self.place.names(location) else {
            return self.refuse("a length or selector that does not exist");
        };
        let names: Vec<String> = names.into_iter().map(string).collect();
        let mut object = Object::default();
        object.put_text("origin", Some(scope_name(location.scope)));
        object.put("path", format!("[{}]", names.join(",")));
        Ok(object.end())
    }
}

fn put_align(object: &mut Object, key: &str, align: u32) {
    object.put_number(key, (align != 1).then_some(align));
}

fn put_bits(object: &mut Object, length: u32, align: u32, order: ByteOrder, reversed: bool) {
    object.put("length", length.to_string());
    let (order, bit_order) = match order {
        ByteOrder::Little => ("little-endian", "last-to-first"),
        ByteOrder::Big => ("big-endian", "first-to-last"),
    };
    object.put_text("byte-order", Some(order));
    put_align(object, "alignment", align);
    object.put_text("bit-order", reversed.then_some(bit_order));
}

fn put_roles(object: &mut Object, roles: Roles) {
    let names: Vec<String> = role_names(roles).map(string).collect();
    if !names.is_empty() {
        object.put("roles", format!("[{}]", names.join(",")));
    }
}

fn ranges(ranges: &[IntRange]) -> String {
    let ranges = ranges
        .iter()
        .map(|range| format!("[{},{}]", range.lower, range.upper));
    format!("[{}]", ranges.collect::<Vec<_>>().join(","))
}

fn mappings(mappings: &[Mapping]) -> String {
    let mut object = Object::default();
    for mapping in mappings {
        object.put(&mapping.label, ranges(&mapping.ranges));
    }
    object.end()
}

fn encoding(encoding: Encoding) -> Option<&'static str> {
    match encoding {
        Encoding::Utf8 => None,
        Encoding::Utf16Be => Some("utf-16be"),
        Encoding::Utf16Le => Some("utf-16le"),
        Encoding::Utf32Be => Some("utf-32be"),
        Encoding::Utf32Le => Some("utf-32le"),
    }
}
