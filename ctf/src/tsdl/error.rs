//! Errors of the front end: a message and a byte offset.

use std::borrow::Cow;

use crate::schema::MOST_LEVELS;

/// An error in TSDL text.
#[derive(Debug)]
pub(super) struct Error {
    /// Byte offset of the offending token.
    pub(super) at: u32,
    pub(super) message: String,
}

/// Result of every step of the front end; the error is boxed because it is rare and large.
pub(super) type Res<T> = Result<T, Box<Error>>;

/// Creates an error for the token at a byte offset.
pub(super) fn error<T>(at: u32, message: impl Into<String>) -> Res<T> {
    Err(Box::new(Error {
        at,
        message: message.into(),
    }))
}

pub(super) fn too_deep<T>(at: u32) -> Res<T> {
    error(
        at,
        format!("types are nested too deeply here: at most {MOST_LEVELS} levels are supported"),
    )
}

/// At most 40 characters of a text, for messages.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", text.get(..end).unwrap_or_default())),
    }
}

/// A text without control characters, shortened for messages.
pub(super) fn visible(text: &str) -> String {
    let visible = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    short(text).chars().map(visible).collect()
}
