//! Decoding of fields: one recursive descent over a field class.

use super::text;
use super::{DecodeError, DecodeErrorKind, Mark};
use crate::bits;
use crate::value::Value;
use std::collections::HashSet;
use std::sync::Arc;
use tracebraid_ctf::schema::{
    ByteOrder, Encoding, FieldClass, FieldLocation, IntClass, Roles, Scope, StructClass,
    TraceClass, VariantClass,
};

/// Maximum supported nesting of classes.
const MAX_DEPTH: usize = 1200;
/// Maximum number of elements of an array whose elements take no space.
const MAX_EMPTY_ELEMENTS: u64 = 1 << 20;

/// The locations of all fields that give a length or select an option, in any class of the trace.
#[derive(Debug, Default)]
pub struct Targets {
    paths: [HashSet<Vec<u32>>; 6],
}

impl Targets {
    /// The locations in a trace class.
    pub fn of(class: &TraceClass) -> Self {
        let mut targets = Targets::default();
        let mut roots: Vec<&FieldClass> = class.packet_header.iter().collect();
        for stream in &class.streams {
            roots.extend(&stream.packet_context);
            roots.extend(&stream.event_header);
            roots.extend(&stream.common_context);
            for event in &stream.events {
                roots.extend(&event.specific_context);
                roots.extend(&event.payload);
            }
        }
        while let Some(class) = roots.pop() {
            targets.add_needs_of(class, &mut roots);
        }
        targets
    }

    fn add(&mut self, location: &FieldLocation) {
        self.paths[location.scope as usize].extend(location.paths.iter().cloned());
    }

    /// Adds the locations that `class` itself refers to; pushes nested classes to `inner`.
    fn add_needs_of<'c>(&mut self, class: &'c FieldClass, inner: &mut Vec<&'c FieldClass>) {
        match class {
            FieldClass::DynStr { length, .. } | FieldClass::DynBlob { length, .. } => {
                self.add(length)
            }
            FieldClass::Array { element, .. } => inner.push(element),
            FieldClass::Sequence {
                element, length, ..
            } => {
                self.add(length);
                inner.push(element);
            }
            FieldClass::Struct(class) => {
                inner.extend(class.members.iter().map(|member| &member.class))
            }
            FieldClass::Variant(class) => {
                self.add(&class.selector);
                inner.extend(class.options.iter().map(|option| &option.class));
            }
            FieldClass::Optional(class) => {
                self.add(&class.selector);
                inner.push(&class.element);
            }
            FieldClass::Int(_)
            | FieldClass::Bool(_)
            | FieldClass::BitArray(_)
            | FieldClass::BitMap(_)
            | FieldClass::VarInt(_)
            | FieldClass::Float { .. }
            | FieldClass::Str { .. }
            | FieldClass::StaticStr { .. }
            | FieldClass::StaticBlob { .. } => {}
        }
    }

    fn contains(&self, scope: Scope, path: &[u32]) -> bool {
        self.paths[scope as usize].contains(path)
    }
}

/// A decoded field that other fields depend on.
#[derive(Debug)]
struct Dependency {
    scope: Scope,
    path: Vec<u32>,
    value: i128,
    place: Mark,
}

/// Decodes fields in sequence.
#[derive(Debug)]
pub(super) struct Cursor<'r> {
    data: &'r [u8],
    targets: &'r Targets,
    /// End of the content in bits.
    limit: u64,
    position: u64,
    scope: Scope,
    path: Vec<u32>,
    dependencies: Vec<Dependency>,
    /// Integers with roles, in the order of decoding.
    pub(super) marks: Vec<Mark>,
    /// Integers of this event record that gave a length.
    pub(super) lengths: Vec<Mark>,
    /// Bytes of the last field with the UUID role.
    pub(super) uuid: Option<Vec<u8>>,
}

