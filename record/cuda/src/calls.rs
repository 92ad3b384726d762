//! Calls of both APIs, as CUPTI reports them: before and after each, on the thread that calls.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};

use tracebraid_probe::probe;
use tracebraid_probe::site::Address;

use crate::cupti::CUPTI;
use crate::functions::{DRIVER, Function, RUNTIME};
use crate::layouts::{callback_data, resource_data};
use crate::text;

/// Domains of callbacks.
pub(crate) const DRIVER_API: u32 = 1;
pub(crate) const RUNTIME_API: u32 = 2;
pub(crate) const RESOURCE: u32 = 3;
/// A callback of the domain of resources.
pub(crate) const STREAM_CREATED: u32 = 3;

/// Site of a callback at the begin of a call.
const ENTER: u32 = 0;

/// Called by CUPTI.
///
/// # Safety
/// `data` is as CUPTI documents it for the domain.
pub(crate) unsafe extern "C" fn called(_: *mut c_void, domain: u32, number: u32, data: *const u8) {
    if data.is_null() {
        return;
    }
    let table: &'static [Option<Function>] = match domain {
        DRIVER_API => &DRIVER,
        RUNTIME_API => &RUNTIME,
        // SAFETY: as above.
        RESOURCE if number == STREAM_CREATED => return unsafe { stream_created(data) },
        _ => return,
    };
    // SAFETY: as above.
    unsafe {
        let is_entry = callback_data::CALLBACK_SITE.of(data) == ENTER;
        let arguments = callback_data::FUNCTION_PARAMS.of(data) as *const u8;
        let correlation = callback_data::CORRELATION_ID.of(data);
        let result = callback_data::FUNCTION_RETURN_VALUE.of(data) as *const i32;
        let result = match is_entry || result.is_null() {
            true => 0,
            false => *result,
        };
        match table.get(number as usize).and_then(Option::as_ref) {
            Some(function) if is_entry => function.enters(arguments, correlation),
            Some(function) => function.exits(arguments, result, correlation),
            None => {
                let name = text(callback_data::FUNCTION_NAME.of(data) as *const _);
                unknown(name, is_entry, result, correlation);
            }
        }
    }
}

/// Records a call of a function that is newer than the table.
fn unknown(name: &CStr, is_entry: bool, result: i32, correlation: u32) {
    if is_entry {
        probe!(
            tracebraid_cuda,
            call_entry,
            function: &CStr = name,
            correlation: u32 = correlation
        );
    } else {
        probe!(
            tracebraid_cuda,
            call_exit,
            function: &CStr = name,
            result: i32 = result,
            correlation: u32 = correlation
        );
    }
}

/// Relates the handle of a new stream, which calls have, to its number, which commands have.
///
/// # Safety
/// `data` is that of a callback for resources.
unsafe fn stream_created(data: *const u8) {
    // SAFETY: as above.
    let (context, stream) = unsafe {
        (
            resource_data::CONTEXT.of(data),
            resource_data::STREAM.of(data),
        )
    };
    let Some(cupti) = CUPTI.get() else { return };
    let (mut number, mut context_number) = (0_u32, 0_u32);
    // SAFETY: both exist, since CUPTI reports them; there is room for the numbers.
    let found = unsafe {
        cupti
            .stream_id
            .is_some_and(|get| get(context, stream, 0, &raw mut number) == 0)
            && cupti
                .context_id
                .is_some_and(|get| get(context, &raw mut context_number) == 0)
    };
    if found {
        probe!(
            tracebraid_cuda,
            stream_handle,
            handle: Address = Address(stream as u64),
            context_handle: Address = Address(context as u64),
            context: u32 = context_number,
            stream: u32 = number
        );
    }
}
