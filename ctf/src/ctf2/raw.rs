//! Field classes as read, before their field locations are resolved.

use std::sync::Arc;

use super::fault::{Fault, Result};
use super::location::Location;
use crate::schema::{Encoding, FieldClass, IntRange, MOST_LEVELS, Name, Roles};

#[derive(Debug)]
pub(super) struct RawClass {
    /// Byte offset in the metadata.
    pub(super) at: usize,
    pub(super) kind: RawKind,
    /// Roles, and the byte offset of the `roles` property.
    pub(super) roles: Option<(Roles, usize)>,
    /// Number of field classes in this class, itself included, with every alias expanded.
    pub(super) size: u64,
    /// Levels of field classes that have parts, itself included, with every alias expanded.
    depth: u32,
    /// True if fields of this class have no bits.
    pub(super) is_empty: bool,
}

/// The kinds of field classes, as far as later stages treat them differently.
#[derive(Debug)]
pub(super) enum RawKind {
    /// Complete as read: scalars of static length, integers, null-terminated strings.
    Plain(FieldClass),
    DynStr {
        length: Location,
        encoding: Encoding,
    },
    DynBlob {
        length: Location,
        media_type: Option<Name>,
    },
    Array {
        element: Arc<RawClass>,
        length: u64,
        min_align: u32,
    },
    Sequence {
        element: Arc<RawClass>,
        length: Location,
        min_align: u32,
    },
    Struct {
        min_align: u32,
        members: Vec<(Name, Arc<RawClass>)>,
    },
    Optional {
        selector: Location,
        ranges: Option<Vec<IntRange>>,
        element: Arc<RawClass>,
    },
    Variant {
        selector: Location,
        options: Vec<RawOption>,
    },
}

#[derive(Debug)]
pub(super) struct RawOption {
    pub(super) name: Option<Name>,
    pub(super) ranges: Vec<IntRange>,
    pub(super) class: Arc<RawClass>,
}

impl RawClass {
    /// Name of the class in messages.
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

    /// Fails if the class is nested too deeply.
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
        // A class without parts adds no level.
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

    /// Moves those parts that have parts themselves, and that are not shared, to `left`.
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

/// Frees nested classes one at a time, without recursion.
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

pub(super) fn too_deep(at: usize) -> Fault {
    let message =
        format!("field classes nested deeper than {MOST_LEVELS} levels are not supported");
    Fault::new(at, message)
}
