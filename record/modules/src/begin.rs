//! Initialization when the program is loaded, and again in each forked child.
//!
//! Safety: constructors and fork handlers run in the program's thread. No state of this library is
//! in use then, except that in a forked child other threads may have left it half updated: it is
//! reset.

#![allow(unsafe_code)]

use core::ffi::CStr;

use crate::{modules, sys};

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// The environment variable with the session's directory.
const SESSION: &CStr = c"TRACEBRAID_SESSION";

/// Whether a session exists. A missing directory is reported once, because otherwise a user who has
/// forgotten to create it could not find out why nothing is recorded. Programs started by this
/// program stay silent.
fn has_session() -> bool {
    let Some(session) = variable(SESSION).filter(|session| !session.is_empty()) else {
        return false;
    };
    if sys::exists(session) {
        return true;
    }
    sys::say(b"libtracebraid_modules: nothing is recorded, because TRACEBRAID_SESSION names no directory: ");
    sys::say(session.to_bytes());
    sys::say(b"\n");
    // SAFETY: constructors run before the program has threads.
    unsafe { libc::unsetenv(SESSION.as_ptr()) };
    tracebraid_probe::forget_session();
    false
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: constructors run before the program can change its environment.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

extern "C" fn begin() {
    if !has_session() {
        return;
    }
    modules::begin();
    tracebraid_probe::functions::tell_first(modules::meet);
    // SAFETY: the function stays: this library is never unloaded.
    unsafe { pthread_atfork(None, None, Some(modules::forked)) };
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}
