//! NVIDIA's CUPTI: where it is, and its functions.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute_copy;
use std::sync::OnceLock;

mod search;

/// CUPTI, once it is loaded.
pub(crate) static CUPTI: OnceLock<Cupti> = OnceLock::new();

pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const u8);
pub(crate) type BufferRequested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(crate) type BufferCompleted = unsafe extern "C" fn(usize, u32, *mut u8, usize, usize);
pub(crate) type Clock = extern "C" fn() -> u64;

/// Declares the structure of functions, and how it is filled from a library.
macro_rules! functions {
    (required { $($(#[$about:meta])* $field:ident: $name:literal fn($($argument:ty),*);)* }
     optional { $($(#[$of_optional:meta])* $optional:ident: $its:literal fn($($of:ty),*);)* }) => {
        /// Functions of CUPTI. Each returns 0, or an error.
        pub(crate) struct Cupti {
            path: Path,
            $($(#[$about])* pub(crate) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
            $($(#[$of_optional])* pub(crate) $optional: Option<unsafe extern "C" fn($($of),*) -> c_int>,)*
        }

        impl Cupti {
            /// # Safety
            /// `handle` is that of a library of CUPTI, which is never closed.
            unsafe fn of(handle: *mut c_void, path: Path) -> Option<Cupti> {
                // SAFETY: functions of these names have these types.
                unsafe {
                    Some(Cupti {
                        $($field: transmute_copy(&address(handle, $name)?),)*
                        $($optional: address(handle, $its).map(|of| transmute_copy(&of)),)*
                        path,
                    })
                }
            }
        }
    };
}

functions! {
    required {
    version: c"cuptiGetVersion" fn(*mut u32);
    subscribe: c"cuptiSubscribe" fn(*mut usize, Callback, *mut c_void);
    unsubscribe: c"cuptiUnsubscribe" fn(usize);
    enable_domain: c"cuptiEnableDomain" fn(u32, usize, u32);
    enable_callback: c"cuptiEnableCallback" fn(u32, usize, u32, u32);
    activity_enable: c"cuptiActivityEnable" fn(u32);
    activity_disable: c"cuptiActivityDisable" fn(u32);
    register: c"cuptiActivityRegisterCallbacks" fn(BufferRequested, BufferCompleted);
    flush: c"cuptiActivityFlushAll" fn(u32);
    next_record: c"cuptiActivityGetNextRecord" fn(*mut u8, usize, *mut *mut u8);
    dropped: c"cuptiActivityGetNumDroppedRecords" fn(usize, u32, *mut usize);
    }
    optional {
    set_clock: c"cuptiActivityRegisterTimestampCallback" fn(Clock);
    latency: c"cuptiActivityEnableLatencyTimestamps" fn(u8);
    /// Whether queries of events that are not complete are recorded.
    all_queries: c"cuptiActivityEnableAllSyncRecords" fn(u8);
    managed_memory: c"cuptiActivityConfigureUnifiedMemoryCounter" fn(*mut [u32; 4], u32);
    stream_id: c"cuptiGetStreamIdEx" fn(usize, usize, u8, *mut u32);
    context_id: c"cuptiGetContextId" fn(usize, *mut u32);
    }
}

/// # Safety
/// The library is open.
unsafe fn address(handle: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: as above; the name ends with NUL.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!address.is_null()).then_some(address as usize)
}

/// A path that ends with NUL.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    bytes: [u8; MOST_PATH],
    length: usize,
}

const MOST_PATH: usize = 1024;

impl Path {
    pub(crate) const fn new() -> Path {
        Path {
            bytes: [0; MOST_PATH],
            length: 0,
        }
    }

    /// The parts, one after the other; `None` if they are too long.
    pub(crate) fn of(parts: &[&[u8]]) -> Option<Path> {
        let mut path = Path::new();
        for part in parts {
            // The last byte stays 0.
            let room = path.bytes.get_mut(path.length..MOST_PATH - 1)?;
            room.get_mut(..part.len())?.copy_from_slice(part);
            path.length += part.len();
        }
        Some(path)
    }

    pub(crate) fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

impl Cupti {
    /// Loads CUPTI, or returns the reason why that fails.
    pub(crate) fn load() -> Result<&'static Cupti, &'static str> {
        let Some((handle, path)) = search::open() else {
            return Err("libcupti.so is not found");
        };
        // SAFETY: the library is CUPTI by its name, and stays open.
        let cupti = unsafe { Cupti::of(handle, path) };
        let cupti = cupti.ok_or("libcupti.so lacks functions")?;
        Ok(CUPTI.get_or_init(|| cupti))
    }

    /// The file that was loaded, as far as it is known.
    pub(crate) fn path(&self) -> &CStr {
        self.path.as_c()
    }
}

/// The path of the library that contains an address.
pub(crate) fn path_of(address: usize) -> Option<Path> {
    // SAFETY: zeros are a valid value of this structure of pointers.
    let mut place: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: `dladdr` accepts every address, and fills in the structure if it returns not 0.
    let found = unsafe { libc::dladdr(address as *const c_void, &raw mut place) };
    if found == 0 || place.dli_fname.is_null() {
        return None;
    }
    // SAFETY: names of loaded libraries end with NUL.
    Path::of(&[unsafe { CStr::from_ptr(place.dli_fname as *const c_char) }.to_bytes()])
}
