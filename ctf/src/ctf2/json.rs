//! A JSON parser that remembers where each value stands in the text.
//!
//! In: the bytes of one JSON text and its offset in the metadata. Out: a [`Value`] whose parts
//! carry absolute byte offsets, or a [`Fault`]. Integers are exact; a number with a fraction or an
//! exponent is a real, whatever its value. Objects keep their order and reject duplicate keys.

use std::collections::HashSet;

use super::fault::{Fault, Result};

/// Arrays and objects that may be open at once: bounds the recursion.
const MAX_DEPTH: u32 = 256;

/// From this many properties on, duplicate keys are looked for in a hash set.
const HASHED_KEYS: usize = 16;

/// A JSON value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    /// Byte offset of its first character.
    pub(super) at: usize,
    /// What it is.
    pub(super) kind: Kind,
}

/// The content of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer literal.
    Int(i128),
    /// An integer literal beyond 128 bits: never in range of anything.
    HugeInt,
    /// A number with a fraction or an exponent.
    Real(f64),
    /// A string, escapes resolved.
    Str(String),
    /// An array.
    Array(Vec<Value>),
    /// An object, in the order of the text.
    Object(Vec<Property>),
}

/// A property of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Property {
    /// Its name.
    pub(super) key: String,
    /// Its value.
    pub(super) value: Value,
}

impl Value {
    /// What the value is, for messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) | Kind::HugeInt => "an integer",
            Kind::Real(_) => "a real number",
            Kind::Str(_) => "a string",
            Kind::Array(_) => "an array",
            Kind::Object(_) => "an object",
        }
    }
}

/// Parses one JSON text; `base` is the offset of `text` in the whole metadata.
pub(super) fn parse(text: &[u8], base: usize) -> Result<Value> {
    let text = std::str::from_utf8(text)
        .map_err(|error| Fault::new(base + error.valid_up_to(), "invalid UTF-8 in JSON text"))?;
    let mut parser = Parser {
        text,
        at: 0,
        base,
        depth: 0,
    };
    parser.skip_space();
    let value = parser.value()?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.unexpected("the end of the fragment")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    base: usize,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self, at: usize, message: impl Into<String>) -> Fault {
        Fault::new(self.base + at, message)
    }

    fn unexpected(&self, expecting: &str) -> Fault {
        let rest = self.text.get(self.at..).unwrap_or_default();
        match rest.chars().next() {
            Some(found) => self.fault(self.at, format!("unexpected {found:?}: expecting {expecting}")),
            None => self.fault(
                self.at,
                format!("the JSON text ends too early: expecting {expecting}"),
            ),
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn value(&mut self) -> Result<Value> {
        let at = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Kind::Str(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => return Err(self.unexpected("a JSON value")),
        };
        Ok(Value {
            at: self.base + at,
            kind,
        })
    }

    fn word(&mut self, word: &'static str, kind: Kind) -> Result<Kind> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(self.fault(self.at, format!("not a JSON value: expecting `{word}`")));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Result<Kind>) -> Result<Kind> {
        if self.depth == MAX_DEPTH {
            let message = format!("JSON values nested deeper than {MAX_DEPTH} levels are not supported");
            return Err(self.fault(self.at, message));
        }
        self.depth += 1;
        let kind = parse(self);
        self.depth -= 1;
        kind
    }

    fn array(&mut self) -> Result<Kind> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.eat(b']') {
            return Ok(Kind::Array(items));
        }
        loop {
            self.skip_space();
            items.push(self.value()?);
            self.skip_space();
            if self.eat(b']') {
                return Ok(Kind::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn object(&mut self) -> Result<Kind> {
        self.at += 1;
        let mut properties: Vec<Property> = Vec::new();
        let mut hashed = HashSet::new();
        self.skip_space();
        if self.eat(b'}') {
            return Ok(Kind::Object(properties));
        }
        loop {
            self.skip_space();
            let key_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a property name in quotes"));
            }
            let key = self.string()?;
            if is_known_key(&properties, &mut hashed, &key) {
                return Err(self.fault(key_at, format!("duplicate property `{key}`")));
            }
            self.skip_space();
            if !self.eat(b':') {
                return Err(self.unexpected("`:`"));
            }
            self.skip_space();
            let value = self.value()?;
            properties.push(Property { key, value });
            self.skip_space();
            if self.eat(b'}') {
                return Ok(Kind::Object(properties));
            }
            if !self.eat(b',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn number(&mut self) -> Result<Kind> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        } else if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.fault(start, "a JSON number may not have leading zeros"));
        }
        let mut is_real = false;
        if self.eat(b'.') {
            is_real = true;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_real = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        if is_real {
            let real = literal.parse().map_err(|_| self.fault(start, "not a number"))?;
            return Ok(Kind::Real(real));
        }
        Ok(literal.parse().map_or(Kind::HugeInt, Kind::Int))
    }

    fn digits(&mut self) -> Result<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    /// Parses a string; the opening quote is the next character.
    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest
                .bytes()
                .position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20)
                .unwrap_or(rest.len());
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => {
                    return Err(self.fault(self.at, "a control character in a JSON string must be escaped"));
                }
                None => return Err(self.unexpected("`\"`, the end of the string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let start = self.at;
        self.at += 1;
        let escaped = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape(start);
            }
            _ => return Err(self.fault(start, "unknown escape sequence in a JSON string")),
        };
        self.at += 1;
        Ok(escaped)
    }

    /// Parses what follows `\u`, and the second half of a surrogate pair; `start` is the backslash.
    fn unicode_escape(&mut self, start: usize) -> Result<char> {
        let first = self.hex4(start)?;
        let code = match first {
            0xd800..=0xdbff => {
                let second = if self.eat(b'\\') && self.eat(b'u') {
                    self.hex4(start)?
                } else {
                    0
                };
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.fault(start, "a high surrogate without its low surrogate"));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.fault(start, "a low surrogate without its high surrogate"))
    }

    fn hex4(&mut self, start: usize) -> Result<u32> {
        let digits = self
            .text
            .get(self.at..)
            .and_then(|rest| rest.get(..4))
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        digits.ok_or_else(|| self.fault(start, "expecting four hexadecimal digits after `\\u`"))
    }
}

/// True if an object has the key already; `hashed` holds the keys once there are many.
fn is_known_key(properties: &[Property], hashed: &mut HashSet<String>, key: &str) -> bool {
    if properties.len() < HASHED_KEYS {
        return properties.iter().any(|property| property.key == key);
    }
    if hashed.is_empty() {
        hashed.extend(properties.iter().map(|property| property.key.clone()));
    }
    !hashed.insert(key.to_owned())
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
