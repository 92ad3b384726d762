//! A JSON parser that records the position of each value.
//!
//! In: the bytes of a JSON text and its offset in the metadata. Out: a [`Value`] whose parts carry
//! absolute byte offsets, or a [`Fault`]. Integers are exact; a number with a fraction or an
//! exponent is a real, whatever its value. Objects keep the order of their properties and reject
//! duplicate keys. Open arrays and objects are kept in a list: the parser does not recurse.

use std::collections::HashSet;

use super::fault::{Fault, Result};
use crate::schema::MOST_LEVELS;

/// Arrays and objects that may be open at once: a level of field classes takes up to three.
const MAX_DEPTH: usize = 3 * MOST_LEVELS as usize + 64;

/// From this number of properties on, a hash set finds duplicate keys.
const HASHED_KEYS: usize = 16;

/// A JSON value with its position.
#[derive(Debug, PartialEq)]
pub(super) struct Value {
    /// Byte offset of its first character.
    pub(super) at: usize,
    pub(super) kind: JsonContent,
}

#[derive(Debug, PartialEq)]
pub(super) enum JsonContent {
    Null,
    Bool(bool),
    Int(i128),
    /// An integer literal of more than 128 bits, out of range for every property.
    HugeInt,
    /// A number with a fraction or an exponent.
    Real(f64),
    /// A string with its escape sequences resolved.
    Str(String),
    Array(Vec<Value>),
    /// An object, in the order of the text.
    Object(Vec<Property>),
}

#[derive(Debug, PartialEq)]
pub(super) struct Property {
    pub(super) key: String,
    pub(super) value: Value,
}

impl Value {
    /// The type of the value, for messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            JsonContent::Null => "null",
            JsonContent::Bool(_) => "a boolean",
            JsonContent::Int(_) | JsonContent::HugeInt => "an integer",
            JsonContent::Real(_) => "a real number",
            JsonContent::Str(_) => "a string",
            JsonContent::Array(_) => "an array",
            JsonContent::Object(_) => "an object",
        }
    }
}

impl Value {
    /// Moves those parts that have parts themselves to `left`.
    fn take_parts(&mut self, left: &mut Vec<Value>) {
        let has_parts =
            |value: &Value| matches!(value.kind, JsonContent::Array(_) | JsonContent::Object(_));
        match &mut self.kind {
            JsonContent::Array(items) => left.extend(items.drain(..).filter(has_parts)),
            JsonContent::Object(properties) => {
                let values = properties.drain(..).map(|property| property.value);
                left.extend(values.filter(has_parts));
            }
            _ => {}
        }
    }
}

/// Frees nested values one at a time, without recursion.
impl Drop for Value {
    fn drop(&mut self) {
        let mut left = Vec::new();
        self.take_parts(&mut left);
        while let Some(mut value) = left.pop() {
            value.take_parts(&mut left);
        }
    }
}

/// Parses one JSON text; `base` is the offset of `text` in the whole metadata.
pub(super) fn parse(text: &[u8], base: usize) -> Result<Value> {
    let text = std::str::from_utf8(text)
        .map_err(|error| Fault::new(base + error.valid_up_to(), "invalid UTF-8 in JSON text"))?;
    let mut parser = Parser { text, at: 0, base };
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
}

/// An array or object that is being read.
struct Open {
    at: usize,
    content: Content,
}

enum Content {
    Array(Vec<Value>),
    Object {
        properties: Vec<Property>,
        /// Known keys, filled when there are `HASHED_KEYS` properties.
        hashed: Option<HashSet<String>>,
        /// Key of the next value.
        key: String,
    },
}

/// A value after its first token.
enum Begun {
    Value(Value),
    /// The first nested value follows.
    Open(Open),
}

impl Open {
    fn add(&mut self, value: Value) {
        match &mut self.content {
            Content::Array(items) => items.push(value),
            Content::Object {
                properties, key, ..
            } => {
                let key = std::mem::take(key);
                properties.push(Property { key, value });
            }
        }
    }

