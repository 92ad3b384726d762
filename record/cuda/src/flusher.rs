//! The thread that makes CUPTI deliver its records, and ends recording with the session.
//!
//! CUPTI delivers buffers that are full, which may take minutes. The thread asks for all complete
//! ones ten times in a second (CUPTI's own period, `cuptiActivityFlushPeriod`, only delivers full
//! ones), so that little is missing if the program is killed or the recording ends before it.
//!
//! At the end of the program the thread also delivers incomplete records, and the handler of `exit`
//! waits for it, but not forever: a program may exit within a function that the driver calls, where
//! CUPTI may wait for that function.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::cupti::{CUPTI, Cupti};
use crate::{buffers, injection};

const PERIOD: Duration = Duration::from_millis(100);
/// How long `exit` waits.
const PATIENCE: Duration = Duration::from_secs(3);
/// Flag of a flush that also delivers incomplete records.
const FORCED: u32 = 1;

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Running,
    /// The program exits.
    Exiting,
    Done,
}

static STAGE: Mutex<Stage> = Mutex::new(Stage::Running);
static CHANGED: Condvar = Condvar::new();
/// The process whose thread it is: a forked child has none.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// Devices that have a context, as bits, and those whose managed memory is recorded.
static DEVICES: AtomicU64 = AtomicU64::new(0);
static CONFIGURED: AtomicU64 = AtomicU64::new(0);

/// A context of this device exists.
pub(crate) fn has_context(device: u32) {
    if let Some(bit) = 1_u64.checked_shl(device) {
        DEVICES.fetch_or(bit, Ordering::AcqRel);
    }
}

/// Starts the thread.
pub(crate) fn start() {
    // SAFETY: `getpid` has no preconditions.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Release);
    // SAFETY: signals are blocked only while the thread is made, which inherits that: the program's
    // handlers do not run on it. The handler of `exit` stays mapped.
    unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut old: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        let mut thread: libc::pthread_t = 0;
        let created = libc::pthread_create(&raw mut thread, ptr::null(), run, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, ptr::null_mut());
        if created == 0 {
            libc::pthread_detach(thread);
            libc::atexit(at_exit);
        }
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    // SAFETY: the name ends with NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"tracebraid-cuda".as_ptr()) };
    let Some(cupti) = CUPTI.get() else {
        return ptr::null_mut();
    };
    loop {
        let stage = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = CHANGED.wait_timeout_while(stage, PERIOD, |stage| *stage == Stage::Running);
        let is_exiting = match waited {
            Ok((stage, _)) => *stage != Stage::Running,
            Err(_) => true,
        };
        let has_ended = tracebraid_probe::has_ended();
        if has_ended && !is_exiting {
            injection::end(cupti);
        } else {
            configure(cupti);
            // SAFETY: callbacks are registered.
            unsafe { (cupti.flush)(if is_exiting { FORCED } else { 0 }) };
            buffers::count_dropped(cupti);
        }
        if has_ended || is_exiting {
            *STAGE.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Done;
            CHANGED.notify_all();
            return ptr::null_mut();
        }
    }
}

/// Enables the records of managed memory of devices that have a context by now.
fn configure(cupti: &Cupti) {
    let devices = DEVICES.load(Ordering::Acquire);
    let new = devices & !CONFIGURED.swap(devices, Ordering::Relaxed);
    for device in (0..u64::BITS).filter(|device| new >> device & 1 != 0) {
        injection::enable_managed_memory(cupti, device);
    }
}

extern "C" fn at_exit() {
    // SAFETY: `getpid` has no preconditions.
    let own: c_int = unsafe { libc::getpid() };
    if PROCESS.load(Ordering::Acquire) != own {
        return;
    }
    let mut stage = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if *stage == Stage::Running {
        *stage = Stage::Exiting;
        CHANGED.notify_all();
    }
    // Without a result: the program exits in any case.
    let _ = CHANGED.wait_timeout_while(stage, PATIENCE, |stage| *stage != Stage::Done);
}
