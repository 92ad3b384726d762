//! Syntax tree to types: names of types are looked up, attributes are checked.

use std::collections::HashMap;
use std::rc::Rc;

use super::ast::*;
use super::leaves;
use super::lexer::{Res, error, short};
use super::parser::too_deep;
use super::resolve::{Walk, Words};
use super::types::{Base, Location, Members, StructTy, Ty, TyKind, TyRef, VariantTy};
use super::values;
use crate::schema::{ByteOrder, ClockIndex, EnvValue, Scope};

/// What names of types are looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Alias,
    Struct,
    Variant,
    Enum,
}

impl Space {
    fn prefix(self) -> &'static str {
        match self {
            Space::Alias => "",
            Space::Struct => "struct ",
            Space::Variant => "variant ",
            Space::Enum => "enum ",
        }
    }
}

/// A struct whose body is being read.
struct OpenStruct<'a> {
    id: u32,
    members: Members<'a>,
}

/// Limits of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Levels of types.
    pub(super) depth: u32,
    /// Types in the tree of one type.
    pub(super) nodes: u64,
    /// Bytes of the text.
    pub(super) text: u64,
}

/// State of the evaluation of types.
pub(super) struct Sema<'a> {
    pub(super) ast: &'a Ast<'a>,
    limits: Limits,
    pub(super) byte_order: ByteOrder,
    pub(super) clock_names: HashMap<String, ClockIndex>,
    pub(super) environment: Vec<(String, EnvValue)>,
    /// Declared names, innermost scope last.
    names: Vec<HashMap<(Space, &'a str), TyRef<'a>>>,
    open: Vec<OpenStruct<'a>>,
    /// Types of [`Ast::integers`] that were evaluated.
    pub(super) integers: Vec<Option<TyRef<'a>>>,
    /// Locations that only their uses can resolve, and whether one did.
    pub(super) open_locations: Vec<(&'a Path<'a>, bool)>,
    structs: u32,
}

impl<'a> Sema<'a> {
    pub(super) fn new(ast: &'a Ast<'a>, byte_order: ByteOrder, limits: Limits) -> Self {
        Sema {
            ast,
            limits,
            byte_order,
            clock_names: HashMap::new(),
            environment: Vec::new(),
            names: vec![HashMap::new()],
            open: Vec::new(),
            integers: vec![None; ast.integers.len()],
            open_locations: Vec::new(),
            structs: 0,
        }
    }

    /// Runs `inside` in a lexical scope of its own.
    pub(super) fn scoped<T>(&mut self, inside: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.names.push(HashMap::new());
        let result = inside(self);
        self.names.pop();
        result
    }

