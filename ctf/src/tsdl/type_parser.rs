//! Types and declarators: the part of the parser that nests.

use std::borrow::Cow;

use super::ast::*;
use super::lexer::{Kw, Res, Tok, error, unescape};
use super::parser::{Parser, too_deep};

impl<'t> Parser<'t> {
    /// A type, if there is one here.
    pub(super) fn type_spec(&mut self) -> Res<Option<TypeSpec<'t>>> {
        while self.eat(Tok::Kw(Kw::Const))? {}
        let at = self.current.at;
        let kind = match self.current.kind {
            Tok::Kw(Kw::Integer) => TypeKind::Integer(self.integer_spec()?),
            Tok::Kw(Kw::FloatingPoint) => {
                self.advance()?;
                TypeKind::Float(self.attributes()?)
            }
            Tok::Kw(Kw::String) => {
                self.advance()?;
                TypeKind::Str(if self.current.kind == Tok::LBrace {
                    self.attributes()?
                } else {
                    Vec::new()
                })
            }
            Tok::Kw(Kw::Struct) => {
                let spec = self.nested(Self::struct_spec)?;
                TypeKind::Struct(Box::new(spec))
            }
            Tok::Kw(Kw::Variant) => {
                let spec = self.nested(Self::variant_spec)?;
                TypeKind::Variant(Box::new(spec))
            }
            Tok::Kw(Kw::Enum) => {
                let spec = self.nested(Self::enum_spec)?;
                TypeKind::Enum(Box::new(spec))
            }
            Tok::Ident | Tok::Kw(Kw::CType) => match self.words()? {
                Some(name) => TypeKind::Named(name),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        while self.eat(Tok::Kw(Kw::Const))? {}
        Ok(Some(TypeSpec { at, kind }))
    }

    /// An `integer` block: not even read again where the same text was read before.
    fn integer_spec(&mut self) -> Res<IntegerIndex> {
        let at = self.current.at;
        let source = self.lexer.slice_to_brace(at);
        if let Some(source) = source
            && let Some(&index) = self.integer_index.get(source)
        {
            self.lexer.seek(at + source.len() as u32);
            self.advance()?;
            return Ok(index);
        }
        self.advance()?;
        self.expect(Tok::LBrace, "`{` and the attributes of the integer")?;
        let mut attrs = Vec::new();
        while self.current.kind != Tok::RBrace {
            if self.current.kind == Tok::Semicolon {
                self.advance()?;
            } else {
                attrs.push(self.attribute(false)?);
            }
        }
        let end = self.advance()?.end;
        let index = self.integers.len();
        self.integers.push(IntegerSpec { at, attrs });
        // A brace in a comment or a string would make the slice too short: then it is no key.
        if let Some(source) = source
            && at as usize + source.len() == end as usize
        {
            self.integer_index.insert(source, index);
        }
        Ok(index)
    }

    fn tag_name(&mut self) -> Res<Option<Ident<'t>>> {
        if self.current.kind == Tok::Ident {
            let token = self.advance()?;
            return Ok(Some(self.ident(token)));
        }
        Ok(None)
    }

