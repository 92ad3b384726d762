//! Syntax tree to types: names of types are looked up, attributes are checked.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::*;
use super::lexer::{Res, error, short};
use super::parser::too_deep;
use super::resolve::{Walk, Words};
use super::types::{Base, Location, Members, StructTy, Ty, TyKind, TyRef, VariantTy};
use super::values;
use crate::schema::{
    ByteOrder, ClockIndex, DisplayBase, Encoding, EnvValue, FieldClass, IntClass, IntRange, Mapping, Roles,
    Scope,
};

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
}

/// State of the evaluation of types.
pub(super) struct Sema<'a> {
    ast: &'a Ast<'a>,
    limits: Limits,
    byte_order: ByteOrder,
    pub(super) clock_names: HashMap<String, ClockIndex>,
    pub(super) environment: Vec<(String, EnvValue)>,
    /// Declared names, innermost scope last.
    names: Vec<HashMap<(Space, &'a str), TyRef<'a>>>,
    open: Vec<OpenStruct<'a>>,
    /// Types of [`Ast::integers`] that were evaluated.
    integers: Vec<Option<TyRef<'a>>>,
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

    fn find(&self, space: Space, name: &str) -> Option<TyRef<'a>> {
        self.names.iter().rev().find_map(|names| {
            if names.is_empty() {
                None
            } else {
                names.get(&(space, name)).cloned()
            }
        })
    }

    fn declare(&mut self, space: Space, name: &'a str, at: u32, ty: TyRef<'a>) -> Res<()> {
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
            Decl::Typedef(spec, declarators) => {
                let ty = self.type_of(spec, false)?;
                for declarator in declarators {
                    let ty = self.shaped(ty.clone(), spec, declarator)?;
                    self.declare(Space::Alias, declarator.name.text, declarator.name.at, ty)?;
                }
                Ok(())
            }
            Decl::Alias(alias) => {
                let target = self.type_of(&alias.target, false)?;
                let target = self.shaped(target, &alias.target, &alias.target_shape)?;
                let ty = self.with_dimensions(target, &alias.dims)?;
                self.declare(Space::Alias, &alias.name, alias.name_at, ty)
            }
        }
    }

    /// The type that a declarator makes of the type before it.
    fn shaped(
        &mut self,
        ty: TyRef<'a>,
        spec: &'a TypeSpec<'a>,
        declarator: &'a Declarator<'a>,
    ) -> Res<TyRef<'a>> {
        let ty = if declarator.pointers > 0 {
            self.pointer(spec, declarator.pointers)?
        } else {
            ty
        };
        self.with_dimensions(ty, &declarator.dims)
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
            TypeKind::Str(attrs) => string(attrs),
            TypeKind::Struct(structure) => self.structure(spec.at, structure),
            TypeKind::Variant(variant) => self.variant(spec.at, variant, declaration),
            TypeKind::Enum(enumeration) => self.enumeration(spec.at, enumeration),
        }
    }

    fn integer(&mut self, index: IntegerIndex) -> Res<TyRef<'a>> {
        if let Some(Some(ty)) = self.integers.get(index) {
            return Ok(ty.clone());
        }
        let Some(spec) = self.ast.integers.get(index) else {
            return error(0, "no such integer");
        };
        let ty = self.new_integer(spec)?;
        if let Some(slot) = self.integers.get_mut(index) {
            *slot = Some(ty.clone());
        }
        Ok(ty)
    }

    fn new_integer(&self, spec: &'a IntegerSpec<'a>) -> Res<TyRef<'a>> {
        values::check_duplicates(spec.attrs.iter())?;
        let mut length = None;
        let mut align = None;
        let mut unknown_clock = None;
        let mut class = IntClass {
            length: 0,
            align: 1,
            byte_order: self.byte_order,
            reversed_bits: false,
            signed: false,
            base: DisplayBase::Decimal,
            encoding: None,
            clock: None,
            roles: Roles::NONE,
            is_enum: false,
            mappings: Arc::from([]),
        };
        for attr in &spec.attrs {
            match attr.key.text().as_ref() {
                "size" => {
                    let size = values::unsigned(attr)?;
                    match u32::try_from(size) {
                        Ok(size) if size > 0 => length = Some(size),
                        _ => {
                            return error(
                                values::plain(attr)?.at,
                                format!(
                                    "the size of an integer is at least 1 bit and less than 2^32 bits, not {size}"
                                ),
                            );
                        }
                    }
                }
                "align" => {
                    values::unsigned(attr)?;
                    align = Some(values::align(values::plain(attr)?)?);
                }
                "signed" => class.signed = values::boolean(attr)?,
                "byte_order" => class.byte_order = values::byte_order(attr, Some(self.byte_order))?,
                "base" => class.base = values::base(attr)?,
                "encoding" => class.encoding = values::encoding(attr)?,
                "map" => match self.mapped_clock(attr)? {
                    Ok(index) => class.clock = Some(index),
                    Err(name) => unknown_clock = Some(name),
                },
                _ => {}
            }
        }
        let Some(length) = length else {
            return error(spec.at, "this integer has no `size`: `integer { size = ...; }`");
        };
        class.length = length;
        class.align = align.unwrap_or(if length % 8 == 0 { 8 } else { 1 });
        Ok(Ty::int(class, unknown_clock))
    }

    /// The clock of `map = clock.NAME.value`; its name if it does not exist.
    fn mapped_clock(&self, attr: &'a Attr<'a>) -> Res<Result<ClockIndex, Ident<'a>>> {
        let value = values::plain(attr)?;
        if let ValueKind::Path(path) = &value.kind
            && path.first.text == "clock"
            && let [name, property] = path.rest.as_slice()
            && property.text == "value"
        {
            return Ok(self.clock_names.get(name.text).copied().ok_or(*name));
        }
        error(value.at, "attribute `map` needs `clock.NAME.value`")
    }

    fn float(&self, at: u32, attrs: &'a [Attr<'a>]) -> Res<TyRef<'a>> {
        values::check_duplicates(attrs.iter())?;
        let mut exponent = None;
        let mut mantissa = None;
        let mut align = 1;
        let mut byte_order = self.byte_order;
        for attr in attrs {
            match attr.key.text().as_ref() {
                "exp_dig" => exponent = Some(values::unsigned(attr)?),
                "mant_dig" => mantissa = Some(values::unsigned(attr)?),
                "align" => {
                    values::unsigned(attr)?;
                    align = values::align(values::plain(attr)?)?;
                }
                "byte_order" => byte_order = values::byte_order(attr, Some(self.byte_order))?,
                _ => {}
            }
        }
        let length = match (exponent, mantissa) {
            (Some(5), Some(11)) => 16,
            (Some(8), Some(24)) => 32,
            (Some(11), Some(53)) => 64,
            (Some(15), Some(113)) => 128,
            (None, _) => return error(at, "this floating point number has no `exp_dig`"),
            (_, None) => return error(at, "this floating point number has no `mant_dig`"),
            (Some(exponent), Some(mantissa)) => {
                return error(
                    at,
                    format!(
                        "`exp_dig` {exponent} with `mant_dig` {mantissa} is no IEEE 754 format: 5 with 11, 8 with \
                         24, 11 with 53 and 15 with 113 are"
                    ),
                );
            }
        };
        Ok(Ty::leaf(FieldClass::Float {
            length,
            align,
            byte_order,
            reversed_bits: false,
        }))
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
                    let ty = self.type_of(spec, false)?;
                    for declarator in declarators {
                        let ty = self.shaped(ty.clone(), spec, declarator)?;
                        let name = declarator.name;
                        if let Some(open) = self.open.last_mut()
                            && !open.members.push(name, ty)
                        {
                            return error(
                                name.at,
                                format!("there is a field `{}` already", short(name.text)),
                            );
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A struct, variant or enumeration that was declared before.
    fn declared(&self, space: Space, at: u32, name: Option<Ident<'a>>) -> Res<TyRef<'a>> {
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
                    let ty = self.type_of(spec, false)?;
                    for declarator in declarators {
                        let ty = self.shaped(ty.clone(), spec, declarator)?;
                        let name = declarator.name;
                        if !options.push(name, ty) {
                            return error(
                                name.at,
                                format!("there is an option `{}` already", short(name.text)),
                            );
                        }
                    }
                }
            }
        }
        Ok(options)
    }

    fn enumeration(&mut self, at: u32, spec: &'a EnumSpec<'a>) -> Res<TyRef<'a>> {
        let Some(labels) = &spec.labels else {
            return self.declared(Space::Enum, at, spec.name);
        };
        let (base_at, base) = match &spec.base {
            Some(base) => (base.at, self.type_of(base, false)?),
            None => match self.find(Space::Alias, "int") {
                Some(int) => (at, int),
                None => {
                    return error(
                        at,
                        "an enumeration without an integer type is an `int`, and no type `int` is declared",
                    );
                }
            },
        };
        let TyKind::Int(base_class) = &base.kind else {
            return error(base_at, "the type of an enumeration must be an integer");
        };
        if base_class.is_enum {
            return error(
                base_at,
                "the type of an enumeration must be an integer, not another enumeration",
            );
        }
        let class = IntClass {
            is_enum: true,
            mappings: mappings(base_class, labels)?,
            ..IntClass::clone(base_class)
        };
        let ty = Ty::int(class, base.facts.unknown_clock);
        if let Some(name) = spec.name {
            self.declare(Space::Enum, name.text, name.at, ty.clone())?;
        }
        Ok(ty)
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

