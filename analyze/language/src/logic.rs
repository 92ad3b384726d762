//! What the languages have in common: `&&`, `||`, `!` and parentheses around conditions.

use crate::lexer::{Placed, Token};
use crate::parse::FilterError;

/// Nesting deeper than this is refused.
const DEPTH: usize = 200;

/// The tokens of a text, and how far they were taken.
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

    /// What comes next; it is not taken.
    pub(crate) fn peek(&self) -> &Token {
        self.tokens
            .get(self.at)
            .map_or(&Token::End, |(token, _)| token)
    }

    /// What comes behind that.
    pub(crate) fn after(&self) -> &Token {
        let after = self.tokens.get(self.at + 1);
        after.map_or(&Token::End, |(token, _)| token)
    }

    /// Byte offset of what comes next.
    pub(crate) fn offset(&self) -> usize {
        self.tokens
            .get(self.at)
            .map_or(self.text.len(), |(_, offset)| *offset)
    }

    /// Something is wrong with what comes next.
    pub(crate) fn error(&self, message: impl Into<String>) -> FilterError {
        FilterError::new(self.text, self.offset(), message)
    }

    /// Takes that sign, if it comes next.
    pub(crate) fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(own) if *own == sign);
        self.at += usize::from(found);
        found
    }
}

/// A parser of conditions that are combined.
pub(crate) trait Logic<'a>: Sized {
    type Tree;

    fn tokens(&mut self) -> &mut Tokens<'a>;

    /// A condition without operators that combine.
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
            return Err(tokens.error("this is nested too deeply"));
        }
        let term = if tokens.take("!") {
            Self::not(self.term()?)
        } else if tokens.take("(") {
            let inner = self.alternatives()?;
            if !self.tokens().take(")") {
                return Err(self.tokens().error("`)` is expected here"));
            }
            inner
        } else {
            self.condition()?
        };
        self.tokens().depth -= 1;
        Ok(term)
    }
}

/// What stands alone is not combined.
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