    fn struct_spec(&mut self) -> Res<StructSpec<'t>> {
        self.advance()?;
        let name = self.tag_name()?;
        let body = if self.current.kind == Tok::LBrace {
            Some(self.body("struct")?)
        } else {
            None
        };
        if name.is_none() && body.is_none() {
            return self.unexpected("the name of a struct, or `{`");
        }
        let align = if self.current.kind == Tok::Kw(Kw::Align) {
            self.advance()?;
            self.expect(Tok::LParen, "`(` after `align`")?;
            let value = self.value()?;
            self.expect(Tok::RParen, "`)` after the alignment")?;
            Some(value)
        } else {
            None
        };
        Ok(StructSpec { name, body, align })
    }

    fn variant_spec(&mut self) -> Res<VariantSpec<'t>> {
        self.advance()?;
        let name = self.tag_name()?;
        let tag = if self.eat(Tok::Lt)? {
            let tag = self.location("the tag of a variant")?;
            self.expect(Tok::Gt, "`>` after the tag of the variant")?;
            Some(tag)
        } else {
            None
        };
        let body = if self.current.kind == Tok::LBrace {
            Some(self.body("variant")?)
        } else {
            None
        };
        if name.is_none() && body.is_none() {
            return self.unexpected("the name of a variant, or `{`");
        }
        Ok(VariantSpec { name, tag, body })
    }

    fn body(&mut self, what: &str) -> Res<Vec<BodyEntry<'t>>> {
        self.advance()?;
        let mut entries = Vec::new();
        loop {
            match self.current.kind {
                Tok::RBrace => break,
                Tok::Semicolon => {
                    self.advance()?;
                }
                Tok::Kw(Kw::Typealias) => entries.push(BodyEntry::Decl(self.typealias()?)),
                Tok::Kw(Kw::Typedef) => entries.push(BodyEntry::Decl(self.typedef()?)),
                _ => entries.push(self.fields(what)?),
            }
        }
        self.advance()?;
        Ok(entries)
    }

    fn fields(&mut self, what: &str) -> Res<BodyEntry<'t>> {
        let Some(spec) = self.type_spec()? else {
            return self.unexpected(&format!("the type of a field, or `}}` to close the {what}"));
        };
        if self.current.kind == Tok::Semicolon && has_body(&spec) && spec_name(&spec).is_some() {
            self.advance()?;
            return Ok(BodyEntry::Decl(Decl::Type(spec)));
        }
        let declarators = self.declarators("the name of a field")?;
        self.expect(Tok::Semicolon, "`;` after the field")?;
        Ok(BodyEntry::Fields(spec, declarators))
    }

    pub(super) fn declarators(&mut self, what: &str) -> Res<Vec<Declarator<'t>>> {
        let mut declarators = vec![self.declarator(what)?];
        while self.eat(Tok::Comma)? {
            declarators.push(self.declarator(what)?);
        }
        Ok(declarators)
    }

    fn declarator(&mut self, what: &str) -> Res<Declarator<'t>> {
        let pointers = self.pointers()?;
        let mut declarator = match self.current.kind {
            Tok::Ident => {
                let token = self.advance()?;
                Declarator {
                    pointers,
                    name: self.ident(token),
                    dims: Vec::new(),
                }
            }
            Tok::LParen => {
                self.advance()?;
                let inner = self.nested(|parser| parser.declarator(what))?;
                if inner.pointers != 0 {
                    return error(inner.name.at, "pointers to arrays are not supported");
                }
                self.expect(Tok::RParen, "`)`")?;
                Declarator { pointers, ..inner }
            }
            Tok::Kw(_) => {
                let word = self.lexer.slice(self.current);
                return error(
                    self.current.at,
                    format!(
                        "expected {what}, found the reserved word `{word}` (as a name it needs a leading `_`)"
                    ),
                );
            }
            _ => return self.unexpected(what),
        };
        declarator.dims.append(&mut self.dimensions()?);
        if self.current.kind == Tok::Colon {
            return error(
                self.current.at,
                "GNU C bit fields are not supported: use `integer { size = ...; align = 1; }`",
            );
        }
        Ok(declarator)
    }

    pub(super) fn dimensions(&mut self) -> Res<Vec<Dim<'t>>> {
        let mut dims = Vec::new();
        while self.eat(Tok::LBracket)? {
            let at = self.current.at;
            dims.push(match self.current.kind {
                Tok::Int | Tok::Char | Tok::Minus | Tok::Plus => Dim::Const(at, self.integer()?),
                _ => Dim::Field(self.location("the length of an array")?),
            });
            if dims.len() > self.max_depth as usize {
                return too_deep(at, self.max_depth);
            }
            self.expect(Tok::RBracket, "`]` after the length of the array")?;
        }
        Ok(dims)
    }

    /// The place of a field: relative, or absolute if it begins with a keyword.
    fn location(&mut self, what: &str) -> Res<Path<'t>> {
        match self.current.kind {
            Tok::Ident | Tok::Kw(Kw::Trace | Kw::Stream | Kw::Event | Kw::Env) => {}
            Tok::Kw(_) => {
                let word = self.lexer.slice(self.current);
                return error(
                    self.current.at,
                    format!("{what} is the name of a field: `{word}` is a reserved word"),
                );
            }
            _ => {
                let constant = if what.starts_with("the length") {
                    "an integer or "
                } else {
                    ""
                };
                return self.unexpected(&format!("{what}: {constant}the name of a field"));
            }
        }
        match self.path(true)? {
            Some(path) => Ok(path),
            None => self.unexpected(what),
        }
    }

    fn enum_spec(&mut self) -> Res<EnumSpec<'t>> {
        self.advance()?;
        let name = self.tag_name()?;
        let base = if self.eat(Tok::Colon)? {
            match self.current.kind {
                Tok::Ident | Tok::Kw(Kw::Integer | Kw::CType | Kw::Const) => self.type_spec()?,
                _ => return self.unexpected("the integer type of the enumeration"),
            }
        } else {
            None
        };
        let labels = if self.current.kind == Tok::LBrace {
            Some(self.enumerators()?)
        } else {
            if name.is_none() || base.is_some() {
                return self.unexpected("`{` and the labels of the enumeration");
            }
            None
        };
        Ok(EnumSpec { name, base, labels })
    }

    fn enumerators(&mut self) -> Res<Vec<Enumerator<'t>>> {
        self.advance()?;
        let mut labels = Vec::new();
        loop {
            let at = self.current.at;
            let label = match self.current.kind {
                Tok::RBrace if !labels.is_empty() => break,
                Tok::Ident | Tok::Kw(_) => Cow::Borrowed(self.take()?),
                Tok::Str => unescape(self.take()?),
                _ => return self.unexpected("a label (an enumeration needs at least one)"),
            };
            let range = if self.eat(Tok::Assign)? {
                let lower = self.value()?;
                let upper = if self.eat(Tok::Ellipsis)? {
                    Some(self.value()?)
                } else {
                    None
                };
                Some((lower, upper))
            } else {
                None
            };
            labels.push(Enumerator { at, label, range });
            if !self.eat(Tok::Comma)? && self.current.kind != Tok::RBrace {
                return self.unexpected("`,` or `}` after the label");
            }
        }
        self.advance()?;
        Ok(labels)
    }
}

/// The tag name of a struct, variant or enumeration.
fn spec_name<'t>(spec: &TypeSpec<'t>) -> Option<Ident<'t>> {
    match &spec.kind {
        TypeKind::Struct(spec) => spec.name,
        TypeKind::Variant(spec) => spec.name,
        TypeKind::Enum(spec) => spec.name,
        _ => None,
    }
}

/// True if a struct, variant or enumeration is described here, not only named.
pub(super) fn has_body(spec: &TypeSpec<'_>) -> bool {
    match &spec.kind {
        TypeKind::Struct(spec) => spec.body.is_some(),
        TypeKind::Variant(spec) => spec.body.is_some(),
        TypeKind::Enum(spec) => spec.labels.is_some(),
        _ => false,
    }
}