fn string<'a>(attrs: &'a [Attr<'a>]) -> Res<TyRef<'a>> {
    values::check_duplicates(attrs.iter())?;
    let mut encoding = Encoding::Utf8;
    for attr in attrs {
        if attr.key.is(&["encoding"]) {
            encoding = values::encoding(attr)?.unwrap_or_default();
        }
    }
    Ok(Ty::leaf(FieldClass::Str { encoding }))
}

/// Labels of an enumeration; those of equal text become one.
fn mappings(base: &IntClass, labels: &[Enumerator<'_>]) -> Res<Arc<[Mapping]>> {
    let (least, most) = match (base.length.min(100), base.signed) {
        (length, true) => (-(1i128 << (length - 1)), (1i128 << (length - 1)) - 1),
        (length, false) => (0, (1i128 << length) - 1),
    };
    let mut mappings: Vec<Mapping> = Vec::with_capacity(labels.len());
    let mut by_label: HashMap<&str, usize> = HashMap::new();
    let mut next = 0i128;
    for enumerator in labels {
        let (at, lower, upper) = match &enumerator.range {
            None => (enumerator.at, next, next),
            Some((lower, None)) => {
                let value = enumerator_value(lower)?;
                (lower.at, value, value)
            }
            Some((lower, Some(upper))) => (lower.at, enumerator_value(lower)?, enumerator_value(upper)?),
        };
        if lower > upper {
            return error(at, format!("this range is empty: {lower} is more than {upper}"));
        }
        if lower < least || upper > most {
            let value = if lower < least { lower } else { upper };
            return error(
                at,
                format!(
                    "{value} does not fit the enumeration's integer ({} bits, {}): from {least} to {most}",
                    base.length,
                    if base.signed { "signed" } else { "unsigned" }
                ),
            );
        }
        next = upper + 1;
        let range = IntRange { lower, upper };
        let index = *by_label.entry(&enumerator.label).or_insert(mappings.len());
        match mappings.get_mut(index) {
            Some(mapping) => mapping.ranges.push(range),
            None => mappings.push(Mapping {
                label: enumerator.label.to_string(),
                ranges: vec![range],
            }),
        }
    }
    Ok(mappings.into())
}

fn enumerator_value(value: &Value<'_>) -> Res<i128> {
    match &value.kind {
        ValueKind::Int(int) => Ok(*int),
        _ => error(value.at, "the value of a label is an integer"),
    }
}
