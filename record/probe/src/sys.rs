//! System calls of the slow path.
//!
//! Safety: pointers passed to the kernel come from references or from [`Text`], which ends with a
//! NUL; results are checked. Mappings are returned as raw pointers; their users explain why they
//! are valid.

#![allow(unsafe_code)]

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::text::Text;

pub(crate) type Path = Text<1024>;

/// `errno` of a failed call.
pub(crate) type Errno = libc::c_int;

pub(crate) fn errno() -> Errno {
    // SAFETY: the location is the thread's own.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: Errno) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// Guard: while it lives, no signal handler runs on this thread and the thread is not cancelled. On
/// drop, `errno` is restored and a SIGXFSZ that the slow path caused is discarded.
pub(crate) struct Quiet {
    mask: libc::sigset_t,
    errno: Errno,
    cancel: libc::c_int,
    file_size_pending: bool,
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, old: *mut libc::c_int) -> libc::c_int;
}

fn is_file_size_pending() -> bool {
    // SAFETY: the set is read only if sigpending has initialized it.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigpending(&mut set) == 0 && libc::sigismember(&set, libc::SIGXFSZ) == 1
    }
}

/// Sets the mask by the system call itself: the C library's function may be interposed by a library
/// that keeps some signal unblocked.
///
/// # Safety
/// The pointers are to sets, or null.
unsafe fn set_mask(set: *const libc::sigset_t, old: *mut libc::sigset_t) {
    // SAFETY: guaranteed by the caller; the kernel reads the first 8 bytes of a set.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, set, old, 8) };
}

impl Quiet {
    pub(crate) fn enter() -> Quiet {
        // SAFETY: all sets are local. Signals of faults stay unblocked, since a blocked one would
        // kill the process.
        unsafe {
            let errno = errno();
            let mut set: libc::sigset_t = core::mem::zeroed();
            libc::sigfillset(&mut set);
            // SIGTRAP is sent by sampling perf events, whose handlers trace.
            for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
                libc::sigdelset(&mut set, fault);
            }
            let mut mask: libc::sigset_t = core::mem::zeroed();
            set_mask(&set, &mut mask);
            let mut cancel = 0;
            pthread_setcancelstate(1, &mut cancel);
            Quiet {
                mask,
                errno,
                cancel,
                file_size_pending: is_file_size_pending(),
            }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: as in `enter`.
        unsafe {
            if !self.file_size_pending && is_file_size_pending() {
                let mut set: libc::sigset_t = core::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGXFSZ);
                let now: libc::timespec = core::mem::zeroed();
                libc::sigtimedwait(&set, ptr::null_mut(), &now);
            }
            pthread_setcancelstate(self.cancel, ptr::null_mut());
            set_mask(&self.mask, ptr::null_mut());
        }
        set_errno(self.errno);
    }
}

/// An open file, closed when dropped.
pub(crate) struct Descriptor(libc::c_int);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned and closed once.
        unsafe {
            libc::close(self.0);
        }
    }
}

fn check(result: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| errno())
}

/// Opens a file; `flags` in addition to `O_CLOEXEC`.
pub(crate) fn open(path: &Path, flags: libc::c_int) -> Result<Descriptor, Errno> {
    if path.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    // SAFETY: see the module documentation.
    let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o640) };
    check(fd.into()).map(|_| Descriptor(fd))
}

