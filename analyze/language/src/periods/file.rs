//! Definitions in a file: a statement begins with `period` or `captures` at the beginning of a line
//! and extends over the following lines that begin with white space; a line that begins with `#` is
//! a comment.

use crate::parse::FilterError;
use crate::periods::Periods;

impl Periods {
    /// Adds the definitions of a file with this text.
    ///
    /// # Errors
    /// A definition is malformed; the error contains the position.
    pub fn file(&mut self, text: &str) -> Result<(), FilterError> {
        let text = &without_comments(text);
        let mut statement = None;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if line.starts_with(|first: char| !first.is_whitespace()) {
                self.statement(statement.replace(at), text.get(..at).unwrap_or(text))?;
            }
            at += line.len();
        }
        self.statement(statement, text)
    }

    /// Parses the statement from byte `start` to the end of the text.
    fn statement(&mut self, start: Option<usize>, text: &str) -> Result<(), FilterError> {
        let Some(start) = start else { return Ok(()) };
        let rest = text.get(start..).unwrap_or_default();
        let behind = |word: &str| {
            let after = rest.strip_prefix(word)?;
            after
                .starts_with(|next: char| !next.is_alphanumeric() && next != '_')
                .then_some(start + word.len())
        };
        match (behind("period"), behind("captures")) {
            (Some(start), _) => self.period_from(text, start),
            (_, Some(start)) => self.captures_from(text, start),
            _ => Err(FilterError::new(
                text,
                start,
                "expected `period` or `captures`; to continue a definition, begin the line with a space",
            )),
        }
    }
}

/// Replaces comment lines by spaces, which keeps offsets.
pub(crate) fn without_comments(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .map(|line| match line.trim_start().starts_with('#') {
            true => {
                " ".repeat(line.trim_end_matches('\n').len())
                    + if line.ends_with('\n') { "\n" } else { "" }
            }
            false => line.to_owned(),
        })
        .collect()
}
