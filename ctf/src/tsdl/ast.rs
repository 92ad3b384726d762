//! What TSDL says, one top-level item at a time. It borrows from the text; positions are byte
//! offsets.
//!
//! Types nest, but nothing here does: an item is a list of parts, in which `Open` and `Close` stand
//! around the body of a type. What is done with a type comes behind it.

use std::borrow::Cow;
use std::rc::Rc;

/// A word, with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ident<'t> {
    pub(super) text: &'t str,
    pub(super) at: u32,
}

/// Words joined by `.` (or `->`): the name of an attribute, or the place of a field.
#[derive(Clone, Debug)]
pub(super) struct Path<'t> {
    pub(super) first: Ident<'t>,
    pub(super) rest: Vec<Ident<'t>>,
}

impl<'t> Path<'t> {
    /// True if the words are these.
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

/// A value on the right of `=`.
#[derive(Clone, Debug)]
pub(super) struct Value<'t> {
    pub(super) at: u32,
    pub(super) kind: ValueKind<'t>,
}

/// Kinds of values.
#[derive(Clone, Debug)]
pub(super) enum ValueKind<'t> {
    /// An integer or character constant: `-2^64 < x < 2^64`.
    Int(i128),
    /// A string literal with its quotes.
    Str(&'t str),
    /// A word or several joined by dots.
    Path(Path<'t>),
}

/// `key = value;` or `key := type;`
#[derive(Debug)]
pub(super) struct Attr<'t> {
    pub(super) key: Path<'t>,
    pub(super) value: AttrValue<'t>,
}

/// Right side of an attribute.
#[derive(Debug)]
pub(super) enum AttrValue<'t> {
    Value(Value<'t>),
    /// The type before; it begins there.
    Type(u32),
}

/// A piece of an item.
#[derive(Debug)]
pub(super) enum Part<'t> {
    Attr(Attr<'t>),
    /// A type without a body of fields.
    Type(TypeSpec<'t>),
    /// A struct or variant whose body comes next.
    Open(Head<'t>),
    /// The end of that body, with the alignment of the struct.
    Close(Option<Value<'t>>),
    /// The type before is that of a field (or option) of the innermost open body.
    Field(Declarator<'t>),
    /// The type before gets a name.
    Typedef(Declarator<'t>),
    Alias(Box<Alias<'t>>),
    /// The type before is only declared.
    Declared,
}

impl<'t> Part<'t> {
    /// The attribute, if it is one.
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

/// Index of an `integer` block among those of different text.
pub(super) type IntegerIndex = usize;

/// Kinds of types.
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

/// A `typealias`, but for its target.
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
    /// Empty where a declarator may be abstract.
    pub(super) name: Ident<'t>,
    pub(super) dims: Vec<Dim<'t>>,
}

/// Length between brackets.
#[derive(Debug)]
pub(super) enum Dim<'t> {
    Const(u32, i128),
    Field(Path<'t>),
}

/// Something at the top level.
#[derive(Debug)]
pub(super) struct TopLevel<'t> {
    pub(super) kind: ItemKind,
    pub(super) at: u32,
    pub(super) parts: Vec<Part<'t>>,
}

/// Kinds of items: `trace {...};` and the like, or a declaration of types.
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

    /// Types may be declared in it.
    pub(super) fn has_types(self) -> bool {
        matches!(self, ItemKind::Trace | ItemKind::Stream | ItemKind::Event)
    }
}

/// Attributes of one or more `integer` blocks of identical text.
#[derive(Debug)]
pub(super) struct IntegerSpec<'t> {
    /// Where the first of them is.
    pub(super) at: u32,
    pub(super) attrs: Vec<Attr<'t>>,
}
