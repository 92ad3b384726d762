//! Walks over the fields of a part and passes their values to a visitor. Used by all code that
//! displays all fields.

use crate::bits::{Cursor, DecodeError, until_null};
use crate::float::{binary128, float};
use crate::layout::node::{Node, NodeKind};
use crate::layout::skip::{self, count};
use crate::layout::tree::{Part, Parts};
use crate::schema::Encoding;
use crate::stack::Stack;

/// An integer of [`Visitor::wide_integer`] as text: `0x` and its digits, without leading zeros.
pub fn wide_hexadecimal(bytes: &[u8]) -> String {
    let digits: String = bytes
        .iter()
        .rev()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    let digits = digits.trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

/// Receives the fields in the order of the data. All methods have empty default implementations.
/// Nodes carry names, classes and roles.
///
/// Integers are passed as raw values; signed integers are sign-extended to 64 bits (see the class's
/// `signed`).
pub trait Visitor {
    /// An integer or enumeration of up to 64 bits, fixed or variable-length.
    fn integer(&mut self, node: &Node, class: &crate::schema::IntClass, raw: u64) {
        let _ = (node, class, raw);
    }
    /// A variable-length integer, with its size in bytes.
    fn variable_integer(
        &mut self,
        node: &Node,
        class: &crate::schema::IntClass,
        raw: u64,
        _bytes: u64,
    ) {
        self.integer(node, class, raw);
    }
    /// An integer of more than 64 bits: its bytes, least significant byte first, not sign-extended.
    fn wide_integer(&mut self, node: &Node, class: &crate::schema::IntClass, bytes: &[u8]) {
        let _ = (node, class, bytes);
    }
    /// A boolean.
    fn boolean(&mut self, node: &Node, value: bool) {
        let _ = (node, value);
    }
    /// A bit array, or a bit map, whose class has mappings: its flags.
    fn bits(&mut self, node: &Node, class: &crate::schema::IntClass, raw: u64) {
        let _ = (node, class, raw);
    }
    /// A floating-point number; `length` is 16, 32, 64 or 128 bits, and the value is rounded to
    /// `f64`.
    fn float(&mut self, node: &Node, length: u32, value: f64) {
        let _ = (node, length, value);
    }
    /// A string without terminator in this encoding; not checked for validity.
    fn string(&mut self, node: &Node, encoding: Encoding, bytes: &[u8]) {
        let _ = (node, encoding, bytes);
    }
    /// A BLOB.
    fn blob(&mut self, node: &Node, bytes: &[u8]) {
        let _ = (node, bytes);
    }
    /// A structure begins.
    fn begin_struct(&mut self, node: &Node, members: usize) {
        let _ = (node, members);
    }
    /// A structure ends.
    fn end_struct(&mut self, node: &Node) {
        let _ = node;
    }
    /// An array or sequence begins.
    fn begin_array(&mut self, node: &Node, length: u64) {
        let _ = (node, length);
    }
    /// An array or sequence ends.
    fn end_array(&mut self, node: &Node) {
        let _ = node;
    }
    /// A variant begins; the selected option's field follows.
    fn begin_variant(&mut self, node: &Node, option: usize) {
        let _ = (node, option);
    }
    /// A variant ends.
    fn end_variant(&mut self, node: &Node) {
        let _ = node;
    }
    /// An optional; the field follows if it is present.
    fn optional(&mut self, node: &Node, present: bool) {
        let _ = (node, present);
    }
    /// A present optional ends.
    fn end_optional(&mut self, _node: &Node) {}
}

/// Ignores all fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Visitor for Silent {}

/// A field whose parts are being walked over.
#[derive(Debug)]
struct Open<'n> {
    node: &'n Node,
    left: Left<'n>,
}

