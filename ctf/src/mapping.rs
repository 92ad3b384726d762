//! Pieces of files in memory without a copy.
//!
//! Reading by a mapping takes half of the processor's time of `pread` where the page cache keeps
//! large folios (`make bench` measures both). Pieces are mapped and given back in turn; pieces
//! smaller than 16 MiB disturb other threads too often. But a page that is no longer available,
//! since the file became shorter or the disk failed, is a signal and not a result. So mapping is
//! only for programs that [`allow`] it, which takes over SIGBUS: a missing page becomes one of
//! zeros, and is counted ([`lost_pages`]), and the program reports in the end that its results are
//! not sound. Files that may still be written to are not mapped.
//!
//! # Safety argument
//! The signal handler reads atomics and makes one system call, which replaces a page of a mapping
//! of this module, found in `PIECES`, where it stays as long as it is mapped. Slices of a piece
//! live no longer than it. The operating system cannot promise that the bytes do not change
//! meanwhile: files that were changed within the last `SETTLED` are left to `pread`, and a page
//! that is replaced by zeros under a slice is what a writer could have done too. All that is read
//! from a trace is checked against its bounds when it is used, and values are read once.

#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use memmap2::{Advice, Mmap, MmapOptions};

/// Bytes of a piece: to give one back disturbs all threads, so that pieces of 1 MiB made two of
/// them slower than copying; of what is mapped only what was touched counts as memory.
pub(crate) const PIECE: u64 = 16 << 20;

/// Files that were changed later are not mapped.
const SETTLED: Duration = Duration::from_secs(10);

/// Pieces that there can be at a time; beyond, files are read by copying.
const MOST_PIECES: usize = 1024;

/// Where a piece begins and ends in memory; the beginning is [`FREE`], or [`TAKEN`] while it is not
/// known yet.
struct PieceSpan {
    begin: AtomicUsize,
    end: AtomicUsize,
}

const FREE: usize = 0;
const TAKEN: usize = 1;

static PIECES: [PieceSpan; MOST_PIECES] = [const {
    PieceSpan {
        begin: AtomicUsize::new(FREE),
        end: AtomicUsize::new(0),
    }
}; MOST_PIECES];
static ALLOWED: AtomicBool = AtomicBool::new(false);
static PAGE: AtomicUsize = AtomicUsize::new(4096);
static LOST: AtomicU64 = AtomicU64::new(0);

/// Lets files be mapped from now on: takes over SIGBUS, of which signals for anything else do what
/// they did by default.
///
/// # Errors
/// When the operating system refuses.
pub fn allow() -> io::Result<()> {
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    // SAFETY: zeros are a valid `sigaction`; the handler is one with three arguments, as the flag
    // says.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    ALLOWED.store(true, Ordering::Release);
    Ok(())
}

/// Pages of files that could not be had when they were read: results are not sound then.
pub fn lost_pages() -> u64 {
    LOST.load(Ordering::Relaxed)
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives what it says; only calls that signal handlers may make.
    unsafe {
        let errno = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        let page = PAGE.load(Ordering::Relaxed);
        let is_ours = PIECES.iter().any(|place| {
            let begin = place.begin.load(Ordering::Acquire);
            begin > TAKEN && (begin..place.end.load(Ordering::Acquire)).contains(&address)
        });
        let at = (address & !(page - 1)) as *mut libc::c_void;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        if !is_ours || libc::mmap(at, page, libc::PROT_READ, flags, -1, 0) == libc::MAP_FAILED {
            // It comes again, and ends the program as if there were no handler.
            libc::signal(signal, libc::SIG_DFL);
        } else {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        *libc::__errno_location() = errno;
    }
}

/// A piece of a file.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Mmap,
    place: usize,
}