/// Reads from the beginning until the buffer is full or the file ends; returns the number of bytes.
pub(crate) fn read(file: &Descriptor, into: &mut [u8]) -> Result<usize, Errno> {
    let mut done = 0;
    while done < into.len() {
        // SAFETY: the unread part of the slice.
        let got = unsafe {
            libc::read(
                file.0,
                into.as_mut_ptr().add(done).cast(),
                into.len() - done,
            )
        };
        match check(got as libc::c_long)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// Writes all bytes by one call (a file accepts fewer only if the disk is full).
pub(crate) fn write(file: &Descriptor, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: pointer and length of a slice.
    let done = unsafe { libc::write(file.0, bytes.as_ptr().cast(), bytes.len()) };
    match check(done as libc::c_long)? {
        count if count == bytes.len() => Ok(()),
        _ => Err(libc::ENOSPC),
    }
}

/// Writes all bytes at an offset.
pub(crate) fn write_at(file: &Descriptor, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    // SAFETY: pointer and length of a slice.
    let done = unsafe {
        libc::pwrite(
            file.0,
            bytes.as_ptr().cast(),
            bytes.len(),
            offset as libc::off_t,
        )
    };
    match check(done as libc::c_long)? {
        count if count == bytes.len() => Ok(()),
        _ => Err(libc::ENOSPC),
    }
}

pub(crate) fn length(file: &Descriptor) -> Result<u64, Errno> {
    // SAFETY: no pointers.
    check(unsafe { libc::lseek(file.0, 0, libc::SEEK_END) }).map(|length| length as u64)
}

/// Truncates a file.
pub(crate) fn cut(file: &Descriptor, bytes: u64) {
    // SAFETY: no pointers.
    unsafe {
        libc::ftruncate(file.0, bytes as libc::off_t);
    }
}

/// Extends a file to `bytes` with all blocks allocated, so that no later store into its mapping can
/// fail for lack of space. (Copy-on-write file systems cannot guarantee that.)
pub(crate) fn allocate(file: &Descriptor, bytes: usize) -> Result<(), Errno> {
    // SAFETY: no pointers.
    let result = unsafe { libc::fallocate(file.0, 0, 0, bytes as libc::off_t) };
    match check(result.into()) {
        Err(libc::EOPNOTSUPP | libc::ENOSYS) => {
            let zeros = [0; 4096];
            for offset in (0..bytes).step_by(zeros.len()) {
                let piece = &zeros[..zeros.len().min(bytes - offset)];
                write_at(file, piece, offset as u64)?;
            }
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

/// Maps a file, shared, for reading and writing.
pub(crate) fn map(file: &Descriptor, bytes: usize) -> Result<*mut u8, Errno> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let address =
        unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.0, 0) };
    if address == libc::MAP_FAILED {
        Err(errno())
    } else {
        Ok(address.cast())
    }
}

/// Set if the kernel does not wipe pages in a forked child.
static UNWIPED: AtomicBool = AtomicBool::new(false);

/// True if a forked child finds [`private`] memory unchanged and must wipe it itself.
pub(crate) fn is_unwiped() -> bool {
    UNWIPED.load(Ordering::Relaxed)
}

/// Maps zeroed private memory that is zero again in a forked child.
pub(crate) fn private(bytes: usize) -> Result<*mut u8, Errno> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping; the advice concerns only that. Kernels before 4.14 reject the advice.
    unsafe {
        let address = libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0);
        if address == libc::MAP_FAILED {
            return Err(errno());
        }
        if libc::madvise(address, bytes, libc::MADV_WIPEONFORK) != 0 {
            UNWIPED.store(true, Ordering::Relaxed);
        }
        Ok(address.cast())
    }
}

/// Unmaps private memory or a file.
pub(crate) fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: callers own the mapping and have no pointer into it left.
    unsafe {
        libc::munmap(address.cast(), bytes);
    }
}

/// Replaces a mapping by private memory.
pub(crate) fn replace_by_private(address: usize, bytes: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the range is a mapping of this library, and stays mapped throughout.
    unsafe {
        libc::mmap(address as *mut libc::c_void, bytes, access, flags, -1, 0);
    }
}

/// Faults in pages of a mapping for writing, if the kernel supports it (5.14).
pub(crate) fn populate(address: *mut u8, bytes: usize) {
    let start = (address as usize) & !4095;
    let end = address as usize + bytes;
    // SAFETY: the advice changes no contents.
    unsafe {
        libc::madvise(
            start as *mut libc::c_void,
            end - start,
            libc::MADV_POPULATE_WRITE,
        );
    }
}

/// Releases the pages of a shared mapping; later accesses read the file again.
pub(crate) fn release(address: *mut u8, bytes: usize) {
    // SAFETY: a shared mapping of a file loses no data.
    unsafe {
        libc::madvise(address.cast(), bytes, libc::MADV_DONTNEED);
    }
}

pub(crate) fn make_directory(path: &Path) -> Result<(), Errno> {
    if path.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    // SAFETY: see the module documentation.
    check(unsafe { libc::mkdir(path.as_ptr(), 0o750) }.into()).map(|_| ())
}