/// The remaining parts of an open field.
#[derive(Debug)]
enum Left<'n> {
    Parts(Parts<'n>),
    /// The element, repeated this number of times.
    Elements(Part<'n>, u64),
}

/// Walks over a field and all fields within it. The time is only bounded by the size of the data if
/// the skip program of the field has succeeded before.
///
/// # Errors
/// If the data does not match the layout. The visitor has then received the fields before the
/// error.
pub fn walk<V: Visitor>(
    part: Part<'_>,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    visitor: &mut V,
) -> Result<(), DecodeError> {
    let mut open = Stack::new();
    let mut next = Some(part);
    loop {
        while let Some(part) = next {
            next = enter(part, cursor, slots, visitor, &mut open)?;
        }
        let Some(top) = open.last_mut() else {
            return Ok(());
        };
        next = match &mut top.left {
            Left::Parts(parts) => parts.next(),
            Left::Elements(_, 0) => None,
            Left::Elements(element, left) => {
                *left -= 1;
                Some(*element)
            }
        };
        if next.is_none() {
            end(top.node, visitor);
            open.pop();
        }
    }
}

/// Walks over a field without parts. Opens a field with parts, and returns its next part if it is
/// known.
#[inline(always)]
fn enter<'n, V: Visitor>(
    part: Part<'n>,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    visitor: &mut V,
    open: &mut Stack<Open<'n>>,
) -> Result<Option<Part<'n>>, DecodeError> {
    let node = part.node();
    cursor.align(node.align);
    match &node.kind {
        NodeKind::Int(read, class) => {
            let raw = cursor.fixed(*read)?;
            save(node, slots, raw);
            visitor.integer(node, class, raw);
        }
        NodeKind::VarInt(class) => {
            let start = cursor.pos;
            let raw = cursor.leb128(class.signed)?;
            save(node, slots, raw);
            visitor.variable_integer(node, class, raw, (cursor.pos - start) / 8);
        }
        NodeKind::Bool(read) => {
            let raw = cursor.fixed(*read)?;
            save(node, slots, u64::from(raw != 0));
            visitor.boolean(node, raw != 0);
        }
        NodeKind::BitArray(read, class) | NodeKind::BitMap(read, class) => {
            let raw = cursor.fixed(*read)?;
            visitor.bits(node, class, raw);
        }
        NodeKind::Str(encoding) => {
            let bytes = cursor.terminated(encoding.unit_bytes())?;
            visitor.string(node, *encoding, bytes);
        }
        NodeKind::SizedStr(length, encoding) => {
            let length = count(*length, slots, cursor, 8)?;
            let bytes = cursor.bytes(length)?;
            visitor.string(node, *encoding, until_null(bytes, encoding.unit_bytes()));
        }
        NodeKind::Blob(length) => {
            let length = count(*length, slots, cursor, 8)?;
            visitor.blob(node, cursor.bytes(length)?);
        }
        NodeKind::Float(read) => {
            let raw = cursor.fixed(*read)?;
            visitor.float(node, u32::from(read.length), float(raw, read.length));
        }
        NodeKind::Struct(members) => {
            cursor.need(0)?;
            visitor.begin_struct(node, *members as usize);
            let left = Left::Parts(part.parts());
            open.push(Open { node, left });
        }
        _ => return enter_rare(part, cursor, slots, visitor, open),
    }
    Ok(None)
}

/// Rare kinds, kept out of the hot function's code.
fn enter_rare<'n, V: Visitor>(
    part: Part<'n>,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    visitor: &mut V,
    open: &mut Stack<Open<'n>>,
) -> Result<Option<Part<'n>>, DecodeError> {
    let node = part.node();
    let alone = Open {
        node,
        left: Left::Parts(Parts::default()),
    };
    match &node.kind {
        NodeKind::Array(length) => {
            let Some(element) = part.element() else {
                return Ok(None);
            };
            let length = count(*length, slots, cursor, element.minimum_bits)?;
            cursor.need(0)?;
            visitor.begin_array(node, length);
            let left = Left::Elements(element, length);
            open.push(Open { node, left });
        }
        NodeKind::Variant(choice) => {
            let raw = skip::get(slots, choice.selector.slot);
            let option = choice.selector.select(raw).map(|option| option as usize);
            let chosen =
                option.and_then(|option| part.option(option).map(|chosen| (option, chosen)));
            let (option, chosen) = chosen.ok_or(DecodeError::NoOption {
                at: cursor.pos,
                selector: raw,
            })?;
            visitor.begin_variant(node, option);
            open.push(alone);
            return Ok(Some(chosen));
        }
        NodeKind::Optional(selector) => {
            let present = selector.select(skip::get(slots, selector.slot)).is_some();
            visitor.optional(node, present);
            if present {
                open.push(alone);
                return Ok(part.element());
            }
        }
        NodeKind::WideFloat(half) => {
            let bits = cursor.wide(*half)?;
            visitor.float(node, 128, binary128(bits));
        }
        NodeKind::WideInt(class) => {
            cursor.need(u64::from(class.length))?;
            let bytes = wide_bytes(cursor, class)?;
            visitor.wide_integer(node, class, &bytes);
        }
        _ => {}
    }
    Ok(None)
}

/// Ends a field whose parts have all been walked over.
#[inline(always)]
fn end<V: Visitor>(node: &Node, visitor: &mut V) {
    match node.kind {
        NodeKind::Struct(_) => visitor.end_struct(node),
        NodeKind::Array(_) => visitor.end_array(node),
        NodeKind::Variant(_) => visitor.end_variant(node),
        _ => visitor.end_optional(node),
    }
}

#[inline(always)]
fn save(node: &Node, slots: &mut [u64], raw: u64) {
    for &slot in &node.saves {
        skip::set(slots, slot, raw);
    }
}

/// Bytes of a wide integer, read bit by bit: wide integers are rare and may have any position and
/// order.
fn wide_bytes(
    cursor: &mut Cursor<'_>,
    class: &crate::schema::IntClass,
) -> Result<Vec<u8>, DecodeError> {
    let mut bytes = vec![0u8; class.length.div_ceil(8) as usize];
    let bit = crate::bits::FixedRead {
        length: 1,
        big: class.byte_order == crate::schema::ByteOrder::Big,
        signed: false,
        reversed: false,
    };
    for index in 0..class.length {
        let significance = if bit.big != class.reversed_bits {
            class.length - 1 - index
        } else {
            index
        };
        let value = cursor.fixed(bit)? as u8;
        if let Some(byte) = bytes.get_mut((significance / 8) as usize) {
            *byte |= value << (significance % 8);
        }
    }
    Ok(bytes)
}
