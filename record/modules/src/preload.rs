//! Removes libraries of a recording from `LD_PRELOAD` if the loader would not find them.
//!
//! Allocation-free and async-signal-safe: children of `vfork` use it.

use core::ffi::CStr;

use crate::sys;

pub(crate) const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// Common to the paths of all libraries that a recording preloads.
const OURS: &[u8] = b"/libtracebraid_";
/// Maximum length of a path in bytes; longer paths are kept.
const MOST_PATH: usize = 1024;

/// False if the file certainly does not exist.
pub(crate) fn is_there(path: &[u8]) -> bool {
    let mut with_null = [0; MOST_PATH];
    let Some(place) = with_null
        .get_mut(..path.len())
        .filter(|place| place.len() < MOST_PATH)
    else {
        return true;
    };
    place.copy_from_slice(path);
    CStr::from_bytes_until_nul(&with_null).is_ok_and(sys::exists)
}

/// True if a list of libraries contains a library of a recording that does not exist.
pub(crate) fn lacks_some(list: &[u8], is_there: impl Fn(&[u8]) -> bool) -> bool {
    let mut entries = list.split(|byte| b": ".contains(byte));
    entries.any(|entry| is_ours(entry) && !is_there(entry))
}

fn is_ours(entry: &[u8]) -> bool {
    entry.windows(OURS.len()).any(|part| part == OURS)
}

/// Removes libraries of a recording that do not exist from a NUL-terminated list.
pub(crate) fn forget(list: &mut [u8], is_there: impl Fn(&[u8]) -> bool) {
    let end = list.iter().position(|&byte| byte == 0).unwrap_or(0);
    let (mut from, mut to) = (0, 0);
    while from < end {
        let rest = list.get(from..end).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| b": ".contains(byte))
            .unwrap_or(rest.len());
        let entry = rest.get(..length).unwrap_or_default();
        if !is_ours(entry) || is_there(entry) {
            // Includes the separator before the path.
            let begin = from.saturating_sub(usize::from(to > 0));
            list.copy_within(begin..from + length, to);
            to += from + length - begin;
        }
        from += length + 1;
    }
    list.iter_mut().skip(to).for_each(|byte| *byte = 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_libraries_that_are_gone_are_forgotten() {
        for (list, expected) in [
            ("/a/libtracebraid_modules.so", ""),
            (
                "/a/libtracebraid_modules.so:/usr/lib/other.so",
                "/usr/lib/other.so",
            ),
            (
                "/usr/lib/other.so:/a/libtracebraid_probe.so",
                "/usr/lib/other.so",
            ),
            ("/x.so /a/libtracebraid_probe.so /y.so", "/x.so /y.so"),
            (
                "/here/libtracebraid_probe.so:/x.so",
                "/here/libtracebraid_probe.so:/x.so",
            ),
            ("", ""),
        ] {
            let mut bytes = [list.as_bytes(), &[0]].concat();
            let is_there = |path: &[u8]| path.starts_with(b"/here");
            assert_eq!(
                lacks_some(list.as_bytes(), is_there),
                list != expected,
                "{list}"
            );
            forget(&mut bytes, is_there);
            let text = CStr::from_bytes_until_nul(&bytes)
                .unwrap()
                .to_str()
                .unwrap();
            assert_eq!(text, expected, "{list}");
        }
    }
}
