//! The system calls of the slow path, each as a function that says what it does.
//!
//! Safety: pointers handed to the kernel come from references or from [`Text`], which ends with a
//! NUL; results are checked. Mappings are handed out as raw pointers, whose users say why they are
//! valid.

#![allow(unsafe_code)]

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::text::Text;

/// A path.
pub(crate) type Path = Text<1024>;

/// A failed call's `errno`.
pub(crate) type Errno = libc::c_int;

pub(crate) fn errno() -> Errno {
    // SAFETY: the location is the thread's own.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: Errno) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// While it lives, no signal handler runs on this thread and the thread is not cancelled;
/// afterwards `errno` is what it was, and a SIGXFSZ that the slow path caused is gone.
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
    // SAFETY: the set is initialised by sigpending, or else not looked at.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigpending(&mut set) == 0 && libc::sigismember(&set, libc::SIGXFSZ) == 1
    }
}

/// Sets the mask by the system call itself: the C library's function may be another's, which sees
/// to it that some signal is never blocked.
///
/// # Safety
/// The pointers are to sets, or null.
unsafe fn set_mask(set: *const libc::sigset_t, old: *mut libc::sigset_t) {
    // SAFETY: the caller's; the kernel knows the first 8 bytes of a set.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, set, old, 8) };
}

impl Quiet {
    pub(crate) fn enter() -> Quiet {
        // SAFETY: all sets are local; signals of faults stay unblocked, since blocked they would
        // kill.
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
        // SAFETY: it is ours and closed once.
        unsafe {
            libc::close(self.0);
        }
    }
}

fn check(result: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| errno())
}

/// Opens a file; `flags` beside `O_CLOEXEC`.
pub(crate) fn open(path: &Path, flags: libc::c_int) -> Result<Descriptor, Errno> {
    if path.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    // SAFETY: see the module's text.
    let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o640) };
    check(fd.into()).map(|_| Descriptor(fd))
}

/// Reads from the beginning; the number of bytes that were there and fit.
pub(crate) fn read(file: &Descriptor, into: &mut [u8]) -> Result<usize, Errno> {
    let mut done = 0;
    while done < into.len() {
        // SAFETY: the rest of the slice.
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

/// Writes all of it, by one call (a file takes less only when the disk is full).
pub(crate) fn write(file: &Descriptor, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: the slice.
    let done = unsafe { libc::write(file.0, bytes.as_ptr().cast(), bytes.len()) };
    match check(done as libc::c_long)? {
        count if count == bytes.len() => Ok(()),
        _ => Err(libc::ENOSPC),
    }
}

/// Writes all of it at an offset.
pub(crate) fn write_at(file: &Descriptor, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    // SAFETY: the slice.
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

/// The file's length.
pub(crate) fn length(file: &Descriptor) -> Result<u64, Errno> {
    // SAFETY: no pointers.
    check(unsafe { libc::lseek(file.0, 0, libc::SEEK_END) }).map(|length| length as u64)
}

/// Shortens a file again.
pub(crate) fn cut(file: &Descriptor, bytes: u64) {
    // SAFETY: no pointers.
    unsafe {
        libc::ftruncate(file.0, bytes as libc::off_t);
    }
}

/// Makes a file `bytes` long with blocks behind all of them, so that no later store into its
/// mapping can fail for want of room. (File systems that copy on write cannot promise it.)
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

/// The kernel does not wipe pages in a forked child.
static UNWIPED: AtomicBool = AtomicBool::new(false);

/// Whether a forked child finds [`private`] memory as it was: it has to wipe it itself then.
pub(crate) fn is_unwiped() -> bool {
    UNWIPED.load(Ordering::Relaxed)
}

/// Zeroed private memory that is zeroed again in a forked child.
pub(crate) fn private(bytes: usize) -> Result<*mut u8, Errno> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping; the advice concerns that only. Kernels before 4.14 refuse the advice.
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

/// Gives private memory or a mapping back.
pub(crate) fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: callers made the mapping and have no pointer into it left.
    unsafe {
        libc::munmap(address.cast(), bytes);
    }
}

/// Puts private memory where a mapping was.
pub(crate) fn replace_by_private(address: usize, bytes: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the range is a mapping of ours, and stays mapped throughout.
    unsafe {
        libc::mmap(address as *mut libc::c_void, bytes, access, flags, -1, 0);
    }
}

/// Brings pages of a mapping in, ready to be written, if the kernel knows how (5.14).
pub(crate) fn populate(address: *mut u8, bytes: usize) {
    let start = (address as usize) & !4095;
    let end = address as usize + bytes;
    // SAFETY: advice about a mapping of ours changes no contents.
    unsafe {
        libc::madvise(
            start as *mut libc::c_void,
            end - start,
            libc::MADV_POPULATE_WRITE,
        );
    }
}

/// Lets go of the pages of a shared mapping; what is touched again comes back from the file.
pub(crate) fn release(address: *mut u8, bytes: usize) {
    // SAFETY: of a shared mapping of a file nothing is lost.
    unsafe {
        libc::madvise(address.cast(), bytes, libc::MADV_DONTNEED);
    }
}

/// Makes a directory.
pub(crate) fn make_directory(path: &Path) -> Result<(), Errno> {
    if path.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    // SAFETY: see the module's text.
    check(unsafe { libc::mkdir(path.as_ptr(), 0o750) }.into()).map(|_| ())
}

/// Whether the process is root: it may become another user.
pub(crate) fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Sets the mode of a directory that this process has just made, if it is still that.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let Ok(directory) = open(path, flags) else {
        return;
    };
    // SAFETY: the structure is filled before it is looked at; our own descriptor.
    unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        if libc::fstat(directory.0, &mut about) == 0 && about.st_uid == libc::geteuid() {
            libc::fchmod(directory.0, mode);
        }
    }
}

