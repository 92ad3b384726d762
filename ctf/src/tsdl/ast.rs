//! The syntax tree of TSDL, one top-level item at a time. It borrows from the text; positions are
//! byte offsets.
//!
//! Types may be nested, but the tree is flat: an item is a list of parts, in which `Open` and
//! `Close` enclose the body of a type. The use of a type follows the type.

use std::borrow::Cow;
use std::rc::Rc;

/// A word with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ident<'t> {
    pub(super) text: &'t str,
    pub(super) at: u32,
}

/// Words joined by `.` (or `->`): the name of an attribute, or the location of a field.
#[derive(Clone, Debug)]
pub(super) struct Path<'t> {
    pub(super) first: Ident<'t>,
    pub(super) rest: Vec<Ident<'t>>,
}

impl<'t> Path<'t> {
    /// True if the path consists of these words.
    pub(super) fn is(&self, words: &[&str]) -> bool {
        words.split_first().is_some_and(|(first, rest)| {
            self.first.text == *first
                && self.rest.len() == rest.len()
                && self
                    .rest
                    .iter()
                    .zip(rest)
                    .all(|(ours, theirs)| ours.text == *theirs)
        })
    }

    /// The words, joined by `.`.
    pub(super) fn text(&self) -> Cow<'t, str> {
        if self.rest.is_empty() {
            return Cow::Borrowed(self.first.text);
        }
        let mut text = self.first.text.to_owned();
        for word in &self.rest {
            text.push('.');
            text.push_str(word.text);
        }
        Cow::Owned(text)
    }
}

/// The right side of `=`.
#[derive(Clone, Debug)]
pub(super) struct Value<'t> {
    pub(super) at: u32,
    pub(super) kind: ValueKind<'t>,
}

#[derive(Clone, Debug)]
pub(super) enum ValueKind<'t> {
    /// An integer or character constant: `-2^64 < x < 2^64`.
    Int(i128),
    /// A string literal with its quotes.
    Str(&'t str),
    /// A word, or several words joined by dots.
    Path(Path<'t>),
}

/// `key = value;` or `key := type;`
#[derive(Debug)]
pub(super) struct Attr<'t> {
    pub(super) key: Path<'t>,
    pub(super) value: AttrValue<'t>,
}

#[derive(Debug)]
pub(super) enum AttrValue<'t> {
    Value(Value<'t>),
    /// The preceding type, with the byte offset of its beginning.
    Type(u32),
}

/// A part of an item.
#[derive(Debug)]
pub(super) enum Part<'t> {
    Attr(Attr<'t>),
    /// A type without a body of fields.
    Type(TypeSpec<'t>),
    /// A struct or variant whose body follows.
    Open(Head<'t>),
    /// The end of the body, with the alignment of the struct.
    Close(Option<Value<'t>>),
    /// A field (or option) of the innermost open body, with the preceding type.
    Field(Declarator<'t>),
    /// A name for the preceding type.
    Typedef(Declarator<'t>),
    Alias(Box<Alias<'t>>),
    /// Declares the preceding type only.
    Declared,
}

impl<'t> Part<'t> {
    /// The attribute, if the part is one.
    pub(super) fn attr(&self) -> Option<&Attr<'t>> {
        match self {
            Part::Attr(attr) => Some(attr),
            _ => None,
        }
    }
}

/// A type without a body, as written.
#[derive(Debug)]
pub(super) struct TypeSpec<'t> {
    pub(super) at: u32,
    pub(super) kind: TypeKind<'t>,
}

/// Index of an `integer` block, counting blocks of identical text once.
pub(super) type IntegerIndex = usize;

#[derive(Debug)]
pub(super) enum TypeKind<'t> {
    /// A declared name, or words of C joined by spaces.
    Named(Cow<'t, str>),
    Integer(IntegerIndex, Rc<IntegerSpec<'t>>),
    Float(Vec<Attr<'t>>),
    Str(Vec<Attr<'t>>),
    /// `struct NAME`
    Struct(Ident<'t>),
    /// `variant NAME <TAG>`
    Variant(Ident<'t>, Option<Path<'t>>),
    Enum(Box<EnumSpec<'t>>),
}

/// `struct NAME` or `variant NAME <TAG>` before a body.
#[derive(Debug)]
pub(super) struct Head<'t> {
    pub(super) at: u32,
    pub(super) kind: BodyKind,
    pub(super) name: Option<Ident<'t>>,
    pub(super) tag: Option<Path<'t>>,
}

/// Kinds of types that have a body of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    Struct,
    Variant,
}

impl BodyKind {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            BodyKind::Struct => "struct",
            BodyKind::Variant => "variant",
        }
    }
}

/// `enum NAME : BASE { LABELS }`
#[derive(Debug)]
pub(super) struct EnumSpec<'t> {
    pub(super) name: Option<Ident<'t>>,
    /// The name of a type, or an `integer` block.
    pub(super) base: Option<TypeSpec<'t>>,
    pub(super) labels: Option<Vec<Enumerator<'t>>>,
}

/// `LABEL`, `LABEL = VALUE` or `LABEL = LOWER ... UPPER`
#[derive(Debug)]
pub(super) struct Enumerator<'t> {
    pub(super) at: u32,
    pub(super) label: Cow<'t, str>,
    pub(super) range: Option<(Value<'t>, Option<Value<'t>>)>,
}

/// A `typealias` without its target.
#[derive(Debug)]
pub(super) struct Alias<'t> {
    /// Stars and brackets after the target.
    pub(super) target_shape: Declarator<'t>,
    pub(super) name: Cow<'t, str>,
    pub(super) name_at: u32,
    /// Brackets after the name.
    pub(super) dims: Vec<Dim<'t>>,
}

/// `*NAME[LENGTH][LENGTH]`
#[derive(Debug)]
pub(super) struct Declarator<'t> {
    pub(super) pointers: u32,
    /// Empty if the declarator is abstract.
    pub(super) name: Ident<'t>,
    pub(super) dims: Vec<Dim<'t>>,
}

/// A length between brackets.
#[derive(Debug)]
pub(super) enum Dim<'t> {
    Const(u32, i128),
    Field(Path<'t>),
}

/// An item at the top level.
#[derive(Debug)]
pub(super) struct TopLevel<'t> {
    pub(super) kind: ItemKind,
    pub(super) at: u32,
    pub(super) parts: Vec<Part<'t>>,
}

/// Kinds of items: blocks such as `trace {...};`, or a declaration of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Declaration,
    Trace,
    Stream,
    Event,
    Env,
    Clock,
    Callsite,
}

impl ItemKind {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            ItemKind::Declaration => "",
            ItemKind::Trace => "trace",
            ItemKind::Stream => "stream",
            ItemKind::Event => "event",
            ItemKind::Env => "env",
            ItemKind::Clock => "clock",
            ItemKind::Callsite => "callsite",
        }
    }

    /// Whether types may be declared in the item.
    pub(super) fn has_types(self) -> bool {
        matches!(self, ItemKind::Trace | ItemKind::Stream | ItemKind::Event)
    }
}

/// Attributes of one or more `integer` blocks of identical text.
#[derive(Debug)]
pub(super) struct IntegerSpec<'t> {
    /// Byte offset of the first block.
    pub(super) at: u32,
    pub(super) attrs: Vec<Attr<'t>>,
}
