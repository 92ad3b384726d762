//! The program's own way with signals, beside ours.
//!
//! The program goes on to have what it asks for: its handler of SIGTRAP gets all SIGTRAPs that are not ours. And no mask
//! of its own keeps ours away: programs with a thread that takes all signals block them in all
//! others, which would leave those without stacks. So these functions of the C library are defined here and do
//! what theirs do, but for SIGTRAP: `sigaction`, `signal`, `sigprocmask`, `pthread_sigmask`; and `dlclose`, see
//! [`crate::modules`]. Other signals, SIGPROF too, are left alone.
//!
//! Safety: the functions are called as the C library's are; theirs are found by `dlsym` at the beginning. What the
//! program set for SIGTRAP lies in atomics, since its handler may be called at any time.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use libc::{sigaction as Action, sighandler_t, siginfo_t, sigset_t};

use crate::{exec, modules, sys};

type Sigaction = unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int;
type Signal = unsafe extern "C" fn(c_int, sighandler_t) -> sighandler_t;
type Mask = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

/// A function that is defined behind this library.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next {
            name,
            address: AtomicPtr::new(null_mut()),
        }
    }

    pub(crate) fn find(&self) -> *mut c_void {
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            // SAFETY: a name with a NUL.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.address.store(address, Ordering::Relaxed);
        }
        address
    }
}

static SIGACTION: Next = Next::new(c"sigaction");
static SIGNAL: Next = Next::new(c"signal");
static SIGPROCMASK: Next = Next::new(c"sigprocmask");
static PTHREAD_SIGMASK: Next = Next::new(c"pthread_sigmask");
static DLCLOSE: Next = Next::new(c"dlclose");

/// Whether our handler is installed.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// What the program set for SIGTRAP: handler, flags, mask.
static HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicUsize = AtomicUsize::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

const TRAP_BIT: u64 = 1 << (libc::SIGTRAP - 1);

fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Installs the handler. Whether it could.
pub(crate) fn begin(handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void)) -> bool {
    let all = [&SIGACTION, &SIGNAL, &SIGPROCMASK, &PTHREAD_SIGMASK, &DLCLOSE];
    let next = SIGACTION.find();
    if all.iter().any(|next| next.find().is_null()) || !exec::begin() {
        return false;
    }
    // SAFETY: the C library's function; zeros are a value of its arguments.
    unsafe {
        let next: Sigaction = transmute(next);
        let (mut action, mut old): (Action, Action) = (core::mem::zeroed(), core::mem::zeroed());
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigfillset(&raw mut action.sa_mask);
        if next(libc::SIGTRAP, &raw const action, &raw mut old) != 0 {
            return false;
        }
        note(&old);
        // A mask is inherited over exec.
        let mut trap = core::mem::zeroed();
        set_word(&raw mut trap, TRAP_BIT);
        let mask: Mask = transmute(PTHREAD_SIGMASK.find());
        mask(libc::SIG_UNBLOCK, &raw const trap, null_mut());
    }
    ACTIVE.store(true, Ordering::Release);
    true
}

/// The first 64 signals of a set; the kernel has no others.
unsafe fn word(set: *const sigset_t) -> u64 {
    // SAFETY: a set is at least that long.
    unsafe { set.cast::<u64>().read() }
}

unsafe fn set_word(set: *mut sigset_t, word: u64) {
    // SAFETY: as above.
    unsafe { set.cast::<u64>().write(word) }
}

fn note(action: &Action) {
    HANDLER.store(action.sa_sigaction, Ordering::Relaxed);
    FLAGS.store(action.sa_flags as usize, Ordering::Relaxed);
    // SAFETY: a set.
    MASK.store(unsafe { word(&raw const action.sa_mask) }, Ordering::Relaxed);
}