    fn close(self) -> Value {
        let kind = match self.content {
            Content::Array(items) => JsonContent::Array(items),
            Content::Object { properties, .. } => JsonContent::Object(properties),
        };
        Value { at: self.at, kind }
    }
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
            Some(found) => self.fault(
                self.at,
                format!("unexpected {found:?}: expecting {expecting}"),
            ),
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
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut value = match self.begin(open.len())? {
                Begun::Value(value) => value,
                Begun::Open(new) => {
                    open.push(new);
                    continue;
                }
            };
            // Closes all arrays and objects that end here.
            loop {
                let Some(mut top) = open.pop() else {
                    return Ok(value);
                };
                top.add(value);
                if self.goes_on(&mut top)? {
                    open.push(top);
                    break;
                }
                value = top.close();
            }
        }
    }

    /// Begins a value; `depth` is the number of enclosing arrays and objects.
    fn begin(&mut self, depth: usize) -> Result<Begun> {
        let at = self.at;
        let kind = match self.peek() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                let message =
                    format!("JSON values nested deeper than {MAX_DEPTH} levels are not supported");
                return Err(self.fault(at, message));
            }
            Some(b'{') => return self.object(),
            Some(b'[') => return Ok(self.array()),
            Some(b'"') => JsonContent::Str(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", JsonContent::Bool(true))?,
            Some(b'f') => self.word("false", JsonContent::Bool(false))?,
            Some(b'n') => self.word("null", JsonContent::Null)?,
            _ => return Err(self.unexpected("a JSON value")),
        };
        let at = self.base + at;
        Ok(Begun::Value(Value { at, kind }))
    }

    fn word(&mut self, word: &'static str, kind: JsonContent) -> Result<JsonContent> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(self.fault(self.at, format!("not a JSON value: expecting `{word}`")));
        }
        self.at += word.len();
        Ok(kind)
    }

    /// Advances to the first item of an array, if it has one.
    fn array(&mut self) -> Begun {
        let new = Open {
            at: self.base + self.at,
            content: Content::Array(Vec::new()),
        };
        self.at += 1;
        self.skip_space();
        if self.eat(b']') {
            return Begun::Value(new.close());
        }
        Begun::Open(new)
    }

    /// Advances to the first value of an object, if it has one.
    fn object(&mut self) -> Result<Begun> {
        let mut new = Open {
            at: self.base + self.at,
            content: Content::Object {
                properties: Vec::new(),
                hashed: None,
                key: String::new(),
            },
        };
        self.at += 1;
        self.skip_space();
        if self.eat(b'}') {
            return Ok(Begun::Value(new.close()));
        }
        self.key(&mut new)?;
        Ok(Begun::Open(new))
    }

    /// After a value: advances to the next value of the same array or object. False at its end.
    fn goes_on(&mut self, open: &mut Open) -> Result<bool> {
        let (end, expecting) = match open.content {
            Content::Array(_) => (b']', "`,` or `]`"),
            Content::Object { .. } => (b'}', "`,` or `}`"),
        };
        self.skip_space();
        if self.eat(end) {
            return Ok(false);
        }
        if !self.eat(b',') {
            return Err(self.unexpected(expecting));
        }
        self.skip_space();
        self.key(open)?;
        Ok(true)
    }

    /// Reads the key of the next property if an object is open.
    fn key(&mut self, open: &mut Open) -> Result<()> {
        let Content::Object {
            properties,
            hashed,
            key,
        } = &mut open.content
        else {
            return Ok(());
        };
        let key_at = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a property name in quotes"));
        }
        *key = self.string()?;
        if is_known_key(properties, hashed, key) {
            return Err(self.fault(key_at, format!("duplicate property `{key}`")));
        }
        self.skip_space();
        if !self.eat(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.skip_space();
        Ok(())
    }

    fn number(&mut self) -> Result<JsonContent> {
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
            let real = literal
                .parse()
                .map_err(|_| self.fault(start, "not a number"))?;
            return Ok(JsonContent::Real(real));
        }
        Ok(literal
            .parse()
            .map_or(JsonContent::HugeInt, JsonContent::Int))
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
                    return Err(self.fault(
                        self.at,
                        "a control character in a JSON string must be escaped",
                    ));
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

    /// Parses the part after `\u`, and the second half of a surrogate pair; `start` is the offset
    /// of the backslash.
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
        char::from_u32(code)
            .ok_or_else(|| self.fault(start, "a low surrogate without its high surrogate"))
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

/// True if the object already has the key; `hashed` holds the keys of objects with many properties.
fn is_known_key(properties: &[Property], hashed: &mut Option<HashSet<String>>, key: &str) -> bool {
    if properties.len() < HASHED_KEYS {
        return properties.iter().any(|property| property.key == key);
    }
    let keys = || {
        properties
            .iter()
            .map(|property| property.key.clone())
            .collect()
    };
    let hashed = hashed.get_or_insert_with(keys);
    !hashed.insert(key.to_owned())
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
