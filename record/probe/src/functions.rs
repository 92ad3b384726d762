//! Functions of programs that are compiled with `-finstrument-functions`.
//!
//! Safety: only values of the hook's type are stored.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::probe;

/// Called with each function's address before the address is recorded.
static HOOK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Has `hook` called with each function's address before the address is recorded, so that the hook
/// can record the module first. The hook may be called in signal handlers.
pub fn tell_first(hook: fn(u64)) {
    HOOK.store(hook as *mut (), Ordering::Release);
}

fn told(address: usize) -> usize {
    let hook = HOOK.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: `tell_first` alone stores here.
        let hook: fn(u64) = unsafe { core::mem::transmute(hook) };
        hook(address as u64);
    }
    address
}

/// A function is entered.
pub(crate) fn enter(function: usize, call_site: usize) {
    probe!(lttng_ust_cyg_profile, func_entry, addr: usize = told(function), call_site: usize = told(call_site));
}

/// A function is left.
pub(crate) fn exit(function: usize, call_site: usize) {
    probe!(lttng_ust_cyg_profile, func_exit, addr: usize = told(function), call_site: usize = told(call_site));
}
