//! The C functions that `include/tracebraid/probe.h` declares and documents, except `tb_reserve`
//! ([`crate::fast`]).
//!
//! Safety: pointers are as the header requires: static descriptors, NUL-terminated strings.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::Ordering;

use crate::class::Class;
use crate::{emit, fast, functions, standard};

/// Registers a descriptor: called by constructors.
///
/// # Safety
/// The descriptor is static and follows the header.
#[unsafe(no_mangle)]
unsafe extern "C" fn tb_register(class: *const Class) {
    // SAFETY: guaranteed by the caller.
    if let Some(class) = unsafe { class.as_ref() } {
        emit::register(class);
    }
}

/// Records an event whose fields are encoded already; see the header.
///
/// # Safety
/// The descriptor is registered; `fields` has `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tb_record(class: *const Class, fields: *const c_void, size: usize) {
    // SAFETY: guaranteed by the caller; reserved memory has that size.
    unsafe {
        let class = &*class;
        let room = fast::reserve(class, size);
        if !room.is_null() {
            room.copy_from_nonoverlapping(fields.cast(), size);
            crate::reserve::commit(room, class.id.load(Ordering::Relaxed));
        }
    }
}

/// A text of C; null is replaced as by the header's `TB_STRING`.
struct Text(*const c_char);

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        if self.0.is_null() {
            return "(null)";
        }
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { CStr::from_ptr(self.0) }.to_bytes();
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
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
    tb_prof_in(name: *const c_char) => standard::prof_in(Text(name));
    tb_prof_out(name: *const c_char) => standard::prof_out(Text(name));
    tb_span_begin(id: u64, name: *const c_char) => standard::span_begin(id, Text(name));
    tb_span_end(id: u64) => standard::span_end(id);
    tb_counter(name: *const c_char, value: i64) => standard::counter(Text(name), value);
    tb_ult_create(ult: u64, name: *const c_char) => standard::ult_create(ult, Text(name));
    tb_ult_switch(prev_ult: u64, next_ult: u64) => standard::ult_switch(prev_ult, next_ult);
    tb_ult_block(ult: u64, reason: *const c_char) => standard::ult_block(ult, Text(reason));
    tb_ult_wake(ult: u64) => standard::ult_wake(ult);
    tb_ult_exit(ult: u64) => standard::ult_exit(ult);
    tb_ult_name(ult: u64, name: *const c_char) => standard::ult_name(ult, Text(name));
    tb_ult_state(ult: u64, lwp: i32, state: u8, name: *const c_char, reason: *const c_char) =>
        standard::ult_state_number(ult, lwp, state, Text(name), Text(reason));
    tb_ult_call_begin(ult: u64) => standard::ult_call_begin(ult);
    tb_ult_call_end(ult: u64) => standard::ult_call_end(ult);
    tb_lwp_begin(runtime: *const c_char) => standard::lwp_begin(Text(runtime));
    tb_lwp_end() => standard::lwp_end();
    tb_lwp_processor(processor: i32) => standard::lwp_processor(processor);
    __cyg_profile_func_enter(function: *const c_void, call_site: *const c_void) =>
        functions::enter(function as usize, call_site as usize);
    __cyg_profile_func_exit(function: *const c_void, call_site: *const c_void) =>
        functions::exit(function as usize, call_site as usize);
}
