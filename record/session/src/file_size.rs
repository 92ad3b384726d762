//! The file size limit of this process (`ulimit -f`).

use rustix::process::{Resource, getrlimit};

/// `RLIMIT_FSIZE` in bytes; `None` if it is unlimited.
pub fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}