/// True if the process is root, which may become another user.
pub(crate) fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Sets the mode of a directory that this process has just created, unless it was replaced
/// meanwhile.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let Ok(directory) = open(path, flags) else {
        return;
    };
    // SAFETY: the structure is read only after the call has filled it; the descriptor is owned.
    unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        if libc::fstat(directory.0, &mut about) == 0 && about.st_uid == libc::geteuid() {
            libc::fchmod(directory.0, mode);
        }
    }
}

/// Writes to standard error, unless the descriptor is a socket, or a file that is open for reading,
/// too.
pub(crate) fn say(text: &[u8]) {
    // SAFETY: the structure is read only after the call has filled it; pointer and length of a
    // slice.
    unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        let access = libc::fcntl(libc::STDERR_FILENO, libc::F_GETFL) & libc::O_ACCMODE;
        if libc::fstat(libc::STDERR_FILENO, &mut about) != 0 {
            return;
        }
        let is_safe = match about.st_mode & libc::S_IFMT {
            libc::S_IFCHR | libc::S_IFIFO => true,
            libc::S_IFREG => access == libc::O_WRONLY,
            _ => false,
        };
        if is_safe {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        }
    }
}

/// Renames; the new name of a directory must not exist.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    if from.overflowed() || to.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    // SAFETY: see the module documentation.
    check(unsafe { libc::rename(from.as_ptr(), to.as_ptr()) }.into()).map(|_| ())
}

/// True if a file of that name exists.
pub(crate) fn exists(path: &Path) -> bool {
    // SAFETY: see the module documentation.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 }
}

pub(crate) fn unlink(path: &Path) {
    // SAFETY: see the module documentation.
    unsafe {
        libc::unlink(path.as_ptr());
    }
}

/// An environment variable; `None` if the program runs with privileges that its user lacks.
pub(crate) fn environment<'a>(name: &CStr) -> Option<&'a [u8]> {
    unsafe extern "C" {
        fn secure_getenv(name: *const libc::c_char) -> *mut libc::c_char;
    }
    // SAFETY: the C library returns a string or null; the string is used at once, before the
    // program can change it on this thread.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// Appends the current directory.
pub(crate) fn current_directory(path: &mut Path) -> bool {
    let mut buffer = [0u8; 1024];
    // SAFETY: pointer and length of the buffer.
    if unsafe { libc::getcwd(buffer.as_mut_ptr().cast(), buffer.len()) }.is_null() {
        return false;
    }
    path.push(until_nul(&buffer));
    true
}

/// The bytes before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

/// The time of a system clock in nanoseconds.
#[inline]
pub(crate) fn clock(id: libc::clockid_t) -> u64 {
    // SAFETY: the structure is local.
    unsafe {
        let mut time: libc::timespec = core::mem::zeroed();
        libc::clock_gettime(id, &mut time);
        (time.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(time.tv_nsec as u64)
    }
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

pub(crate) fn process_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::getpid() as u32 }
}

/// True if this process has a thread with that id.
pub(crate) fn is_thread_alive(tid: u32) -> bool {
    // SAFETY: signal 0 only checks for existence.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process_id(), tid, 0) };
    result == 0 || errno() != libc::ESRCH
}

pub(crate) fn cpu() -> u32 {
    // SAFETY: no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(u32::MAX)
}

/// Takes a `flock` if it is free.
pub(crate) fn try_lock(file: &Descriptor) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::flock(file.0, libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Sleeps for half a millisecond.
pub(crate) fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 500_000,
    };
    // SAFETY: the structure is local.
    unsafe {
        libc::nanosleep(&time, ptr::null_mut());
    }
}

pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: pointer and length of the array.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 16, libc::GRND_NONBLOCK) };
    if got != 16 {
        let (time, pid) = (clock(libc::CLOCK_REALTIME), u64::from(process_id()));
        bytes[..8].copy_from_slice(&time.to_le_bytes());
        bytes[8..].copy_from_slice(&pid.to_le_bytes());
    }
    bytes
}

/// The path of an entry of a directory; `name` begins with a slash.
pub(crate) fn below(directory: &Path, name: &[u8]) -> Path {
    let mut path = Path::new();
    path.push(directory.bytes());
    path.push(name);
    path
}
