//! What was read and written.
