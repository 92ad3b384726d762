//! Function names, cached from one run of the program to the next.

use std::env;
use std::path::PathBuf;

use tracebraid_symbols::Symbols;

/// Environment variable with the directory of the cache; an empty value disables the cache.
const CACHE: &str = "TRACEBRAID_CACHE";

/// Searches these directories for debug information, then the standard one.
pub(crate) fn open(debug_directories: &[PathBuf]) -> Symbols {
    Symbols::new(debug_directories.to_vec())
        .keep_in(directory(|name| env::var_os(name).map(PathBuf::from)))
}

/// Directory of the cache, according to the XDG Base Directory Specification.
fn directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(given) = variable(CACHE) {
        return Some(given).filter(|given| !given.as_os_str().is_empty());
    }
    // The specification requires that relative paths are ignored.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("tracebraid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_the_user_says() {
        let of = |set: &[(&str, &str)]| {
            let value = |name: &str| {
                set.iter()
                    .find(|(of, _)| *of == name)
                    .map(|(_, value)| value.into())
            };
            directory(value)
        };
        let cases: [(&[(&str, &str)], Option<&str>); 5] = [
            (&[("HOME", "/h")], Some("/h/.cache/tracebraid")),
            (
                &[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")],
                Some("/c/tracebraid"),
            ),
            (
                &[("HOME", "/h"), ("XDG_CACHE_HOME", "c")],
                Some("/h/.cache/tracebraid"),
            ),
            (&[("HOME", "/h"), (CACHE, "")], None),
            (&[(CACHE, "here")], Some("here")),
        ];
        for (set, expected) in cases {
            assert_eq!(of(set), expected.map(PathBuf::from), "{set:?}");
        }
        assert_eq!(of(&[]), None);
    }
}
