//! TSDL text to tokens.
//!
//! Tokens carry byte offsets only; lines and columns are computed when there is an error to tell.

use std::borrow::Cow;

use crate::schema::MOST_LEVELS;

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Error {
    /// Byte offset of the offending token.
    pub(super) at: u32,
    pub(super) message: String,
}

/// Result of every step of the front end; the error is boxed because it is rare and large.
pub(super) type Res<T> = Result<T, Box<Error>>;

/// Makes an error for the token at a byte offset.
pub(super) fn error<T>(at: u32, message: impl Into<String>) -> Res<T> {
    Err(Box::new(Error {
        at,
        message: message.into(),
    }))
}

/// The error of types nested too deep.
pub(super) fn too_deep<T>(at: u32) -> Res<T> {
    error(
        at,
        format!("types are nested too deep here: at most {MOST_LEVELS} levels are supported"),
    )
}

/// Reserved words of TSDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kw {
    Align,
    Callsite,
    /// A word that names a C type, alone or with others (`unsigned`, `long`, ...).
    CType,
    Clock,
    Const,
    Enum,
    Env,
    Event,
    FloatingPoint,
    Integer,
    Stream,
    String,
    Struct,
    Trace,
    Typealias,
    Typedef,
    Variant,
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    Eof,
    Ident,
    Kw(Kw),
    Int,
    Str,
    Char,
    LBracket,
    RBracket,
    LParen,
    RParen,
    LBrace,
    RBrace,
    Arrow,
    Star,
    Plus,
    Minus,
    Lt,
    Gt,
    TypeAssign,
    Colon,
    Semicolon,
    Ellipsis,
    Dot,
    Assign,
    Comma,
}

/// A token: its kind and the bytes it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Tok,
    pub(super) at: u32,
    pub(super) end: u32,
    /// Value of an integer or of a character constant.
    pub(super) value: u64,
}

/// Splits text into tokens, one at a time.
pub(super) struct Lexer<'t> {
    text: &'t str,
    pos: usize,
}

const IDENT_START: u8 = 1;
const DIGIT: u8 = 2;
const SPACE: u8 = 4;

const CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = if b.is_ascii_alphabetic() || b == b'_' {
            IDENT_START
        } else if b.is_ascii_digit() {
            DIGIT
        } else if matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c) {
            SPACE
        } else {
            0
        };
        byte += 1;
    }
    table
};

