//! Maps pieces of files into memory.
//!
//! Reading through a mapping takes half of the CPU time of `pread` where the page cache keeps large
//! folios (`make bench` measures both). Pieces are mapped and unmapped in turn; unmapping pieces
//! smaller than 16 MiB disturbs other threads too often. However, a page that is no longer
//! available, because the file was truncated or the disk failed, raises a signal instead of
//! returning an error. So mapping is only for programs that call [`allow`], which handles SIGBUS: a
//! missing page is replaced by zeros and counted ([`lost_pages`]), and the program reports at the
//! end that its results are unreliable. Files that may still be written to are not mapped.
//!
//! # Safety argument
//! The signal handler reads atomics and makes a single system call, which replaces a page of a
//! mapping of this module. The mapping is found in `PIECES`, where it stays as long as it exists.
//! Slices of a piece do not outlive it. The operating system cannot guarantee that the bytes do not
//! change meanwhile. Files that were changed within the last `SETTLED` are therefore read by
//! `pread`, and a page that is replaced by zeros under a slice is a change that a writer could have
//! made too. All data from a trace is bounds-checked when it is used, and values are read once.

#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use memmap2::{Advice, Mmap, MmapOptions};

/// Size of a piece in bytes. Unmapping disturbs all threads: with pieces of 1 MiB, two threads were
/// slower than copying. Only touched pages of a mapping count as memory.
pub(crate) const PIECE: u64 = 16 << 20;

/// Files with a more recent change are not mapped.
const SETTLED: Duration = Duration::from_secs(10);

/// Largest number of pieces at a time; beyond it, files are read by copying.
const MOST_PIECES: usize = 1024;

/// Address range of a piece; `begin` is [`FREE`], or [`TAKEN`] until the address is known.
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

/// Allows files to be mapped from now on. Installs a handler for SIGBUS; a SIGBUS outside mapped
/// pieces has its default effect.
///
/// # Errors
/// If the handler cannot be installed.
pub fn allow() -> io::Result<()> {
    // SAFETY: only queries a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    // SAFETY: zeros are a valid `sigaction`; the handler takes three arguments, as `SA_SIGINFO`
    // requires.
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

/// Number of file pages that were unavailable when they were read. Unless it is 0, results are
/// unreliable.
pub fn lost_pages() -> u64 {
    LOST.load(Ordering::Relaxed)
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes valid pointers; all calls are async-signal-safe.
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
            // The access is repeated and terminates the program, as if there were no handler.
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
    /// Maps the file from `begin` on, up to `end` at most. `None` if mapping is not allowed or
    /// would be unsound; the file must be read then.
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
        // SAFETY: see the head of this module.
        let mapped = unsafe { MmapOptions::new().offset(begin).len(length).map(file) };
        let Some(bytes) = mapped.ok() else {
            release(place);
            return None;
        };
        let _ = bytes.advise(Advice::Sequential);
        if let Some(known) = PIECES.get(place) {
            let first = bytes.as_ptr() as usize;
            known.end.store(first + length, Ordering::Release);
            // Whole pages.
            known.begin.store(
                first & !(PAGE.load(Ordering::Relaxed) - 1),
                Ordering::Release,
            );
        }
        Some(Piece { bytes, place })
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // The bytes are not read any more. The mapping may exist for a moment longer, which is
        // harmless.
        release(self.place);
    }
}

fn release(place: usize) {
    if let Some(place) = PIECES.get(place) {
        place.begin.store(FREE, Ordering::Release);
    }
}

/// Whether a file has at least this number of bytes and is not being written.
fn is_settled(about: &Metadata, bytes: u64) -> bool {
    let changed = about.modified().ok();
    // A modification time in the future comes from a wrong clock: the file may have changed just
    // now.
    let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
    about.is_file() && about.len() >= bytes && age.is_some_and(|age| age >= SETTLED)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Mutex, MutexGuard};

    use super::*;

    /// Some tests use all pieces or count lost pages, so tests run one after the other.
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
        // The rest of the last page consists of zeros anyway.
        assert_eq!(
            (piece.bytes()[page + 99], piece.bytes()[page + 100]),
            (7, 0)
        );
        assert_eq!(lost_pages(), before);
        assert_eq!(piece.bytes()[2 * page + 5], 0);
        assert_eq!(lost_pages(), before + 1);
        assert!(piece.bytes()[2 * page..].iter().all(|&byte| byte == 0));
        assert_eq!(lost_pages(), before + 1);
        // The range cannot be mapped any more.
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
