//! Splits TSDL text into tokens.
//!
//! Tokens only carry byte offsets; lines and columns are computed when an error is reported.

use super::error::{Res, error, short};
use super::string_literal::unescape;

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

/// A token: its kind and its byte range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Tok,
    pub(super) at: u32,
    pub(super) end: u32,
    /// Value of an integer or character constant.
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

    /// The text of a token.
    pub(super) fn slice(&self, token: Token) -> &'t str {
        self.text
            .get(token.at as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// Text from a token's start up to and including the first `}` after it.
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
        self.text
            .as_bytes()
            .get(self.pos + ahead)
            .copied()
            .unwrap_or(0)
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
                self.pos += rest
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .unwrap_or(rest.len());
            } else if byte == b'\\' && self.peek(1) == b'\n' {
                self.pos += 2;
            } else if byte == b'\\' && self.peek(1) == b'\r' && self.peek(2) == b'\n' {
                self.pos += 3;
            } else {
                return Ok(());
            }
        }
    }

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
                format!(
                    "`{}` is not a valid {name} integer",
                    short(self.slice(token))
                ),
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

    /// Reads a string or character constant; `start` is the offset of its `L` prefix, if it has
    /// one.
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
            _ => {
                return error(
                    start as u32,
                    "a character constant holds exactly one character",
                );
            }
        }
        Ok(token)
    }

    /// Null bytes are only valid as padding at the end of the text.
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
        "char" | "double" | "float" | "int" | "long" | "short" | "signed" | "unsigned" | "void"
        | "_Bool" | "_Complex" | "_Imaginary" => Kw::CType,
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