impl Piece {
    /// Maps from `begin` on what lies before `end`. `None` where that is not allowed, or would not
    /// be sound: the file is to be read then.
    pub(crate) fn map(file: &File, begin: u64, end: u64) -> Option<Piece> {
        if !ALLOWED.load(Ordering::Acquire) || begin >= end {
            return None;
        }
        is_settled(&file.metadata().ok()?, end).then_some(())?;
        let length = usize::try_from(end - begin).ok()?;
        let place = PIECES.iter().position(|place| {
            let taken =
                place
                    .begin
                    .compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        })?;
        // SAFETY: see the module's text.
        let mapped = unsafe { MmapOptions::new().offset(begin).len(length).map(file) };
        let Some(bytes) = mapped.ok() else {
            release(place);
            return None;
        };
        let _ = bytes.advise(Advice::Sequential);
        if let Some(known) = PIECES.get(place) {
            let first = bytes.as_ptr() as usize;
            known.end.store(first + length, Ordering::Release);
            // Pages are whole.
            known.begin.store(
                first & !(PAGE.load(Ordering::Relaxed) - 1),
                Ordering::Release,
            );
        }
        Some(Piece { bytes, place })
    }

    /// Its bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // Nobody reads it any more. That it is still mapped for a moment does not matter.
        release(self.place);
    }
}

fn release(place: usize) {
    if let Some(place) = PIECES.get(place) {
        place.begin.store(FREE, Ordering::Release);
    }
}

/// Whether a file has so many bytes, which nobody is writing.
fn is_settled(about: &Metadata, bytes: u64) -> bool {
    let changed = about.modified().ok();
    // One that was changed in the future is changed now, by a clock that is wrong.
    let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
    about.is_file() && about.len() >= bytes && age.is_some_and(|age| age >= SETTLED)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Mutex, MutexGuard};

    use super::*;

    /// Tests take all pieces, or count pages that are lost: one after the other.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        allow().unwrap();
        ALONE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn file(bytes: usize, age: u64) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        let changed = SystemTime::now() - Duration::from_secs(age);
        file.set_modified(changed).unwrap();
        file
    }

    #[test]
    fn pages_that_are_gone_are_zeros_and_are_counted() {
        let _alone = alone();
        let page = PAGE.load(Ordering::Relaxed);
        let file = file(4 * page, 60);
        let piece = Piece::map(&file, page as u64, 4 * page as u64).unwrap();
        assert_eq!(piece.bytes().len(), 3 * page);
        assert_eq!(piece.bytes()[page], 7);
        file.set_len(2 * page as u64 + 100).unwrap();
        let before = lost_pages();
        // The rest of the last page is zeros anyway.
        assert_eq!(
            (piece.bytes()[page + 99], piece.bytes()[page + 100]),
            (7, 0)
        );
        assert_eq!(lost_pages(), before);
        assert_eq!(piece.bytes()[2 * page + 5], 0);
        assert_eq!(lost_pages(), before + 1);
        assert!(piece.bytes()[2 * page..].iter().all(|&byte| byte == 0));
        assert_eq!(lost_pages(), before + 1);
        // It cannot be mapped any more.
        assert!(Piece::map(&file, 0, 4 * page as u64).is_none());
    }

    #[test]
    fn pieces_begin_anywhere() {
        let _alone = alone();
        let file = file(10_000, 60);
        for begin in [0, 1, 4095, 4096, 9999] {
            let piece = Piece::map(&file, begin, 10_000).unwrap();
            assert_eq!(piece.bytes(), vec![7; 10_000 - begin as usize]);
        }
        assert!(Piece::map(&file, 10_000, 10_000).is_none());
        assert!(Piece::map(&file, 0, 10_001).is_none());
    }

    #[test]
    fn what_may_still_be_written_is_not_mapped() {
        let _alone = alone();
        assert!(Piece::map(&file(5000, 0), 0, 5000).is_none());
        let future = file(5000, 0);
        let later = SystemTime::now() + Duration::from_secs(1000);
        future.set_modified(later).unwrap();
        assert!(Piece::map(&future, 0, 5000).is_none());
        assert!(Piece::map(&File::open("/dev/zero").unwrap(), 0, 4096).is_none());
    }

    #[test]
    fn more_pieces_than_there_is_room_for_are_none() {
        let _alone = alone();
        let file = file(100, 60);
        let pieces: Vec<Piece> = (0..2 * MOST_PIECES)
            .map_while(|_| Piece::map(&file, 0, 100))
            .collect();
        assert!(
            (100..=MOST_PIECES).contains(&pieces.len()),
            "{}",
            pieces.len()
        );
        drop(pieces);
        assert!(Piece::map(&file, 0, 100).is_some());
    }
}
