//! The control file of a process's trace, `.control`: its registered event classes, and which of
//! them are enabled.
//!
//! | offset | what |
//! |---|---|
//! | 0 | `TBPROBE1` |
//! | 8 | process id, number of event classes: 32 bits each |
//! | 16 | start of the process in the kernel's ticks since boot: 64 bits |
//! | 24 | 1 if the recording is over, and no class may be enabled any more: a byte |
//! | 1024 | rules ([`crate::glob::decide`]), up to a NUL |
//! | 4096 | a byte for each class: 1 if it is on |
//! | 20480 | names of classes, 256 bytes each, up to a NUL |
//!
//! The process maps the part before the names, and its probes read the bytes there. Writers hold a
//! `flock`.
//!
//! Safety: the mapping has [`MAPPED`] bytes and is never unmapped.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::config::Rules;
use crate::glob;
use crate::sys::{self, Descriptor, Errno, Path};

pub(crate) const MAGIC: &[u8; 8] = b"TBPROBE1";
pub(crate) const PID: usize = 8;
pub(crate) const CLASSES: usize = 12;
pub(crate) const START: usize = 16;
pub(crate) const ENDED: usize = 24;
pub(crate) const RULES: usize = 1024;
pub(crate) const STATES: usize = 4096;
pub(crate) const NAMES: usize = STATES + MOST_CLASSES;
pub(crate) const NAME: usize = 256;
/// Maximum number of event classes of a process.
pub(crate) const MOST_CLASSES: usize = 16 << 10;
const MAPPED: usize = NAMES;
/// Classes that are enabled only by patterns that name them explicitly: a program compiled with
/// `-finstrument-functions` would drown all other events.
const BY_NAME: &[u8] = b"lttng_ust_cyg_profile:";

/// The process's mapping of its control file.
pub(crate) struct ControlMap(*mut u8);

/// Creates the file.
pub(crate) fn create(path: &Path, pid: u32, rules: &[u8]) -> Result<ControlMap, Errno> {
    let file = sys::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)?;
    sys::allocate(&file, MAPPED)?;
    sys::write_at(&file, rules, RULES as u64)?;
    sys::write_at(&file, &start_of_process().to_ne_bytes(), START as u64)?;
    sys::write_at(&file, &pid.to_ne_bytes(), PID as u64)?;
    sys::write_at(&file, MAGIC, 0)?;
    sys::map(&file, MAPPED).map(ControlMap)
}

/// Start time of this process, from `/proc/self/stat`.
fn start_of_process() -> u64 {
    let mut text = [0; 1024];
    let mut path = Path::new();
    path.push(b"/proc/self/stat");
    let count = sys::open(&path, libc::O_RDONLY).and_then(|file| sys::read(&file, &mut text));
    start_in_stat(text.get(..count.unwrap_or(0)).unwrap_or_default())
}

/// Start time of a process (field 22) in the contents of `stat`. The name in parentheses may
/// contain any character.
pub(crate) fn start_in_stat(stat: &[u8]) -> u64 {
    let behind = stat
        .iter()
        .rposition(|&byte| byte == b')')
        .map_or(0, |at| at + 2);
    let field = stat
        .get(behind..)
        .unwrap_or_default()
        .split(|&byte| byte == b' ')
        .nth(19);
    let digits = field.unwrap_or_default().iter();
    digits.fold(0, |value: u64, &digit| {
        value
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

impl ControlMap {
    pub(crate) fn address(&self) -> *mut u8 {
        self.0
    }

    /// The mapping at this [address](ControlMap::address); `None` if null.
    pub(crate) fn at(address: *mut u8) -> Option<ControlMap> {
        (!address.is_null()).then_some(ControlMap(address))
    }

    pub(crate) fn has_ended(&self) -> bool {
        // SAFETY: within the mapping.
        unsafe { AtomicU8::from_ptr(self.0.add(ENDED)) }.load(Ordering::Relaxed) != 0
    }

    /// Replaces the rules by those that `now` returns, if any. No class may be registered yet.
    /// Concurrent writers wait for the lock, so that their rules are added last.
    pub(crate) fn renew(
        &self,
        path: &Path,
        now: impl FnOnce() -> Option<Rules>,
    ) -> Result<(), Errno> {
        let file = sys::open(path, libc::O_RDWR)?;
        lock(&file);
        let Some(rules) = now() else { return Ok(()) };
        let bytes = rules.bytes();
        sys::write_at(&file, bytes, RULES as u64)?;
        sys::write_at(&file, &[0], (RULES + bytes.len()) as u64)
    }

    /// True if the rules enable a class.
    pub(crate) fn decide(&self, name: &[u8]) -> bool {
        // SAFETY: within the mapping. If the lock was not available, another process may write
        // meanwhile, and a rule may be read in part.
        let rules = unsafe { core::slice::from_raw_parts(self.0.add(RULES), STATES - RULES) };
        decide(sys::until_nul(rules), name)
    }

    /// The byte of a class; indices from [`MOST_CLASSES`] on share the last byte.
    pub(crate) fn byte(&self, class: usize) -> *mut u8 {
        // SAFETY: within the mapping.
        unsafe { self.0.add(STATES + class.min(MOST_CLASSES - 1)) }
    }

    /// Registers a class in the file and enables it according to the rules.
    pub(crate) fn add(&self, path: &Path, class: usize, name: &[u8]) -> Result<(), Errno> {
        if name.len() >= NAME {
            return Err(libc::ENAMETOOLONG);
        }
        let file = sys::open(path, libc::O_RDWR)?;
        lock(&file);
        let mut entry = [0; NAME];
        for (place, &byte) in entry.iter_mut().zip(name) {
            *place = byte;
        }
        sys::write_at(&file, &entry, (NAMES + class * NAME) as u64)?;
        let is_on = self.decide(name);
        // SAFETY: as above, aligned.
        unsafe {
            AtomicU8::from_ptr(self.byte(class)).store(is_on.into(), Ordering::Release);
            let count = AtomicU32::from_ptr(self.0.add(CLASSES).cast());
            count.fetch_max(class as u32 + 1, Ordering::Release);
        }
        Ok(())
    }
}

/// True if the rules enable a class.
pub(crate) fn decide(rules: &[u8], name: &[u8]) -> bool {
    if name.starts_with(BY_NAME) {
        glob::decide_named(rules, name).unwrap_or(false)
    } else {
        glob::decide(rules, name).unwrap_or(false)
    }
}

/// Waits for the lock, but not forever: its holder may be stopped.
fn lock(file: &Descriptor) {
    for _ in 0..20 {
        if sys::try_lock(file) {
            return;
        }
        sys::pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_start_behind_any_name() {
        let fields: Vec<String> = (3..53).map(|field| field.to_string()).collect();
        let stat = format!("77 (a) b (c) {}", fields.join(" "));
        assert_eq!(start_in_stat(stat.as_bytes()), 22);
        assert_eq!(start_in_stat(b""), 0);
    }

    #[test]
    fn functions_are_on_only_by_name() {
        assert!(decide(b"+*\n", b"app:x"));
        assert!(!decide(b"+*\n", b"lttng_ust_cyg_profile:func_entry"));
        assert!(decide(
            b"+*\n+lttng_ust_cyg_profile:*\n",
            b"lttng_ust_cyg_profile:func_entry"
        ));
        assert!(!decide(
            b"+lttng*\n-*\n-l*\n",
            b"lttng_ust_cyg_profile:func_entry"
        ));
    }
}
