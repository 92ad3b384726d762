//! Types after their names have been resolved, but not yet their lengths and tags.
//!
//! A type may have several uses (an alias, a named struct); the target of a length or tag is only
//! known for each use. Types are shared, so the tree of a use may be far larger than the text:
//! every type stores the size of its own tree.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{Ident, Path};
use crate::schema::{ClockIndex, Encoding, FieldClass, IntClass, Scope};

pub(super) type TyRef<'a> = Rc<Ty<'a>>;

#[derive(Debug)]
pub(super) struct Ty<'a> {
    pub(super) kind: TyKind<'a>,
    pub(super) facts: Facts<'a>,
    /// The finished class, if it is the same for every use.
    pub(super) built: OnceCell<FieldClass>,
}

/// Properties of a type and all types within it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    /// Levels of structs, variants, arrays and sequences, itself included.
    pub(super) depth: u32,
    /// Number of types in the tree, itself included.
    pub(super) nodes: u64,
    /// The type refers to other fields, so its class depends on its use.
    pub(super) refers: bool,
    /// Some field may take bits.
    pub(super) has_bits: bool,
    /// Minimum size in bits; `None` on overflow.
    pub(super) least_bits: Option<u64>,
    /// Clocks that integers of the type are mapped to.
    pub(super) clock: ClockUse,
    /// Name of a clock without a `clock` block.
    pub(super) unknown_clock: Option<Ident<'a>>,
}

/// Clocks that integers are mapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockUse {
    None,
    One(ClockIndex),
    /// Two different clocks.
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

    /// Facts of a field with parts, before any part is added.
    fn compound() -> Self {
        Facts {
            depth: 1,
            ..Facts::leaf(0)
        }
    }

    /// Adds the facts of a part; `bits` is its contribution to the minimum size.
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

#[derive(Debug)]
pub(super) enum TyKind<'a> {
    Int(Arc<IntClass>),
    /// Floating-point number or string.
    Leaf(FieldClass),
    Array(TyRef<'a>, u64),
    Sequence(TyRef<'a>, Location<'a>),
    Struct(StructTy<'a>),
    Variant(VariantTy<'a>),
}

#[derive(Debug)]
pub(super) struct StructTy<'a> {
    /// Identifies the struct: lengths and tags are bound to the struct in which they are looked up.
    pub(super) id: u32,
    pub(super) min_align: u32,
    pub(super) members: Members<'a>,
}

#[derive(Debug)]
pub(super) struct VariantTy<'a> {
    pub(super) at: u32,
    pub(super) tag: Option<Location<'a>>,
    pub(super) options: Rc<Members<'a>>,
}

/// Location of a length or tag, as far as it is known without a use.
#[derive(Clone, Debug)]
pub(super) struct Location<'a> {
    pub(super) path: Rc<Path<'a>>,
    pub(super) base: Base,
}

/// Start of the path of a location.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    /// The root of a scope, after this number of words of the path.
    Scope(Scope, usize),
    /// The struct with this id, which encloses the definition of the type.
    Struct(u32),
    /// The struct that encloses the use; the number is the index in the table of such locations.
    Use(usize),
}

/// Named members in order.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    pub(super) list: Vec<(Ident<'a>, TyRef<'a>)>,
    /// Name to index, if there are many members.
    index: Option<HashMap<&'a str, u32>>,
}

/// Up to this number of members, a linear search is faster than a table.
const LINEAR: usize = 12;

impl<'a> Members<'a> {
    /// Index of the member with this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        if let Some(index) = &self.index {
            return index.get(name).map(|&index| index as usize);
        }
        self.list.iter().position(|(member, _)| member.text == name)
    }

    /// Adds a member; false if there is a member with this name already.
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

    /// Name as displayed: without a leading underscore, unless another member has the resulting
    /// name.
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

    /// An integer; `unknown_clock` is set if it is mapped to a clock that does not exist.
    pub(super) fn int(class: IntClass, unknown_clock: Option<Ident<'a>>) -> TyRef<'a> {
        let mut facts = Facts::leaf(u64::from(class.length));
        facts.clock = class.clock.map_or(ClockUse::None, ClockUse::One);
        facts.unknown_clock = unknown_clock;
        Ty::new(TyKind::Int(Arc::new(class)), facts)
    }

    /// A floating-point number or a string.
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
            // Even an empty struct may take padding: whether a record of it has bits is known only
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

    /// Moves those parts that have parts themselves, and that are not shared, to `left`.
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

/// Frees nested types one at a time, without recursion.
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
