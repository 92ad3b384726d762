//! Types after their names are resolved, before the places that they refer to are.
//!
//! One type may be used in many places (an alias, a named struct); what a length or a tag refers
//! to is known for each use only. Types are shared, so the tree of a use may be far larger than
//! the text: every type knows the size of its own tree.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{Ident, Path};
use crate::schema::{ClockIndex, Encoding, FieldClass, IntClass, Scope};

/// A shared type.
pub(super) type TyRef<'a> = Rc<Ty<'a>>;

/// A type.
#[derive(Debug)]
pub(super) struct Ty<'a> {
    pub(super) kind: TyKind<'a>,
    pub(super) facts: Facts<'a>,
    /// The finished class, where it is the same for every use.
    pub(super) built: OnceCell<FieldClass>,
}

/// What is known of a type and everything within it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    /// Levels of structs, variants, arrays and sequences, itself included.
    pub(super) depth: u32,
    /// Types in its tree, itself included.
    pub(super) nodes: u64,
    /// It refers to other fields: its class depends on where it is used.
    pub(super) refers: bool,
    /// Some field of it may take bits.
    pub(super) has_bits: bool,
    /// Bits that it takes at least; `None` if that overflows.
    pub(super) least_bits: Option<u64>,
    /// Clocks that its integers are mapped to.
    pub(super) clock: ClockUse,
    /// Name of a clock that no block describes.
    pub(super) unknown_clock: Option<Ident<'a>>,
}

/// Clocks that integers are mapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockUse {
    None,
    One(ClockIndex),
    /// Two that differ.
    Two(ClockIndex, ClockIndex),
}

impl ClockUse {
    pub(super) fn merge(self, other: ClockUse) -> ClockUse {
        match (self, other) {
            (ClockUse::None, any) | (any, ClockUse::None) => any,
            (ClockUse::One(a), ClockUse::One(b)) if a == b => self,
            (ClockUse::One(a), ClockUse::One(b)) => ClockUse::Two(a, b),
            (two @ ClockUse::Two(..), _) | (_, two @ ClockUse::Two(..)) => two,
        }
    }
}

impl<'a> Facts<'a> {
    /// Facts of a field without parts.
    pub(super) fn leaf(bits: u64) -> Self {
        Facts {
            depth: 0,
            nodes: 1,
            refers: false,
            has_bits: bits > 0,
            least_bits: Some(bits),
            clock: ClockUse::None,
            unknown_clock: None,
        }
    }

    /// Facts of a field with parts, before any of them.
    fn compound() -> Self {
        Facts {
            depth: 1,
            ..Facts::leaf(0)
        }
    }

    /// Adds those of a part; `bits` says how the part counts.
    fn add(&mut self, part: &Facts<'a>, bits: Option<u64>) {
        self.depth = self.depth.max(part.depth.saturating_add(1));
        self.nodes = self.nodes.saturating_add(part.nodes);
        self.refers |= part.refers;
        self.has_bits |= part.has_bits;
        self.least_bits = self
            .least_bits
            .zip(bits)
            .and_then(|(a, b)| a.checked_add(b));
        self.clock = self.clock.merge(part.clock);
        self.unknown_clock = self.unknown_clock.or(part.unknown_clock);
    }
}

/// Kinds of types.
#[derive(Debug)]
pub(super) enum TyKind<'a> {
    Int(Arc<IntClass>),
    /// Floating point number or string.
    Leaf(FieldClass),
    Array(TyRef<'a>, u64),
    Sequence(TyRef<'a>, Location<'a>),
    Struct(StructTy<'a>),
    Variant(VariantTy<'a>),
}

/// A struct.
#[derive(Debug)]
pub(super) struct StructTy<'a> {
    /// Tells structs apart: lengths and tags are bound to the struct that they are looked up in.
    pub(super) id: u32,
    pub(super) min_align: u32,
    pub(super) members: Members<'a>,
}

/// A variant.
#[derive(Debug)]
pub(super) struct VariantTy<'a> {
    pub(super) at: u32,
    pub(super) tag: Option<Location<'a>>,
    pub(super) options: Rc<Members<'a>>,
}

/// Where a length or a tag is, as far as it is known without a use.
#[derive(Clone, Debug)]
pub(super) struct Location<'a> {
    pub(super) path: Rc<Path<'a>>,
    pub(super) base: Base,
}

/// Where the path of a location begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    /// In the root of a scope, after that many words of the path.
    Scope(Scope, usize),
    /// In the struct of that id, around the place where the type is written.
    Struct(u32),
    /// In whatever struct is around the use; the number is that of its entry in the table of
    /// such locations.
    Use(usize),
}

/// Named members in order.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    pub(super) list: Vec<(Ident<'a>, TyRef<'a>)>,
    /// Name to index, once there are many.
    index: Option<HashMap<&'a str, u32>>,
}

/// Up to so many members a linear search beats a table.
const LINEAR: usize = 12;

