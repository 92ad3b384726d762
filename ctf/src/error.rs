//! Errors of metadata, with the place that caused them.

use std::fmt;

/// Metadata that cannot be accepted.
///
/// Displayed as `LINE:COLUMN: message`, then the line with a caret when it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataError {
    /// Byte offset into the metadata text (for packetized metadata: of the text taken out of
    /// the packets).
    pub offset: usize,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The source line, without its line end, cut to a bearable length.
    pub source_line: String,
}

impl MetadataError {
    /// Makes the error for a byte offset of `text`, finding line and column.
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
            // A tab under the text keeps the caret below the character that it points at.
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
