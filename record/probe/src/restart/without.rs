//! Processors for which there is no restartable sequence here.

pub(crate) fn begin() {}

pub(crate) fn is_watched() -> bool {
    false
}
