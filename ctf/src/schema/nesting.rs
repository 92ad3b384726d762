//! Traversal of nested field classes.
//!
//! Field classes may be nested up to [`MOST_LEVELS`] deep, far deeper than the stack of a thread
//! has room for calls. So no function here recurses; pending classes are kept in a list.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use super::{Encoding, FieldClass, FieldLocation, Member, Name, VariantOption};

/// Largest number of nested levels of structures, arrays, variants and optionals. Metadata with
/// deeper nesting is rejected.
///
/// More levels would not overflow the stack. But a level takes about ten characters of text and
/// about a kilobyte of memory while it is processed, so the limit bounds the memory that a small
/// text can take.
pub const MOST_LEVELS: u32 = 300_000;

/// The direct parts of a field class: members, options, or the element.
#[derive(Clone, Debug)]
pub enum Parts<'c> {
    /// Members of a structure.
    Members(std::slice::Iter<'c, Member>),
    /// Options of a variant.
    Options(std::slice::Iter<'c, VariantOption>),
    /// The element of an array, a sequence or an optional; `None` for fields without parts.
    Element(Option<&'c FieldClass>),
}

impl<'c> Iterator for Parts<'c> {
    /// The name of the part, if it has one, and its class.
    type Item = (Option<&'c Name>, &'c FieldClass);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Parts::Members(members) => members
                .next()
                .map(|member| (Some(&member.name), &member.class)),
            Parts::Options(options) => options
                .next()
                .map(|option| (option.name.as_ref(), &option.class)),
            Parts::Element(element) => element.take().map(|element| (None, element)),
        }
    }
}

impl Parts<'_> {
    fn is_done(&self) -> bool {
        match self {
            Parts::Members(members) => members.len() == 0,
            Parts::Options(options) => options.len() == 0,
            Parts::Element(element) => element.is_none(),
        }
    }
}

/// A field class and all classes within it, each before its parts.
#[derive(Clone, Debug)]
pub struct All<'c> {
    root: Option<&'c FieldClass>,
    /// Remaining parts of the innermost class that has any, and of the classes around it.
    inner: Parts<'c>,
    outer: Vec<Parts<'c>>,
}

impl<'c> Iterator for All<'c> {
    type Item = &'c FieldClass;

    fn next(&mut self) -> Option<&'c FieldClass> {
        let class = match self.root.take() {
            Some(root) => root,
            None => loop {
                match self.inner.next() {
                    Some((_, class)) => break class,
                    None => self.inner = self.outer.pop()?,
                }
            },
        };
        if class.has_parts() {
            let before = std::mem::replace(&mut self.inner, class.parts());
            // Most classes are structures of plain fields, which need no allocation.
            if !before.is_done() {
                self.outer.push(before);
            }
        }
        Some(class)
    }
}

impl FieldClass {
    /// The direct parts, in order.
    pub fn parts(&self) -> Parts<'_> {
        match self {
            FieldClass::Struct(class) => Parts::Members(class.members.iter()),
            FieldClass::Variant(class) => Parts::Options(class.options.iter()),
            FieldClass::Optional(class) => Parts::Element(Some(&class.element)),
            FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. } => {
                Parts::Element(Some(element))
            }
            _ => Parts::Element(None),
        }
    }

    /// Location of the length or selector, if it is in another field.
    pub fn location(&self) -> Option<&Arc<FieldLocation>> {
        match self {
            FieldClass::DynStr { length, .. }
            | FieldClass::DynBlob { length, .. }
            | FieldClass::Sequence { length, .. } => Some(length),
            FieldClass::Variant(class) => Some(&class.selector),
            FieldClass::Optional(class) => Some(&class.selector),
            _ => None,
        }
    }

    /// The field class and all classes within it, each before its parts.
    pub fn all(&self) -> All<'_> {
        All {
            root: Some(self),
            inner: Parts::Element(None),
            outer: Vec::new(),
        }
    }

    /// True for kinds that contain other fields.
    fn has_parts(&self) -> bool {
        matches!(
            self,
            FieldClass::Struct(_)
                | FieldClass::Variant(_)
                | FieldClass::Optional(_)
                | FieldClass::Array { .. }
                | FieldClass::Sequence { .. }
        )
    }

    /// Alignment in bits at the start of the field: a power of two.
    ///
    /// Variants and optionals have no alignment of their own (1): the selected option is aligned
    /// itself.
    pub fn align(&self) -> u32 {
        let (mut align, mut left) = (1, vec![self]);
        while let Some(class) = left.pop() {
            align = align.max(class.own_align());
            if !matches!(class, FieldClass::Variant(_) | FieldClass::Optional(_)) {
                left.extend(class.parts().map(|(_, part)| part));
            }
        }
        align
    }

    /// The alignment without that of the parts.
    pub(crate) fn own_align(&self) -> u32 {
        match self {
            FieldClass::Int(int)
            | FieldClass::Bool(int)
            | FieldClass::BitArray(int)
            | FieldClass::BitMap(int) => int.align,
            FieldClass::Float { align, .. } => *align,
            FieldClass::VarInt(_)
            | FieldClass::Str { .. }
            | FieldClass::StaticStr { .. }
            | FieldClass::DynStr { .. }
            | FieldClass::StaticBlob { .. }
            | FieldClass::DynBlob { .. } => 8,
            FieldClass::Array { min_align, .. } | FieldClass::Sequence { min_align, .. } => {
                *min_align
            }
            FieldClass::Struct(class) => class.min_align,
            FieldClass::Variant(_) | FieldClass::Optional(_) => 1,
        }
    }
}

