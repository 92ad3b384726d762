//! Directory of the process's trace: path, name, options, and the file that counts losses.
//!
//! Safety: memory mapped here is not accessed elsewhere before it is returned or unmapped.

#![allow(unsafe_code)]

use core::fmt::Write;
use core::sync::atomic::AtomicU64;

use crate::config::{Config, MOST_BYTES};
use crate::packet::{HEAD, Head, Packet};
use crate::sys::{self, Errno, Path, below};
use crate::{clock, kept, parents};

/// Reports on standard error that the process is not recorded, unless the descriptor may be a file
/// that the program also reads, or a socket.
pub(crate) fn report_unrecorded(session: &Path, error: Errno) {
    let mut text = Path::new();
    text.push(b"libtracebraid_probe: process ");
    let _ = write!(
        text,
        "{} is not recorded: it cannot write below ",
        sys::process_id()
    );
    text.push(session.bytes());
    let _ = match error {
        libc::EACCES => writeln!(text, " (permission denied)"),
        error => writeln!(text, " (errno {error})"),
    };
    sys::say(text.bytes());
}

/// The session's directory as an absolute path: the program may change its current directory.
pub(crate) fn session() -> Option<Path> {
    let name = kept::SESSION.value()?;
    let mut path = Path::new();
    if !name.starts_with(b"/") {
        sys::current_directory(&mut path).then_some(())?;
        path.push(b"/");
    }
    path.push(name);
    (!path.overflowed()).then_some(path)
}

/// The options: the defaults if the file does not exist; an error if it cannot be read.
pub(crate) fn read_config(session: &Path) -> Result<Config, Errno> {
    let mut config = Config::new();
    // Signal handlers, in which a process may begin, have small stacks.
    let text = sys::private(MOST_BYTES)?;
    // SAFETY: `MOST_BYTES` bytes were mapped, to which nothing else refers.
    let bytes = unsafe { core::slice::from_raw_parts_mut(text, MOST_BYTES) };
    let file = sys::open(&below(session, b"/probe.conf"), libc::O_RDONLY);
    let read = file.and_then(|file| sys::read(&file, bytes));
    if let Ok(count) = read {
        config.take(bytes.get(..count).unwrap_or_default());
    }
    sys::unmap(text, MOST_BYTES);
    if let Some(text) = kept::OPTIONS.value() {
        config.take(text);
    }
    match read {
        Err(error) if error != libc::ENOENT => Err(error),
        _ => Ok(config),
    }
}

/// The name of the program's main thread, which LTTng uses in names of directories.
pub(crate) fn program_name(buffer: &mut [u8; 32]) -> &[u8] {
    let mut path = Path::new();
    path.push(b"/proc/self/comm");
    let count = sys::open(&path, libc::O_RDONLY).and_then(|file| sys::read(&file, buffer));
    let name = buffer.get_mut(..count.unwrap_or(0)).unwrap_or_default();
    for byte in name.iter_mut().filter(|byte| **byte == b'/') {
        *byte = b'_';
    }
    let name: &[u8] = name.trim_ascii();
    if name.is_empty() { b"unknown" } else { name }
}

/// Creates the trace's directory under a hidden name. Returns the hidden name and the final one.
pub(crate) fn make_directory(session: &Path, name: &[u8]) -> Result<(Path, Path), Errno> {
    let parent = parents::make(session);
    for attempt in 0..100 {
        let (mut hidden, mut directory) = (below(&parent, b"/."), below(&parent, b"/"));
        for path in [&mut hidden, &mut directory] {
            path.push(name);
            let _ = write!(path, "-{}-", sys::process_id());
            write_date(path, sys::clock(libc::CLOCK_REALTIME) / 1_000_000_000);
            if attempt > 0 {
                let _ = write!(path, "+{attempt}");
            }
        }
        if sys::exists(&directory) {
            continue;
        }
        match sys::make_directory(&hidden) {
            Ok(()) => return Ok((hidden, directory)),
            Err(libc::EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(libc::EEXIST)
}

/// `YYYYMMDD-HHMMSS` in UTC (Hinnant, "chrono-compatible low-level date algorithms"): the C
/// library's functions for local time take locks.
fn write_date(path: &mut Path, seconds: u64) {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let _ = write!(
        path,
        "{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}"
    );
}

/// Creates a stream of one packet without event records: it counts events that were lost for lack
/// of a buffer.
pub(crate) fn make_losses(path: &Path, uuid: [u8; 16]) -> Result<*mut AtomicU64, Errno> {
    let file = sys::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)?;
    sys::allocate(&file, HEAD)?;
    let address = sys::map(&file, HEAD)?;
    // SAFETY: never unmapped.
    let packet = unsafe { Packet::at(address) };
    packet.begin(&Head {
        uuid,
        instance: u64::from(u32::MAX),
        begin: clock::monotonic(),
        bytes: HEAD,
        sequence: 0,
        discarded: 0,
        cpu: 0,
        tid: 0,
    });
    Ok(core::ptr::from_ref(packet.discarded()).cast_mut())
}
