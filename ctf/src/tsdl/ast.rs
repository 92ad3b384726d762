//! The syntax tree of TSDL. It borrows from the text; positions are byte offsets.

use std::borrow::Cow;

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
    Type(TypeSpec<'t>),
}

/// A type as written.
#[derive(Debug)]
pub(super) struct TypeSpec<'t> {
    pub(super) at: u32,
    pub(super) kind: TypeKind<'t>,
}

/// Index of an `integer` block in [`Ast::integers`].
pub(super) type IntegerIndex = usize;

/// Kinds of types.
#[derive(Debug)]
pub(super) enum TypeKind<'t> {
    /// A declared name, or words of C joined by spaces.
    Named(Cow<'t, str>),
    Integer(IntegerIndex),
    Float(Vec<Attr<'t>>),
    Str(Vec<Attr<'t>>),
    Struct(Box<StructSpec<'t>>),
    Variant(Box<VariantSpec<'t>>),
    Enum(Box<EnumSpec<'t>>),
}

/// `struct NAME { BODY } align(VALUE)`
#[derive(Debug)]
pub(super) struct StructSpec<'t> {
    pub(super) name: Option<Ident<'t>>,
    pub(super) body: Option<Vec<BodyEntry<'t>>>,
    pub(super) align: Option<Value<'t>>,
}

/// `variant NAME <TAG> { BODY }`
#[derive(Debug)]
pub(super) struct VariantSpec<'t> {
    pub(super) name: Option<Ident<'t>>,
    pub(super) tag: Option<Path<'t>>,
    pub(super) body: Option<Vec<BodyEntry<'t>>>,
}

/// `enum NAME : BASE { LABELS }`
#[derive(Debug)]
pub(super) struct EnumSpec<'t> {
    pub(super) name: Option<Ident<'t>>,
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

/// Something in the body of a struct or variant.
#[derive(Debug)]
pub(super) enum BodyEntry<'t> {
    Decl(Decl<'t>),
    Fields(TypeSpec<'t>, Vec<Declarator<'t>>),
}

/// A declaration of types.
#[derive(Debug)]
pub(super) enum Decl<'t> {
    /// `typedef TYPE DECLARATORS;`
    Typedef(TypeSpec<'t>, Vec<Declarator<'t>>),
    /// `typealias TYPE := NAME;`
    Alias(Alias<'t>),
    /// `struct NAME {...};` and its like.
    Type(TypeSpec<'t>),
}

/// A `typealias`.
#[derive(Debug)]
pub(super) struct Alias<'t> {
    pub(super) target: TypeSpec<'t>,
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

/// `trace {...};`, `stream {...};`, `event {...};`, `env {...};`, `clock {...};`
#[derive(Debug)]
pub(super) struct Block<'t> {
    pub(super) kind: BlockKind,
    pub(super) at: u32,
    pub(super) entries: Vec<Entry<'t>>,
}

/// Kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Trace,
    Stream,
    Event,
    Env,
    Clock,
    Callsite,
}

impl BlockKind {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            BlockKind::Trace => "trace",
            BlockKind::Stream => "stream",
            BlockKind::Event => "event",
            BlockKind::Env => "env",
            BlockKind::Clock => "clock",
            BlockKind::Callsite => "callsite",
        }
    }
}

/// Something in a block.
#[derive(Debug)]
pub(super) enum Entry<'t> {
    Attr(Attr<'t>),
    Decl(Decl<'t>),
}

impl<'t> Entry<'t> {
    /// The attribute, if it is one.
    pub(super) fn attr(&self) -> Option<&Attr<'t>> {
        match self {
            Entry::Attr(attr) => Some(attr),
            Entry::Decl(_) => None,
        }
    }
}

/// Something at the top level.
#[derive(Debug)]
pub(super) enum Item<'t> {
    Block(Block<'t>),
    Decl(Decl<'t>),
}

/// Attributes of one or more `integer` blocks of identical text.
#[derive(Debug)]
pub(super) struct IntegerSpec<'t> {
    /// Where the first of them is.
    pub(super) at: u32,
    pub(super) attrs: Vec<Attr<'t>>,
}

/// Everything that the text says.
#[derive(Debug)]
pub(super) struct Ast<'t> {
    pub(super) items: Vec<Item<'t>>,
    pub(super) integers: Vec<IntegerSpec<'t>>,
}