/// Says something on standard error, unless what has its number is a connection, or a file that is
/// read as well.
pub(crate) fn say(text: &[u8]) {
    // SAFETY: the structure is filled before it is looked at; the slice.
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

/// Renames; for a directory the new name must be free.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    if from.overflowed() || to.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    // SAFETY: see the module's text.
    check(unsafe { libc::rename(from.as_ptr(), to.as_ptr()) }.into()).map(|_| ())
}

/// Whether something with that name is there.
pub(crate) fn exists(path: &Path) -> bool {
    // SAFETY: see the module's text.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 }
}

/// Deletes a file.
pub(crate) fn unlink(path: &Path) {
    // SAFETY: see the module's text.
    unsafe {
        libc::unlink(path.as_ptr());
    }
}

/// An environment variable, unless the program runs with privileges that its user lacks.
pub(crate) fn environment<'a>(name: &CStr) -> Option<&'a [u8]> {
    unsafe extern "C" {
        fn secure_getenv(name: *const libc::c_char) -> *mut libc::c_char;
    }
    // SAFETY: the C library gives a string or null; it is used at once, before the program can
    // change it on this thread.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// The current directory, appended.
pub(crate) fn current_directory(path: &mut Path) -> bool {
    let mut buffer = [0u8; 1024];
    // SAFETY: the buffer and its length.
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

/// Nanoseconds of a clock of the system.
#[inline]
pub(crate) fn clock(id: libc::clockid_t) -> u64 {
    // SAFETY: a local structure.
    unsafe {
        let mut time: libc::timespec = core::mem::zeroed();
        libc::clock_gettime(id, &mut time);
        (time.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(time.tv_nsec as u64)
    }
}

/// The thread's id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The process's id.
pub(crate) fn process_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::getpid() as u32 }
}

/// Whether a thread of this process has that id.
pub(crate) fn is_thread_alive(tid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process_id(), tid, 0) };
    result == 0 || errno() != libc::ESRCH
}

/// The CPU that the thread runs on.
pub(crate) fn cpu() -> u32 {
    // SAFETY: no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(u32::MAX)
}

/// Takes a `flock` if it is free.
pub(crate) fn try_lock(file: &Descriptor) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::flock(file.0, libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Waits for half a millisecond.
pub(crate) fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 500_000,
    };
    // SAFETY: a local structure.
    unsafe {
        libc::nanosleep(&time, ptr::null_mut());
    }
}

/// Sixteen random bytes.
pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: the array and its length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 16, libc::GRND_NONBLOCK) };
    if got != 16 {
        let (time, pid) = (clock(libc::CLOCK_REALTIME), u64::from(process_id()));
        bytes[..8].copy_from_slice(&time.to_le_bytes());
        bytes[8..].copy_from_slice(&pid.to_le_bytes());
    }
    bytes
}

/// The path of what has that name, which begins with a slash, in a directory.
pub(crate) fn below(directory: &Path, name: &[u8]) -> Path {
    let mut path = Path::new();
    path.push(directory.bytes());
    path.push(name);
    path
}
