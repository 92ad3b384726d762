//! The tracer's C functions (`tracebraid/probe.h`).
//!
//! By their names, not as Rust functions: if the program is linked with the tracer or another
//! recorder has preloaded it, the dynamic linker resolves these calls to that copy, and the process
//! has one trace. Otherwise the copy in this library is used.
//!
//! Safety: strings end with a NUL, and classes are static and registered before they are used.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, Ordering};

// Links the copy in this library.
use tracebraid_probe as _;

/// `struct tb_class`.
#[repr(C)]
pub(crate) struct Class {
    enabled: AtomicPtr<u8>,
    name: *const c_char,
    fields: *const c_char,
    describe: *const c_void,
    epoch: AtomicU32,
    id: AtomicU16,
    off: AtomicU8,
    is_registered: AtomicBool,
}

// SAFETY: the pointers are to static text.
unsafe impl Sync for Class {}

impl Class {
    /// `fields` is TSDL.
    pub(crate) const fn new(name: &'static CStr, fields: &'static CStr) -> Class {
        Class {
            enabled: AtomicPtr::new(core::ptr::null_mut()),
            name: name.as_ptr(),
            fields: fields.as_ptr(),
            describe: core::ptr::null(),
            epoch: AtomicU32::new(0),
            id: AtomicU16::new(0),
            off: AtomicU8::new(0),
            is_registered: AtomicBool::new(false),
        }
    }

    /// Registers the class; once, while no other thread uses it.
    pub(crate) fn register(&'static self) {
        self.enabled.store(self.off.as_ptr(), Ordering::Relaxed);
        unsafe { tb_register(self) };
        self.is_registered.store(true, Ordering::Release);
    }

    /// Records an event whose fields are encoded in `fields`, if the class is enabled.
    pub(crate) fn record(&'static self, fields: &[u8]) {
        if !self.is_registered.load(Ordering::Acquire) {
            return;
        }
        unsafe {
            if self.enabled.load(Ordering::Relaxed).read_volatile() != 0 {
                tb_record(self, fields.as_ptr().cast(), fields.len());
            }
        }
    }
}

unsafe extern "C" {
    fn tb_register(class: *const Class);
    fn tb_record(class: *const Class, fields: *const c_void, size: usize);
    fn tb_ult_create(ult: u64, name: *const c_char);
    fn tb_ult_switch(prev_ult: u64, next_ult: u64);
    fn tb_ult_block(ult: u64, reason: *const c_char);
    fn tb_ult_wake(ult: u64);
    fn tb_ult_exit(ult: u64);
    fn tb_lwp_begin(runtime: *const c_char);
    fn tb_lwp_end();
    fn tb_span_begin(id: u64, name: *const c_char);
    fn tb_span_end(id: u64);
}

macro_rules! safe {
    ($($name:ident = $of:ident($($argument:ident: $type:ty = $value:expr),*);)*) => {$(
        #[inline]
        pub(crate) fn $name($($argument: $type),*) {
            unsafe { $of($($value),*) }
        }
    )*};
}

safe! {
    ult_create = tb_ult_create(ult: u64 = ult, name: &CStr = name.as_ptr());
    ult_switch = tb_ult_switch(prev: u64 = prev, next: u64 = next);
    ult_block = tb_ult_block(ult: u64 = ult, reason: &CStr = reason.as_ptr());
    ult_wake = tb_ult_wake(ult: u64 = ult);
    ult_exit = tb_ult_exit(ult: u64 = ult);
    lwp_begin = tb_lwp_begin(runtime: &CStr = runtime.as_ptr());
    lwp_end = tb_lwp_end();
    span_begin = tb_span_begin(id: u64 = id, name: &CStr = name.as_ptr());
    span_end = tb_span_end(id: u64 = id);
}
