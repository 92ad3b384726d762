//! Event classes as programs declare them: static descriptors, shared with C (`struct tb_class`).
//!
//! A descriptor is written when it is registered, under the process's lock, and read by sites at
//! any time. `enabled` always points to a byte that stays: the descriptor's own, a static one, or
//! one of a control file, which are never unmapped.

#![allow(unsafe_code)]

use core::ffi::c_char;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, Ordering};

use crate::description::Description;

/// A descriptor.
#[repr(C)]
pub(crate) struct Class {
    /// The byte that says whether it is switched on.
    pub(crate) enabled: AtomicPtr<u8>,
    /// `provider:event`, with a NUL.
    name: *const c_char,
    /// TSDL of the fields, with a NUL; or null, and `describe` writes it.
    fields: *const c_char,
    describe: Option<fn(&mut Description)>,
    /// Epoch of the process for which it is registered.
    pub(crate) epoch: AtomicU32,
    pub(crate) id: AtomicU16,
    /// Always 0: where `enabled` points in C before registration.
    off: AtomicU8,
}

// SAFETY: the pointers are to static text.
unsafe impl Sync for Class {}

/// Where `enabled` points before a class registers itself by being used.
static ON: AtomicU8 = AtomicU8::new(1);
/// Where `enabled` points when there is no session.
static OFF: AtomicU8 = AtomicU8::new(0);

impl Class {
    /// A class of a Rust site, which registers when it is first met. `name` ends with a NUL.
    pub(crate) const fn new(name: &'static str, describe: fn(&mut Description)) -> Class {
        Class {
            enabled: AtomicPtr::new(ON.as_ptr()),
            name: name.as_ptr().cast(),
            fields: core::ptr::null(),
            describe: Some(describe),
            epoch: AtomicU32::new(0),
            id: AtomicU16::new(0),
            off: AtomicU8::new(0),
        }
    }

    /// Whether it is switched on: two loads.
    #[inline(always)]
    pub(crate) fn is_enabled(&self) -> bool {
        // SAFETY: see the module's text.
        unsafe { self.enabled.load(Ordering::Relaxed).read_volatile() != 0 }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: static text with a NUL.
        unsafe { core::ffi::CStr::from_ptr(self.name).to_bytes() }
    }

    /// Its fields in TSDL, as far as they fit.
    pub(crate) fn fields(&self, into: &mut Description) {
        if let Some(describe) = self.describe {
            describe(into);
        } else if !self.fields.is_null() {
            // SAFETY: as for the name.
            into.text
                .push(unsafe { core::ffi::CStr::from_ptr(self.fields).to_bytes() });
        }
    }

    /// Switches it off until it is registered again.
    pub(crate) fn switch_off(&self) {
        self.enabled.store(OFF.as_ptr(), Ordering::Release);
    }

    /// Its id, if it was registered last in that epoch.
    pub(crate) fn id_of(&self, epoch: u64) -> Option<u16> {
        let is_of = epoch != 0 && u64::from(self.epoch.load(Ordering::Acquire)) == epoch;
        is_of.then(|| self.id.load(Ordering::Relaxed))
    }

    /// Notes that it belongs to a process which has no trace: whether it is on is for that one to
    /// say from which this one was forked, if it was registered there.
    pub(crate) fn registered_as_lost(&self, epoch: u32) {
        if self.epoch.load(Ordering::Acquire) == 0 {
            self.enabled.store(ON.as_ptr(), Ordering::Release);
        }
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Notes what registration gave.
    pub(crate) fn registered(&self, enabled: *mut u8, id: u16, epoch: u32) {
        self.id.store(id, Ordering::Relaxed);
        self.enabled.store(enabled, Ordering::Release);
        self.epoch.store(epoch, Ordering::Release);
    }
}
