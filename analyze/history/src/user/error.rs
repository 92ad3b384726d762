//! Errors in definitions, with their positions.

use std::fmt;

use tracebraid_language::FilterError;

/// An error in the text of a definition. Displayed as line, column and message, followed by the
/// source line and a caret below the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the error.
    pub message: String,
    /// The source line.
    pub text: String,
}

impl DefinitionError {
    /// An error at a byte offset of a text.
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

    /// An error in an expression that begins at a byte offset of a text.
    pub(crate) fn within(text: &str, offset: usize, error: &FilterError) -> DefinitionError {
        DefinitionError::at(text, offset + error.offset, error.message.clone())
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line, self.column);
        write!(f, "line {line}, column {column}: {}\n  ", self.message)?;
        let (shown, place) = self.shown();
        write!(f, "{shown}\n  {:place$}^", "")
    }
}

impl DefinitionError {
    /// The source line, and the position of the caret in it; an excerpt of a long line.
    fn shown(&self) -> (String, usize) {
        let place = self.column - 1;
        let left_out = place.saturating_sub(BEFORE);
        let mut rest = self.text.chars().skip(left_out);
        // Tabs become spaces, so that the caret is below the position.
        let part = rest
            .by_ref()
            .take(MOST)
            .map(|one| if one == '\t' { ' ' } else { one });
        let part: String = part.collect();
        let [begin, end] =
            [left_out > 0, rest.next().is_some()].map(|is_cut| if is_cut { "..." } else { "" });
        (
            format!("{begin}{part}{end}"),
            begin.len() + place - left_out,
        )
    }
}

/// Maximum number of characters of a line that are shown, and of those before the position. XML may
/// consist of a single line.
const MOST: usize = 120;
const BEFORE: usize = 80;

impl std::error::Error for DefinitionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_lines_what_is_around_the_place_is_shown() {
        let text = format!("{}\t!{}", "a".repeat(200_000), "b".repeat(200_000));
        let shown = DefinitionError::at(&text, 200_001, "wrong").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "line 1, column 200002: wrong");
        assert!(
            lines[1].starts_with("  ...aaa")
                && lines[1].ends_with("bbb...")
                && lines[1].len() < 140
        );
        let caret = lines[2].find('^').expect("a caret");
        assert_eq!(&lines[1][caret - 1..=caret], " !");
        let short = DefinitionError::at("one\ntwo", 5, "wrong").to_string();
        assert_eq!(short, "line 2, column 2: wrong\n  two\n   ^");
    }
}
