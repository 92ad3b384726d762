//! Frames of tracebraid's libraries in programs.
//!
//! A library that records calls of an API is on the stack between the program and the API. Its frames
//! become one, with the name of the call, unless it executes itself at that time.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Prefix of the libraries' file names.
const LIBRARIES: &[u8] = b"libtracebraid_";
/// Module of the functions that record OpenCL; the next part of a path is the name of a call.
const OPENCL: &str = "tracebraid_opencl::functions::";

/// True for a library of tracebraid.
pub(crate) fn is_own(file: &OsStr) -> bool {
    file.as_bytes().starts_with(LIBRARIES)
}

/// The call that a function of a library records: the last part of its path's module for OpenCL, the
/// function itself if it is exported by the name of the call; `None` for functions that record none.
pub(crate) fn call(function: &str) -> Option<&str> {
    match function.strip_prefix(OPENCL) {
        Some(path) => path.split("::").next(),
        None => (!function.contains("::") && !function.starts_with('[')).then_some(function),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_libraries_have_names_of_calls() {
        for (function, expected) in [
            (
                "tracebraid_opencl::functions::clFinish::layer",
                Some("clFinish"),
            ),
            (
                "tracebraid_opencl::functions::clFinish::recorded",
                Some("clFinish"),
            ),
            ("clFinish", Some("clFinish")),
            ("tracebraid_opencl::commands::completed", None),
            ("[libtracebraid_gpu.so+0x1200]", None),
        ] {
            assert_eq!(call(function), expected, "{function}");
        }
        assert!(is_own(OsStr::new("libtracebraid_gpu.so")));
        assert!(!is_own(OsStr::new("libtracebraider.so")));
    }
}