impl<'r> Cursor<'r> {
    pub(super) fn new(data: &'r [u8], targets: &'r Targets) -> Self {
        Cursor {
            data,
            targets,
            limit: (data.len() as u64).saturating_mul(8),
            position: 0,
            scope: Scope::PacketHeader,
            path: Vec::new(),
            dependencies: Vec::new(),
            marks: Vec::new(),
            lengths: Vec::new(),
            uuid: None,
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Lowers the end of the content, which never exceeds the data.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit.min((self.data.len() as u64).saturating_mul(8));
    }

    pub(super) fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            position: self.position,
            kind,
        }
    }

    /// Discards the fields of the previous event record; those of the packet remain.
    pub(super) fn start_event(&mut self) {
        self.dependencies
            .retain(|dependency| dependency.scope <= Scope::PacketContext);
        self.marks.clear();
        self.lengths.clear();
    }

    /// Decodes the root structure of a scope.
    pub(super) fn scope(&mut self, scope: Scope, class: &FieldClass) -> Result<Value, DecodeError> {
        self.scope = scope;
        self.path.clear();
        self.field(class)
    }

    fn align(&mut self, align: u32) -> Result<(), DecodeError> {
        match bits::align_up(self.position, align) {
            Some(position) if position <= self.limit => {
                self.position = position;
                Ok(())
            }
            _ => Err(self.error(DecodeErrorKind::OutOfContent)),
        }
    }

    /// Advances by `length` bits and returns the old position.
    fn advance(&mut self, length: u64) -> Result<u64, DecodeError> {
        match self.position.checked_add(length) {
            Some(end) if end <= self.limit => Ok(std::mem::replace(&mut self.position, end)),
            _ => Err(self.error(DecodeErrorKind::OutOfContent)),
        }
    }

    fn field(&mut self, class: &FieldClass) -> Result<Value, DecodeError> {
        if self.path.len() > MAX_DEPTH {
            return Err(self.error(DecodeErrorKind::TooDeep));
        }
        self.align(class.align())?;
        match class {
            FieldClass::Int(int) if int.length > 64 => self.wide(int),
            FieldClass::Int(int) => self.int(int),
            FieldClass::Bool(int) => Ok(Value::Bool(self.raw(int)? != 0)),
            FieldClass::BitArray(int) | FieldClass::BitMap(int) => {
                Ok(Value::Bits(self.raw(int)? as u64))
            }
            FieldClass::VarInt(int) => self.variable_int(int),
            FieldClass::Float {
                length,
                byte_order,
                reversed_bits,
                ..
            } => {
                let bits = self.number(*length, *byte_order, *reversed_bits)?;
                Ok(Value::Float {
                    length: *length,
                    bits,
                })
            }
            FieldClass::Str { encoding } => self.terminated_string(*encoding),
            FieldClass::StaticStr { length, encoding } => {
                self.sized_string(i128::from(*length), *encoding)
            }
            FieldClass::DynStr { length, encoding } => {
                let length = self.lookup_length(length)?;
                self.sized_string(length, *encoding)
            }
            FieldClass::StaticBlob { length, roles, .. } => {
                let bytes = self.bytes(i128::from(*length))?.to_vec();
                if roles.contains(Roles::METADATA_UUID) {
                    self.uuid = Some(bytes.clone());
                }
                Ok(Value::Blob(bytes))
            }
            FieldClass::DynBlob { length, .. } => {
                let length = self.lookup_length(length)?;
                Ok(Value::Blob(self.bytes(length)?.to_vec()))
            }
            FieldClass::Array {
                element,
                length,
                roles,
                ..
            } => {
                let value = self.elements(element, *length)?;
                if roles.contains(Roles::METADATA_UUID) {
                    self.uuid = bytes_of(&value);
                }
                Ok(value)
            }
            FieldClass::Sequence {
                element, length, ..
            } => {
                let length = self.lookup_length(length)?;
                match u64::try_from(length) {
                    Ok(length) => self.elements(element, length),
                    Err(_) => Err(self.error(DecodeErrorKind::BadLength(length))),
                }
            }
            FieldClass::Struct(class) => self.structure(class),
            FieldClass::Variant(class) => self.variant(class),
            FieldClass::Optional(class) => {
                let selector = self.lookup(&class.selector)?;
                let present = match &class.ranges {
                    None => selector != 0,
                    Some(ranges) => ranges.iter().any(|range| range.contains(selector)),
                };
                if !present {
                    return Ok(Value::Optional(None));
                }
                let value = self.inner(0, &class.element)?;
                Ok(Value::Optional(Some(Box::new(value))))
            }
        }
    }

    /// Decodes a field inside the current one.
    fn inner(&mut self, index: u32, class: &FieldClass) -> Result<Value, DecodeError> {
        self.path.push(index);
        let value = self.field(class);
        self.path.pop();
        value
    }

    fn structure(&mut self, class: &StructClass) -> Result<Value, DecodeError> {
        let mut members = Vec::with_capacity(class.members.len());
        for (index, member) in class.members.iter().enumerate() {
            members.push(self.inner(index as u32, &member.class)?);
        }
        Ok(Value::Struct(members))
    }

    fn variant(&mut self, class: &VariantClass) -> Result<Value, DecodeError> {
        let selector = self.lookup(&class.selector)?;
        let is_selected = |(_, option): &(usize, &tracebraid_ctf::schema::VariantOption)| {
            option.ranges.iter().any(|range| range.contains(selector))
        };
        let Some((index, option)) = class.options.iter().enumerate().find(is_selected) else {
            return Err(self.error(DecodeErrorKind::NoSuchOption(selector)));
        };
        let value = self.inner(index as u32, &option.class)?;
        Ok(Value::Variant {
            option: index,
            value: Box::new(value),
        })
    }

    fn elements(&mut self, element: &FieldClass, length: u64) -> Result<Value, DecodeError> {
        let mut values = Vec::new();
        let start = self.position;
        for count in 0..length {
            if count >= MAX_EMPTY_ELEMENTS && self.position == start {
                return Err(self.error(DecodeErrorKind::BadLength(i128::from(length))));
            }
            values.push(self.inner(0, element)?);
        }
        Ok(Value::Array(values))
    }

    /// The length or selector field: of several candidates, the last decoded.
    fn find(&self, location: &FieldLocation) -> Result<&Dependency, DecodeError> {
        let is_it = |dependency: &&Dependency| {
            dependency.scope == location.scope && location.paths.contains(&dependency.path)
        };
        let found = self.dependencies.iter().rev().find(is_it);
        found.ok_or_else(|| self.error(DecodeErrorKind::MissingDependency))
    }

    fn lookup(&self, location: &FieldLocation) -> Result<i128, DecodeError> {
        Ok(self.find(location)?.value)
    }

    fn lookup_length(&mut self, location: &FieldLocation) -> Result<i128, DecodeError> {
        let found = self.find(location)?;
        let (value, place) = (found.value, found.place.clone());
        if location.scope > Scope::PacketContext {
            self.lengths.push(place);
        }
        Ok(value)
    }

    /// Stores an integer that has a role, or that other fields depend on.
    fn keep(
        &mut self,
        class: &Arc<IntClass>,
        position: u64,
        length: u32,
        value: i128,
        fixed: bool,
    ) {
        let is_target = self.targets.contains(self.scope, &self.path);
        if !is_target && class.roles.is_empty() {
            return;
        }
        let roles = class.roles;
        let raw = value as u64;
        let mark = Mark {
            roles,
            position,
            value: raw,
            length,
            fixed,
            class: Arc::clone(class),
        };
        if is_target {
            let (scope, path, place) = (self.scope, self.path.clone(), mark.clone());
            self.dependencies.push(Dependency {
                scope,
                path,
                value,
                place,
            });
        }
        if !roles.is_empty() {
            self.marks.push(mark);
        }
    }

    /// Raw bits of a number.
    fn number(
        &mut self,
        length: u32,
        order: ByteOrder,
        reversed: bool,
    ) -> Result<u128, DecodeError> {
        let position = self.advance(u64::from(length))?;
        let Some(raw) = bits::read(self.data, position, length, order) else {
            return Err(self.error(DecodeErrorKind::OutOfContent));
        };
        Ok(if reversed {
            bits::reverse(raw, length)
        } else {
            raw
        })
    }

    /// Raw bits of an integer, boolean, bit array or bit map.
    fn raw(&mut self, class: &Arc<IntClass>) -> Result<u128, DecodeError> {
        let position = self.position;
        let raw = self.number(class.length, class.byte_order, class.reversed_bits)?;
        let value = if class.signed {
            bits::sign_extend(raw, class.length)
        } else {
            raw as i128
        };
        self.keep(class, position, class.length, value, true);
        Ok(raw)
    }

    fn int(&mut self, class: &Arc<IntClass>) -> Result<Value, DecodeError> {
        let raw = self.raw(class)?;
        Ok(if class.signed {
            Value::Int(bits::sign_extend(raw, class.length) as i64)
        } else {
            Value::UInt(raw as u64)
        })
    }

    /// An integer of more than 64 bits, bit by bit.
    fn wide(&mut self, class: &IntClass) -> Result<Value, DecodeError> {
        let position = self.advance(u64::from(class.length))?;
        let mut bytes = vec![0u8; class.length.div_ceil(8) as usize];
        let lowest_first = (class.byte_order == ByteOrder::Little) != class.reversed_bits;
        for index in 0..class.length {
            let bit = bits::read(self.data, position + u64::from(index), 1, class.byte_order)
                .unwrap_or(0);
            let significance = if lowest_first {
                index
            } else {
                class.length - 1 - index
            };
            if let Some(byte) = bytes.get_mut((significance / 8) as usize) {
                *byte |= (bit as u8) << (significance % 8);
            }
        }
        Ok(Value::Wide(bytes))
    }

    /// LEB128: seven bits a byte, lowest first, the top bit of all but the last byte set.
    fn variable_int(&mut self, class: &Arc<IntClass>) -> Result<Value, DecodeError> {
        let position = self.position;
        let mut raw = 0u128;
        let mut length = 0u32;
        loop {
            let byte = self.number(8, ByteOrder::Little, false)?;
            if length >= 126 {
                return Err(self.error(DecodeErrorKind::IntegerTooLarge));
            }
            raw |= (byte & 0x7f) << length;
            length += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let value = if class.signed {
            bits::sign_extend(raw, length)
        } else {
            raw as i128
        };
        let result = if class.signed {
            i64::try_from(value).map(Value::Int)
        } else {
            u64::try_from(value).map(Value::UInt)
        };
        let Ok(result) = result else {
            return Err(self.error(DecodeErrorKind::IntegerTooLarge));
        };
        self.keep(class, position, length, value, false);
        Ok(result)
    }

    /// Reads `length` bytes; the position must be byte-aligned.
    fn bytes(&mut self, length: i128) -> Result<&'r [u8], DecodeError> {
        let Some(size) = u64::try_from(length)
            .ok()
            .and_then(|length| length.checked_mul(8))
        else {
            return Err(self.error(DecodeErrorKind::BadLength(length)));
        };
        let start = (self.advance(size)? / 8) as usize;
        let end = (self.position / 8) as usize;
        self.data
            .get(start..end)
            .ok_or_else(|| self.error(DecodeErrorKind::OutOfContent))
    }

    fn sized_string(&mut self, length: i128, encoding: Encoding) -> Result<Value, DecodeError> {
        let bytes = self.bytes(length)?;
        let end = text::terminated_length(bytes, encoding).unwrap_or(bytes.len());
        Ok(Value::Str(text::decode(&bytes[..end], encoding)))
    }

    fn terminated_string(&mut self, encoding: Encoding) -> Result<Value, DecodeError> {
        let rest = self
            .data
            .get((self.position / 8) as usize..(self.limit / 8) as usize)
            .unwrap_or(&[]);
        let Some(length) = text::terminated_length(rest, encoding) else {
            return Err(self.error(DecodeErrorKind::UnterminatedString));
        };
        self.position += (length + encoding.unit_bytes()) as u64 * 8;
        Ok(Value::Str(text::decode(&rest[..length], encoding)))
    }
}

/// Bytes of an array of 8-bit integers.
fn bytes_of(array: &Value) -> Option<Vec<u8>> {
    let Value::Array(elements) = array else {
        return None;
    };
    elements
        .iter()
        .map(|element| element.as_integer().map(|byte| byte as u8))
        .collect()
}
