//! The unit of time in which traces are compared.

/// Nanoseconds from a clock's origin (for most traces: from 1970-01-01T00:00:00Z).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);
