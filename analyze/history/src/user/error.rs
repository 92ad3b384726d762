//! What is wrong with a definition, and where.

use std::fmt;

use tracebraid_filter::FilterError;

/// What is wrong with the text of a definition. Displayed as line, column and message, the line, and a caret below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    /// Line; begins with 1.
    pub line: usize,
    /// Column, in characters; begins with 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The line itself.
    pub text: String,
}

impl DefinitionError {
    /// At a byte of a text.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> DefinitionError {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = text.get(..offset).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        DefinitionError {
            line,
            column: before[start..].chars().count() + 1,
            message: message.into(),
            text: text.lines().nth(line - 1).unwrap_or_default().to_owned(),
        }
    }

    /// Of an expression that stands at a byte of a text.
    pub(crate) fn within(text: &str, offset: usize, error: &FilterError) -> DefinitionError {
        DefinitionError::at(text, offset + error.offset, error.message.clone())
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line, self.column);
        write!(f, "line {line}, column {column}: {}\n  ", self.message)?;
        // Below the place, whatever tabs are wide.
        let shown: String = self
            .text
            .chars()
            .map(|one| if one == '\t' { ' ' } else { one })
            .collect();
        write!(f, "{shown}\n  {:1$}^", "", column - 1)
    }
}

impl std::error::Error for DefinitionError {}
