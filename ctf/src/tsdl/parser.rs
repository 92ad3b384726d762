//! Parses TSDL tokens to items.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::ast::*;
use super::error::{Res, error, visible};
use super::lexer::{Kw, Lexer, Tok, Token};
use super::type_parser::After;
use super::values::check_duplicates;

/// Reads tokens, with one token of lookahead.
pub(super) struct Parser<'t> {
    pub(super) lexer: Lexer<'t>,
    pub(super) current: Token,
    /// Parts of the item that is being read.
    pub(super) parts: Vec<Part<'t>>,
    /// By their text: tracers repeat the same few `integer` blocks thousands of times.
    pub(super) integers: HashMap<&'t str, (IntegerIndex, Rc<IntegerSpec<'t>>)>,
    /// Number of `integer` blocks so far, counting blocks of the same text once.
    pub(super) integer_count: IntegerIndex,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Res<Self> {
        let mut lexer = Lexer::new(text);
        let current = lexer.next()?;
        Ok(Parser {
            lexer,
            current,
            parts: Vec::new(),
            integers: HashMap::new(),
            integer_count: 0,
        })
    }

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

    /// The text of the current token; advances to the next token.
    pub(super) fn take(&mut self) -> Res<&'t str> {
        let token = self.advance()?;
        Ok(self.lexer.slice(token))
    }

    /// Describes the current token, for messages.
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

    /// Reads a `;`; `after` describes the preceding construct.
    pub(super) fn semicolon(&mut self, after: impl FnOnce() -> String) -> Res<()> {
        if self.current.kind != Tok::Semicolon {
            return self.unexpected(&format!("`;` after {}", after()));
        }
        self.advance().map(drop)
    }

    /// Reads the next item; `parts` is an empty list that is reused for its parts. `None` at the
    /// end.
    pub(super) fn item(&mut self, parts: Vec<Part<'t>>) -> Res<Option<TopLevel<'t>>> {
        self.parts = parts;
        loop {
            let Token { kind, at, .. } = self.current;
            let kind = match kind {
                Tok::Eof => return Ok(None),
                Tok::Semicolon => {
                    self.advance()?;
                    continue;
                }
                Tok::Kw(Kw::Trace) => self.block(ItemKind::Trace)?,
                Tok::Kw(Kw::Stream) => self.block(ItemKind::Stream)?,
                Tok::Kw(Kw::Event) => self.block(ItemKind::Event)?,
                Tok::Kw(Kw::Env) => self.block(ItemKind::Env)?,
                Tok::Kw(Kw::Clock) => self.block(ItemKind::Clock)?,
                Tok::Kw(Kw::Callsite) => {
                    self.block(ItemKind::Callsite)?;
                    // Callsites are ignored, and there can be very many.
                    self.parts.clear();
                    continue;
                }
                _ if self.declaration()? => ItemKind::Declaration,
                _ => {
                    return self.unexpected(
                        "a block (`trace`, `stream`, `event`, `env`, `clock`, `callsite`) or a declaration \
                         of types (`typealias`, `typedef`, `struct`, `variant`, `enum`)",
                    );
                }
            };
            let parts = std::mem::take(&mut self.parts);
            return Ok(Some(TopLevel { kind, at, parts }));
        }
    }

    fn block(&mut self, kind: ItemKind) -> Res<ItemKind> {
        self.advance()?;
        if self.current.kind != Tok::LBrace {
            return self.unexpected(&format!("`{{` to open the `{}` block", kind.keyword()));
        }
        self.advance()?;
        loop {
            let token = self.current.kind;
            match token {
                Tok::RBrace => break,
                Tok::Semicolon => {
                    self.advance()?;
                }
                Tok::Eof => {
                    return self.unexpected(&format!(
                        "an attribute or `}}` to close the `{}` block",
                        kind.keyword()
                    ));
                }
                _ if kind.has_types() && self.declaration()? => {}
                _ if kind.has_types() => self.attribute_or_type()?,
                _ => {
                    let attr = self.attribute()?;
                    self.parts.push(Part::Attr(attr));
                }
            }
        }
        self.advance()?;
        self.semicolon(|| format!("the `{}` block", kind.keyword()))?;
        let attrs = self.parts.iter().filter_map(Part::attr);
        check_duplicates(attrs)?;
        Ok(kind)
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
                _ => attributes.push(self.attribute()?),
            }
        }
        self.advance()?;
        Ok(attributes)
    }

    /// `key = value;`
    pub(super) fn attribute(&mut self) -> Res<Attr<'t>> {
        let key = self.key()?;
        if !self.eat(Tok::Assign)? {
            return self.unexpected("`=` and a value");
        }
        self.attribute_value(key)
    }

    /// `key = value;` or `key := type;`
    fn attribute_or_type(&mut self) -> Res<()> {
        let key = self.key()?;
        if self.eat(Tok::TypeAssign)? {
            return self.type_and(After::Set(key));
        }
        if !self.eat(Tok::Assign)? {
            return self.unexpected("`=` and a value, or `:=` and a type,");
        }
        let attr = self.attribute_value(key)?;
        self.parts.push(Part::Attr(attr));
        Ok(())
    }

    fn key(&mut self) -> Res<Path<'t>> {
        match self.path(true)? {
            Some(key) => Ok(key),
            None => self.unexpected("the name of an attribute"),
        }
    }

    fn attribute_value(&mut self, key: Path<'t>) -> Res<Attr<'t>> {
        let value = AttrValue::Value(self.value()?);
        self.semicolon(|| format!("attribute `{}`", key.text()))?;
        Ok(Attr { key, value })
    }

    /// Words joined by dots; the first word may be a keyword only if `keywords` is set.
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
        let mut parentheses = 0u64;
        while self.eat(Tok::LParen)? {
            parentheses += 1;
        }
        let at = self.current.at;
        let kind = match self.current.kind {
            Tok::Int | Tok::Char | Tok::Minus | Tok::Plus => ValueKind::Int(self.integer()?),
            Tok::Str => ValueKind::Str(self.take()?),
            _ => match self.path(true)? {
                Some(path) => ValueKind::Path(path),
                None => return self.unexpected("a value (an integer, a string or a name)"),
            },
        };
        for _ in 0..parentheses {
            self.expect(Tok::RParen, "`)`")?;
        }
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

    /// Reads a declaration of types; false if the next token begins no declaration.
    fn declaration(&mut self) -> Res<bool> {
        match self.current.kind {
            Tok::Kw(Kw::Typealias) => {
                self.advance()?;
                self.type_and(After::Alias)?;
            }
            Tok::Kw(Kw::Typedef) => {
                self.advance()?;
                self.type_and(After::Typedef)?;
            }
            Tok::Kw(Kw::Struct | Kw::Variant | Kw::Enum) => self.type_and(After::Declaration)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the part of a `typealias` after its target.
    pub(super) fn alias(&mut self) -> Res<Alias<'t>> {
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
        Ok(Alias {
            target_shape,
            name,
            name_at,
            dims,
        })
    }

    /// Words of C, an identifier, or `struct NAME` followed by stars.
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
                        format!(
                            "an alias cannot redefine a type `{}`",
                            self.lexer.slice(start)
                        ),
                    );
                }
                Cow::Owned(format!(
                    "{} {}",
                    compound_keyword(keyword),
                    self.lexer.slice(tag)
                ))
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

    /// Reads stars and qualifiers; returns the number of stars.
    pub(super) fn pointers(&mut self) -> Res<u32> {
        let mut pointers = 0u32;
        while self.eat(Tok::Star)? {
            pointers = pointers.saturating_add(1);
            if pointers > 16 {
                return error(
                    self.current.at,
                    "at most 16 levels of pointers are supported",
                );
            }
            while self.eat(Tok::Kw(Kw::Const))? {}
        }
        Ok(pointers)
    }

    /// Words of C joined by spaces, or an identifier; `const` counts as a word after the first
    /// word.
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
