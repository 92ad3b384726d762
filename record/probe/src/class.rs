//! Event classes as programs declare them: static descriptors, shared with C (`struct tb_class`).
//!
//! A descriptor is written when it is registered, under the process's lock, and read by probes at
//! any time. `enabled` always points to a byte that is never unmapped: the descriptor's own, a
//! static byte, or a byte of a control file.

#![allow(unsafe_code)]

use core::ffi::c_char;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, Ordering};

use crate::description::Description;

#[repr(C)]
pub(crate) struct Class {
    /// Points to a byte that is 1 if the class is enabled.
    pub(crate) enabled: AtomicPtr<u8>,
    /// `provider:event`, NUL-terminated.
    name: *const c_char,
    /// TSDL of the fields, NUL-terminated; if null, `describe` writes it.
    fields: *const c_char,
    describe: Option<fn(&mut Description)>,
    /// Epoch of the process in which the class is registered.
    pub(crate) epoch: AtomicU32,
    pub(crate) id: AtomicU16,
    /// Always 0: target of `enabled` in C before registration.
    off: AtomicU8,
}

// SAFETY: the pointers are to static text.
unsafe impl Sync for Class {}

/// Target of `enabled` before a class is registered by its first use.
static ON: AtomicU8 = AtomicU8::new(1);
/// Target of `enabled` without a session.
static OFF: AtomicU8 = AtomicU8::new(0);

impl Class {
    /// A class of a Rust probe, which is registered at its first use. `name` ends with a NUL.
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

    /// True if the class is enabled: two loads.
    #[inline(always)]
    pub(crate) fn is_enabled(&self) -> bool {
        // SAFETY: see the module documentation.
        unsafe { self.enabled.load(Ordering::Relaxed).read_volatile() != 0 }
    }

    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: static text with a NUL.
        unsafe { core::ffi::CStr::from_ptr(self.name).to_bytes() }
    }

    /// Appends its fields in TSDL, as far as they fit.
    pub(crate) fn fields(&self, into: &mut Description) {
        if let Some(describe) = self.describe {
            describe(into);
        } else if !self.fields.is_null() {
            // SAFETY: as for the name.
            into.text
                .push(unsafe { core::ffi::CStr::from_ptr(self.fields).to_bytes() });
        }
    }

    /// Disables the class until it is registered again.
    pub(crate) fn switch_off(&self) {
        self.enabled.store(OFF.as_ptr(), Ordering::Release);
    }

    /// The class id, if its last registration was in that epoch.
    pub(crate) fn id_of(&self, epoch: u64) -> Option<u16> {
        let is_of = epoch != 0 && u64::from(self.epoch.load(Ordering::Acquire)) == epoch;
        is_of.then(|| self.id.load(Ordering::Relaxed))
    }

    /// Marks the class as registered in a process without a trace. If the process from which this
    /// process was forked had registered the class, the control file of that process still decides
    /// whether it is enabled.
    pub(crate) fn registered_as_lost(&self, epoch: u32) {
        if self.epoch.load(Ordering::Acquire) == 0 {
            self.enabled.store(ON.as_ptr(), Ordering::Release);
        }
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Stores the result of a registration.
    pub(crate) fn registered(&self, enabled: *mut u8, id: u16, epoch: u32) {
        self.id.store(id, Ordering::Relaxed);
        self.enabled.store(enabled, Ordering::Release);
        self.epoch.store(epoch, Ordering::Release);
    }
}
