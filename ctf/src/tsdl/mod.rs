//! TSDL, the metadata language of CTF 1.8: text to [`TraceClass`].
//!
//! Text to tokens (`lexer`), tokens to items (`parser`, `type_parser`, `ast`), names to types
//! (`sema`, `scopes`, `leaves`, `types`), the places that lengths and tags refer to (`resolve`),
//! types to field classes (`build`), what blocks say (`blocks`), and all of it one item after the
//! other (`evaluate`, `assembly`).
//!
//! Nothing that goes through nested types recurses over them.

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

/// Fields that one scope may always have, however short its text is.
const MIN_NODES: u64 = 1 << 16;

/// Parses and validates TSDL text (taken out of its packets already).
///
/// Types may nest [`crate::schema::MOST_LEVELS`] levels deep. The time that this takes, and the
/// memory, are bounded by the text's length. Errors: the first thing that is found to be wrong,
/// with its place.
pub fn parse(text: &[u8]) -> Result<TraceClass, MetadataError> {
    if u32::try_from(text.len()).is_err() {
        return Err(MetadataError::at(
            text,
            0,
            "metadata of 4 GiB or more is not supported",
        ));
    }
    // Checking first is a lot faster than looking for what to replace.
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