fn class(byte: u8) -> u8 {
    CLASS[byte as usize]
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Lexer { text, pos: 0 }
    }

    /// The text that a token covers.
    pub(super) fn slice(&self, token: Token) -> &'t str {
        self.text
            .get(token.at as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// Text from a token's start to the first `}` after it, that included.
    pub(super) fn slice_to_brace(&self, at: u32) -> Option<&'t str> {
        let rest = self.text.as_bytes().get(at as usize..)?;
        let length = rest.iter().position(|&byte| byte == b'}')?;
        self.text.get(at as usize..at as usize + length + 1)
    }

    /// Continues at a byte offset.
    pub(super) fn seek(&mut self, offset: u32) {
        self.pos = offset as usize;
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    fn token(&self, kind: Tok, start: usize) -> Token {
        Token {
            kind,
            at: start as u32,
            end: self.pos as u32,
            value: 0,
        }
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Res<()> {
        loop {
            let byte = self.peek(0);
            if class(byte) == SPACE {
                self.pos += 1;
            } else if byte == b'/' && self.peek(1) == b'*' {
                let start = self.pos;
                let rest = self.text.as_bytes().get(start + 2..).unwrap_or_default();
                match rest.windows(2).position(|pair| pair == b"*/") {
                    Some(length) => self.pos = start + 2 + length + 2,
                    None => return error(start as u32, "this comment never ends: `*/` is missing"),
                }
            } else if byte == b'/' && self.peek(1) == b'/' {
                let rest = self.text.as_bytes().get(self.pos..).unwrap_or_default();
                self.pos += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            } else if byte == b'\\' && self.peek(1) == b'\n' {
                self.pos += 2;
            } else if byte == b'\\' && self.peek(1) == b'\r' && self.peek(2) == b'\n' {
                self.pos += 3;
            } else {
                return Ok(());
            }
        }
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Res<Token> {
        self.skip_blank()?;
        let start = self.pos;
        if self.at_end() {
            return Ok(self.token(Tok::Eof, start));
        }
        let byte = self.peek(0);
        match class(byte) {
            IDENT_START if byte == b'L' && matches!(self.peek(1), b'"' | b'\'') => {
                self.pos += 1;
                self.quoted(start)
            }
            IDENT_START => self.word(start),
            DIGIT => self.integer(start),
            _ => match byte {
                b'"' | b'\'' => self.quoted(start),
                b'\\' if matches!(self.peek(1), b'u' | b'U') => self.word(start),
                0 => self.null(start),
                _ => self.punctuation(start, byte),
            },
        }
    }

    fn word(&mut self, start: usize) -> Res<Token> {
        loop {
            let byte = self.peek(0);
            if class(byte) & (IDENT_START | DIGIT) != 0 {
                self.pos += 1;
            } else if byte == b'\\' && matches!(self.peek(1), b'u' | b'U') {
                let digits = if self.peek(1) == b'u' { 4 } else { 8 };
                if !(0..digits).all(|index| self.peek(2 + index).is_ascii_hexdigit()) {
                    return error(
                        self.pos as u32,
                        format!("a universal character name needs {digits} hexadecimal digits"),
                    );
                }
                self.pos += 2 + digits;
            } else {
                break;
            }
        }
        let mut token = self.token(Tok::Ident, start);
        if let Some(keyword) = keyword(self.slice(token)) {
            token.kind = Tok::Kw(keyword);
        }
        Ok(token)
    }

    fn integer(&mut self, start: usize) -> Res<Token> {
        let (radix, prefix, name) = match (self.peek(0), self.peek(1)) {
            (b'0', b'x' | b'X') => (16, 2, "hexadecimal"),
            (b'0', b'b' | b'B') => (2, 2, "binary"),
            (b'0', _) => (8, 0, "octal"),
            _ => (10, 0, "decimal"),
        };
        self.pos += prefix;
        let mut value = Some(0u64);
        let digits = self.pos;
        while let Some(digit) = (self.peek(0) as char).to_digit(radix) {
            value = value
                .and_then(|value| value.checked_mul(u64::from(radix)))
                .and_then(|value| value.checked_add(u64::from(digit)));
            self.pos += 1;
        }
        if self.pos == digits {
            return error(
                start as u32,
                format!("a {name} integer needs digits after its prefix"),
            );
        }
        let suffix = self.pos;
        while class(self.peek(0)) & (IDENT_START | DIGIT) != 0 {
            self.pos += 1;
        }
        let suffix = self.text.get(suffix..self.pos).unwrap_or_default();
        if !is_integer_suffix(suffix) {
            let token = self.token(Tok::Int, start);
            return error(
                start as u32,
                format!("`{}` is not a valid {name} integer", short(self.slice(token))),
            );
        }
        let Some(value) = value else {
            return error(
                start as u32,
                "this integer does not fit 64 bits (at most 18446744073709551615)",
            );
        };
        Ok(Token {
            value,
            ..self.token(Tok::Int, start)
        })
    }

    /// A string or character constant; `start` is where its `L` prefix is, if it has one.
    fn quoted(&mut self, start: usize) -> Res<Token> {
        let quote = self.peek(0);
        self.pos += 1;
        loop {
            if self.at_end() {
                return error(
                    start as u32,
                    format!("no closing `{}` for this literal", quote as char),
                );
            }
            let byte = self.peek(0);
            self.pos += 1;
            if byte == quote {
                break;
            }
            if byte == 0 {
                return error(self.pos as u32 - 1, "null byte in a literal");
            }
            if byte == b'\\' && !self.at_end() && self.peek(0) != 0 {
                self.pos += 1;
            }
        }
        if quote == b'"' {
            return Ok(self.token(Tok::Str, start));
        }
        let mut token = self.token(Tok::Char, start);
        let text = unescape(self.slice(token));
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(only), None) => token.value = u64::from(u32::from(only)),
            (None, _) if token.end - token.at > 2 => token.value = 0,
            _ => return error(start as u32, "a character constant holds exactly one character"),
        }
        Ok(token)
    }

    /// Null bytes are padding at the end of the text, and nothing else.
    fn null(&mut self, start: usize) -> Res<Token> {
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        if rest.iter().all(|&byte| byte == 0) {
            self.pos = self.text.len();
            return Ok(self.token(Tok::Eof, start));
        }
        error(start as u32, "null byte in the metadata")
    }

    fn punctuation(&mut self, start: usize, byte: u8) -> Res<Token> {
        let (kind, length) = match (byte, self.peek(1), self.peek(2)) {
            (b'[', ..) => (Tok::LBracket, 1),
            (b']', ..) => (Tok::RBracket, 1),
            (b'(', ..) => (Tok::LParen, 1),
            (b')', ..) => (Tok::RParen, 1),
            (b'{', ..) => (Tok::LBrace, 1),
            (b'}', ..) => (Tok::RBrace, 1),
            (b'-', b'>', _) => (Tok::Arrow, 2),
            (b'-', ..) => (Tok::Minus, 1),
            (b'*', ..) => (Tok::Star, 1),
            (b'+', ..) => (Tok::Plus, 1),
            (b'<', ..) => (Tok::Lt, 1),
            (b'>', ..) => (Tok::Gt, 1),
            (b':', b'=', _) => (Tok::TypeAssign, 2),
            (b':', ..) => (Tok::Colon, 1),
            (b';', ..) => (Tok::Semicolon, 1),
            (b'.', b'.', b'.') => (Tok::Ellipsis, 3),
            (b'.', ..) => (Tok::Dot, 1),
            (b'=', ..) => (Tok::Assign, 1),
            (b',', ..) => (Tok::Comma, 1),
            _ => {
                let found = self
                    .text
                    .get(start..)
                    .and_then(|rest| rest.chars().next())
                    .unwrap_or('?');
                return error(
                    start as u32,
                    format!("unexpected character `{}`", found.escape_debug()),
                );
            }
        };
        self.pos += length;
        Ok(self.token(kind, start))
    }
}

