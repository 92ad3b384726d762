//! Errors of queries.

use tracebraid_executions::database::DatabaseError;

/// A query that cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The database cannot be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The query is not valid.
    #[error("{what}")]
    Question {
        /// Description of the error.
        what: String,
        /// Position of the error, if it is known.
        place: Option<TextPosition>,
    },
    /// The statement would write.
    #[error("only queries are allowed: `{statement}` would write")]
    Writes {
        /// The first words of the statement.
        statement: String,
        /// Position of its first character.
        place: TextPosition,
    },
    /// The query failed while it ran; the text is SQLite's.
    #[error("{0}")]
    Answer(String),
    /// The query was stopped ([`Stopper`](crate::Stopper)).
    #[error("interrupted")]
    Interrupted,
    /// The sink rejected a row.
    #[error("the output was closed before all rows were written")]
    Refused,
}

/// A position in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

impl TextPosition {
    /// The position of a byte of a text.
    pub(crate) fn of(text: &str, byte: usize) -> TextPosition {
        let mut at = byte.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (before, behind) = text.split_at(at);
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = behind.find('\n').map_or(text.len(), |length| at + length);
        TextPosition {
            line: before.matches('\n').count() + 1,
            column: before.get(begin..).unwrap_or_default().chars().count() + 1,
            text: text
                .get(begin..end)
                .unwrap_or_default()
                .trim_end()
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_within_their_lines() {
        let text = "SELECT é,\n  oops\nFROM x";
        let place = TextPosition::of(text, text.find("oops").expect("it is there"));
        assert_eq!(
            (place.line, place.column, place.text.as_str()),
            (2, 3, "  oops")
        );
        let place = TextPosition::of(text, text.find(',').expect("it is there"));
        assert_eq!((place.line, place.column), (1, 9));
        // Within a character, and after the end.
        assert_eq!(
            TextPosition::of(text, text.find('é').expect("it is there") + 1).column,
            8
        );
        assert_eq!(TextPosition::of(text, 1000).line, 3);
        assert_eq!(TextPosition::of("", 0).column, 1);
    }
}
