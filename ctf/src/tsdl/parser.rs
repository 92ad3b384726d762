//! TSDL tokens to syntax tree.

use std::borrow::Cow;
use std::collections::HashMap;

use super::ast::*;
use super::lexer::{Error, Kw, Lexer, Res, Tok, Token, error, short, unescape};

/// Parses the text; types may nest `max_depth` deep.
pub(super) fn parse(text: &str, max_depth: u32) -> Res<Ast<'_>> {
    let mut lexer = Lexer::new(text);
    let current = lexer.next()?;
    let mut parser = Parser {
        lexer,
        current,
        depth: 0,
        max_depth,
        integers: Vec::new(),
        integer_index: HashMap::new(),
    };
    let items = parser.items()?;
    Ok(Ast {
        items,
        integers: parser.integers,
    })
}

/// The error of types nested too deep.
pub(super) fn too_deep<T>(at: u32, limit: u32) -> Res<T> {
    Err(Box::new(Error {
        at,
        message: format!("types are nested too deep here: at most {limit} levels are supported"),
        too_deep: true,
    }))
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    current: Token,
    depth: u32,
    max_depth: u32,
    integers: Vec<IntegerSpec<'t>>,
    /// Text of an `integer` block to its index: tracers repeat the same few thousands of times.
    integer_index: HashMap<&'t str, IntegerIndex>,
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Res<Token> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.current, next))
    }

    fn eat(&mut self, kind: Tok) -> Res<bool> {
        if self.current.kind == kind {
            self.advance()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The text of the current token; goes on to the next.
    fn take(&mut self) -> Res<&'t str> {
        let token = self.advance()?;
        Ok(self.lexer.slice(token))
    }

    /// What the current token is, for messages.
    fn found(&self) -> String {
        match self.current.kind {
            Tok::Eof => "the end of the metadata".to_owned(),
            _ => format!("`{}`", short(self.lexer.slice(self.current)).escape_debug()),
        }
    }

    fn unexpected<T>(&self, expected: &str) -> Res<T> {
        error(
            self.current.at,
            format!("expected {expected}, found {}", self.found()),
        )
    }

    fn expect(&mut self, kind: Tok, expected: &str) -> Res<Token> {
        if self.current.kind == kind {
            return self.advance();
        }
        self.unexpected(expected)
    }

    fn ident(&self, token: Token) -> Ident<'t> {
        Ident {
            text: self.lexer.slice(token),
            at: token.at,
        }
    }

    /// Runs `inside` one nesting level deeper.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= self.max_depth {
            return too_deep(self.current.at, self.max_depth);
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn items(&mut self) -> Res<Vec<Item<'t>>> {
        let mut items = Vec::new();
        loop {
            let item = match self.current.kind {
                Tok::Eof => return Ok(items),
                Tok::Semicolon => {
                    self.advance()?;
                    continue;
                }
                Tok::Kw(Kw::Trace) => self.block(BlockKind::Trace)?,
                Tok::Kw(Kw::Stream) => self.block(BlockKind::Stream)?,
                Tok::Kw(Kw::Event) => self.block(BlockKind::Event)?,
                Tok::Kw(Kw::Env) => self.block(BlockKind::Env)?,
                Tok::Kw(Kw::Clock) => self.block(BlockKind::Clock)?,
                Tok::Kw(Kw::Callsite) => self.block(BlockKind::Callsite)?,
                _ => match self.declaration()? {
                    Some(declaration) => Item::Decl(declaration),
                    None => {
                        return self.unexpected(
                            "a block (`trace`, `stream`, `event`, `env`, `clock`, `callsite`) or a declaration \
                             of types (`typealias`, `typedef`, `struct`, `variant`, `enum`)",
                        );
                    }
                },
            };
            items.push(item);
        }
    }

    fn block(&mut self, kind: BlockKind) -> Res<Item<'t>> {
        let at = self.advance()?.at;
        self.expect(
            Tok::LBrace,
            &format!("`{{` to open the `{}` block", kind.keyword()),
        )?;
        let mut entries = Vec::new();
        loop {
            match self.current.kind {
                Tok::RBrace => break,
                Tok::Semicolon => {
                    self.advance()?;
                    continue;
                }
                Tok::Eof => {
                    return self.unexpected(&format!(
                        "an attribute or `}}` to close the `{}` block",
                        kind.keyword()
                    ));
                }
                _ => {}
            }
            let typed = matches!(kind, BlockKind::Trace | BlockKind::Stream | BlockKind::Event);
            let declaration = if typed { self.declaration()? } else { None };
            entries.push(match declaration {
                Some(declaration) => Entry::Decl(declaration),
                None => Entry::Attr(self.attribute(typed)?),
            });
        }
        self.advance()?;
        self.expect(
            Tok::Semicolon,
            &format!("`;` after the `{}` block", kind.keyword()),
        )?;
        Ok(Item::Block(Block { kind, at, entries }))
    }

    /// `{ key = value; ... }`
    fn attributes(&mut self) -> Res<Vec<Attr<'t>>> {
        self.expect(Tok::LBrace, "`{`")?;
        let mut attributes = Vec::new();
        loop {
            match self.current.kind {
                Tok::RBrace => break,
                Tok::Semicolon => {
                    self.advance()?;
                }
                _ => attributes.push(self.attribute(false)?),
            }
        }
        self.advance()?;
        Ok(attributes)
    }

    fn attribute(&mut self, typed: bool) -> Res<Attr<'t>> {
        let Some(key) = self.path(true)? else {
            return self.unexpected("the name of an attribute");
        };
        let value = match self.current.kind {
            Tok::Assign => {
                self.advance()?;
                AttrValue::Value(self.value()?)
            }
            Tok::TypeAssign if typed => {
                self.advance()?;
                match self.type_spec()? {
                    Some(spec) => AttrValue::Type(spec),
                    None => return self.unexpected("a type after `:=`"),
                }
            }
            _ => {
                return self.unexpected(if typed {
                    "`=` and a value, or `:=` and a type,"
                } else {
                    "`=` and a value"
                });
            }
        };
        self.expect(Tok::Semicolon, &format!("`;` after attribute `{}`", key.text()))?;
        Ok(Attr { key, value })
    }

    /// Words joined by dots; the first may be a keyword only where `keywords` says so.
    fn path(&mut self, keywords: bool) -> Res<Option<Path<'t>>> {
        let first = match self.current.kind {
            Tok::Ident => self.ident(self.current),
            Tok::Kw(_) if keywords => self.ident(self.current),
            _ => return Ok(None),
        };
        self.advance()?;
        let mut rest = Vec::new();
        while matches!(self.current.kind, Tok::Dot | Tok::Arrow) {
            self.advance()?;
            match self.current.kind {
                Tok::Ident | Tok::Kw(_) => rest.push(self.ident(self.current)),
                _ => return self.unexpected("a name after `.`"),
            }
            self.advance()?;
        }
        Ok(Some(Path { first, rest }))
    }

    fn value(&mut self) -> Res<Value<'t>> {
        let at = self.current.at;
        if self.current.kind == Tok::LParen {
            self.advance()?;
            let value = self.nested(Self::value)?;
            self.expect(Tok::RParen, "`)`")?;
            return Ok(value);
        }
        let kind = match self.current.kind {
            Tok::Int | Tok::Char | Tok::Minus | Tok::Plus => ValueKind::Int(self.integer()?),
            Tok::Str => ValueKind::Str(self.take()?),
            _ => match self.path(true)? {
                Some(path) => ValueKind::Path(path),
                None => return self.unexpected("a value (an integer, a string or a name)"),
            },
        };
        Ok(Value { at, kind })
    }

    /// An integer with its sign.
    fn integer(&mut self) -> Res<i128> {
        let negative = match self.current.kind {
            Tok::Minus => true,
            Tok::Plus => false,
            _ => return Ok(i128::from(self.advance()?.value)),
        };
        self.advance()?;
        match self.current.kind {
            Tok::Int | Tok::Char => {
                let magnitude = i128::from(self.advance()?.value);
                Ok(if negative { -magnitude } else { magnitude })
            }
            _ => self.unexpected("an integer after the sign"),
        }
    }

    /// A declaration of types, if there is one here.
    fn declaration(&mut self) -> Res<Option<Decl<'t>>> {
        match self.current.kind {
            Tok::Kw(Kw::Typealias) => self.typealias().map(Some),
            Tok::Kw(Kw::Typedef) => self.typedef().map(Some),
            Tok::Kw(Kw::Struct | Kw::Variant | Kw::Enum) => {
                let Some(spec) = self.type_spec()? else {
                    return Ok(None);
                };
                if !has_body(&spec) {
                    return self.unexpected("`{` and the body of the declared type");
                }
                // Specifiers of a C declaration may stand side by side: the bodies of two types
                // without `;` between them declare both.
                if !matches!(self.current.kind, Tok::Kw(Kw::Struct | Kw::Variant | Kw::Enum)) {
                    self.expect(Tok::Semicolon, "`;` after the declaration")?;
                }
                Ok(Some(Decl::Type(spec)))
            }
            _ => Ok(None),
        }
    }

    fn typedef(&mut self) -> Res<Decl<'t>> {
        self.advance()?;
        let Some(spec) = self.type_spec()? else {
            return self.unexpected("a type after `typedef`");
        };
        let declarators = self.declarators("a name for the type")?;
        self.expect(Tok::Semicolon, "`;` after the `typedef`")?;
        Ok(Decl::Typedef(spec, declarators))
    }

    fn typealias(&mut self) -> Res<Decl<'t>> {
        self.advance()?;
        let Some(target) = self.type_spec()? else {
            return self.unexpected(
                "a type after `typealias`: `integer`, `floating_point`, `string`, `enum`, `struct`, `variant` or \
                 the name of a type",
            );
        };
        let pointers = self.pointers()?;
        let shape_at = self.current.at;
        let dims = self.dimensions()?;
        let target_shape = Declarator {
            pointers,
            name: Ident {
                text: "",
                at: shape_at,
            },
            dims,
        };
        self.expect(Tok::TypeAssign, "`:=` and the name of the alias")?;
        let name_at = self.current.at;
        let name = self.alias_name()?;
        let dims = self.dimensions()?;
        self.expect(Tok::Semicolon, "`;` after the `typealias`")?;
        Ok(Decl::Alias(Alias {
            target,
            target_shape,
            name,
            name_at,
            dims,
        }))
    }

    /// Words of C, or one identifier, or `struct NAME` followed by stars.
    fn alias_name(&mut self) -> Res<Cow<'t, str>> {
        let start = self.current;
        let mut name = match start.kind {
            Tok::Kw(keyword @ (Kw::Struct | Kw::Enum | Kw::Variant)) => {
                self.advance()?;
                if self.current.kind != Tok::Ident {
                    return self.reserved_alias(start);
                }
                let tag = self.advance()?;
                if self.current.kind != Tok::Star {
                    return error(
                        start.at,
                        format!("an alias cannot redefine a type `{}`", self.lexer.slice(start)),
                    );
                }
                Cow::Owned(format!("{} {}", compound_keyword(keyword), self.lexer.slice(tag)))
            }
            Tok::Kw(Kw::CType | Kw::Const) | Tok::Ident => match self.words()? {
                Some(name) => name,
                None => return self.unexpected("a name for the alias"),
            },
            Tok::Kw(_) => return self.reserved_alias(start),
            _ => return self.unexpected("a name for the alias"),
        };
        for _ in 0..self.pointers()? {
            name.to_mut().push_str(" *");
        }
        Ok(name)
    }

    fn reserved_alias<T>(&self, token: Token) -> Res<T> {
        let word = self.lexer.slice(token);
        error(
            token.at,
            format!("`{word}` is a reserved word: it cannot name a type"),
        )
    }

    /// Stars and qualifiers; their number.
    fn pointers(&mut self) -> Res<u32> {
        let mut pointers = 0u32;
        while self.eat(Tok::Star)? {
            pointers = pointers.saturating_add(1);
            if pointers > 16 {
                return error(self.current.at, "at most 16 levels of pointers are supported");
            }
            while self.eat(Tok::Kw(Kw::Const))? {}
        }
        Ok(pointers)
    }

    /// Words of C joined by spaces, or one identifier; `const` counts as a word after the first.
    fn words(&mut self) -> Res<Option<Cow<'t, str>>> {
        let mut name: Option<Cow<'t, str>> = None;
        loop {
            match self.current.kind {
                Tok::Kw(Kw::Const) => {
                    self.advance()?;
                }
                Tok::Kw(Kw::CType) => {
                    let word = self.take()?;
                    match &mut name {
                        None => name = Some(Cow::Borrowed(word)),
                        Some(name) => {
                            let name = name.to_mut();
                            if name.len() > 1024 {
                                return self.unexpected("a name after the words of the type");
                            }
                            name.push(' ');
                            name.push_str(word);
                        }
                    }
                }
                Tok::Ident if name.is_none() => {
                    name = Some(Cow::Borrowed(self.take()?));
                    while self.eat(Tok::Kw(Kw::Const))? {}
                    return Ok(name);
                }
                _ => return Ok(name),
            }
        }
    }

    /// A type, if there is one here.
    fn type_spec(&mut self) -> Res<Option<TypeSpec<'t>>> {
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

    fn declarators(&mut self, what: &str) -> Res<Vec<Declarator<'t>>> {
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

    fn dimensions(&mut self) -> Res<Vec<Dim<'t>>> {
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

fn compound_keyword(keyword: Kw) -> &'static str {
    match keyword {
        Kw::Struct => "struct",
        Kw::Enum => "enum",
        _ => "variant",
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

fn has_body(spec: &TypeSpec<'_>) -> bool {
    match &spec.kind {
        TypeKind::Struct(spec) => spec.body.is_some(),
        TypeKind::Variant(spec) => spec.body.is_some(),
        TypeKind::Enum(spec) => spec.labels.is_some(),
        _ => false,
    }
}