fn keyword(word: &str) -> Option<Kw> {
    Some(match word {
        "align" => Kw::Align,
        "callsite" => Kw::Callsite,
        "const" => Kw::Const,
        "clock" => Kw::Clock,
        "enum" => Kw::Enum,
        "env" => Kw::Env,
        "event" => Kw::Event,
        "floating_point" => Kw::FloatingPoint,
        "integer" => Kw::Integer,
        "stream" => Kw::Stream,
        "string" => Kw::String,
        "struct" => Kw::Struct,
        "trace" => Kw::Trace,
        "typealias" => Kw::Typealias,
        "typedef" => Kw::Typedef,
        "variant" => Kw::Variant,
        "char" | "double" | "float" | "int" | "long" | "short" | "signed" | "unsigned" | "void" | "_Bool"
        | "_Complex" | "_Imaginary" => Kw::CType,
        _ => return None,
    })
}

fn is_integer_suffix(suffix: &str) -> bool {
    suffix.is_empty()
        || suffix.len() <= 3
            && matches!(
                suffix.to_ascii_lowercase().as_str(),
                "u" | "l" | "ul" | "ull" | "ll" | "lu" | "llu"
            )
}

/// At most 40 characters of a text, for messages.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", text.get(..end).unwrap_or_default())),
    }
}

/// A text without control characters and of bearable length, for messages.
pub(super) fn visible(text: &str) -> String {
    let visible = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    short(text).chars().map(visible).collect()
}

/// Value of a quoted literal (with its quotes, perhaps with an `L` before them): escapes
/// replaced, and cut at the first null character, as strings of C are.
pub(super) fn unescape(literal: &str) -> Cow<'_, str> {
    let inner = literal.strip_prefix('L').unwrap_or(literal);
    let inner = inner.get(1..inner.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some((&escape, tail)) = rest.split_first() else {
            break;
        };
        rest = tail;
        match escape {
            b'a' => bytes.push(0x07),
            b'b' => bytes.push(0x08),
            b'f' => bytes.push(0x0c),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'v' => bytes.push(0x0b),
            b'\n' => {}
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                let extra = rest
                    .iter()
                    .take(2)
                    .take_while(|digit| (b'0'..=b'7').contains(digit))
                    .count();
                for &digit in rest.iter().take(extra) {
                    value = value * 8 + u32::from(digit - b'0');
                }
                rest = rest.get(extra..).unwrap_or_default();
                bytes.push(value as u8);
            }
            b'x' => rest = hex_escape(rest, 1, 3, b'x', |value| push_byte(&mut bytes, value)),
            b'u' => rest = hex_escape(rest, 4, 4, b'u', |value| push_char(&mut bytes, value)),
            b'U' => rest = hex_escape(rest, 8, 8, b'U', |value| push_char(&mut bytes, value)),
            other => bytes.push(other),
        }
    }
    if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
        bytes.truncate(end);
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Hands the value of `least` to `most` hexadecimal digits to `push`; without the digits that
/// the escape needs, its letter stands for itself.
fn hex_escape(rest: &[u8], least: usize, most: usize, letter: u8, push: impl FnOnce(u32)) -> &[u8] {
    let count = rest
        .iter()
        .take(most)
        .take_while(|digit| digit.is_ascii_hexdigit())
        .count();
    if count < least {
        push(u32::from(letter));
        return rest;
    }
    let digits = rest.get(..count).unwrap_or_default();
    let value = digits.iter().fold(0u32, |value, &digit| {
        value
            .wrapping_mul(16)
            .wrapping_add((digit as char).to_digit(16).unwrap_or(0))
    });
    push(value);
    rest.get(count..).unwrap_or_default()
}

fn push_byte(bytes: &mut Vec<u8>, value: u32) {
    bytes.push(value as u8);
}

fn push_char(bytes: &mut Vec<u8>, value: u32) {
    let character = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}
