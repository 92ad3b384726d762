//! Evaluates parts of items to types: looks up names of types and checks attributes.
//!
//! Parts are processed one at a time. Open bodies are kept in a list, so types may be nested to any
//! depth.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::ast::*;
use super::error::{Res, error, short, too_deep};
use super::leaves;
use super::resolve::{Walk, Words};
use super::scopes::{Scopes, Space};
use super::types::{Base, Location, Members, StructTy, Ty, TyKind, TyRef, VariantTy};
use super::values;
use crate::schema::{ByteOrder, ClockIndex, EnvValue, MOST_LEVELS, Scope};

/// A struct or variant whose body is being read.
struct OpenBody<'a> {
    head: Head<'a>,
    /// Id of the struct.
    id: u32,
    members: Members<'a>,
}

/// The type to which the next part applies.
enum Pending<'a> {
    None,
    /// Not looked up yet: a type that is only used through pointers need not exist.
    Written(TypeSpec<'a>),
    /// With its byte offset.
    Known(TyRef<'a>, u32, Called<'a>),
}

/// The spelling of a type, for pointers to it and for messages.
enum Called<'a> {
    Name(Cow<'a, str>),
    /// A struct, variant or enumeration with this name, which may be empty.
    Tag(Space, &'a str),
    Keyword(&'static str),
}

impl<'a> Called<'a> {
    fn of(kind: &TypeKind<'a>) -> Self {
        match kind {
            TypeKind::Named(name) => Called::Name(name.clone()),
            TypeKind::Struct(name) => Called::Tag(Space::Struct, name.text),
            TypeKind::Variant(name, _) => Called::Tag(Space::Variant, name.text),
            TypeKind::Enum(spec) => {
                Called::Tag(Space::Enum, spec.name.map_or("", |name| name.text))
            }
            TypeKind::Integer(..) => Called::Keyword("integer"),
            TypeKind::Float(_) => Called::Keyword("floating_point"),
            TypeKind::Str(_) => Called::Keyword("string"),
        }
    }

    fn text(&self) -> String {
        match self {
            Called::Name(name) => name.to_string(),
            Called::Tag(space, name) => format!("{}{name}", space.prefix()),
            Called::Keyword(word) => (*word).to_owned(),
        }
    }
}

/// Limits of an evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of types in the tree of a type.
    pub(super) nodes: u64,
    /// Length of the text in bytes.
    pub(super) text: u64,
}

/// State of the evaluation of types.
pub(super) struct Sema<'a> {
    limits: Limits,
    pub(super) byte_order: ByteOrder,
    pub(super) clock_names: HashMap<String, ClockIndex>,
    /// Clocks that integers are mapped to, but that were unknown at that point.
    pub(super) missed_clocks: HashSet<&'a str>,
    pub(super) environment: Vec<(String, EnvValue)>,
    pub(super) scopes: Scopes<'a>,
    open: Vec<OpenBody<'a>>,
    pending: Pending<'a>,
    /// Types of the `integer` blocks that have been evaluated.
    pub(super) integers: Vec<Option<TyRef<'a>>>,
    /// Locations that only their uses can resolve, each with whether a use did.
    pub(super) open_locations: Vec<(Rc<Path<'a>>, bool)>,
    structs: u32,
    /// Remaining number of open structs that may be searched for the fields that locations name.
    looks: u64,
}

impl<'a> Sema<'a> {
    pub(super) fn new(limits: Limits) -> Self {
        Sema {
            limits,
            byte_order: ByteOrder::Little,
            clock_names: HashMap::new(),
            missed_clocks: HashSet::new(),
            environment: Vec::new(),
            scopes: Scopes::default(),
            open: Vec::new(),
            pending: Pending::None,
            integers: Vec::new(),
            open_locations: Vec::new(),
            structs: 0,
            looks: limits.text.saturating_mul(16).saturating_add(1 << 25),
        }
    }

    /// Declares a type.
    pub(super) fn declare(
        &mut self,
        space: Space,
        name: Cow<'a, str>,
        at: u32,
        ty: TyRef<'a>,
    ) -> Res<()> {
        let shown = name.clone();
        if self.scopes.declare(space, name, ty) {
            return Ok(());
        }
        let prefix = space.prefix();
        error(
            at,
            format!(
                "type `{prefix}{}` is declared twice in this scope",
                short(&shown)
            ),
        )
    }

    /// Rejects types that are too deep or too large.
    fn checked(&self, ty: TyRef<'a>, at: u32) -> Res<TyRef<'a>> {
        if ty.facts.depth > MOST_LEVELS {
            return too_deep(at);
        }
        if ty.facts.nodes > self.limits.nodes {
            return error(
                at,
                format!(
                    "this type has more than {} fields in all",
                    self.limits.nodes
                ),
            );
        }
        if ty.facts.least_bits.is_none() {
            return error(at, "this type is larger than 2^64 bits");
        }
        Ok(ty)
    }

    /// Evaluates the next part, which is not an attribute.
    pub(super) fn part(&mut self, part: Part<'a>) -> Res<()> {
        match part {
            Part::Attr(_) => Ok(()),
            Part::Type(spec) => {
                self.pending = Pending::Written(spec);
                Ok(())
            }
            Part::Open(head) => {
                self.open(head);
                Ok(())
            }
            Part::Close(align) => self.close(align),
            Part::Field(declarator) => {
                let name = declarator.name;
                let ty = self.declared_type(declarator)?;
                self.field(name, ty)
            }
            Part::Typedef(declarator) => {
                let name = declarator.name;
                let ty = self.declared_type(declarator)?;
                self.declare(Space::Alias, Cow::Borrowed(name.text), name.at, ty)
            }
            Part::Alias(alias) => {
                let Alias {
                    target_shape,
                    name,
                    name_at,
                    dims,
                } = *alias;
                let ty = self.declared_type(target_shape)?;
                let ty = self.with_dimensions(ty, dims)?;
                self.declare(Space::Alias, name, name_at, ty)
            }
            Part::Declared => self.pending_type(true).map(drop),
        }
    }

    fn open(&mut self, head: Head<'a>) {
        let id = self.structs;
        self.structs = self.structs.saturating_add(1);
        self.scopes.begin();
        self.open.push(OpenBody {
            head,
            id,
            members: Members::default(),
        });
    }

    /// Closes the innermost body.
    fn close(&mut self, align: Option<Value<'a>>) -> Res<()> {
        self.scopes.end();
        let Some(OpenBody { head, id, members }) = self.open.pop() else {
            return Ok(());
        };
        let (space, ty) = match head.kind {
            BodyKind::Struct => {
                let min_align = align.as_ref().map_or(Ok(1), values::align)?;
                let structure = StructTy {
                    id,
                    min_align,
                    members,
                };
                (Space::Struct, Ty::structure(structure))
            }
            BodyKind::Variant => {
                if members.list.is_empty() {
                    return error(head.at, "a variant needs at least one option");
                }
                let tag = match head.tag {
                    Some(path) => Some(self.bind_tag(path, &members)?),
                    None => None,
                };
                let variant = VariantTy {
                    at: head.at,
                    tag,
                    options: Rc::new(members),
                };
                (Space::Variant, Ty::variant(variant))
            }
        };
        let ty = self.checked(ty, head.at)?;
        if let Some(name) = head.name {
            self.declare(space, Cow::Borrowed(name.text), name.at, ty.clone())?;
        }
        let name = head.name.map_or("", |name| name.text);
        self.pending = Pending::Known(ty, head.at, Called::Tag(space, name));
        Ok(())
    }

    /// Adds a field to the innermost open struct, or an option to the variant.
    fn field(&mut self, name: Ident<'a>, ty: TyRef<'a>) -> Res<()> {
        let Some(open) = self.open.last_mut() else {
            return Ok(());
        };
        if open.members.push(name, ty) {
            return Ok(());
        }
        let (article, what) = match open.head.kind {
            BodyKind::Struct => ("a", "field"),
            BodyKind::Variant => ("an", "option"),
        };
        error(
            name.at,
            format!("there is {article} {what} `{}` already", short(name.text)),
        )
    }

    /// The type that a declarator creates from the pending type.
    fn declared_type(&mut self, declarator: Declarator<'a>) -> Res<TyRef<'a>> {
        let ty = if declarator.pointers > 0 {
            self.pointer(declarator.pointers)?
        } else {
            self.pending_type(false)?
        };
        self.with_dimensions(ty, declarator.dims)
    }

    /// The type of a pointer: the target of the alias for it.
    fn pointer(&self, pointers: u32) -> Res<TyRef<'a>> {
        let (mut name, at) = match &self.pending {
            Pending::None => (String::new(), 0),
            Pending::Written(spec) => (Called::of(&spec.kind).text(), spec.at),
            Pending::Known(_, at, called) => (called.text(), *at),
        };
        for _ in 0..pointers {
            name.push_str(" *");
        }
        match self.scopes.find(Space::Alias, &name) {
            Some(ty) => Ok(ty),
            None => error(
                at,
                format!(
                    "unknown type `{}`: declare it first with `typealias ... := {}`",
                    short(&name),
                    short(&name)
                ),
            ),
        }
    }

    /// Returns the pending type. Only a declaration may leave the tag of a variant open.
    pub(super) fn pending_type(&mut self, declaration: bool) -> Res<TyRef<'a>> {
        let (ty, at, called) = match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::None => return error(0, "no type here"),
            Pending::Known(ty, at, called) => (ty, at, called),
            Pending::Written(spec) => {
                let (at, called) = (spec.at, Called::of(&spec.kind));
                (self.type_of(spec)?, at, called)
            }
        };
        if let TyKind::Variant(VariantTy { tag: None, .. }) = &ty.kind
            && !declaration
        {
            let name = match called {
                Called::Tag(_, name) if !name.is_empty() => format!("{} <FIELD>", short(name)),
                _ => "<FIELD> {...}".to_owned(),
            };
            return error(at, format!("this variant has no tag: `variant {name}`"));
        }
        self.pending = Pending::Known(ty.clone(), at, called);
        Ok(ty)
    }

    fn with_dimensions(&mut self, mut ty: TyRef<'a>, dims: Vec<Dim<'a>>) -> Res<TyRef<'a>> {
        for dim in dims.into_iter().rev() {
            let (at, next) = match dim {
                Dim::Const(at, length) => match u64::try_from(length) {
                    Ok(length) => (at, Ty::array(ty, length)),
                    Err(_) => {
                        return error(
                            at,
                            format!("the length of an array cannot be negative: {length}"),
                        );
                    }
                },
                Dim::Field(path) if path.first.text == "env" => (
                    path.first.at,
                    Ty::array(ty, self.environment_length(&path)?),
                ),
                Dim::Field(path) => (path.first.at, Ty::sequence(ty, self.bind(path, None)?)),
            };
            ty = self.checked(next, at)?;
        }
        Ok(ty)
    }

    /// A length from the environment.
    fn environment_length(&self, path: &Path<'a>) -> Res<u64> {
        let [key] = path.rest.as_slice() else {
            return error(
                path.first.at,
                "expected `env.KEY`, where KEY is an entry of the environment",
            );
        };
        match self.environment.iter().find(|(name, _)| name == key.text) {
            None => error(
                key.at,
                format!(
                    "the environment has no entry `{}` here: an earlier `env` block must define it",
                    key.text
                ),
            ),
            Some((_, EnvValue::Int(length))) => match u64::try_from(*length) {
                Ok(length) => Ok(length),
                Err(_) => error(
                    key.at,
                    format!(
                        "the length of an array cannot be negative: `env.{}` is {length}",
                        key.text
                    ),
                ),
            },
            Some((_, EnvValue::Str(_))) => error(
                key.at,
                format!(
                    "the length of an array is an integer: `env.{}` is a string",
                    key.text
                ),
            ),
        }
    }

    /// Determines where the path of a length begins (or of the tag of a variant with these
    /// options). Checks its target as far as the enclosing structs allow.
    fn bind(&mut self, path: Path<'a>, tag_of: Option<&Members<'a>>) -> Res<Location<'a>> {
        let path = Rc::new(path);
        if let Some(base) = absolute(&path)? {
            return Ok(Location { path, base });
        }
        let mut failure = None;
        // The options of a variant cannot refer to each other.
        let structs = self.open.iter().rev();
        for open in structs.filter(|open| open.head.kind == BodyKind::Struct) {
            self.looks = match self.looks.checked_sub(1) {
                Some(left) => left,
                None => {
                    return error(
                        path.first.at,
                        "there are too many structs around the lengths and tags up to here",
                    );
                }
            };
            let Some(index) = open.members.find(path.first.text) else {
                continue;
            };
            let Some((_, ty)) = open.members.list.get(index) else {
                continue;
            };
            let mut walk = Walk::new(&path);
            let result =
                walk.follow(ty, Words::after(&path, 1), None)
                    .and_then(|()| match tag_of {
                        Some(options) => walk.check_tag(options).map(drop),
                        None => walk.check_length(),
                    });
            match result {
                Ok(()) => {
                    let base = Base::Struct(open.id);
                    return Ok(Location { path, base });
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.open_locations.push((path.clone(), false));
        let base = Base::Use(self.open_locations.len() - 1);
        Ok(Location { path, base })
    }

    /// The type of a type specifier without a body.
    pub(super) fn type_of(&mut self, spec: TypeSpec<'a>) -> Res<TyRef<'a>> {
        match spec.kind {
            TypeKind::Named(name) => match self.scopes.find(Space::Alias, &name) {
                Some(ty) => Ok(ty),
                None => error(
                    spec.at,
                    format!(
                        "unknown type `{}`: it must be declared before its use",
                        short(&name)
                    ),
                ),
            },
            TypeKind::Integer(index, integer) => self.integer(index, &integer),
            TypeKind::Float(attrs) => self.float(spec.at, &attrs),
            TypeKind::Str(attrs) => leaves::string(&attrs),
            TypeKind::Struct(name) => self.known(Space::Struct, spec.at, name),
            TypeKind::Variant(name, tag) => self.variant_use(spec.at, name, tag),
            TypeKind::Enum(enumeration) => self.enumeration(spec.at, *enumeration),
        }
    }

    /// A struct, variant or enumeration that was declared earlier.
    pub(super) fn known(&self, space: Space, at: u32, name: Ident<'a>) -> Res<TyRef<'a>> {
        match self.scopes.find(space, name.text) {
            Some(ty) => Ok(ty),
            None => error(
                at,
                format!(
                    "unknown type `{}{}`: it must be declared before its use",
                    space.prefix(),
                    short(name.text)
                ),
            ),
        }
    }

    /// `variant NAME` or `variant NAME <TAG>`
    fn variant_use(&mut self, at: u32, name: Ident<'a>, tag: Option<Path<'a>>) -> Res<TyRef<'a>> {
        let ty = self.known(Space::Variant, at, name)?;
        let (TyKind::Variant(variant), Some(path)) = (&ty.kind, tag) else {
            return Ok(ty);
        };
        let tag = Some(self.bind_tag(path, &variant.options)?);
        let options = variant.options.clone();
        self.checked(Ty::variant(VariantTy { at, tag, options }), at)
    }

    fn bind_tag(&mut self, path: Path<'a>, options: &Members<'a>) -> Res<Location<'a>> {
        if path.first.text == "env" {
            return error(
                path.first.at,
                "a tag is an enumeration of the trace: the environment has none",
            );
        }
        self.bind(path, Some(options))
    }
}

/// Base of an absolute path; `None` for a relative path.
fn absolute<'a>(path: &Path<'a>) -> Res<Option<Base>> {
    let second = path.rest.first().map_or("", |word| word.text);
    let third = path.rest.get(1).map_or("", |word| word.text);
    let (scope, words) = match (path.first.text, second, third) {
        ("trace", "packet", "header") => (Scope::PacketHeader, 3),
        ("stream", "packet", "context") => (Scope::PacketContext, 3),
        ("stream", "event", "header") => (Scope::EventHeader, 3),
        ("stream", "event", "context") => (Scope::CommonContext, 3),
        ("event", "context", _) => (Scope::SpecificContext, 2),
        ("event", "fields", _) => (Scope::Payload, 2),
        ("trace" | "stream" | "event" | "env", ..) => {
            return error(
                path.first.at,
                format!(
                    "`{}` is not the location of a field: expected `trace.packet.header.`, \
                     `stream.packet.context.`, `stream.event.header.`, `stream.event.context.`, `event.context.` or \
                     `event.fields.`",
                    short(&path.text())
                ),
            );
        }
        _ => return Ok(None),
    };
    if path.rest.len() < words {
        return error(
            path.first.at,
            format!("the name of a field is missing after `{}`", path.text()),
        );
    }
    Ok(Some(Base::Scope(scope, words)))
}
