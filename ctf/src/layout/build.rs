//! Converts field classes to nodes.

use std::iter::Peekable;
use std::sync::Arc;

use super::node::{Choice, Length, Node, NodeId, NodeKind, Selector};
use super::slots::{Saves, Slot, SlotMap};
use super::tree::Tree;
use crate::bits::FixedRead;
use crate::schema::{
    Encoding, FieldClass, FieldLocation, IntClass, IntRange, Name, OptionalClass, Parts, Roles,
    Scope, VariantClass,
};

/// A node whose parts are being built.
struct Open<'c> {
    /// Index in the list of nodes.
    at: usize,
    parts: Parts<'c>,
    /// Start of each option of a variant.
    starts: Vec<u32>,
    /// Summary of the parts so far: the largest alignment, the sum of their minimum sizes, and the
    /// smallest of these sizes.
    align: u32,
    sum_bits: u64,
    least_bits: u64,
}

/// Builds the nodes of a scope.
pub(super) struct TreeBuilder<'a, 'c> {
    own: &'a SlotMap,
    outer: &'a [&'a SlotMap],
    /// Number of the next node.
    next: &'a mut u32,
    nodes: Vec<Node>,
    open: Vec<Open<'c>>,
    kept: Kept<'a>,
}

impl<'a, 'c> TreeBuilder<'a, 'c> {
    /// A builder for a scope. Values of its fields are stored in slots of `own`; the lengths and
    /// selectors that it uses are in `own` or in one of `outer`.
    pub(super) fn new(
        scope: Scope,
        own: &'a SlotMap,
        outer: &'a [&'a SlotMap],
        next: &'a mut u32,
    ) -> Self {
        TreeBuilder {
            own,
            outer,
            next,
            nodes: Vec::new(),
            open: Vec::new(),
            kept: Kept::new(own.saves(scope), scope),
        }
    }

    /// Builds the nodes of a class.
    pub(super) fn build(mut self, class: &'c FieldClass) -> Tree {
        self.begin(Name::default(), class);
        while let Some(open) = self.open.last_mut() {
            let Some((name, part)) = open.parts.next() else {
                self.end();
                continue;
            };
            open.starts.extend(
                matches!(open.parts, Parts::Options(_))
                    .then(|| (self.nodes.len() - open.at - 1) as u32),
            );
            self.kept.step();
            self.begin(name.cloned().unwrap_or_default(), part);
        }
        Tree::new(self.nodes.into())
    }

    /// Adds a node. A node with parts stays open until they have been built.
    fn begin(&mut self, name: Name, class: &'c FieldClass) {
        let kind = self.kind(class);
        let has_parts = matches!(
            kind,
            NodeKind::Struct(_) | NodeKind::Array(_) | NodeKind::Variant(_) | NodeKind::Optional(_)
        );
        let node = Node {
            id: NodeId(*self.next),
            name,
            align: align_of(class).max(1),
            roles: roles_of(class),
            saves: self.kept.slots(),
            minimum_bits: plain_bits(&kind),
            inside: 0,
            kind,
        };
        *self.next += 1;
        if has_parts {
            self.open.push(Open {
                at: self.nodes.len(),
                parts: class.parts(),
                starts: Vec::new(),
                align: 1,
                sum_bits: 0,
                least_bits: u64::MAX,
            });
            self.kept.down();
        } else {
            self.count(node.align, node.minimum_bits);
        }
        self.nodes.push(node);
    }

    /// Adds a finished part to the summary of the innermost open node.
    fn count(&mut self, align: u32, bits: u64) {
        if let Some(open) = self.open.last_mut() {
            open.align = open.align.max(align);
            open.sum_bits = open.sum_bits.saturating_add(bits);
            open.least_bits = open.least_bits.min(bits);
        }
    }

    /// Closes the innermost open node.
    fn end(&mut self) {
        self.kept.up();
        let count = self.nodes.len();
        let Some(open) = self.open.pop() else { return };
        let Some(node) = self.nodes.get_mut(open.at) else {
            return;
        };
        node.inside = (count - open.at - 1) as u32;
        let of_parts = match &mut node.kind {
            NodeKind::Struct(_) => Some((open.sum_bits, open.align)),
            NodeKind::Array(Length::Static(length)) => {
                Some((length.saturating_mul(open.sum_bits), open.align))
            }
            NodeKind::Array(Length::Slot(_)) => Some((0, open.align)),
            NodeKind::Variant(choice) => {
                if let Some(choice) = Arc::get_mut(choice) {
                    choice.starts = open.starts.into();
                }
                let least = if open.least_bits == u64::MAX {
                    0
                } else {
                    open.least_bits
                };
                Some((least, 1))
            }
            _ => None,
        };
        if let Some((bits, align)) = of_parts {
            node.minimum_bits = bits;
            node.align = node.align.max(align);
        }
        let (align, bits) = (node.align, node.minimum_bits);
        self.count(align, bits);
    }

    fn length(&self, location: &Arc<FieldLocation>) -> Length {
        Length::Slot(self.slot(location))
    }

    /// The maps were built from the classes that are compiled, so one of the maps contains the
    /// location.
    fn slot(&self, location: &Arc<FieldLocation>) -> Slot {
        let outer = || self.outer.iter().find_map(|slots| slots.of(location));
        self.own.of(location).or_else(outer).unwrap_or(Slot::MAX)
    }

    fn kind(&self, class: &FieldClass) -> NodeKind {
        match class {
            FieldClass::Int(int) if int.length > 64 => NodeKind::WideInt(int.clone()),
            FieldClass::Int(int) => NodeKind::Int(fixed(int), int.clone()),
            FieldClass::Bool(int) => NodeKind::Bool(fixed(int)),
            FieldClass::BitArray(int) => NodeKind::BitArray(fixed(int), int.clone()),
            FieldClass::BitMap(int) => NodeKind::BitMap(fixed(int), int.clone()),
            FieldClass::VarInt(int) => NodeKind::VarInt(int.clone()),
            FieldClass::Float {
                length,
                byte_order,
                reversed_bits,
                ..
            } => {
                let read = |length| FixedRead::new(length, *byte_order, false, *reversed_bits);
                if *length == 128 {
                    NodeKind::WideFloat(read(64))
                } else {
                    NodeKind::Float(read(*length))
                }
            }
            FieldClass::Str { encoding } => NodeKind::Str(*encoding),
            FieldClass::StaticStr { length, encoding } => {
                NodeKind::SizedStr(Length::Static(*length), *encoding)
            }
            FieldClass::DynStr { length, encoding } => {
                NodeKind::SizedStr(self.length(length), *encoding)
            }
            FieldClass::StaticBlob { length, .. } => NodeKind::Blob(Length::Static(*length)),
            FieldClass::DynBlob { length, .. } => NodeKind::Blob(self.length(length)),
            FieldClass::Array {
                element, length, ..
            } => array(Length::Static(*length), element),
            FieldClass::Sequence {
                element, length, ..
            } => array(self.length(length), element),
            FieldClass::Struct(class) => NodeKind::Struct(class.members.len() as u32),
            FieldClass::Variant(class) => self.variant(class),
            FieldClass::Optional(class) => self.optional(class),
        }
    }

    fn variant(&self, class: &VariantClass) -> NodeKind {
        let ranges = class.options.iter().map(|option| option.ranges.as_slice());
        NodeKind::Variant(Arc::new(Choice {
            selector: Selector::new(self.slot(&class.selector), ranges),
            // Set when the options have been built.
            starts: Box::default(),
        }))
    }

    fn optional(&self, class: &OptionalClass) -> NodeKind {
        let present = class.ranges.as_deref().unwrap_or(&[IntRange {
            lower: 1,
            upper: u64::MAX as i128,
        }]);
        let slot = self.slot(&class.selector);
        NodeKind::Optional(Arc::new(Selector::new(slot, std::iter::once(present))))
    }
}

