//! What C programs call, but for `tb_reserve`, which is [`crate::fast`]'s.
//! `include/tracebraid/probe.h` declares it and says what it expects.
//!
//! Safety: pointers are what the header promises: static descriptors, strings with a NUL.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::Ordering;

use crate::class::Class;
use crate::{emit, fast, functions, standard};

/// Registers a descriptor: called by constructors.
///
/// # Safety
/// It is static and follows the header.
#[unsafe(no_mangle)]
unsafe extern "C" fn tb_register(class: *const Class) {
    // SAFETY: the caller's.
    if let Some(class) = unsafe { class.as_ref() } {
        emit::register(class);
    }
}

/// Records an event whose fields are encoded already; see the header.
///
/// # Safety
/// The descriptor is registered; there are so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tb_record(class: *const Class, fields: *const c_void, size: usize) {
    // SAFETY: the caller's; room that was given is of that size.
    unsafe {
        let class = &*class;
        let room = fast::reserve(class, size);
        if !room.is_null() {
            room.copy_from_nonoverlapping(fields.cast(), size);
            crate::reserve::commit(room, class.id.load(Ordering::Relaxed));
        }
    }
}

/// A text; none is shown as the header's `TB_STRING` shows it.
fn text<'a>(name: *const c_char) -> &'a str {
    if name.is_null() {
        return "(null)";
    }
    // SAFETY: the caller's.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*) => $call:expr;)*) => {$(
        #[doc = "See the header.\n\n# Safety\nStrings end with a NUL."]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) {
            $call;
        }
    )*};
}

exported! {
    tb_prof_in(name: *const c_char) => standard::prof_in(text(name));
    tb_prof_out(name: *const c_char) => standard::prof_out(text(name));
    tb_span_begin(id: u64, name: *const c_char) => standard::span_begin(id, text(name));
    tb_span_end(id: u64) => standard::span_end(id);
    tb_counter(name: *const c_char, value: i64) => standard::counter(text(name), value);
    tb_ult_create(ult: u64, name: *const c_char) => standard::ult_create(ult, text(name));
    tb_ult_switch(prev_ult: u64, next_ult: u64) => standard::ult_switch(prev_ult, next_ult);
    tb_ult_exit(ult: u64) => standard::ult_exit(ult);
    __cyg_profile_func_enter(function: *const c_void, call_site: *const c_void) =>
        functions::enter(function as usize, call_site as usize);
    __cyg_profile_func_exit(function: *const c_void, call_site: *const c_void) =>
        functions::exit(function as usize, call_site as usize);
}
