//! Errors in metadata, with their positions.

use std::fmt;

/// An error in metadata.
///
/// Displayed as `LINE:COLUMN: message`, followed by the source line with a caret, if the line is
/// known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataError {
    /// Byte offset in the metadata text. For packetized metadata: in the text extracted from the
    /// packets.
    pub offset: usize,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Description of the error and of the expected text.
    pub message: String,
    /// The source line without its line end, cut to a limited length.
    pub source_line: String,
}

impl MetadataError {
    /// Creates the error for a byte offset of `text`; computes line and column.
    pub fn at(text: &[u8], offset: usize, message: impl Into<String>) -> Self {
        let offset = offset.min(text.len());
        let start = text[..offset]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let end = text[offset..]
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(text.len(), |at| offset + at);
        let line = text[..start].iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
        let column = String::from_utf8_lossy(&text[start..offset])
            .chars()
            .count() as u32
            + 1;
        let source_line = String::from_utf8_lossy(&text[start..end])
            .chars()
            .take(160)
            .collect();
        MetadataError {
            offset,
            line,
            column,
            message: message.into(),
            source_line,
        }
    }
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        if !self.source_line.trim().is_empty() && self.column <= 160 {
            // A tab in the padding keeps the caret aligned with the character in the line above.
            let pad: String = self
                .source_line
                .chars()
                .take(self.column as usize - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(f, "\n  {}\n  {pad}^", self.source_line)?;
        }
        Ok(())
    }
}

impl std::error::Error for MetadataError {}
