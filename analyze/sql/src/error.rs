//! What can be wrong with a question.

use tracebraid_executions::database::DatabaseError;

/// What is wrong with a question, or with what it is about.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The database cannot be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The question cannot be understood.
    #[error("{what}")]
    Question {
        /// What is wrong with it.
        what: String,
        /// Where, if that is known.
        place: Option<TextPosition>,
    },
    /// It would write.
    #[error("only questions are answered here: `{statement}` would write")]
    Writes {
        /// The statement.
        statement: String,
        /// Where it begins.
        place: TextPosition,
    },
    /// There is no answer.
    #[error("{0}")]
    Answer(String),
    /// It was stopped.
    #[error("interrupted")]
    Interrupted,
    /// Whoever takes rows wants no more of them.
    #[error("the rows are not taken")]
    Refused,
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

impl TextPosition {
    /// Where a byte of a text is.
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
        // Within a character, and behind the end.
        assert_eq!(
            TextPosition::of(text, text.find('é').expect("it is there") + 1).column,
            8
        );
        assert_eq!(TextPosition::of(text, 1000).line, 3);
        assert_eq!(TextPosition::of("", 0).column, 1);
    }
}