    pub(super) fn find(&self, space: Space, name: &str) -> Option<TyRef<'a>> {
        self.names.iter().rev().find_map(|names| {
            if names.is_empty() {
                None
            } else {
                names.get(&(space, name)).cloned()
            }
        })
    }

    pub(super) fn declare(&mut self, space: Space, name: &'a str, at: u32, ty: TyRef<'a>) -> Res<()> {
        if let Some(names) = self.names.last_mut()
            && names.insert((space, name), ty).is_some()
        {
            let prefix = space.prefix();
            return error(
                at,
                format!("type `{prefix}{}` is declared twice in this scope", short(name)),
            );
        }
        Ok(())
    }

    /// Refuses types that are too deep or too large.
    fn checked(&self, ty: TyRef<'a>, at: u32) -> Res<TyRef<'a>> {
        if ty.facts.depth > self.limits.depth {
            return too_deep(at, self.limits.depth);
        }
        if ty.facts.nodes > self.limits.nodes {
            return error(
                at,
                format!("this type has more than {} fields in all", self.limits.nodes),
            );
        }
        if ty.facts.least_bits.is_none() {
            return error(at, "this type is larger than 2^64 bits");
        }
        Ok(ty)
    }

    /// Evaluates a declaration.
    pub(super) fn declaration(&mut self, declaration: &'a Decl<'a>) -> Res<()> {
        match declaration {
            Decl::Type(spec) => self.type_of(spec, true).map(drop),
            Decl::Typedef(spec, declarators) => self.each_declared(spec, declarators, |sema, name, ty| {
                sema.declare(Space::Alias, name.text, name.at, ty)
            }),
            Decl::Alias(alias) => {
                let shape = std::slice::from_ref(&alias.target_shape);
                self.each_declared(&alias.target, shape, |sema, _, ty| {
                    let ty = sema.with_dimensions(ty, &alias.dims)?;
                    sema.declare(Space::Alias, &alias.name, alias.name_at, ty)
                })
            }
        }
    }

    /// Hands the name and the type of each declarator to `each`.
    fn each_declared(
        &mut self,
        spec: &'a TypeSpec<'a>,
        declarators: &'a [Declarator<'a>],
        mut each: impl FnMut(&mut Self, Ident<'a>, TyRef<'a>) -> Res<()>,
    ) -> Res<()> {
        // The type that a pointer points at need not be declared.
        let pointers_only = declarators.iter().all(|declarator| declarator.pointers > 0);
        let ty = if pointers_only {
            None
        } else {
            Some(self.type_of(spec, false)?)
        };
        for declarator in declarators {
            let ty = match &ty {
                Some(ty) if declarator.pointers == 0 => ty.clone(),
                _ => self.pointer(spec, declarator.pointers)?,
            };
            let ty = self.with_dimensions(ty, &declarator.dims)?;
            each(self, declarator.name, ty)?;
        }
        Ok(())
    }

    /// Pointers are what an alias says they are.
    fn pointer(&self, spec: &TypeSpec<'a>, pointers: u32) -> Res<TyRef<'a>> {
        let mut name = match &spec.kind {
            TypeKind::Named(name) => name.to_string(),
            TypeKind::Struct(spec) => format!("struct {}", spec.name.map_or("", |name| name.text)),
            TypeKind::Variant(spec) => format!("variant {}", spec.name.map_or("", |name| name.text)),
            TypeKind::Enum(spec) => format!("enum {}", spec.name.map_or("", |name| name.text)),
            TypeKind::Integer(_) => "integer".to_owned(),
            TypeKind::Float(_) => "floating_point".to_owned(),
            TypeKind::Str(_) => "string".to_owned(),
        };
        for _ in 0..pointers {
            name.push_str(" *");
        }
        match self.find(Space::Alias, &name) {
            Some(ty) => Ok(ty),
            None => error(
                spec.at,
                format!(
                    "unknown type `{}`: declare it before with `typealias ... := {}`",
                    short(&name),
                    short(&name)
                ),
            ),
        }
    }

    fn with_dimensions(&mut self, mut ty: TyRef<'a>, dims: &'a [Dim<'a>]) -> Res<TyRef<'a>> {
        for dim in dims.iter().rev() {
            let (at, next) = match dim {
                Dim::Const(at, length) => match u64::try_from(*length) {
                    Ok(length) => (*at, Ty::array(ty, length)),
                    Err(_) => {
                        return error(
                            *at,
                            format!("the length of an array cannot be negative: {length}"),
                        );
                    }
                },
                Dim::Field(path) if path.first.text == "env" => {
                    (path.first.at, Ty::array(ty, self.environment_length(path)?))
                }
                Dim::Field(path) => (path.first.at, Ty::sequence(ty, self.bind(path, None)?)),
            };
            ty = self.checked(next, at)?;
        }
        Ok(ty)
    }

    /// A length that the environment gives.
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
                    "the environment has no entry `{}` here: an `env` block before must give it",
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

    /// Finds out where the path of a length (or of the tag of a variant with these options)
    /// begins. Checks what it leads to as far as the structs around it tell.
    fn bind(&mut self, path: &'a Path<'a>, tag_of: Option<&Members<'a>>) -> Res<Location<'a>> {
        if let Some(base) = absolute(path)? {
            return Ok(Location { path, base });
        }
        let mut failure = None;
        for open in self.open.iter().rev() {
            let Some(index) = open.members.find(path.first.text) else {
                continue;
            };
            let Some((_, ty)) = open.members.list.get(index) else {
                continue;
            };
            let mut walk = Walk::new(path);
            let result = walk
                .follow(ty, Words::after(path, 1), None)
                .and_then(|()| match tag_of {
                    Some(options) => walk.check_tag(options).map(drop),
                    None => walk.check_length(),
                });
            match result {
                Ok(()) => {
                    return Ok(Location {
                        path,
                        base: Base::Struct(open.id),
                    });
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.open_locations.push((path, false));
        Ok(Location {
            path,
            base: Base::Use(self.open_locations.len() - 1),
        })
    }

    /// The type that a specifier names or describes. Only a declaration may leave the tag of a
    /// variant open.
    pub(super) fn type_of(&mut self, spec: &'a TypeSpec<'a>, declaration: bool) -> Res<TyRef<'a>> {
        match &spec.kind {
            TypeKind::Named(name) => match self.find(Space::Alias, name) {
                Some(ty) => Ok(ty),
                None => error(
                    spec.at,
                    format!(
                        "unknown type `{}`: it must be declared before its use",
                        short(name)
                    ),
                ),
            },
            TypeKind::Integer(index) => self.integer(*index),
            TypeKind::Float(attrs) => self.float(spec.at, attrs),
            TypeKind::Str(attrs) => leaves::string(attrs),
            TypeKind::Struct(structure) => self.structure(spec.at, structure),
            TypeKind::Variant(variant) => self.variant(spec.at, variant, declaration),
            TypeKind::Enum(enumeration) => self.enumeration(spec.at, enumeration),
        }
    }

    fn structure(&mut self, at: u32, spec: &'a StructSpec<'a>) -> Res<TyRef<'a>> {
        let min_align = match &spec.align {
            Some(value) => values::align(value)?,
            None => 1,
        };
        let Some(body) = &spec.body else {
            if let Some(value) = &spec.align {
                return error(value.at, "`align` belongs after the body of a struct");
            }
            return self.declared(Space::Struct, at, spec.name);
        };
        let id = self.structs;
        self.structs = self.structs.saturating_add(1);
        self.open.push(OpenStruct {
            id,
            members: Members::default(),
        });
        let result = self.scoped(|sema| sema.members(body));
        let open = self.open.pop();
        result?;
        let members = open.map(|open| open.members).unwrap_or_default();
        let ty = self.checked(
            Ty::structure(StructTy {
                id,
                min_align,
                members,
            }),
            at,
        )?;
        if let Some(name) = spec.name {
            self.declare(Space::Struct, name.text, name.at, ty.clone())?;
        }
        Ok(ty)
    }

    /// Adds the fields of a body to the innermost open struct.
    fn members(&mut self, body: &'a [BodyEntry<'a>]) -> Res<()> {
        for entry in body {
            match entry {
                BodyEntry::Decl(declaration) => self.declaration(declaration)?,
                BodyEntry::Fields(spec, declarators) => {
                    self.each_declared(spec, declarators, |sema, name, ty| {
                        let Some(open) = sema.open.last_mut() else {
                            return Ok(());
                        };
                        match open.members.push(name, ty) {
                            true => Ok(()),
                            false => error(
                                name.at,
                                format!("there is a field `{}` already", short(name.text)),
                            ),
                        }
                    })?;
                }
            }
        }
        Ok(())
    }

    /// A struct, variant or enumeration that was declared before.
    pub(super) fn declared(&self, space: Space, at: u32, name: Option<Ident<'a>>) -> Res<TyRef<'a>> {
        let name = name.map_or("", |name| name.text);
        match self.find(space, name) {
            Some(ty) => Ok(ty),
            None => error(
                at,
                format!(
                    "unknown type `{}{}`: it must be declared before its use",
                    space.prefix(),
                    short(name)
                ),
            ),
        }
    }

    fn variant(&mut self, at: u32, spec: &'a VariantSpec<'a>, declaration: bool) -> Res<TyRef<'a>> {
        let Some(body) = &spec.body else {
            return self.variant_use(at, spec, declaration);
        };
        let options = Rc::new(self.scoped(|sema| sema.options(body))?);
        if options.list.is_empty() {
            return error(at, "a variant needs at least one option");
        }
        let tag = match &spec.tag {
            Some(path) => Some(self.bind_tag(path, &options)?),
            None => None,
        };
        let ty = self.checked(Ty::variant(VariantTy { at, tag, options }), at)?;
        if let Some(name) = spec.name {
            self.declare(Space::Variant, name.text, name.at, ty.clone())?;
        }
        if tag.is_none() && !declaration {
            return error(at, "this variant has no tag: `variant <FIELD> {...}`");
        }
        Ok(ty)
    }

    /// `variant NAME` or `variant NAME <TAG>`
    fn variant_use(&mut self, at: u32, spec: &'a VariantSpec<'a>, declaration: bool) -> Res<TyRef<'a>> {
        let ty = self.declared(Space::Variant, at, spec.name)?;
        let TyKind::Variant(variant) = &ty.kind else {
            return Ok(ty);
        };
        match &spec.tag {
            Some(path) => {
                let tag = Some(self.bind_tag(path, &variant.options)?);
                self.checked(
                    Ty::variant(VariantTy {
                        at,
                        tag,
                        options: variant.options.clone(),
                    }),
                    at,
                )
            }
            None if variant.tag.is_none() && !declaration => error(
                at,
                format!(
                    "this variant has no tag: `variant {} <FIELD>`",
                    short(spec.name.map_or("", |name| name.text))
                ),
            ),
            None => Ok(ty),
        }
    }

    fn bind_tag(&mut self, path: &'a Path<'a>, options: &Members<'a>) -> Res<Location<'a>> {
        if path.first.text == "env" {
            return error(
                path.first.at,
                "a tag is an enumeration of the trace: the environment has none",
            );
        }
        self.bind(path, Some(options))
    }

    /// The options of a variant: its fields are no targets for each other, so they are not open.
    fn options(&mut self, body: &'a [BodyEntry<'a>]) -> Res<Members<'a>> {
        let mut options = Members::default();
        for entry in body {
            match entry {
                BodyEntry::Decl(declaration) => self.declaration(declaration)?,
                BodyEntry::Fields(spec, declarators) => {
                    self.each_declared(spec, declarators, |_, name, ty| match options.push(name, ty) {
                        true => Ok(()),
                        false => error(
                            name.at,
                            format!("there is an option `{}` already", short(name.text)),
                        ),
                    })?;
                }
            }
        }
        Ok(options)
    }
}

/// Base of an absolute path; `None` for a relative one.
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
                    "`{}` is not the place of a field: it would begin with `trace.packet.header.`, \
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
