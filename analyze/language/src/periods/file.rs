//! Definitions in a file: statements that begin with `period` or `captures` at the beginning of a
//! line and go on over the lines that begin with white space; `#` begins a line of comment.

use crate::parse::FilterError;
use crate::periods::Periods;

impl Periods {
    /// Adds the definitions of a file, of which this is the text.
    ///
    /// # Errors
    /// With the place of what cannot be understood.
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

    /// The statement that begins at that byte and ends with the text.
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
                "`period` or `captures` is expected here; other lines of a definition begin with a space",
            )),
        }
    }
}

/// Spaces instead of lines of comment: places stay what they are.
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
