//! The decoding tree: a field class after everything that can be decided before the first byte is
//! read has been decided.

use std::sync::Arc;

use super::slots::{Slot, SlotMap};
use crate::bits::FixedRead;
use crate::schema::{Encoding, FieldClass, FieldLocation, IntClass, IntRange, Name, Roles, Scope};

/// Identifies a node among all nodes of a trace; dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A field to decode.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its number in the trace.
    pub id: NodeId,
    /// Name as a member of its struct or as an option; empty for elements and roots.
    pub name: Name,
    /// Alignment in bits at its start.
    pub align: u32,
    /// Its roles.
    pub roles: Roles,
    /// Where its value is kept for lengths and selectors that come later.
    pub saves: Box<[Slot]>,
    /// What it is.
    pub kind: NodeKind,
    /// The least number of bits that it takes, alignment aside.
    pub(crate) minimum_bits: u64,
    /// The same of one of its elements, if it is an array.
    pub(crate) element_bits: u64,
}

/// Number of elements or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Known from the metadata.
    Static(u64),
    /// The value of an earlier field.
    Slot(Slot),
}

/// The kinds of nodes.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Integer of up to 64 bits, or an enumeration.
    Int(FixedRead, Arc<IntClass>),
    /// Integer of more than 64 bits (CTF 1.8), carried as raw bits.
    WideInt(Arc<IntClass>),
    /// Boolean.
    Bool(FixedRead),
    /// Bit array.
    BitArray(FixedRead, Arc<IntClass>),
    /// Bit map.
    BitMap(FixedRead, Arc<IntClass>),
    /// Variable-length integer.
    VarInt(Arc<IntClass>),
    /// Floating point number of 16, 32 or 64 bits.
    Float(FixedRead),
    /// Floating point number of 128 bits: how to read 64 of them.
    WideFloat(FixedRead),
    /// Null-terminated string.
    Str(Encoding),
    /// String with a length in bytes; ends before the first null code unit if there is one.
    /// Also CTF 1.8's arrays and sequences of encoded 8-bit integers.
    SizedStr(Length, Encoding),
    /// BLOB with a length in bytes.
    Blob(Length),
    /// Array or sequence.
    Array(Length, Box<Node>),
    /// Structure.
    Struct(Box<[Node]>),
    /// Variant.
    Variant(Selector, Box<[Node]>),
    /// Optional; the selector's option 0 means present.
    Optional(Selector, Box<Node>),
}

/// Chooses an option by the value of an earlier field.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Where the value is kept.
    pub slot: Slot,
    /// Inclusive ranges of the raw value and the option that each selects; first match counts.
    pub ranges: Box<[(u64, u64, u32)]>,
    /// The ranges are the single values 0, 1, 2, ... in this order.
    dense: bool,
}

impl Selector {
    /// The option for a raw value.
    #[inline(always)]
    pub fn select(&self, value: u64) -> Option<u32> {
        if self.dense {
            return self.ranges.get(value as usize).map(|range| range.2);
        }
        self.ranges
            .iter()
            .find(|&&(lower, upper, _)| lower <= value && value <= upper)
            .map(|range| range.2)
    }

    /// Raw ranges: negative ones are split off as their two's complement, so that they compare as
    /// unsigned numbers like the raw values of signed selectors.
    fn new(slot: Slot, options: impl Iterator<Item = (u32, Vec<IntRange>)>) -> Self {
        let mut ranges = Vec::new();
        for (option, option_ranges) in options {
            for range in option_ranges {
                if range.lower < 0 {
                    let lower = range.lower.max(i128::from(i64::MIN)) as i64 as u64;
                    ranges.push((lower, range.upper.min(-1) as i64 as u64, option));
                }
                if range.upper >= 0 && range.lower <= i128::from(u64::MAX) {
                    let upper = range.upper.min(i128::from(u64::MAX)) as u64;
                    ranges.push((range.lower.max(0) as u64, upper, option));
                }
            }
        }
        let dense = ranges
            .iter()
            .enumerate()
            .all(|(i, range)| range.0 == i as u64 && range.1 == i as u64);
        Selector {
            slot,
            ranges: ranges.into(),
            dense,
        }
    }
}

/// Builds nodes of one scope.
pub(super) struct NodeBuilder<'a> {
    pub(super) scope: Scope,
    pub(super) slots: &'a SlotMap,
    pub(super) shared: &'a SlotMap,
    pub(super) next: &'a mut u32,
    pub(super) path: Vec<u32>,
}

