//! The limit of the size of files that this process writes (`ulimit -f`).

use rustix::process::{Resource, getrlimit};

/// In bytes; `None` if there is none.
pub fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}