fn roles_of(class: &FieldClass) -> Roles {
    match class {
        FieldClass::Int(int) | FieldClass::VarInt(int) => int.roles,
        FieldClass::StaticBlob { roles, .. } | FieldClass::Array { roles, .. } => *roles,
        _ => Roles::NONE,
    }
}

/// CTF 1.8's arrays and sequences of encoded 8-bit integers are strings.
fn array(length: Length, element: &FieldClass) -> NodeKind {
    match element {
        FieldClass::Int(int) if int.length == 8 && int.align == 8 && int.encoding.is_some() => {
            NodeKind::SizedStr(length, Encoding::Utf8)
        }
        _ => NodeKind::Array(length),
    }
}

/// The alignment, without that of the fields inside.
fn align_of(class: &FieldClass) -> u32 {
    let element = match class {
        FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. } => {
            element.own_align()
        }
        _ => 1,
    };
    class.own_align().max(element)
}

/// Minimum size of a field without parts, in bits, without alignment.
fn plain_bits(kind: &NodeKind) -> u64 {
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
        _ => 0,
    }
}

fn fixed(int: &IntClass) -> FixedRead {
    FixedRead::new(int.length, int.byte_order, int.signed, int.reversed_bits)
}

/// Determines the fields whose values are stored, while the builder visits them. Paths are sorted
/// in the order of the nodes, so only one path must be compared at a time, one step at a time.
struct Kept<'a> {
    scope: Scope,
    left: Peekable<Saves<'a>>,
    /// Path to the next node.
    path: Vec<u32>,
    /// Number of steps that `path` shares with the first of the remaining paths.
    common: usize,
}

impl<'a> Kept<'a> {
    fn new(saves: Saves<'a>, scope: Scope) -> Self {
        Kept {
            scope,
            left: saves.peekable(),
            path: Vec::new(),
            common: 0,
        }
    }

    /// Moves before the first part of a node.
    fn down(&mut self) {
        self.path.push(u32::MAX);
    }

    /// Moves to the next part.
    fn step(&mut self) {
        if let Some(last) = self.path.last_mut() {
            *last = last.wrapping_add(1);
        }
        self.common = self.common.min(self.path.len().saturating_sub(1));
    }

    /// Moves to the enclosing node.
    fn up(&mut self) {
        self.path.pop();
        self.common = self.common.min(self.path.len());
    }

    /// The slots that store the value of the field at the path.
    fn slots(&mut self) -> Box<[Slot]> {
        while let Some(((scope, path), slots)) = self.left.peek() {
            if *scope != self.scope {
                break;
            }
            let ours = self.path.iter().skip(self.common);
            let theirs = path.iter().skip(self.common);
            self.common += ours
                .zip(theirs)
                .take_while(|(one, other)| one == other)
                .count();
            match (self.path.get(self.common), path.get(self.common)) {
                (None, None) => return slots.as_slice().into(),
                // The stored field lies within this field, or comes later.
                (None, Some(_)) => break,
                (Some(ours), Some(theirs)) if ours < theirs => break,
                // There is no such field.
                _ => self.left.next(),
            };
            self.common = 0;
        }
        Box::default()
    }
}
