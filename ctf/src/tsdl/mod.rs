//! TSDL, the metadata language of CTF 1.8: converts text to [`TraceClass`].
//!
//! The stages are: text to tokens (`lexer`), tokens to items (`parser`, `type_parser`, `ast`),
//! names to types (`sema`, `scopes`, `leaves`, `types`), targets of lengths and tags (`resolve`),
//! types to field classes (`build`), and the contents of blocks (`blocks`). `evaluate` and
//! `assembly` run these stages for one item at a time.
//!
//! No function recurses over nested types.

mod assembly;
mod ast;
mod blocks;
mod build;
mod error;
mod evaluate;
mod leaves;
mod lexer;
mod parser;
mod resolve;
mod scopes;
mod sema;
mod string_literal;
mod type_parser;
mod types;
mod values;

pub(crate) use values::uuid_text;

use std::borrow::Cow;

use crate::error::MetadataError;
use crate::schema::TraceClass;
use sema::Limits;

/// Number of fields that a scope may always have, however short its text is.
const MIN_NODES: u64 = 1 << 16;

/// Parses and validates TSDL text, which has been extracted from its packets already.
///
/// Types may be nested [`crate::schema::MOST_LEVELS`] levels deep. Time and memory are bounded by
/// the length of the text. An error describes the first fault, with its position.
pub fn parse(text: &[u8]) -> Result<TraceClass, MetadataError> {
    if u32::try_from(text.len()).is_err() {
        return Err(MetadataError::at(
            text,
            0,
            "metadata of 4 GiB or more is not supported",
        ));
    }
    // Checking first is much faster than searching for invalid bytes to replace.
    let source = match std::str::from_utf8(text) {
        Ok(source) => Cow::Borrowed(source),
        Err(_) => String::from_utf8_lossy(text),
    };
    let length = source.len() as u64;
    let limits = Limits {
        nodes: MIN_NODES.max(length),
        text: length,
    };
    evaluate::evaluate(&source, limits)
        .map_err(|error| MetadataError::at(source.as_bytes(), error.at as usize, error.message))
}
