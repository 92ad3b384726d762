//! Executable mappings that exist when a recording begins.

use std::collections::HashMap;
use std::fs;
use std::fs::File;

use object::Object;

use super::Mapping;
use super::modules::open;
use crate::state::Process;

/// Passes the executable mappings of the processes to `to`.
pub(crate) fn dump(processes: &[Process], mut to: impl FnMut(Mapping)) {
    let mut ids = BuildIds::default();
    for &process in processes {
        // Anonymous memory has no names.
        for mut mapping in mappings(process)
            .into_iter()
            .filter(|mapping| !mapping.path.is_empty())
        {
            mapping.build_id = ids.of(&mapping);
            to(mapping);
        }
    }
}

/// The current executable mappings of a process, without build ids; empty if it has ended.
pub(crate) fn mappings(process: Process) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{}/maps", process.number)).unwrap_or_default();
    let lines = maps.split(|&byte| byte == b'\n');
    lines.filter_map(|line| mapping(process, line)).collect()
}

/// A line of `/proc/PID/maps`, if the mapping is executable.
fn mapping(process: Process, line: &[u8]) -> Option<Mapping> {
    let mut parts = line.splitn(6, |&byte| byte == b' ');
    let hexadecimal = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
    let range = parts.next()?;
    let dash = range.iter().position(|&byte| byte == b'-')?;
    let (begin, end) = (
        hexadecimal(range.get(..dash)?)?,
        hexadecimal(range.get(dash + 1..)?)?,
    );
    let is_executable = parts.next()?.get(2) == Some(&b'x');
    let offset = hexadecimal(parts.next()?)?;
    let inode = std::str::from_utf8(parts.nth(1)?).ok()?.parse().ok()?;
    let path = parts.next().unwrap_or_default().trim_ascii_start();
    is_executable.then(|| Mapping {
        pid: process.pid,
        number: process.number,
        begin,
        bytes: end.saturating_sub(begin),
        offset,
        path: path.to_vec(),
        build_id: Vec::new(),
        inode,
    })
}

/// Build ids of files by path and inode; each file is read once.
#[derive(Default)]
pub(crate) struct BuildIds(HashMap<(Vec<u8>, u64), Vec<u8>>);

/// Larger files are not programs.
const MOST_BYTES: u64 = 4 << 30;

impl BuildIds {
    /// The build id of a mapped file; empty if the file has none, or can no longer be opened.
    pub(crate) fn of(&mut self, mapping: &Mapping) -> Vec<u8> {
        if !mapping.is_of_file() {
            return Vec::new();
        }
        let key = (mapping.path.clone(), mapping.inode);
        if let Some(id) = self.0.get(&key) {
            return id.clone();
        }
        // A failure to open is not cached: another process may map the same file and live longer.
        let Some(file) = open(mapping) else {
            return Vec::new();
        };
        self.0
            .entry(key)
            .or_insert(build_id(file).unwrap_or_default())
            .clone()
    }
}

fn build_id(file: File) -> Option<Vec<u8>> {
    if file.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    let cache = object::ReadCache::new(file);
    let file = object::File::parse(&cache).ok()?;
    Some(file.build_id().ok()??.to_vec())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    const SEVEN: Process = Process { pid: 7, number: 7 };

    #[test]
    fn lines_of_maps_with_code_are_taken() {
        let line = b"55d0c0a00000-55d0c0b00000 r-xp 0001f000 fe:00 1234    /usr/bin/a program";
        let found = mapping(SEVEN, line).unwrap();
        assert_eq!(
            (found.begin, found.bytes, found.offset),
            (0x55d0_c0a0_0000, 0x10_0000, 0x1f000)
        );
        assert_eq!(
            (found.inode, &*found.path),
            (1234, &b"/usr/bin/a program"[..])
        );
        assert_eq!(
            mapping(SEVEN, b"7000-8000 rw-p 00000000 fe:00 1234    /usr/bin/a"),
            None
        );
        let anonymous = mapping(SEVEN, b"7000-8000 r-xp 00000000 00:00 0").unwrap();
        assert!(anonymous.path.is_empty());
        assert_eq!(mapping(SEVEN, b""), None);
        assert_eq!(mapping(SEVEN, b"7000 r-xp"), None);
    }

    #[test]
    fn this_program_is_mapped_with_its_build_id() {
        let own = std::env::current_exe().unwrap();
        let mut found = Vec::new();
        let number = std::process::id();
        dump(&[Process { pid: 7, number }], |mapping| found.push(mapping));
        assert!(found.iter().all(|mapping| mapping.pid == 7));
        let program = found
            .iter()
            .find(|mapping| mapping.path == own.as_os_str().as_bytes())
            .unwrap();
        assert_eq!(
            Some(&program.build_id),
            build_id(File::open(&own).unwrap()).as_ref()
        );
        let here = this_program_is_mapped_with_its_build_id as *const () as u64;
        assert!((program.begin..program.begin + program.bytes).contains(&here));
    }
}
