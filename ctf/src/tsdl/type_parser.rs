//! Types and declarators: the part of the parser that nests. Open types are kept in a list.

use std::borrow::Cow;
use std::rc::Rc;

use super::ast::*;
use super::error::{Res, error, too_deep};
use super::lexer::{Kw, Tok};
use super::parser::Parser;
use super::string_literal::unescape;
use crate::schema::MOST_LEVELS;

/// The construct that a type belongs to.
pub(super) enum After<'t> {
    /// Fields, in a body of this kind.
    Field(BodyKind),
    Typedef,
    Alias,
    /// `key :=`
    Set(Path<'t>),
    /// A declaration of the type alone.
    Declaration,
}

/// A type that was read.
#[derive(Clone, Copy)]
struct Written {
    at: u32,
    /// The type is a struct, variant or enumeration with a body.
    has_body: bool,
    /// Index among the parts of the head of a body without a name.
    nameless: Option<usize>,
}

/// A type after its first word.
enum Begun {
    /// The type is complete.
    Whole(Written),
    /// The body follows.
    Open(BodyKind, Written),
}

impl<'t> Parser<'t> {
    /// Reads a type with all nested types, and the construct that it belongs to.
    pub(super) fn type_and(&mut self, after: After<'t>) -> Res<()> {
        let mut open: Vec<(BodyKind, Written, After<'t>)> = Vec::new();
        let mut after = after;
        loop {
            match self.begin_type(&after)? {
                Begun::Whole(written) => self.end_type(after, written)?,
                Begun::Open(_, written) if open.len() >= MOST_LEVELS as usize => {
                    return too_deep(written.at);
                }
                Begun::Open(kind, written) => open.push((kind, written, after)),
            }
            // Closes bodies until one continues with another type.
            after = loop {
                let Some((kind, written, outer)) = open.pop() else {
                    return Ok(());
                };
                match self.next_in(kind)? {
                    Some(next) => {
                        open.push((kind, written, outer));
                        break next;
                    }
                    None => {
                        self.close(kind)?;
                        self.end_type(outer, written)?;
                    }
                }
            };
        }
    }

    /// Reads a type up to its body, if it has one.
    fn begin_type(&mut self, after: &After<'t>) -> Res<Begun> {
        while self.eat(Tok::Kw(Kw::Const))? {}
        let at = self.current.at;
        let mut written = Written {
            at,
            has_body: false,
            nameless: None,
        };
        let kind = match self.current.kind {
            Tok::Kw(Kw::Struct) => return self.head(BodyKind::Struct),
            Tok::Kw(Kw::Variant) => return self.head(BodyKind::Variant),
            Tok::Kw(Kw::Enum) => {
                let spec = self.enum_spec()?;
                written.has_body = spec.labels.is_some();
                TypeKind::Enum(Box::new(spec))
            }
            _ => match self.plain_type()? {
                Some(kind) => kind,
                None => return self.no_type(after),
            },
        };
        self.parts.push(Part::Type(TypeSpec { at, kind }));
        while self.eat(Tok::Kw(Kw::Const))? {}
        Ok(Begun::Whole(written))
    }

    fn no_type<T>(&self, after: &After<'t>) -> Res<T> {
        match after {
            After::Field(kind) => self.unexpected(&format!(
                "the type of a field, or `}}` to close the {}",
                kind.keyword()
            )),
            After::Typedef => self.unexpected("a type after `typedef`"),
            After::Set(_) => self.unexpected("a type after `:=`"),
            After::Alias | After::Declaration => self.unexpected(
                "a type after `typealias`: `integer`, `floating_point`, `string`, `enum`, `struct`, `variant` or \
                 the name of a type",
            ),
        }
    }

    /// Reads a type without a body of fields or labels.
    fn plain_type(&mut self) -> Res<Option<TypeKind<'t>>> {
        Ok(Some(match self.current.kind {
            Tok::Kw(Kw::Integer) => {
                let (index, spec) = self.integer_spec()?;
                TypeKind::Integer(index, spec)
            }
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
            Tok::Ident | Tok::Kw(Kw::CType) => match self.words()? {
                Some(name) => TypeKind::Named(name),
                None => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// Reads `struct NAME` or `variant NAME <TAG>`, and the `{` if there is one.
    fn head(&mut self, kind: BodyKind) -> Res<Begun> {
        let at = self.advance()?.at;
        let name = self.tag_name()?;
        let tag = if kind == BodyKind::Variant && self.eat(Tok::Lt)? {
            let tag = self.location("the tag of a variant")?;
            self.expect(Tok::Gt, "`>` after the tag of the variant")?;
            Some(tag)
        } else {
            None
        };
        let mut written = Written {
            at,
            has_body: false,
            nameless: None,
        };
        if self.eat(Tok::LBrace)? {
            written.nameless = name.is_none().then_some(self.parts.len());
            self.parts.push(Part::Open(Head {
                at,
                kind,
                name,
                tag,
            }));
            written.has_body = true;
            return Ok(Begun::Open(kind, written));
        }
        let Some(name) = name else {
            return self.unexpected(&format!("the name of a {}, or `{{`", kind.keyword()));
        };
        if kind == BodyKind::Struct
            && let Some(value) = self.align()?
        {
            return error(value.at, "`align` belongs after the body of a struct");
        }
        let kind = match kind {
            BodyKind::Struct => TypeKind::Struct(name),
            BodyKind::Variant => TypeKind::Variant(name, tag),
        };
        self.parts.push(Part::Type(TypeSpec { at, kind }));
        while self.eat(Tok::Kw(Kw::Const))? {}
        Ok(Begun::Whole(written))
    }

    fn align(&mut self) -> Res<Option<Value<'t>>> {
        if !self.eat(Tok::Kw(Kw::Align))? {
            return Ok(None);
        }
        self.expect(Tok::LParen, "`(` after `align`")?;
        let value = self.value()?;
        self.expect(Tok::RParen, "`)` after the alignment")?;
        Ok(Some(value))
    }

    /// The construct that the next type in a body belongs to; `None` at the end of the body.
    fn next_in(&mut self, kind: BodyKind) -> Res<Option<After<'t>>> {
        while self.eat(Tok::Semicolon)? {}
        let after = match self.current.kind {
            Tok::RBrace => return Ok(None),
            Tok::Kw(Kw::Typealias) => After::Alias,
            Tok::Kw(Kw::Typedef) => After::Typedef,
            _ => return Ok(Some(After::Field(kind))),
        };
        self.advance()?;
        Ok(Some(after))
    }

    fn close(&mut self, kind: BodyKind) -> Res<()> {
        self.advance()?;
        let align = match kind {
            BodyKind::Struct => self.align()?,
            BodyKind::Variant => None,
        };
        self.parts.push(Part::Close(align));
        while self.eat(Tok::Kw(Kw::Const))? {}
        Ok(())
    }

    /// Reads the part of the construct after a type.
    fn end_type(&mut self, after: After<'t>, written: Written) -> Res<()> {
        match after {
            // A body without a declarator declares a type and no field, whether or not the type has
            // a name. yactfr does the same, while babeltrace2 rejects it.
            After::Field(_) if self.current.kind == Tok::Semicolon && written.has_body => {
                self.advance()?;
                // The type cannot be used, so its tag is not checked.
                if let Some(Part::Open(head)) =
                    written.nameless.and_then(|at| self.parts.get_mut(at))
                {
                    head.tag = None;
                }
                self.parts.push(Part::Declared);
            }
            After::Field(_) => {
                self.declarators("the name of a field", Part::Field)?;
                self.expect(Tok::Semicolon, "`;` after the field")?;
            }
            After::Typedef => {
                self.declarators("a name for the type", Part::Typedef)?;
                self.expect(Tok::Semicolon, "`;` after the `typedef`")?;
            }
            After::Alias => {
                let alias = self.alias()?;
                self.parts.push(Part::Alias(Box::new(alias)));
            }
            After::Set(key) => {
                self.semicolon(|| format!("attribute `{}`", key.text()))?;
                let value = AttrValue::Type(written.at);
                self.parts.push(Part::Attr(Attr { key, value }));
            }
            After::Declaration => {
                if !written.has_body {
                    return self.unexpected("`{` and the body of the declared type");
                }
                // Specifiers of a C declaration may follow each other: the bodies of two types
                // without `;` between them declare both.
                if !matches!(
                    self.current.kind,
                    Tok::Kw(Kw::Struct | Kw::Variant | Kw::Enum)
                ) {
                    self.expect(Tok::Semicolon, "`;` after the declaration")?;
                }
                self.parts.push(Part::Declared);
            }
        }
        Ok(())
    }

    /// Reads an `integer` block, unless the same text was read before.
    fn integer_spec(&mut self) -> Res<(IntegerIndex, Rc<IntegerSpec<'t>>)> {
        let at = self.current.at;
        let source = self.lexer.slice_to_brace(at);
        if let Some(source) = source
            && let Some((index, spec)) = self.integers.get(source)
        {
            let known = (*index, spec.clone());
            self.lexer.seek(at + source.len() as u32);
            self.advance()?;
            return Ok(known);
        }
        self.advance()?;
        self.expect(Tok::LBrace, "`{` and the attributes of the integer")?;
        let mut attrs = Vec::new();
        while self.current.kind != Tok::RBrace {
            if self.current.kind == Tok::Semicolon {
                self.advance()?;
            } else {
                attrs.push(self.attribute()?);
            }
        }
        let end = self.advance()?.end;
        let new = (self.integer_count, Rc::new(IntegerSpec { at, attrs }));
        self.integer_count += 1;
        // A brace in a comment or string makes the slice too short; then it is not used as a key.
        if let Some(source) = source
            && at as usize + source.len() == end as usize
        {
            self.integers.insert(source, new.clone());
        }
        Ok(new)
    }

    fn tag_name(&mut self) -> Res<Option<Ident<'t>>> {
        if self.current.kind == Tok::Ident {
            let token = self.advance()?;
            return Ok(Some(self.ident(token)));
        }
        Ok(None)
    }

    fn declarators(&mut self, what: &str, part: fn(Declarator<'t>) -> Part<'t>) -> Res<()> {
        loop {
            let declarator = self.declarator(what)?;
            self.parts.push(part(declarator));
            if !self.eat(Tok::Comma)? {
                return Ok(());
            }
        }
    }

    fn declarator(&mut self, what: &str) -> Res<Declarator<'t>> {
        let pointers = self.pointers()?;
        let (mut parentheses, mut has_inner_pointers) = (0u64, false);
        while self.eat(Tok::LParen)? {
            parentheses += 1;
            has_inner_pointers |= self.pointers()? > 0;
        }
        let name = match self.current.kind {
            Tok::Ident => self.advance()?,
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
        let name = self.ident(name);
        let mut dims = self.dimensions_of_field()?;
        if has_inner_pointers {
            return error(name.at, "pointers to arrays are not supported");
        }
        for _ in 0..parentheses {
            self.expect(Tok::RParen, "`)`")?;
            dims.append(&mut self.dimensions_of_field()?);
        }
        Ok(Declarator {
            pointers,
            name,
            dims,
        })
    }

    fn dimensions_of_field(&mut self) -> Res<Vec<Dim<'t>>> {
        let dims = self.dimensions()?;
        if self.current.kind == Tok::Colon {
            return error(
                self.current.at,
                "GNU C bit fields are not supported: use `integer { size = ...; align = 1; }`",
            );
        }
        Ok(dims)
    }

    pub(super) fn dimensions(&mut self) -> Res<Vec<Dim<'t>>> {
        let mut dims = Vec::new();
        while self.eat(Tok::LBracket)? {
            let at = self.current.at;
            dims.push(match self.current.kind {
                Tok::Int | Tok::Char | Tok::Minus | Tok::Plus => Dim::Const(at, self.integer()?),
                _ => Dim::Field(self.location("the length of an array")?),
            });
            self.expect(Tok::RBracket, "`]` after the length of the array")?;
        }
        Ok(dims)
    }

    /// Location of a field: relative, or absolute if it begins with a keyword.
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
                Tok::Ident | Tok::Kw(Kw::Integer | Kw::CType | Kw::Const) => self.enum_base()?,
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

    fn enum_base(&mut self) -> Res<Option<TypeSpec<'t>>> {
        while self.eat(Tok::Kw(Kw::Const))? {}
        let at = self.current.at;
        let base = self.plain_type()?.map(|kind| TypeSpec { at, kind });
        while self.eat(Tok::Kw(Kw::Const))? {}
        Ok(base)
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