/// Placeholder for a part that has been moved out.
const TAKEN: FieldClass = FieldClass::Str {
    encoding: Encoding::Utf8,
};

/// Moves those parts that have parts themselves out of a class that is not shared.
fn take_parts(class: &mut FieldClass, left: &mut Vec<FieldClass>) {
    let take = |class: &mut FieldClass| std::mem::replace(class, TAKEN);
    match class {
        FieldClass::Struct(class) => {
            if let Some(class) = Arc::get_mut(class) {
                let parts = class.members.drain(..).map(|member| member.class);
                left.extend(parts.filter(FieldClass::has_parts));
            }
        }
        FieldClass::Variant(class) => {
            if let Some(class) = Arc::get_mut(class) {
                let parts = class.options.drain(..).map(|option| option.class);
                left.extend(parts.filter(FieldClass::has_parts));
            }
        }
        FieldClass::Optional(class) => {
            left.extend(Arc::get_mut(class).map(|class| take(&mut class.element)))
        }
        FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. } => {
            left.extend(Arc::get_mut(element).map(take));
        }
        _ => {}
    }
}

/// Frees nested classes one at a time, without recursion.
///
/// Shared parts stay with their other owners. If two threads drop the last two references to a part
/// at the same moment, each may see it as shared. The thread that drops its reference last then
/// frees the part in a nested call, one level deeper.
impl Drop for FieldClass {
    fn drop(&mut self) {
        if self.has_parts() {
            let mut left = Vec::new();
            take_parts(self, &mut left);
            while let Some(mut class) = left.pop() {
                take_parts(&mut class, &mut left);
            }
        }
    }
}

impl PartialEq for FieldClass {
    fn eq(&self, other: &Self) -> bool {
        let mut left = vec![(self, other)];
        while let Some((one, other)) = left.pop() {
            if !one.is_like(other) {
                return false;
            }
            let (ours, theirs) = (one.parts(), other.parts());
            left.extend(ours.zip(theirs).map(|((_, one), (_, other))| (one, other)));
        }
        true
    }
}

impl FieldClass {
    /// True if the two are equal except for the classes of their parts, and have the same number of
    /// parts.
    fn is_like(&self, other: &Self) -> bool {
        use FieldClass::*;
        match (self, other) {
            (Int(one), Int(other))
            | (Bool(one), Bool(other))
            | (BitArray(one), BitArray(other))
            | (BitMap(one), BitMap(other))
            | (VarInt(one), VarInt(other)) => one == other,
            (Struct(one), Struct(other)) => {
                let names = one.members.iter().map(|member| &member.name);
                one.min_align == other.min_align
                    && names.eq(other.members.iter().map(|member| &member.name))
            }
            (Variant(one), Variant(other)) => {
                let options = one
                    .options
                    .iter()
                    .map(|option| (&option.name, &option.ranges));
                one.selector == other.selector
                    && options.eq(other
                        .options
                        .iter()
                        .map(|option| (&option.name, &option.ranges)))
            }
            (Optional(one), Optional(other)) => {
                (&one.selector, &one.ranges) == (&other.selector, &other.ranges)
            }
            _ => self.is_like_plain(other),
        }
    }

    /// Like `is_like`, for classes whose parts, if any, have no names.
    fn is_like_plain(&self, other: &Self) -> bool {
        macro_rules! equal {
            ($kind:ident: $($field:ident),+) => {
                if let (FieldClass::$kind { $($field),+, .. }, one) = (other, self) {
                    let others = ($($field),+,);
                    return matches!(one, FieldClass::$kind { $($field),+, .. } if ($($field),+,) == others);
                }
            };
        }
        equal!(Float: length, align, byte_order, reversed_bits);
        equal!(Str: encoding);
        equal!(StaticStr: length, encoding);
        equal!(DynStr: length, encoding);
        equal!(StaticBlob: length, media_type, roles);
        equal!(DynBlob: length, media_type);
        equal!(Array: length, min_align, roles);
        equal!(Sequence: length, min_align);
        false
    }
}

/// Number of levels in debug output.
const SHOWN_LEVELS: u32 = 32;

thread_local! {
    /// The level that is being formatted.
    static LEVEL: Cell<u32> = const { Cell::new(0) };
}

/// Formats the first levels; `..` stands for deeper levels.
impl fmt::Debug for FieldClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = LEVEL.get();
        if level >= SHOWN_LEVELS {
            return f.write_str("..");
        }
        LEVEL.set(level + 1);
        let result = self.show(f);
        LEVEL.set(level);
        result
    }
}

impl FieldClass {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! show {
            ($kind:ident: $($field:ident),+) => {
                if let FieldClass::$kind { $($field),+ } = self {
                    return f.debug_struct(stringify!($kind))$(.field(stringify!($field), $field))+.finish();
                }
            };
            ($kind:ident) => {
                if let FieldClass::$kind(class) = self {
                    return f.debug_tuple(stringify!($kind)).field(class).finish();
                }
            };
        }
        show!(Int);
        show!(Bool);
        show!(BitArray);
        show!(BitMap);
        show!(VarInt);
        show!(Float: length, align, byte_order, reversed_bits);
        show!(Str: encoding);
        show!(StaticStr: length, encoding);
        show!(DynStr: length, encoding);
        show!(StaticBlob: length, media_type, roles);
        show!(DynBlob: length, media_type);
        show!(Array: element, length, min_align, roles);
        show!(Sequence: element, length, min_align);
        show!(Struct);
        show!(Variant);
        show!(Optional);
        Ok(())
    }
}