impl NodeBuilder<'_> {
    pub(super) fn root(mut self, class: &FieldClass) -> Node {
        self.node(Name::default(), class)
    }

    fn child(&mut self, step: u32, name: Name, class: &FieldClass) -> Node {
        self.path.push(step);
        let node = self.node(name, class);
        self.path.pop();
        node
    }

    fn length(&self, location: &Arc<FieldLocation>) -> Length {
        Length::Slot(self.slot(location))
    }

    /// Both maps were gathered from the classes that are compiled, so one of them has it.
    fn slot(&self, location: &Arc<FieldLocation>) -> Slot {
        self.slots
            .of(location)
            .or_else(|| self.shared.of(location))
            .unwrap_or(Slot::MAX)
    }

    fn node(&mut self, name: Name, class: &FieldClass) -> Node {
        let id = NodeId(*self.next);
        *self.next += 1;
        let saves = self.slots.saves(self.scope, &self.path);
        let (kind, roles) = self.kind(class);
        let minimum_bits = minimum_bits(&kind);
        let element_bits = match &kind {
            NodeKind::Array(_, element) => element.minimum_bits,
            _ => 0,
        };
        let align = align_of(class, &kind);
        Node {
            id,
            name,
            align,
            roles,
            saves,
            kind,
            minimum_bits,
            element_bits,
        }
    }

    fn kind(&mut self, class: &FieldClass) -> (NodeKind, Roles) {
        let mut roles = Roles::NONE;
        let kind = match class {
            FieldClass::Int(int) => {
                roles = int.roles;
                if int.length > 64 {
                    NodeKind::WideInt(int.clone())
                } else {
                    NodeKind::Int(fixed(int), int.clone())
                }
            }
            FieldClass::Bool(int) => NodeKind::Bool(fixed(int)),
            FieldClass::BitArray(int) => NodeKind::BitArray(fixed(int), int.clone()),
            FieldClass::BitMap(int) => NodeKind::BitMap(fixed(int), int.clone()),
            FieldClass::VarInt(int) => {
                roles = int.roles;
                NodeKind::VarInt(int.clone())
            }
            FieldClass::Float {
                length: 128,
                byte_order,
                reversed_bits,
                ..
            } => NodeKind::WideFloat(FixedRead::new(64, *byte_order, false, *reversed_bits)),
            FieldClass::Float {
                length,
                byte_order,
                reversed_bits,
                ..
            } => NodeKind::Float(FixedRead::new(*length, *byte_order, false, *reversed_bits)),
            FieldClass::Str { encoding } => NodeKind::Str(*encoding),
            FieldClass::StaticStr { length, encoding } => {
                NodeKind::SizedStr(Length::Static(*length), *encoding)
            }
            FieldClass::DynStr { length, encoding } => NodeKind::SizedStr(self.length(length), *encoding),
            FieldClass::StaticBlob {
                length, roles: own, ..
            } => {
                roles = *own;
                NodeKind::Blob(Length::Static(*length))
            }
            FieldClass::DynBlob { length, .. } => NodeKind::Blob(self.length(length)),
            FieldClass::Array {
                element,
                length,
                roles: own,
                ..
            } => {
                roles = *own;
                self.array(Length::Static(*length), element)
            }
            FieldClass::Sequence { element, length, .. } => {
                let length = self.length(length);
                self.array(length, element)
            }
            FieldClass::Struct(class) => {
                let member = |(index, member): (usize, &crate::schema::Member)| {
                    self.child(index as u32, member.name.clone(), &member.class)
                };
                NodeKind::Struct(class.members.iter().enumerate().map(member).collect())
            }
            FieldClass::Variant(class) => {
                let ranges = class
                    .options
                    .iter()
                    .enumerate()
                    .map(|(i, option)| (i as u32, option.ranges.clone()));
                let selector = Selector::new(self.slot(&class.selector), ranges);
                let option = |(index, option): (usize, &crate::schema::VariantOption)| {
                    self.child(
                        index as u32,
                        option.name.clone().unwrap_or_default(),
                        &option.class,
                    )
                };
                NodeKind::Variant(selector, class.options.iter().enumerate().map(option).collect())
            }
            FieldClass::Optional(class) => {
                let present = class.ranges.clone().unwrap_or_else(|| {
                    vec![IntRange {
                        lower: 1,
                        upper: u64::MAX.into(),
                    }]
                });
                let selector = Selector::new(self.slot(&class.selector), std::iter::once((0, present)));
                NodeKind::Optional(selector, Box::new(self.child(0, Name::default(), &class.element)))
            }
        };
        (kind, roles)
    }

    fn array(&mut self, length: Length, element: &FieldClass) -> NodeKind {
        if let FieldClass::Int(int) = element
            && int.length == 8
            && int.align == 8
            && int.encoding.is_some()
        {
            return NodeKind::SizedStr(length, Encoding::Utf8);
        }
        NodeKind::Array(length, Box::new(self.child(0, Name::default(), element)))
    }
}

/// The alignment, from that of the fields inside: what is inside is not gone through again.
fn align_of(class: &FieldClass, kind: &NodeKind) -> u32 {
    let align = match (class, kind) {
        (FieldClass::Struct(class), NodeKind::Struct(members)) => members
            .iter()
            .map(|member| member.align)
            .fold(class.min_align, u32::max),
        (
            FieldClass::Array { min_align, .. } | FieldClass::Sequence { min_align, .. },
            NodeKind::Array(_, element),
        ) => element.align.max(*min_align),
        _ => class.align(),
    };
    align.max(1)
}

/// The least number of bits that a field takes, alignment aside.
fn minimum_bits(kind: &NodeKind) -> u64 {
    match kind {
        NodeKind::Int(read, _)
        | NodeKind::Bool(read)
        | NodeKind::BitArray(read, _)
        | NodeKind::BitMap(read, _)
        | NodeKind::Float(read) => u64::from(read.length),
        NodeKind::WideInt(class) => u64::from(class.length),
        NodeKind::WideFloat(_) => 128,
        NodeKind::VarInt(_) => 8,
        NodeKind::Str(encoding) => encoding.unit_bytes() as u64 * 8,
        NodeKind::SizedStr(Length::Static(bytes), _) | NodeKind::Blob(Length::Static(bytes)) => {
            bytes.saturating_mul(8)
        }
        NodeKind::SizedStr(..) | NodeKind::Blob(_) => 0,
        NodeKind::Array(Length::Static(count), element) => count.saturating_mul(element.minimum_bits),
        NodeKind::Array(..) | NodeKind::Optional(..) => 0,
        NodeKind::Struct(members) => members
            .iter()
            .fold(0u64, |sum, member| sum.saturating_add(member.minimum_bits)),
        NodeKind::Variant(_, options) => options
            .iter()
            .map(|option| option.minimum_bits)
            .min()
            .unwrap_or(0),
    }
}

fn fixed(int: &IntClass) -> FixedRead {
    FixedRead::new(int.length, int.byte_order, int.signed, int.reversed_bits)
}
