//! Field classes as read, before their field locations are resolved.

use std::sync::Arc;

use super::fault::{Fault, Result};
use super::location::Location;
use crate::schema::{Encoding, FieldClass, IntRange, MOST_LEVELS, Name, Roles};

/// A field class as read.
#[derive(Debug)]
pub(super) struct RawClass {
    /// Its place.
    pub(super) at: usize,
    /// What it is.
    pub(super) kind: RawKind,
    /// Roles, and the place of the `roles` property.
    pub(super) roles: Option<(Roles, usize)>,
    /// Number of field classes in it, itself included, when every alias is written out.
    pub(super) size: u64,
    /// Levels of field classes that have parts, itself included, counted through aliases.
    depth: u32,
    /// True if no field of this class has any bit.
    pub(super) is_empty: bool,
}

/// The kinds of field classes that need different treatment later.
#[derive(Debug)]
pub(super) enum RawKind {
    /// Complete as it is: scalars of static length, integers, null-terminated strings.
    Plain(FieldClass),
    /// Dynamic-length string.
    DynStr {
        length: Location,
        encoding: Encoding,
    },
    /// Dynamic-length BLOB.
    DynBlob {
        length: Location,
        media_type: Option<Name>,
    },
    /// Static-length array.
    Array {
        element: Arc<RawClass>,
        length: u64,
        min_align: u32,
    },
    /// Dynamic-length array.
    Sequence {
        element: Arc<RawClass>,
        length: Location,
        min_align: u32,
    },
    /// Structure.
    Struct {
        min_align: u32,
        members: Vec<(Name, Arc<RawClass>)>,
    },
    /// Optional.
    Optional {
        selector: Location,
        ranges: Option<Vec<IntRange>>,
        element: Arc<RawClass>,
    },
    /// Variant.
    Variant {
        selector: Location,
        options: Vec<RawOption>,
    },
}

/// An option of a variant.
#[derive(Debug)]
pub(super) struct RawOption {
    pub(super) name: Option<Name>,
    pub(super) ranges: Vec<IntRange>,
    pub(super) class: Arc<RawClass>,
}

impl RawClass {
    /// What a message calls it.
    pub(super) fn noun(&self) -> &'static str {
        match &self.kind {
            RawKind::Plain(class) => match class {
                FieldClass::Int(int) if int.signed => "a fixed-length signed integer",
                FieldClass::Int(_) => "a fixed-length unsigned integer",
                FieldClass::VarInt(int) if int.signed => "a variable-length signed integer",
                FieldClass::VarInt(_) => "a variable-length unsigned integer",
                FieldClass::Bool(_) => "a boolean",
                FieldClass::BitArray(_) => "a bit array",
                FieldClass::BitMap(_) => "a bit map",
                FieldClass::Float { .. } => "a floating-point number",
                FieldClass::StaticBlob { .. } => "a BLOB",
                _ => "a string",
            },
            RawKind::DynStr { .. } => "a string",
            RawKind::DynBlob { .. } => "a BLOB",
            RawKind::Array { .. } | RawKind::Sequence { .. } => "an array",
            RawKind::Struct { .. } => "a structure",
            RawKind::Optional { .. } => "an optional",
            RawKind::Variant { .. } => "a variant",
        }
    }

    /// A field class of that kind; fails if it is nested too deeply.
    pub(super) fn new(at: usize, kind: RawKind, roles: Option<(Roles, usize)>) -> Result<Self> {
        let (mut size, mut depth) = (1u64, 0u32);
        let mut add = |child: &RawClass| {
            size = size.saturating_add(child.size);
            depth = depth.max(child.depth.saturating_add(1));
        };
        let is_empty = match &kind {
            RawKind::Plain(
                FieldClass::StaticStr { length, .. } | FieldClass::StaticBlob { length, .. },
            ) => *length == 0,
            RawKind::Plain(_) | RawKind::DynStr { .. } | RawKind::DynBlob { .. } => false,
            RawKind::Array {
                element, length, ..
            } => {
                add(element);
                *length == 0 || element.is_empty
            }
            RawKind::Sequence { element, .. } | RawKind::Optional { element, .. } => {
                add(element);
                element.is_empty
            }
            RawKind::Struct { members, .. } => {
                members.iter().for_each(|(_, class)| add(class));
                members.iter().all(|(_, class)| class.is_empty)
            }
            RawKind::Variant { options, .. } => {
                options.iter().for_each(|option| add(&option.class));
                options.iter().all(|option| option.class.is_empty)
            }
        };
        // Without parts, it is no level.
        let has_parts = !matches!(
            kind,
            RawKind::Plain(_) | RawKind::DynStr { .. } | RawKind::DynBlob { .. }
        );
        let depth = depth.max(u32::from(has_parts));
        if depth > MOST_LEVELS {
            return Err(too_deep(at));
        }
        Ok(RawClass {
            at,
            kind,
            roles,
            size,
            depth,
            is_empty,
        })
    }

    /// Takes out those parts that have parts themselves and that nobody else uses.
    fn take_parts(&mut self, left: &mut Vec<RawClass>) {
        let taken = RawKind::Plain(FieldClass::Str {
            encoding: Encoding::Utf8,
        });
        let mut take = |class: Arc<RawClass>| {
            if class.depth > 0 {
                left.extend(Arc::into_inner(class));
            }
        };
        match std::mem::replace(&mut self.kind, taken) {
            RawKind::Array { element, .. }
            | RawKind::Sequence { element, .. }
            | RawKind::Optional { element, .. } => take(element),
            RawKind::Struct { members, .. } => {
                members.into_iter().for_each(|(_, class)| take(class))
            }
            RawKind::Variant { options, .. } => {
                options.into_iter().for_each(|option| take(option.class))
            }
            RawKind::Plain(_) | RawKind::DynStr { .. } | RawKind::DynBlob { .. } => {}
        }
    }
}

/// What is within goes piece by piece, not from within each other.
impl Drop for RawClass {
    fn drop(&mut self) {
        if self.depth > 0 {
            let mut left = Vec::new();
            self.take_parts(&mut left);
            while let Some(mut class) = left.pop() {
                class.take_parts(&mut left);
            }
        }
    }
}

/// The fault of field classes nested too deep.
pub(super) fn too_deep(at: usize) -> Fault {
    let message =
        format!("field classes nested deeper than {MOST_LEVELS} levels are not supported");
    Fault::new(at, message)
}
