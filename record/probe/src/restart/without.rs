//! Fallback for processors without an implementation of the restartable sequence.

pub(crate) fn begin() {}

pub(crate) fn is_watched() -> bool {
    false
}