/// Gives a SIGTRAP that is not ours to the program, as it wants it.
pub(crate) fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let handler = HANDLER.load(Ordering::Relaxed);
    let flags = FLAGS.load(Ordering::Relaxed) as c_int;
    // SAFETY: the kernel's.
    let is_sent = unsafe { (*info).si_code } <= 0;
    match handler {
        libc::SIG_IGN if is_sent => return,
        libc::SIG_DFL | libc::SIG_IGN => return by_default(),
        _ => {}
    }
    if flags & libc::SA_RESETHAND != 0 {
        HANDLER.store(libc::SIG_DFL, Ordering::Relaxed);
    }
    // SAFETY: the handler is the program's, called with what it would be called with, and the mask that it would have.
    unsafe {
        let interrupted = word(&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask);
        let own = if flags & libc::SA_NODEFER == 0 {
            TRAP_BIT
        } else {
            0
        };
        let mask = interrupted | MASK.load(Ordering::Relaxed) | own;
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            null::<u64>(),
            8,
        );
        if flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = transmute(handler);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = transmute(handler);
            handler(signal);
        }
    }
}

/// Ends the program by SIGTRAP, as it would have without us.
fn by_default() {
    ACTIVE.store(false, Ordering::Relaxed);
    // SAFETY: the C library's function, found at the beginning; the signal comes when our handler returns.
    unsafe {
        let next: Sigaction = transmute(SIGACTION.find());
        let action: Action = core::mem::zeroed();
        next(libc::SIGTRAP, &raw const action, null_mut());
        let thread = libc::syscall(libc::SYS_gettid);
        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGTRAP);
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaction(signal: c_int, action: *const Action, old: *mut Action) -> c_int {
    let next = SIGACTION.find();
    if next.is_null() {
        sys::set_errno(libc::ENOSYS);
        return -1;
    }
    // SAFETY: the caller's.
    unsafe {
        let next: Sigaction = transmute(next);
        if !is_active() {
            return next(signal, action, old);
        }
        if signal == libc::SIGTRAP {
            return of_trap(action, old);
        }
        let Some(action) = action.as_ref() else {
            return next(signal, null(), old);
        };
        let mut action = *action;
        let mask = word(&raw const action.sa_mask) & !TRAP_BIT;
        set_word(&raw mut action.sa_mask, mask);
        next(signal, &raw const action, old)
    }
}

/// `sigaction` for SIGTRAP: what the kernel would keep is kept here.
unsafe fn of_trap(action: *const Action, old: *mut Action) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        let new = action.as_ref().copied();
        if let Some(old) = old.as_mut() {
            *old = core::mem::zeroed();
            old.sa_sigaction = HANDLER.load(Ordering::Relaxed);
            old.sa_flags = FLAGS.load(Ordering::Relaxed) as c_int;
            set_word(&raw mut old.sa_mask, MASK.load(Ordering::Relaxed));
        }
        if let Some(new) = new {
            note(&new);
        }
    }
    0
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    let next = SIGNAL.find();
    if next.is_null() {
        return libc::SIG_ERR;
    }
    // SAFETY: the caller's.
    unsafe {
        if !is_active() || number != libc::SIGTRAP {
            let next: Signal = transmute(next);
            return next(number, handler);
        }
        let mut action: Action = core::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        let mut old = core::mem::zeroed();
        of_trap(&raw const action, &raw mut old);
        old.sa_sigaction
    }
}

unsafe fn masked(next: &Next, how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    let function = next.find();
    if function.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: the caller's.
    unsafe {
        let function: Mask = transmute(function);
        match set.as_ref() {
            Some(set) if is_active() && how != libc::SIG_UNBLOCK => {
                let mut set = *set;
                let mask = word(&raw const set) & !TRAP_BIT;
                set_word(&raw mut set, mask);
                function(how, &raw const set, old)
            }
            _ => function(how, set, old),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigprocmask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { masked(&SIGPROCMASK, how, set, old) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { masked(&PTHREAD_SIGMASK, how, set, old) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let next = DLCLOSE.find();
    if next.is_null() {
        return -1;
    }
    // SAFETY: the caller's.
    let close = || unsafe {
        let next: Dlclose = transmute(next);
        next(handle)
    };
    if is_active() {
        modules::closing(close)
    } else {
        close()
    }
}
