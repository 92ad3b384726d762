//! The entry points of a layer, of both protocols.
//!
//! Source: the extension `cl_loader_layers` of Khronos, `CL/cl_layer.h`.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::functions::LAYERED;
use crate::status::{INVALID_VALUE, SUCCESS};
use crate::{next, values};

const API_VERSION: u32 = 0x4240;
const NAME: u32 = 0x4241;
/// The version of the protocol.
const VERSION: u32 = 100;

/// Number of functions that a layer can replace.
const ENTRIES: usize = 150;

/// The functions of this layer, for each loader; 0: the next layer's.
static REPLACED: [[AtomicUsize; ENTRIES]; next::LOADERS] =
    [const { [const { AtomicUsize::new(0) }; ENTRIES] }; next::LOADERS];
static NOTHING: [usize; ENTRIES] = [0; ENTRIES];

/// Properties of the layer, for the loader.
///
/// # Safety
/// `value` has room for `size` bytes, and `size_ret` is null or points to a size.
#[unsafe(no_mangle)]
unsafe extern "C" fn clGetLayerInfo(name: u32, size: usize, value: usize, size_ret: usize) -> i32 {
    let version = VERSION.to_ne_bytes();
    let text: &[u8] = match name {
        API_VERSION => &version,
        NAME => b"tracebraid\0",
        _ => return INVALID_VALUE,
    };
    if value != 0 {
        if size < text.len() {
            return INVALID_VALUE;
        }
        // SAFETY: there is room for `size` bytes.
        unsafe { (value as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    }
    // SAFETY: as required of the loader.
    unsafe { values::set(size_ret, text.len()) };
    SUCCESS
}

/// Begins the layer: takes the table of the next layer and gives its own.
///
/// # Safety
/// `target` has `entries` functions and lives as long as the process; the others point to values.
#[unsafe(no_mangle)]
unsafe extern "C" fn clInitLayer(
    entries: u32,
    target: *const usize,
    entries_ret: usize,
    dispatch_ret: usize,
) -> i32 {
    if target.is_null() || entries_ret == 0 || dispatch_ret == 0 {
        return INVALID_VALUE;
    }
    let loader = match tracebraid_probe::has_session() {
        // SAFETY: the table has functions.
        true => unsafe { next::take_table(target) },
        false => None,
    };
    let dispatch = match loader {
        // SAFETY: the table has `entries` functions.
        Some(loader) => unsafe { replace(loader, target, entries as usize) },
        None => NOTHING.as_ptr(),
    };
    // SAFETY: as required of the loader.
    unsafe {
        values::set(entries_ret, ENTRIES as u32);
        values::set(dispatch_ret, dispatch);
    }
    SUCCESS
}

/// As `clInitLayer`, for loaders from 2026 on.
///
/// # Safety
/// As `clInitLayer`.
#[unsafe(no_mangle)]
unsafe extern "C" fn clInitLayerWithProperties(
    entries: u32,
    target: *const usize,
    entries_ret: usize,
    dispatch_ret: usize,
    _properties: usize,
) -> i32 {
    // SAFETY: as required of the loader.
    unsafe { clInitLayer(entries, target, entries_ret, dispatch_ret) }
}

/// Ends the layer. The library stays loaded, and so do its tables.
#[unsafe(no_mangle)]
extern "C" fn clDeinitLayer() -> i32 {
    SUCCESS
}

/// Replaces all functions that the next layer has.
///
/// # Safety
/// `target` has `entries` functions.
unsafe fn replace(loader: usize, target: *const usize, entries: usize) -> *const usize {
    let replaced = &REPLACED[loader];
    for (index, functions) in &LAYERED.0 {
        // SAFETY: the index is below the number of functions.
        if *index < entries && unsafe { *target.add(*index) } != 0 {
            replaced[*index].store(functions[loader] as usize, Ordering::Relaxed);
        }
    }
    replaced.as_ptr().cast()
}