impl<'a> Members<'a> {
    /// Index of the member of that name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        if let Some(index) = &self.index {
            return index.get(name).map(|&index| index as usize);
        }
        self.list.iter().position(|(member, _)| member.text == name)
    }

    /// Adds a member; false if there is one of that name.
    pub(super) fn push(&mut self, name: Ident<'a>, ty: TyRef<'a>) -> bool {
        if self.find(name.text).is_some() {
            return false;
        }
        self.list.push((name, ty));
        let count = self.list.len();
        if let Some(index) = &mut self.index {
            index.insert(name.text, count as u32 - 1);
        } else if count > LINEAR {
            let names = (0u32..).zip(&self.list);
            let index = names.map(|(index, (member, _))| (member.text, index));
            self.index = Some(index.collect());
        }
        true
    }

    /// Name as shown to users: without one leading underscore, unless another member has that
    /// name already.
    pub(super) fn shown(&self, name: &'a str) -> &'a str {
        match name.strip_prefix('_') {
            None => name,
            Some(rest) if rest.is_empty() || rest.starts_with('_') || self.find(rest).is_none() => {
                rest
            }
            Some(_) => name,
        }
    }
}

impl<'a> Ty<'a> {
    fn new(kind: TyKind<'a>, facts: Facts<'a>) -> TyRef<'a> {
        Rc::new(Ty {
            kind,
            facts,
            built: OnceCell::new(),
        })
    }

    /// An integer; `unknown_clock` if it is mapped to a clock that does not exist.
    pub(super) fn int(class: IntClass, unknown_clock: Option<Ident<'a>>) -> TyRef<'a> {
        let mut facts = Facts::leaf(u64::from(class.length));
        facts.clock = class.clock.map_or(ClockUse::None, ClockUse::One);
        facts.unknown_clock = unknown_clock;
        Ty::new(TyKind::Int(Arc::new(class)), facts)
    }

    /// A floating point number or a string.
    pub(super) fn leaf(class: FieldClass) -> TyRef<'a> {
        let bits = match class {
            FieldClass::Float { length, .. } => u64::from(length),
            _ => 8,
        };
        Ty::new(TyKind::Leaf(class), Facts::leaf(bits))
    }

    pub(super) fn array(element: TyRef<'a>, length: u64) -> TyRef<'a> {
        let mut facts = Facts::compound();
        let bits = element
            .facts
            .least_bits
            .and_then(|bits| bits.checked_mul(length));
        facts.add(&element.facts, bits);
        facts.has_bits &= length > 0;
        Ty::new(TyKind::Array(element, length), facts)
    }

    pub(super) fn sequence(element: TyRef<'a>, location: Location<'a>) -> TyRef<'a> {
        let mut facts = Facts::compound();
        facts.add(&element.facts, Some(0));
        facts.refers = true;
        Ty::new(TyKind::Sequence(element, location), facts)
    }

    pub(super) fn structure(structure: StructTy<'a>) -> TyRef<'a> {
        let mut facts = Facts::compound();
        for (_, member) in &structure.members.list {
            facts.add(&member.facts, member.facts.least_bits);
            // Even an empty struct may take padding: whether a record of it has bits shows only
            // when it is decoded.
            facts.has_bits |= matches!(member.kind, TyKind::Struct(_));
        }
        Ty::new(TyKind::Struct(structure), facts)
    }

    pub(super) fn variant(variant: VariantTy<'a>) -> TyRef<'a> {
        let mut facts = Facts::compound();
        for (_, option) in &variant.options.list {
            facts.add(&option.facts, option.facts.least_bits.map(|_| 0));
        }
        facts.refers = true;
        Ty::new(TyKind::Variant(variant), facts)
    }
}

impl Ty<'_> {
    fn has_parts(&self) -> bool {
        !matches!(self.kind, TyKind::Int(_) | TyKind::Leaf(_))
    }

    /// Takes those parts that have parts themselves and that nobody else uses.
    fn take_parts(&mut self, left: &mut Vec<Self>) {
        let taken = TyKind::Leaf(FieldClass::Str {
            encoding: Encoding::Utf8,
        });
        let mut take = |part: Rc<Self>| {
            if part.has_parts() {
                left.extend(Rc::into_inner(part));
            }
        };
        match std::mem::replace(&mut self.kind, taken) {
            TyKind::Array(element, _) | TyKind::Sequence(element, _) => take(element),
            TyKind::Struct(structure) => structure
                .members
                .list
                .into_iter()
                .for_each(|(_, ty)| take(ty)),
            TyKind::Variant(variant) => {
                let options = Rc::into_inner(variant.options).unwrap_or_default();
                options.list.into_iter().for_each(|(_, ty)| take(ty));
            }
            TyKind::Int(_) | TyKind::Leaf(_) => {}
        }
    }
}

/// Types nest as deep as metadata says: what is within goes piece by piece, without recursion.
impl Drop for Ty<'_> {
    fn drop(&mut self) {
        if self.has_parts() {
            let mut left = Vec::new();
            self.take_parts(&mut left);
            while let Some(mut ty) = left.pop() {
                ty.take_parts(&mut left);
            }
        }
    }
}
