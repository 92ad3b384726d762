//! The common part of the languages: `&&`, `||`, `!` and parentheses around conditions.

use crate::lexer::{Placed, Token};
use crate::parse::FilterError;

/// Maximum nesting of an expression.
const DEPTH: usize = 200;

/// The tokens of a text, with the index of the next one.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    pub(crate) text: &'a str,
    tokens: Vec<Placed>,
    pub(crate) at: usize,
    depth: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str, tokens: Vec<Placed>) -> Self {
        Tokens {
            text,
            tokens,
            at: 0,
            depth: 0,
        }
    }

    /// The next token; does not consume it.
    pub(crate) fn peek(&self) -> &Token {
        self.tokens
            .get(self.at)
            .map_or(&Token::End, |(token, _)| token)
    }

    /// The token after the next one.
    pub(crate) fn after(&self) -> &Token {
        let after = self.tokens.get(self.at + 1);
        after.map_or(&Token::End, |(token, _)| token)
    }

    /// Byte offset of the next token.
    pub(crate) fn offset(&self) -> usize {
        self.tokens
            .get(self.at)
            .map_or(self.text.len(), |(_, offset)| *offset)
    }

    /// An error at the next token.
    pub(crate) fn error(&self, message: impl Into<String>) -> FilterError {
        FilterError::new(self.text, self.offset(), message)
    }

    /// Consumes the next token if it is `sign`.
    pub(crate) fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(own) if *own == sign);
        self.at += usize::from(found);
        found
    }
}

/// A parser of conditions that logical operators combine.
pub(crate) trait Logic<'a>: Sized {
    type Tree;

    fn tokens(&mut self) -> &mut Tokens<'a>;

    /// Parses a condition without logical operators.
    fn condition(&mut self) -> Result<Self::Tree, FilterError>;

    fn and(parts: Vec<Self::Tree>) -> Self::Tree;
    fn or(parts: Vec<Self::Tree>) -> Self::Tree;
    fn not(inner: Self::Tree) -> Self::Tree;

    fn alternatives(&mut self) -> Result<Self::Tree, FilterError> {
        let mut parts = vec![self.conjunction()?];
        while self.tokens().take("||") {
            parts.push(self.conjunction()?);
        }
        Ok(single(parts, Self::or))
    }

    fn conjunction(&mut self) -> Result<Self::Tree, FilterError> {
        let mut parts = vec![self.term()?];
        while self.tokens().take("&&") {
            parts.push(self.term()?);
        }
        Ok(single(parts, Self::and))
    }

    fn term(&mut self) -> Result<Self::Tree, FilterError> {
        let tokens = self.tokens();
        tokens.depth += 1;
        if tokens.depth > DEPTH {
            return Err(tokens.error("nested too deeply"));
        }
        let term = if tokens.take("!") {
            Self::not(self.term()?)
        } else if tokens.take("(") {
            let inner = self.alternatives()?;
            if !self.tokens().take(")") {
                return Err(self.tokens().error("expected `)`"));
            }
            inner
        } else {
            self.condition()?
        };
        self.tokens().depth -= 1;
        Ok(term)
    }
}

/// A single part is returned as it is.
fn single<T>(mut parts: Vec<T>, join: fn(Vec<T>) -> T) -> T {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}
