//! Results of functions.

pub(crate) const SUCCESS: i32 = 0;
pub(crate) const PROFILING_INFO_NOT_AVAILABLE: i32 = -7;
pub(crate) const INVALID_VALUE: i32 = -30;
pub(crate) const INVALID_OPERATION: i32 = -59;
