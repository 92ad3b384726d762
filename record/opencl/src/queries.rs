//! Properties of objects of OpenCL.

#![allow(unsafe_code)]

use core::ffi::CStr;
use core::fmt;
use core::mem::size_of;

/// A text of at most 255 bytes.
pub(crate) struct Text {
    bytes: [u8; 256],
    used: usize,
}

impl Text {
    pub(crate) const fn new() -> Text {
        Text {
            bytes: [0; 256],
            used: 0,
        }
    }

    pub(crate) fn get(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// Appends a text, all of which must fit.
impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        // The last byte stays 0.
        let room = self.bytes[..255].get_mut(self.used..end);
        room.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

pub(crate) type Query = unsafe extern "C" fn(usize, u32, usize, usize, usize) -> i32;

/// A property that is a value; `None` if it cannot be read.
///
/// # Safety
/// `query` is a query for properties of `object`, and the property has the type `T`.
pub(crate) unsafe fn known<T: Default>(
    query: Option<Query>,
    object: usize,
    name: u32,
) -> Option<T> {
    let mut value = T::default();
    let place = &raw mut value as usize;
    // SAFETY: there is room for the value.
    let status = unsafe { query?(object, name, size_of::<T>(), place, 0) };
    (status == 0).then_some(value)
}

/// As [`known`]; the default of the type if the property cannot be read.
///
/// # Safety
/// As [`known`].
pub(crate) unsafe fn value<T: Default>(query: Option<Query>, object: usize, name: u32) -> T {
    // SAFETY: as required of the caller.
    unsafe { known(query, object, name) }.unwrap_or_default()
}

/// A property that is a text; empty if it cannot be read or is too long.
///
/// # Safety
/// `query` is a query for properties of `object`.
pub(crate) unsafe fn text(query: Option<Query>, object: usize, name: u32) -> Text {
    let mut text = Text::new();
    if let Some(query) = query {
        // The last byte stays 0.
        // SAFETY: there is room for 255 bytes.
        unsafe { query(object, name, 255, text.bytes.as_mut_ptr() as usize, 0) };
    }
    text
}
