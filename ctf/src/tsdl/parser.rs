//! TSDL tokens to syntax tree.

use std::borrow::Cow;
use std::collections::HashMap;

use super::ast::*;
use super::lexer::{Error, Kw, Lexer, Res, Tok, Token, error, visible};
use super::type_parser::has_body;
use super::values::check_duplicates;

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

/// Reads tokens, one ahead.
pub(super) struct Parser<'t> {
    pub(super) lexer: Lexer<'t>,
    pub(super) current: Token,
    depth: u32,
    pub(super) max_depth: u32,
    pub(super) integers: Vec<IntegerSpec<'t>>,
    /// Text of an `integer` block to its index: tracers repeat the same few thousands of times.
    pub(super) integer_index: HashMap<&'t str, IntegerIndex>,
}

impl<'t> Parser<'t> {
    pub(super) fn advance(&mut self) -> Res<Token> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.current, next))
    }

    pub(super) fn eat(&mut self, kind: Tok) -> Res<bool> {
        if self.current.kind == kind {
            self.advance()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The text of the current token; goes on to the next.
    pub(super) fn take(&mut self) -> Res<&'t str> {
        let token = self.advance()?;
        Ok(self.lexer.slice(token))
    }

    /// What the current token is, for messages.
    fn found(&self) -> String {
        match self.current.kind {
            Tok::Eof => "the end of the metadata".to_owned(),
            _ => format!("`{}`", visible(self.lexer.slice(self.current))),
        }
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Res<T> {
        error(
            self.current.at,
            format!("expected {expected}, found {}", self.found()),
        )
    }

    pub(super) fn expect(&mut self, kind: Tok, expected: &str) -> Res<Token> {
        if self.current.kind == kind {
            return self.advance();
        }
        self.unexpected(expected)
    }

    pub(super) fn ident(&self, token: Token) -> Ident<'t> {
        Ident {
            text: self.lexer.slice(token),
            at: token.at,
        }
    }

    /// Runs `inside` one nesting level deeper.
    pub(super) fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
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
        if kind == BlockKind::Callsite {
            // Nothing uses these, and there can be very many.
            check_duplicates(entries.iter().filter_map(Entry::attr))?;
            entries = Vec::new();
        }
        Ok(Item::Block(Block { kind, at, entries }))
    }

    /// `{ key = value; ... }`
    pub(super) fn attributes(&mut self) -> Res<Vec<Attr<'t>>> {
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

    pub(super) fn attribute(&mut self, typed: bool) -> Res<Attr<'t>> {
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
    pub(super) fn path(&mut self, keywords: bool) -> Res<Option<Path<'t>>> {
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

    pub(super) fn value(&mut self) -> Res<Value<'t>> {
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
    pub(super) fn integer(&mut self) -> Res<i128> {
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

    pub(super) fn typedef(&mut self) -> Res<Decl<'t>> {
        self.advance()?;
        let Some(spec) = self.type_spec()? else {
            return self.unexpected("a type after `typedef`");
        };
        let declarators = self.declarators("a name for the type")?;
        self.expect(Tok::Semicolon, "`;` after the `typedef`")?;
        Ok(Decl::Typedef(spec, declarators))
    }

    pub(super) fn typealias(&mut self) -> Res<Decl<'t>> {
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
    pub(super) fn pointers(&mut self) -> Res<u32> {
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
    pub(super) fn words(&mut self) -> Res<Option<Cow<'t, str>>> {
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
}

fn compound_keyword(keyword: Kw) -> &'static str {
    match keyword {
        Kw::Struct => "struct",
        Kw::Enum => "enum",
        _ => "variant",
    }
}
